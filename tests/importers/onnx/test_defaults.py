"""Attributes that a model leaves out: they are as ONNX's schemas say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, defs, helper
from tests.importers.onnx.backend_cases import cases

from crosschip import load
from crosschip.importers.onnx.graph import OPSETS
from crosschip.importers.onnx.schemas import defaults
from crosschip.ir import Error
from crosschip.ir.text import to_text


def left_out(proto: ModelProto) -> Iterator[AttributeProto]:
    """Yield the defaults of the attributes that the only node of a model leaves out."""
    (node,) = proto.graph.node
    opset = next(entry.version for entry in proto.opset_import if entry.domain == node.domain)
    given = {attribute.name for attribute in node.attribute}
    for name, attribute in defs.get_schema(node.op_type, opset, node.domain).attributes.items():
        # ONNX has a default for the functions of an RNN of two directions, but not of one.
        if attribute.default_value.type and name not in (*given, "activations"):
            yield attribute.default_value


def text_of(proto: ModelProto, path: Path) -> str:
    """Return the model that is imported, or why none is."""
    path.write_bytes(proto.SerializeToString())
    try:
        return to_text(load(path))
    except Error as error:
        return str(error)


@pytest.mark.slow
def test_a_default_that_is_spelled_out_changes_nothing(tmp_path: Path) -> None:
    path, compared, different = tmp_path / "model.onnx", set(), []
    for case in cases():
        missing = list(left_out(case.model)) if len(case.model.graph.node) == 1 else []
        names = (case.model.graph.node[0].op_type, *(default.name for default in missing))
        if not missing or names in compared:
            continue
        compared.add(names)
        spelled = ModelProto()
        spelled.CopyFrom(case.model)
        spelled.graph.node[0].attribute.extend(missing)
        if text_of(case.model, path) != text_of(spelled, path):
            different.append(names)
    assert compared
    assert not different


def test_bounds_that_are_left_out_are_the_least_and_the_greatest_float(
    agree: Callable[..., None],
) -> None:
    """So that before opset 11 infinity is clipped."""
    values = np.array([-np.inf, -1, 2, np.inf], np.float32)
    agree("Clip", values, opsets=[7, 10])
    agree("Clip", values, opsets=[7, 10], min=0.0)


def test_a_number_is_rounded_as_a_file_would_hold_it() -> None:
    """The schemas hold float32, as files do."""
    assert defaults("", "LeakyRelu", 16)["alpha"].f == np.float32(0.01)


@pytest.mark.parametrize("opset", [*range(1, OPSETS[-1] + 1)])
def test_what_is_kept_of_the_schemas_is_what_they_say(opset: int) -> None:
    """Where it is not: run `scripts/write_onnx_defaults.py`."""
    names = {s.name for s in defs.get_all_schemas_with_history() if not s.domain}
    different = {
        name
        for name in names
        if _written(defaults("", name, opset)) != _written(of_schemas(name, opset))
    }
    assert not different


def of_schemas(name: str, opset: int) -> dict[str, AttributeProto]:
    """Return the defaults in a version, and in the newest what that does not have yet."""
    found: dict[str, AttributeProto] = {}
    for version in (defs.onnx_opset_version(), opset):
        with suppress(defs.SchemaError):  # it is newer
            attributes = defs.get_schema(name, version).attributes
            values = {n: attribute.default_value for n, attribute in attributes.items()}
            found.update((n, value) for n, value in values.items() if value.type)
    return found


def _written(attributes: Mapping[str, AttributeProto]) -> dict[str, bytes]:
    return {name: value.SerializeToString() for name, value in attributes.items()}


def test_plain_models_are_imported_without_the_library(tmp_path: Path) -> None:
    node = helper.make_node("Softmax", ["x"], ["y"])
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(helper.make_graph([node], "g", [value], [made])).SerializeToString()
    )
    program = (
        f"import crosschip, sys\ncrosschip.load({str(path)!r})\nassert 'onnx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_is_required_has_none() -> None:
    assert "blocksize" not in defaults("", "DepthToSpace", 13)


def test_what_a_version_does_not_have_yet_is_as_in_the_newest() -> None:
    assert defaults("", "Reshape", 7)["allowzero"].i == 0
    assert defaults("", "Softmax", 12)["axis"].i == 1
    assert defaults("", "Softmax", 13)["axis"].i == -1


def test_what_is_no_operator_of_onnx_has_none() -> None:
    assert defaults("com.example", "Softmax", 13) == {}
