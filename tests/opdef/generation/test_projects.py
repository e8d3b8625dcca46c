"""Projects that `crosschip opdef generate` writes, used as by those who fill them in."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.opdef.generation.projects import (
    SIGNALS,
    build,
    fill_in,
    generated,
    linted,
    own_tests,
    ran,
)

RUN = """
import json, sys
import numpy as np
import crosschip

placed = {}
for device in ("reference", "onnxruntime", "openvino"):
    devices = list(dict.fromkeys([device, "reference"]))
    with crosschip.compile("model.onnx", devices, cache=False) as compiled:
        made = compiled.run({"x": np.load("x.npy")})["y"]
    np.testing.assert_allclose(made, np.load("y.npy"), rtol=1e-5)
    placed[device] = {d.operation.type: d.device for d in compiled.placement.decisions}
print(json.dumps(placed))
"""
"""Runs a model on each device, and prints where its operators ran."""

ON_OPENVINO = """
    import numpy as np
    from openvino import opset15 as ops

    size = ops.multiply(ops.abs(graph[op.in0]), np.float32(op.bound))
    return ops.divide(graph[op.in0], ops.add(size, np.float32(1)))
"""


def model() -> onnx.ModelProto:
    """Operators of both packages, and one of ONNX's own."""
    nodes = [
        helper.make_node("SoftClip", ["x"], ["a"], domain="signals", bound=2.0),
        helper.make_node("Widen", ["a"], ["b"], domain="kernels", times=3),
        helper.make_node("Mix", ["b", "b", "b"], ["c"], domain="kernels"),
        helper.make_node("Mix", ["c", "c"], ["d"], domain="signals"),
        helper.make_node("Add", ["d", "one"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    one = helper.make_tensor("one", TensorProto.FLOAT, [1], [1.0])
    graph = helper.make_graph(nodes, "signals", [x], [y], [one])
    opsets = [helper.make_opsetid(domain, 17) for domain in ("", "signals", "kernels")]
    return helper.make_model(graph, opset_imports=opsets)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["python", "native"])
def test_stubs_are_clean_and_say_that_they_are_stubs(target: str, tmp_path: Path) -> None:
    project = generated(tmp_path, target, backends=["openvino"]).folder
    linted(project)
    if target == "native":
        build(project)
    printed = own_tests(project)
    assert "6 xfailed" in printed
    assert "passed" not in printed
    assert f"not written yet: {'widen.c' if target == 'native' else 'widen.py'}" in printed
    assert "test_widen.py::test_it_is_right - not tested yet: RIGHT is empty" in printed


@pytest.mark.slow
@pytest.mark.parametrize("target", ["python", "native"])
def test_what_is_filled_in_is_tested(target: str, tmp_path: Path) -> None:
    project = generated(tmp_path, target).folder
    fill_in(project)
    if target == "native":
        build(project)
    compare(project, "soft_clip", '{"in0": model_input([1.0, -3.0])}', "[0.5, -0.75]")
    compare(
        project, "mix", '{"ini": [model_input([1.0, 2.0]), model_input([3.0, 4.0])]}', "[4.0, 7.0]"
    )
    printed = own_tests(project, status=1)
    assert "2 failed, 3 passed, 1 xfailed" in printed
    assert "[XPASS(strict)] not written yet: widen" in printed  # its mark is still there
    assert "Mismatched elements: 1 / 2" in printed  # 2 and 4 are not 7


def compare(project: Path, module: str, use: str, right: str) -> None:
    """Take the marks away in an operator's test, and write a use into it with its output."""
    path = project / "tests" / f"test_{module}.py"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("@pytest.mark"))
    text = text.replace("= []", f"= [({use}, [np.array({right})])]")
    path.write_text(text.replace("import Example,", "import Example, model_input,"), "utf-8")


@pytest.mark.slow
def test_both_are_installed_and_run_in_a_model(tmp_path: Path) -> None:
    """The one in C has another name, so that both can be there at once."""
    other = tmp_path / "other.xml"
    text = SIGNALS.read_text("utf-8").replace('"Signals"', '"Kernels"')
    other.write_text(text.replace('"signals"', '"kernels"'), "utf-8")
    in_python = generated(tmp_path, "python", backends=["openvino"]).folder
    in_c = generated(tmp_path, "native", other).folder
    for project in (in_python, in_c):
        fill_in(project)
    function = in_python / "src" / "signals" / "on_openvino" / "soft_clip.py"
    stub = function.read_text("utf-8").replace(", limit=not_written", "")
    function.write_text(re.sub("\n    raise .*", ON_OPENVINO, stub), "utf-8")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    site = tmp_path / "site"
    ran([sys.executable, *install, "--target", str(site), str(in_python), str(in_c)], tmp_path)
    assert list(site.glob("kernels/*.so"))
    x = np.linspace(-3, 3, 8, dtype=np.float32).reshape(2, 4)
    onnx.save(model(), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", 6 * np.tile(x / (1 + 2 * abs(x)), (1, 3)) + 1)
    placed = json.loads(ran([sys.executable, "-c", RUN], tmp_path, site))
    assert placed["onnxruntime"]["signals.SoftClip"] == "reference"
    assert placed["openvino"]["signals.SoftClip"] == "openvino"
    assert {placed[device]["kernels.Mix"] for device in placed} == {"reference"}
