"""Sequences, maps and optional values as inputs and outputs of ONNX models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import (
    ModelProto,
    OptionalProto,
    SequenceProto,
    TensorProto,
    numpy_helper,
    parser,
)
from tests.importers.onnx.backend_cases import Case, container_cases

import crosschip
from crosschip.importers import load
from crosschip.ir import DeviceError, InputError, Model, UnsupportedError
from crosschip.ops.definition.serialization import from_bytes, to_bytes
from crosschip.runtime.inputs import random_inputs, write_array

HEADER = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>'
X = np.arange(6, dtype=np.float32).reshape(2, 3)

NOT_ONNXRUNTIMES = ("test_optional_get_element", "test_optional_has_element")
"""Cases of operators on optional values in a version that ONNX Runtime does not have."""

SEQUENCES = """g (seq(float[2, 3]) s, float[2, 3] x) =>
    (seq(float[2, 3]) t, float[K, 3] y, float[2, 3] z) {
    a = Relu(x)  t = SequenceInsert(s, a)  y = ConcatFromSequence<axis = 0>(t)  z = Neg(a)
}"""
CLASSIFIER = """g (float[2, 3] x) => (int64[2] label, seq(map(int64, float)) scores) {
    label, p = ai.onnx.ml.LinearClassifier<classlabels_ints = [0, 1], intercepts = [0.0, 1.0],
        coefficients = [1.0, 2.0, 3.0, -1.0, 0.0, 1.0]>(x)
    scores = ai.onnx.ml.ZipMap<classlabels_int64s = [0, 1]>(p) }"""


def imported(graph: str | ModelProto, folder: Path) -> tuple[Model, Path]:
    proto = parser.parse_model(f"{HEADER} {graph}") if isinstance(graph, str) else graph
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    model = load(path)
    model.verify()
    return model, path


def oracle(path: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def plain(value: object) -> Any:
    """A value that a case gives, or a compiled model, with lists of arrays for sequences."""
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, OptionalProto):
        return numpy_helper.to_optional(value)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value.item()
    return value


def same(found: object, expected: object) -> None:
    assert type(found) is type(expected)
    if isinstance(found, list) and isinstance(expected, list):
        for ours, theirs in zip(found, expected, strict=True):
            same(ours, theirs)
    elif isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, strict=True)
    else:
        assert found == expected


def run(model: Model, inputs: dict[str, Any], devices: str = "reference,onnxruntime") -> Any:
    with crosschip.compile(model, devices=devices, cache=False) as compiled:
        return {name: plain(value) for name, value in compiled.run(inputs).items()}


def check(case: Case, folder: Path) -> None:
    model, _ = imported(case.model, folder)
    for inputs, outputs in case.data_sets:
        names = [value.name for value in case.model.graph.input]
        found = run(model, dict(zip(names, map(plain, inputs), strict=True)))
        wanted: Sequence[Any] = list(map(plain, outputs))
        for value, expected in zip(case.model.graph.output, wanted, strict=True):
            same(found[value.name], expected)


def test_the_cases_of_the_onnx_project(tmp_path: Path) -> None:
    known = [case for case in container_cases() if not case.name.startswith(NOT_ONNXRUNTIMES)]
    assert len(known) == 23
    for case in known:
        check(case, tmp_path)


def test_what_onnxruntime_does_not_have_is_refused(tmp_path: Path) -> None:
    others = [case for case in container_cases() if case.name.startswith(NOT_ONNXRUNTIMES)]
    assert len(others) == 6
    for case in others:
        model, _ = imported(case.model, tmp_path)
        with pytest.raises(UnsupportedError, match="whether there is a value shows when"):
            crosschip.compile(model, "reference", cache=False)
        with pytest.raises(UnsupportedError, match="of opset 28, but ONNX Runtime"):
            crosschip.compile(model, "onnxruntime", cache=False)


@pytest.mark.parametrize("value", [X, None])
def test_optional_values(tmp_path: Path, value: object) -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (optional(float[2, 3]) o) => (bool y, optional(float[2, 3]) z)
        { y = OptionalHasElement(o)  z = Identity(o) }""")
    model, path = imported(proto, tmp_path)
    expected = oracle(path, {"o": value})
    for name, found in run(model, {"o": value}).items():
        same(found, expected[name])


def test_sequences_beside_tensors(tmp_path: Path) -> None:
    model, path = imported(SEQUENCES, tmp_path)
    inputs: dict[str, Any] = {"s": [X, -X], "x": X - 2}
    expected = oracle(path, inputs)
    again = from_bytes(to_bytes(model))
    assert str(again) == str(model)
    for word in ("miss", "hit"):
        with crosschip.compile(again, "reference,onnxruntime", cache=tmp_path / "c") as compiled:
            assert compiled.report.cache == word
            assert {segment.device for segment in compiled.placement.segments} == {
                "reference",
                "onnxruntime",
            }
            found = compiled.run(inputs)
            for name, value in expected.items():
                same(plain(found[name]), value)
            # What comes out goes in as it is.
            longer = compiled.run({**inputs, "s": found["t"]})["t"].item()
            same(longer, [*expected["t"], expected["t"][-1]])


def test_maps(tmp_path: Path) -> None:
    model, path = imported(CLASSIFIER, tmp_path)
    expected = oracle(path, {"x": X})
    assert expected["scores"][0].keys() == {0, 1}
    for name, value in run(model, {"x": X}).items():
        same(value, expected[name])


@pytest.mark.parametrize("wrong", [1, "text", None, {"a": 1}, [1.5], [X, 3], [np.zeros(2, int)], X])
def test_what_is_no_such_sequence_is_refused(tmp_path: Path, wrong: object) -> None:
    model, _ = imported(SEQUENCES, tmp_path)
    with pytest.raises(DeviceError, match="onnxruntime failed while running"):
        run(model, {"s": wrong, "x": X})


def test_they_are_neither_made_up_nor_written(tmp_path: Path) -> None:
    model, _ = imported(SEQUENCES, tmp_path)
    with pytest.raises(InputError, match=r"input 's' is a sequence, .* which cannot be made up"):
        random_inputs(model, {})
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        made = compiled.run({"s": [X], "x": X})["t"]
    with pytest.raises(InputError, match=r"y\.npy: an \.npy file holds no sequence"):
        write_array(tmp_path / "y.npy", made)
    assert not (tmp_path / "y.npy").exists()
