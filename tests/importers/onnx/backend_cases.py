"""The ONNX project's own node tests, run through crosschip: a model file in, outputs compared.

`judge` says what came of a case: `right`, `refused` with the reason, `wrong` with the difference,
or `random` where the operators draw random numbers, so that only types and shapes can be compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)
from onnx.backend.test.loader import load_model_tests

import crosschip
from crosschip.ir import ElementType, Error
from crosschip.ir.types import FLOATS

Array = NDArray[Any]

_TRAINING = "ai.onnx.preview.training"
_RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


@dataclass(frozen=True, slots=True)
class Case:
    """A model with inputs and the outputs that they should give, once or several times."""

    name: str
    model: ModelProto
    data_sets: Sequence[tuple[Sequence[Array], Sequence[Array]]]
    rtol: float
    atol: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case; `reason` is empty where it is right."""

    case: str
    verdict: str
    reason: str = ""


@cache
def cases() -> tuple[Case, ...]:
    """Return the node tests whose inputs and outputs are tensors of numbers, without training's."""
    return tuple(case for case in _tensor_cases() if not _has_text(case))


@cache
def text_cases() -> tuple[Case, ...]:
    """Return the node tests whose inputs and outputs are tensors, some of them of strings."""
    return tuple(case for case in _tensor_cases() if _has_text(case))


@cache
def container_cases() -> tuple[Case, ...]:
    """Return the node tests with sequences and optional values among their inputs and outputs."""
    return tuple(case for case in _all_cases() if not _has_tensors_only(case))


def _tensor_cases() -> list[Case]:
    return [case for case in _all_cases() if _has_tensors_only(case) and not _is_training(case)]


@cache
def _all_cases() -> tuple[Case, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    return tuple(
        Case(case.name, case.model, case.data_sets, case.rtol, case.atol)
        for case in found
        if case.model is not None and case.data_sets is not None
    )


def judge(case: Case, devices: Sequence[str], folder: Path) -> Outcome:
    """Load, compile and run a case on the devices."""
    path = folder / f"{case.name}.onnx"
    path.write_bytes(case.model.SerializeToString())
    try:
        found = [_run(path, case, inputs, devices) for inputs, _ in case.data_sets]
    except Error as error:
        return Outcome(case.name, "refused", str(error).replace(f"{path}: ", ""))
    finally:
        path.unlink()
    random = any(_is_random(node) for node in _nodes(case.model.graph))
    for outputs, (_, expected) in zip(found, case.data_sets, strict=True):
        problem = _difference(outputs, expected, case, values=not random)
        if problem:
            return Outcome(case.name, "wrong", problem)
    return Outcome(case.name, "random" if random else "right")


def _run(path: Path, case: Case, inputs: Sequence[Array], devices: Sequence[str]) -> list[Array]:
    model = crosschip.load(path)
    names = [value.name for value in case.model.graph.input]
    given = {name: _array(value) for name, value in zip(names, inputs, strict=False)}
    with crosschip.compile(model, devices=devices, cache=False) as compiled:
        outputs = compiled.run(given)
    return [outputs[value.name] for value in case.model.graph.output]


def _array(value: Array | TensorProto) -> Array:
    """Return the elements that a case gives, in C order."""
    array = numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)
    return np.ascontiguousarray(array).reshape(array.shape)


def _difference(
    found: Sequence[Array], expected: Sequence[Array], case: Case, *, values: bool
) -> str:
    """Return the fault of the outputs, in words; empty if there is none."""
    declared = [value.type.tensor_type.elem_type for value in case.model.graph.output]
    for index, (ours, theirs) in enumerate(zip(found, map(_array, expected), strict=True)):
        wanted = helper.tensor_dtype_to_np_dtype(declared[index])
        if ours.dtype != wanted or ours.shape != theirs.shape:
            found_type, wanted_type = f"{ours.dtype}{ours.shape}", f"{wanted}{theirs.shape}"
            return f"output {index} is {found_type}, not {wanted_type}"
        if values and not _close(ours, theirs, case):
            return f"output {index}: {_brief(ours)} is not {_brief(theirs)}"
    return ""


def _close(ours: Array, theirs: Array, case: Case) -> bool:
    """Return whether two arrays agree within the case's tolerance, or four units in the last place.

    The expected values were computed step by step in the output's own type, by sums and exponents
    of their own rounding: one of 16 bits is off by more than the tolerance that cases name, and
    where the greatest element is 100, a 0 is 1e-6.
    """
    if ours.dtype.kind == "O":
        return bool(ours.tolist() == theirs.tolist())
    if ours.dtype.kind in "bui" and theirs.dtype.kind in "bui":
        return np.array_equal(ours, theirs)
    found, wanted = ours.astype(np.float64), theirs.astype(np.float64)
    ulps = 0.0
    if ElementType.of(ours.dtype) in FLOATS:
        precision = ml_dtypes.finfo(ours.dtype)  # type: ignore[no-untyped-call]  # has no types
        ulps = 4 * float(precision.eps)
    greatest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
    return np.allclose(
        found, wanted, max(case.rtol, ulps), max(case.atol, ulps * greatest), equal_nan=True
    )


def _brief(array: Array) -> str:
    first = array.ravel()[:6]
    return np.array2string(first if first.dtype == object else first.astype(float), precision=5)


def _has_tensors_only(case: Case) -> bool:
    return all(value.type.HasField("tensor_type") for value in _ends(case))


def _has_text(case: Case) -> bool:
    return any(value.type.tensor_type.elem_type == TensorProto.STRING for value in _ends(case))


def _ends(case: Case) -> list[ValueInfoProto]:
    return [*case.model.graph.input, *case.model.graph.output]


def _is_training(case: Case) -> bool:
    return any(entry.domain == _TRAINING for entry in case.model.opset_import)


def _is_random(node: NodeProto) -> bool:
    """Return whether a node draws random numbers; `Dropout` does where it is told to train."""
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield all nodes, those of subgraphs too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
