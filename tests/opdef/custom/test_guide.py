"""The guide's package is one, and does what the guide says."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import crosschip as cc

GUIDE = (Path(__file__).parents[3] / "docs" / "custom-operators.md").read_text("utf-8")


def block(language: str, start: str) -> str:
    """Return the block of code of a language that holds a text."""
    pattern = rf"^( *)```{language}\n(.*?)^ *```"
    found = re.findall(pattern, GUIDE, re.DOTALL | re.MULTILINE)
    (indent, code), *_ = [(i, c) for i, c in found if start in c]
    return re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_the_guides_operator_runs(
    device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "smooth"
    folder.mkdir()
    (folder / "operators.xml").write_text(block("xml", "Softclip"))
    code = f"{block('python', 'defines')}\n\n{block('python', 'def softclip')}"
    (folder / "__init__.py").write_text(code)
    node = helper.make_node("Softclip", ["x"], ["y"], domain="example", bound=2.0)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["N"]) for n in "xy")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("example", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets)
    onnx.save(model, tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "smooth", raising=False)
    smooth = import_module("smooth")
    smooth.package.register()
    try:
        compiled = cc.compile("model.onnx", device, cache=tmp_path / "cache")
        values = np.linspace(-3, 3, 7, dtype=np.float32)
        expected = values / (1 + 2 * np.abs(values))
        np.testing.assert_allclose(compiled(values), expected, rtol=1e-6)
        (decision,) = compiled.placement.decisions
        words = {"reference": "supported", "openvino": "supported"}.get(device, "decomposed")
        assert decision.device == device
        assert words in decision.reasons[device]
    finally:
        smooth.package.unregister()
        sys.modules.pop("smooth")
