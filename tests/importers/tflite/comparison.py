"""What devices compute for files with one operator, beside what LiteRT computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

import ml_dtypes
import numpy as np
from tests.importers.tflite.single_operator import Case, LiteRT

import crosschip
from crosschip.ir import Array, Model

_TOLERANCE, _LAST_BITS = 2e-5, 2
"""Of reals: a share, or a number of steps of a narrow type if these are larger."""


class Verdict(StrEnum):
    """What became of a file on a list of devices."""

    RIGHT = "right"
    REFUSED = "refused"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A file's verdict.

    Attributes:
        verdict: what became of it.
        reason: the message of the refusal, or how an output differs.
    """

    verdict: Verdict
    reason: str = ""


Call = tuple[Sequence[Array], Sequence[Array]]
"""What is fed to a file, and LiteRT's outputs."""


def litert_calls(litert: LiteRT, case: Case, sizes: int) -> list[Call]:
    """Return LiteRT's calls of a file: none if it refuses the file.

    Args:
        litert: the engine.
        case: the file.
        sizes: 2 for a second call with one more row, if LiteRT resizes the file.
    """
    return litert_calls_of_all(litert, [(case, sizes)])[0]


def litert_calls_of_all(litert: LiteRT, files: Sequence[tuple[Case, int]]) -> list[list[Call]]:
    """Return the same for several files, each with its number of sizes."""
    runs = [
        (case, arrays) for case, sizes in files for arrays in (case.arrays(), case.longer())[:sizes]
    ]
    outputs = zip(runs, litert.run_all(runs), strict=True)
    calls: list[list[Call]] = []
    for _, sizes in files:
        calls.append([])
        for (_, arrays), result in list(islice(outputs, sizes)):
            if isinstance(result, str):
                break
            calls[-1].append((arrays, result))
    return calls


def compare(case: Case, calls: Sequence[Call], devices: Sequence[str]) -> Comparison:
    """Compile a file for some devices and compare the outputs of each call with LiteRT's.

    Args:
        case: the file.
        calls: LiteRT's; the first axis has no known size if there are several.
        devices: in the order of preference.
    """
    return compare_lists(case, calls, {"": devices})[""]


def compare_lists(
    case: Case, calls: Sequence[Call], lists: Mapping[str, Sequence[str]]
) -> dict[str, Comparison]:
    """Load a file once and compare it on each list of devices, as `compare` does."""
    try:
        model = crosschip.load(case.file(dynamic=len(calls) > 1))
    except Exception as error:  # one that is not ours is wrong, too
        return dict.fromkeys(lists, _failure(error))
    # The optimized kernel rounds once where the reference kernel, which is ours, rounds twice.
    exact = _Latitude(1 if case.optimized and case.outputs[0].scale else 0, ())
    rounded = _Latitude.of_engines(case)
    return {
        name: _compare(model, calls, devices, exact if list(devices) == ["reference"] else rounded)
        for name, devices in lists.items()
    }


@dataclass(frozen=True, slots=True)
class _Latitude:
    """How the results of a device may differ from LiteRT's.

    Attributes:
        steps: by how many steps quantized ones may.
        bounds: what NaN may become in a fused activation, as the definition of CLIP says.
    """

    steps: int
    bounds: Sequence[float]

    @classmethod
    def of_engines(cls, case: Case) -> _Latitude:
        """Return what engines may do, which round once."""
        activation = getattr(case.options, "fusedActivationFunction", 0)
        return cls(1 if case.outputs[0].scale else 0, _BOUNDS.get(activation, ()))


_BOUNDS: Mapping[int, Sequence[float]] = {1: (0,), 2: (-1, 1), 3: (0, 6)}
"""The bounds of RELU, RELU_N1_TO_1 and RELU6, by their codes."""


def _compare(
    model: Model, calls: Sequence[Call], devices: Sequence[str], latitude: _Latitude
) -> Comparison:
    try:
        with crosschip.compile(model, devices, cache=False) as compiled:
            for arrays, expected in calls:
                results = _results(compiled.run(inputs_of(model, arrays)))
                assert len(results) == len(expected)
                for wanted, actual in zip(expected, results, strict=True):
                    if reason := _difference(wanted, actual, latitude):
                        return Comparison(Verdict.WRONG, reason)
    except Exception as error:
        return _failure(error)
    return Comparison(Verdict.RIGHT)


def _failure(error: Exception) -> Comparison:
    """Return the verdict on a file that is not loaded, compiled or run."""
    if isinstance(error, crosschip.UnsupportedError):
        return Comparison(Verdict.REFUSED, str(error))
    return Comparison(Verdict.WRONG, f"{type(error).__name__}: {error}")


def inputs_of(model: Model, arrays: Sequence[Array]) -> dict[str, Array]:
    """Return the arrays by name, and for variables zeros, or their zero points if quantized."""
    state = {
        name: np.full(
            operand.type.static_shape or (),
            operand.type.quantization.zero_point[0] if operand.type.quantization else 0,
            operand.type.element_type.dtype,
        )
        for name, operand in model.inputs.items()
        if name.startswith("past.")
    }
    fed = (name for name in model.inputs if name not in state)
    return dict(zip(fed, arrays, strict=True)) | state


def _results(outputs: Mapping[str, Array]) -> list[Array]:
    """Return the outputs but the new values of variables."""
    return [value for name, value in outputs.items() if not name.startswith("present.")]


def _difference(expected: Array, actual: Array, latitude: _Latitude) -> str:
    """Return how an output differs from LiteRT's beyond a latitude; empty if it does not.

    Reals may differ by some of their last bits, as a share of the largest.
    """
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"{actual.dtype}{actual.shape} instead of {expected.dtype}{expected.shape}"
    if np.issubdtype(expected.dtype, np.integer) or expected.dtype == bool:
        same = np.abs(actual.astype(np.int64) - expected.astype(np.int64)) <= latitude.steps
    else:
        limits = ml_dtypes.finfo(expected.dtype)  # type: ignore[no-untyped-call]
        tolerance = max(_TOLERANCE, _LAST_BITS * float(limits.eps))
        wanted, result = expected.astype(np.float64), actual.astype(np.float64)
        # LiteRT clamps the results of arithmetic to finite numbers, with any activation.
        clamped = (np.abs(wanted) == float(limits.max)) & np.isinf(result)
        wanted = np.where(clamped, np.copysign(np.inf, wanted), wanted)
        finite = np.abs(wanted[np.isfinite(wanted)])
        absolute = tolerance * max(1.0, float(finite.max(initial=0.0)))
        same = np.isclose(result, wanted, tolerance, absolute, equal_nan=True)
        same |= np.isnan(wanted) & np.isin(result, latitude.bounds)
    return "" if same.all() else f"{actual[~same][:4]} instead of {expected[~same][:4]}"
