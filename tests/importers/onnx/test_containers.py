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
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.inputs import random_inputs

HEADER = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>'
X = np.arange(6, dtype=np.float32).reshape(2, 3)

NOT_ONNXRUNTIMES = ("test_optional_get_element", "test_optional_has_element")
"""Cases of operators on optional values in a version that ONNX Runtime does not have."""
NOT_THE_EVALUATORS = ("test_if_opt",)
"""Cases of what ONNX's own evaluator does wrongly, so that it is declined."""

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
    """Return a value that a case gives, with lists of arrays for sequences."""
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, OptionalProto):
        return numpy_helper.to_optional(value)
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


def run(model: Model, inputs: dict[str, Any], devices: str) -> Any:
    with crosschip.compile(model, devices=devices, cache=False) as compiled:
        return compiled.run(inputs)


def check(case: Case, folder: Path, devices: str) -> None:
    model, _ = imported(case.model, folder)
    for inputs, outputs in case.data_sets:
        names = [value.name for value in case.model.graph.input]
        found = run(model, dict(zip(names, map(plain, inputs), strict=True)), devices)
        wanted: Sequence[Any] = list(map(plain, outputs))
        for value, expected in zip(case.model.graph.output, wanted, strict=True):
            same(found[value.name], expected)


@pytest.mark.parametrize(
    ("devices", "declined", "count"),
    [
        ("onnxruntime", NOT_ONNXRUNTIMES, 6),
        ("reference", NOT_THE_EVALUATORS, 1),
        ("reference,onnxruntime", (), 0),
    ],
)
def test_the_cases_of_the_onnx_project(
    tmp_path: Path, devices: str, declined: tuple[str, ...], count: int
) -> None:
    others = [case for case in container_cases() if case.name.startswith(declined or "-")]
    assert (len(container_cases()), len(others)) == (29, count)
    for case in container_cases():
        if case not in others:
            check(case, tmp_path, devices)
            continue
        with pytest.raises(
            UnsupportedError, match=r"of opset 28, but ONNX R|a list of an optional"
        ):
            crosschip.compile(imported(case.model, tmp_path)[0], devices, cache=False)


@pytest.mark.parametrize(
    ("value", "devices"), [(X, "reference"), (X, "onnxruntime"), (None, "onnxruntime")]
)
def test_optional_values(tmp_path: Path, value: object, devices: str) -> None:
    proto = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (optional(float[2, 3]) o) => (bool y, optional(float[2, 3]) z)
        { y = OptionalHasElement(o)  z = Identity(o) }""")
    model, path = imported(proto, tmp_path)
    expected = oracle(path, {"o": value})
    for name, found in run(model, {"o": value}, devices).items():
        same(found, expected[name])


@pytest.mark.parametrize("devices", ["reference", "onnxruntime", "openvino,onnxruntime"])
def test_sequences_beside_tensors(tmp_path: Path, devices: str) -> None:
    model, path = imported(SEQUENCES, tmp_path)
    inputs: dict[str, Any] = {"s": [X, -X], "x": X - 2}
    expected = oracle(path, inputs)
    again = from_bytes(to_bytes(model))
    assert str(again) == str(model)
    for word in ("miss", "hit"):
        with crosschip.compile(again, devices, cache=tmp_path / "c") as compiled:
            assert compiled.report.cache == word
            ran = {segment.device for segment in compiled.placement.segments}
            assert ran == set(devices.split(","))
            found = compiled.run(inputs)
            for name, value in expected.items():
                same(found[name], value)
            # What comes out goes in as it is.
            longer = compiled.run({**inputs, "s": found["t"]})["t"]
            same(longer, [*expected["t"], expected["t"][-1]])


def test_maps(tmp_path: Path) -> None:
    model, path = imported(CLASSIFIER, tmp_path)
    expected = oracle(path, {"x": X})
    assert expected["scores"][0].keys() == {0, 1}
    for devices in ("onnxruntime", "reference,onnxruntime"):
        for name, value in run(model, {"x": X}, devices).items():
            same(value, expected[name])
    with pytest.raises(UnsupportedError, match=r"evaluator does not have it \(.*'ZipMap'"):
        run(model, {"x": X}, "reference")


@pytest.mark.parametrize("wrong", [None, {"a": 1}, [1.5], [X, 3], [np.zeros(2, int)], X])
@pytest.mark.parametrize("device", ["reference", "onnxruntime"])
def test_what_is_no_such_sequence_is_refused(tmp_path: Path, wrong: object, device: str) -> None:
    model, _ = imported(SEQUENCES, tmp_path)
    told = {"reference": "'s' is .*, which the model does not take", "onnxruntime": "failed while"}
    with pytest.raises(DeviceError, match=f"^{device}.*{told[device]}"):
        run(model, {"s": wrong, "x": X}, device)


@pytest.mark.parametrize("wrong", [1, "text", (X,), np.float32(1), object()])
def test_what_can_be_no_sequence_is_refused_before_it_runs(tmp_path: Path, wrong: object) -> None:
    model, _ = imported(SEQUENCES, tmp_path)
    with pytest.raises(InputError, match=r"input 's' is of type .*; pass a list or dict"):
        run(model, {"s": wrong, "x": X}, "onnxruntime")


def test_what_goes_straight_through_is_the_callers_own(tmp_path: Path) -> None:
    model, _ = imported("g (seq(float[2, 3]) s) => (seq(float[2, 3]) s) { }", tmp_path)
    given = [X.copy(), -X]
    found = run(model, {"s": given}, "reference")["s"]
    same(found, given)
    found[0][:] = 9
    found.append(X)
    same(given, [X, -X])


def test_what_is_no_tensor_stays_on_no_device(tmp_path: Path) -> None:
    model, _ = imported(SEQUENCES, tmp_path)
    inputs = {"s": [X], "x": X}
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        expected = compiled.run(inputs)
        with pytest.raises(InputError, match="'t' is of object, which no device's memory holds"):
            compiled.run(inputs, keep=["t"])
        with pytest.raises(InputError, match="'t' is of object, which no device's memory holds"):
            compiled.run(inputs, outputs={"t": X})
        with pytest.raises(InputError, match="'s' is of object, which no device's memory holds"):
            compiled.allocate("s", ())
        z = np.zeros((2, 3), np.float32)
        found = compiled.run(inputs, outputs={"z": z}, keep=["y"])
        assert found["z"] is z
        same(z, expected["z"])
        same(found["y"].array(), expected["y"])
        same(found["t"], expected["t"])


@pytest.mark.parametrize("junk", [1, "text", (X,), object()])
def test_a_device_that_makes_something_else_is_at_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, junk: object
) -> None:
    model, _ = imported(SEQUENCES, tmp_path)
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        for program in compiled.executable.programs:
            assert isinstance(program, GuardedProgram)
            made = {"float32": np.zeros((2, 3), np.float32), "object": junk}
            wrong = [made[str(type_.element_type)] for type_ in program._types]
            monkeypatch.setattr(program, "_run", lambda inputs, wrong=wrong: wrong)
        with pytest.raises(DeviceError, match=r"onnxruntime: returned .*; the device breaks"):
            compiled.run({"s": [X], "x": X})


def test_they_are_not_made_up(tmp_path: Path) -> None:
    model, _ = imported(SEQUENCES, tmp_path)
    with pytest.raises(InputError, match=r"input 's' is a sequence, .* which cannot be made up"):
        random_inputs(model, {})
