"""How close a device must come to the reference, from the element type and the depth of sums.

Integers, booleans and what is only moved must be exact; a quantized result may be one step off.
A real result may differ by `(8 + depth) * epsilon` of the largest element, where `epsilon` is the
spacing of the element type at 1 and `depth` is how many elements are summed up at most, taken to
be the number of elements of the largest input. Half-precision types are computed in float32 and
rounded by the reference, but in half precision by many devices: their depth counts as at most 64.
Where the reference is infinite or NaN, so must be the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, ElementType, TensorType
from crosschip.ir.types import FLOATS

_EPSILONS = {
    ElementType.FLOAT64: 2.0**-52,
    ElementType.FLOAT32: 2.0**-23,
    ElementType.FLOAT16: 2.0**-10,
    ElementType.BFLOAT16: 2.0**-7,
}
_HALF = (ElementType.FLOAT16, ElementType.BFLOAT16)
_HALF_DEPTH = 64


def tolerance(output: TensorType, inputs: Sequence[Array]) -> float:
    """The difference that is allowed, as a part of the largest element; 0 for exactness."""
    if output.element_type not in FLOATS:
        return 0.0
    depth = max((array.size for array in inputs), default=1)
    if output.element_type in _HALF:
        depth = min(depth, _HALF_DEPTH)
    return (8 + depth) * _EPSILONS[output.element_type]


def difference(actual: Array, expected: Array, output: TensorType, allowed: float) -> str:
    """How an output is wrong; empty if it is right.

    Args:
        actual: what the device made.
        expected: what the reference made.
        output: the type that it should have.
        allowed: the difference that is allowed, as a part of the largest element.
    """
    if not isinstance(actual, np.ndarray):
        return f"is a {type(actual).__name__}, not an array"
    if actual.dtype != expected.dtype:
        return f"has elements of type {actual.dtype}, not {expected.dtype}"
    if actual.shape != expected.shape:
        return f"has shape {list(actual.shape)}, not {list(expected.shape)}"
    if not actual.flags.c_contiguous:
        return "is not C-contiguous"
    if not expected.size:
        return ""
    if not output.element_type.value.startswith(("float", "bfloat")):
        steps = 1 if output.quantization else 0
        return _worst(_steps_apart(actual, expected, steps), actual, expected)
    made, wanted = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wanted)
    same = (made == wanted) | (np.isnan(made) & np.isnan(wanted))
    largest = float(np.abs(wanted[finite]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        near = np.abs(made - wanted) <= allowed * largest
    return _worst(~np.where(finite, near, same), actual, expected)


def _steps_apart(actual: Array, expected: Array, steps: int) -> Array:
    if not steps:
        return np.asarray(actual != expected)
    return np.asarray(np.abs(actual.astype(np.int64) - expected.astype(np.int64)) > steps)


def _worst(wrong: Array, actual: Array, expected: Array) -> str:
    count = int(np.count_nonzero(wrong))
    if not count:
        return ""
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return (
        f"{count} of {expected.size} elements are wrong, the first at {list(place)}: "
        f"{actual[place]} instead of {expected[place]}"
    )
