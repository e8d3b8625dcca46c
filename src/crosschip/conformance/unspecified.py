"""What definitions leave unspecified: the elements of outputs that may be anything.

For each operator whose documentation says of something that it is not specified, or the device's
choice, the elements to which that applies, given what fills the slots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np

from crosschip.accuracy.epsilon import epsilon
from crosschip.accuracy.spacings import WEIGHTS, Arrays
from crosschip.ir import Array, ElementType
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.definition.quantized import limits, reals
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.numerics.polygons import crosses_itself
from crosschip.ops.standard.adaptive_pooling import AdaptiveMaxPool
from crosschip.ops.standard.convolution import Conv
from crosschip.ops.standard.indexing import Scatter
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.normalization import LRN, BatchNormalization
from crosschip.ops.standard.pooling import MaxPool
from crosschip.ops.standard.unary import Exp

Rule = Callable[[Operator, Arrays, Array], bool | Array]
"""The elements of all outputs that are open, given what is expected of the first: all or a mask."""


def is_real(array: Array) -> bool:
    """Tell whether an array is of reals."""
    return ElementType.of(array.dtype) in FLOATS


def alternatives(operation: Operator, arrays: Arrays, expected: Array) -> tuple[list[Array], Array]:
    """The first output's other possible elements, and where further outputs may hold anything."""
    nan = np.array(np.nan, expected.dtype)
    is_nan, is_least = np.isnan(expected), expected == -np.inf
    numbers = [np.array(number, expected.dtype) for number in _INSTEAD.get(operation.type, ())]
    if operation.fused is not Fuse.NONE:
        numbers += [np.array(bound, expected.dtype) for bound in operation.fused.bounds]
    others = [np.where(is_nan, number, nan) for number in numbers]
    finite = ml_dtypes.finfo(expected.dtype)  # type: ignore[no-untyped-call]  # has no types
    if isinstance(operation, Exp):
        others.append(np.where(expected > finite.max / 2, np.array(np.inf, expected.dtype), nan))
    if not isinstance(operation, MaxPool | AdaptiveMaxPool):
        return others, np.zeros((), np.bool_)
    if is_nan.any():
        pixels = [np.clip(p, *operation.fused.bounds) for p in _pixels(operation, arrays)]
        others += [np.where(is_nan, p.astype(expected.dtype), nan) for p in pixels]
    ends = (np.array(end, nan.dtype) for end in (finite.min, -np.inf))
    others += [np.where(is_nan | is_least, end, nan) for end in ends]
    return others, is_nan | is_least


def _pixels(operation: MaxPool | AdaptiveMaxPool, arrays: Arrays) -> Sequence[Array]:
    """Arrays of the pixels that each element of the output is the greatest of."""
    (input,) = arrays["input"]
    wide = input.astype(np.float64)
    if isinstance(operation, MaxPool):
        return [pixels for _, pixels in operation.windows.sliding_windows(wide, -np.inf)]
    cells = [(p, cell.reshape(*cell.shape[:2], -1)) for p, cell, _ in operation.cells(wide)]
    most = max(cell.shape[2] for _, cell in cells)
    pixels = np.empty((most, *wide.shape[:2], *operation.output_shape))
    for place, cell in cells:
        where: tuple[slice | int, ...] = (*(slice(None),) * 3, *place)
        pixels[where] = np.moveaxis(cell[..., np.arange(most).clip(max=cell.shape[2] - 1)], -1, 0)
    return list(pixels)


def _cast(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Reals beyond an integer type, and NaN in float4."""
    (input,), to = arrays["input"], ElementType.from_code(int(arrays["dtype"][0].item()))
    if input.dtype.kind in "iub" or ElementType.of(input.dtype) not in FLOATS | _NARROW:
        return False
    wide = input.astype(np.float64)
    if to is ElementType.FLOAT4E2M1:
        return np.isnan(wide)
    if "int" not in to.value:
        return False
    least, greatest = limits(to)
    whole = np.trunc(wide)
    return ~((whole >= least) & (whole <= greatest))


_NARROW = frozenset(t for t in ElementType if t.value.startswith("float") and t not in FLOATS)


def _bad(array: Array, *axes: int, keepdims: bool = False) -> Array:
    """Infinite and NaN elements, or along some axes: whether there is one."""
    finite = np.isfinite(array.astype(np.float64))
    return np.asarray(np.any(~finite, axis=axes, keepdims=keepdims))


def _any(masks: Sequence[Array]) -> Array:
    """The union of several masks of one shape."""
    return np.asarray(np.any(masks, axis=0))


def _along(mask: Array, rank: int, axis: int = 1) -> Array:
    """A list of booleans along an axis of a tensor."""
    return mask.reshape([-1 if each == axis else 1 for each in range(rank)])


def _filters(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """The output channels of which an element of the filter is not finite.

    Everything, if the whole output of a transposed convolution is cut off.
    """
    (filter,) = arrays["filter"]
    if isinstance(operation, Conv):
        return _along(_bad(filter, *range(1, filter.ndim)), filter.ndim)
    if 0 in expected.shape[2:]:
        return True
    group = int(arrays["group"][0].item()) if "group" in arrays else 1
    grouped = filter.reshape(group, filter.shape[0] // group, *filter.shape[1:])
    return _along(_bad(grouped, 1, *range(3, grouped.ndim)).ravel(), filter.ndim)


def _deformable(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """The images of which anything is not finite; the output channels as to filters."""
    given = (arrays[slot][0] for slot in ("input", "offset", "mask") if slot in arrays)
    images = _any([_bad(array, 1, 2, 3) for array in given])
    return _along(images, 4, 0) | _along(_bad(arrays["filter"][0], 1, 2, 3), 4)


def _channels_of_images(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """The channels of images that have a pixel that is not finite."""
    (input,) = arrays["input"]
    return _bad(input, *range(2, input.ndim), keepdims=True)


def _resized(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Those, and everything if the target has no pixels."""
    return expected.size == 0 or _channels_of_images(operation, arrays, expected)


def _without_pixels(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Everything, if the images have no channels or no pixels."""
    return 0 in arrays["input"][0].shape[1:]


def _cells(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Everything, if there are no pixels; those channels, unless cells are all of one size."""
    (input,) = arrays["input"]
    if 0 in input.shape[1:]:
        return True
    counts = zip(input.shape[2:], expected.shape[2:], strict=True)
    if all(count and size % count == 0 for size, count in counts):
        return False
    return _channels_of_images(operation, arrays, expected)


def _sampled(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """Those channels of images, and places that are not finite."""
    places = _bad(arrays["grid"][0], 3)[:, None]
    return places | _channels_of_images(operation, arrays, expected)


def _regions(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Everything, if a number of a region is not finite; else channels with such pixels."""
    (rois,), images = arrays["rois"], _bad(arrays["input"][0], 2, 3)
    wide = rois if rois.dtype == np.float64 else rois.astype(np.float32)
    scale = arrays["spatial_scale"][0].item() if "spatial_scale" in arrays else 1.0
    scaled = wide * np.array(scale, wide.dtype)
    bad = _bad(np.hstack([scaled, scaled[:, 2:] - scaled[:, :2]]), 1)
    return bool(bad.any()) or images[arrays["batch_indices"][0]][:, :, None, None]


def _matrices(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """The matrices with an element that is not finite."""
    return _bad(arrays["input"][0], -2, -1)


def _neighbours(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """The pixels of which a channel is not finite, and elements whose divisor is beyond float32."""
    assert isinstance(operation, LRN), "it is in the table for that"
    (input,), scales = arrays["input"], operation.input.type.quantization
    wide = input.astype(np.float64) if scales is None else reals(input, scales)
    divisor, range_ = np.abs(operation.divisor(wide)), np.finfo(np.float32)
    beyond = (divisor > range_.max) | (divisor < range_.tiny)
    return np.asarray(_bad(input, 1, keepdims=True) | beyond)


def _channels(*slots: str) -> Rule:
    """The channels of which a number in one of these slots is not finite."""

    def rule(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
        given = [_bad(arrays[slot][0]) for slot in slots if slot in arrays]
        return _along(_any(given), expected.ndim) if given else False

    return rule


def _divided(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """The channels of which a number is not finite, or divided by 0."""
    assert isinstance(operation, BatchNormalization), "it is in the table for that"
    (variance,) = arrays["variance"]
    nothing = variance + np.array(operation.epsilon, variance.dtype) == 0
    channels = _channels("scale", "bias", "mean", "variance")(operation, arrays, expected)
    return channels | _along(nothing, expected.ndim)


def _scales(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """The elements whose scale or bias is not finite; everything, if there are none."""
    if expected.size == 0:
        return True
    mask = np.zeros(expected.shape, np.bool_)
    for slot in ("scale", "bias"):
        for array in arrays.get(slot, ()):
            mask = mask | _bad(array)
    return mask


def _sequences(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """The sequences with a number that is not finite; everything, if a weight is not."""
    if any(_bad(array).any() for slot in WEIGHTS for array in arrays.get(slot, ())):
        return True
    states = ("input", "initial_hidden", "initial_cell")
    own = [_bad(array, 0, 2) for slot in states for array in arrays.get(slot, ())]
    return _any(own)[:, None]


def _sequences_in_bytes(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Everything, if something is not finite: all sequences share a scale."""
    return any(_bad(array).any() for given in arrays.values() for array in given)


def _attended(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Everything, if something is not finite; the output of queries that attend to nothing."""
    wide = {slot: arrays[slot][0].astype(np.float64) for slot in arrays if slot in _ATTENDED}
    mask = wide.get("mask", np.zeros(()))
    if np.isnan(mask).any() or np.isposinf(mask).any():
        return True
    if any(not np.isfinite(array).all() for slot, array in wide.items() if slot != "mask"):
        return True
    return np.isnan(expected.astype(np.float64))


def _continued(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Everything, if something is not finite, or an entry is shorter than its new tokens."""
    if any(is_real(given[0]) and not np.isfinite(given[0]).all() for given in arrays.values()):
        return True
    return bool((arrays["lengths"][0] + 1 < expected.shape[1]).any())


def _bytes_of_reals(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Everything, if something is not finite."""
    return not np.isfinite(arrays["input"][0]).all()


def _extremes_of_nan(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """The elements at which NaN meets the greatest or the least of several."""
    name = Scatter(int(arrays["reduction"][0].item())).name if "reduction" in arrays else ""
    return np.isnan(expected.astype(np.float64)) if name in ("MAX", "MIN") else False


def _products(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Those of which some product of factors is too large or too small for the type."""
    (input,) = arrays["input"]
    if not is_real(input):
        return False
    wide = np.abs(input.astype(np.float64))
    powers = np.log2(wide, where=np.isfinite(wide) & (wide > 0), out=np.zeros_like(wide))
    axes = tuple(arrays["axes"][0].ravel().tolist()) if "axes" in arrays else ()
    kept = bool(arrays["keepdim"][0].item()) if "keepdim" in arrays else True
    greatest, least = (
        bounded.sum(axes or None, keepdims=kept)
        for bounded in (np.maximum(powers, 0), np.minimum(powers, 0))
    )
    range_ = ml_dtypes.finfo(input.dtype)  # type: ignore[no-untyped-call]  # has no types
    return np.asarray((greatest >= range_.maxexp - 1) | (least <= range_.minexp + 1))


def _remainders(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Those whose quotient has digits that the type does not hold."""
    if not is_real(expected):
        return False
    dividend, divisor = (arrays[slot][0].astype(np.float64) for slot in ("input0", "input1"))
    quotient = np.abs(dividend / divisor)
    return np.asarray(
        np.isfinite(quotient) & (quotient > 1 / epsilon(ElementType.of(expected.dtype)))
    )


def _sums_of_nothing(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Tell whether elements are sums over none."""
    return bool(expected.size) and not (arrays["x"][0].size and arrays["y"][0].size)


def _reshaped(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Tell whether a size of 0 is kept while another follows from the number of elements."""
    assert isinstance(operation, Reshape), "it is in the table for that"
    asked, own = arrays["shape"][0].ravel().tolist(), arrays["input"][0].shape
    kept = [size for size, n in zip(own, asked, strict=False) if n == 0]
    return not operation.allow_zero and -1 in asked and 0 in kept


def _quantize(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """NaN in an integer type."""
    if "int" not in operation.outputs[0].type.element_type.value:
        return False
    return np.asarray(np.isnan(arrays["input"][0].astype(np.float64)))


def _boxes(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Everything, if a number of a box is not finite, or one of corners is turned inside out."""
    boxes = arrays["bboxes" if "bboxes" in arrays else "boxes"][0].astype(np.float64)
    is_inside_out = "bboxes" in arrays and (boxes[..., 2:] < boxes[..., :2]).any()
    return bool(is_inside_out) or not np.isfinite(boxes).all()


def _polygons(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Everything, if a corner is not finite or sides of a polygon cross each other."""
    polygons = arrays["bboxes"][0].astype(np.float64)
    if not np.isfinite(polygons).all():
        return True
    corners = polygons.reshape(-1, polygons.shape[-1] // 2, 2)
    return any(crosses_itself(points) for points in corners)


def _unique(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Everything, if there is a NaN."""
    return bool(np.isnan(arrays["input"][0].astype(np.float64)).any())


_INSTEAD: dict[str, Sequence[float]] = {"SOFTMAX": (0.0,), "LOG_SOFTMAX": (-np.inf,)}
"""The numbers that some operators may make of NaN."""

_ATTENDED = frozenset({"query", "key", "value", "mask"})

RULES: dict[str, Rule] = {
    "MOD": _remainders,
    "QUANTIZE": _quantize,
    "CAST": _cast,
    **{f"CONV_{rank}D": _filters for rank in (1, 2, 3)},
    **{f"CONV_{rank}D_TRANSPOSE": _filters for rank in (1, 2, 3)},
    "DEFORMABLE_CONV_2D": _deformable,
    **{f"AVERAGE_POOL_{rank}D": _without_pixels for rank in (1, 2, 3)},
    **{f"ADAPTIVE_AVERAGE_POOL_{rank}D": _cells for rank in (1, 2, 3)},
    **{f"MAX_POOL_{rank}D": _without_pixels for rank in (1, 2, 3)},
    **{f"ADAPTIVE_MAX_POOL_{rank}D": _without_pixels for rank in (1, 2, 3)},
    "GRID_SAMPLE": _sampled,
    "RESIZE_LINEAR": _resized,
    "RESIZE_CUBIC": _resized,
    "ROI_ALIGN": _regions,
    "DET": _matrices,
    "LRN": _neighbours,
    "BATCH_NORMALIZATION": _divided,
    "ATTENTION": _attended,
    "GROUP_QUERY_ATTENTION": _continued,
    "DYNAMIC_QUANTIZE": _bytes_of_reals,
    "LAYER_NORMALIZATION": _scales,
    "INSTANCE_NORMALIZATION": _channels("scale", "bias"),
    "GROUP_NORMALIZATION": _channels("scale", "bias"),
    "RNN": _sequences,
    "GRU": _sequences,
    "LSTM": _sequences,
    "DYNAMIC_QUANTIZE_LSTM": _sequences_in_bytes,
    "REDUCE_PROD": _products,
    "SCATTER_ND": _extremes_of_nan,
    "SCATTER_ELEMENTS": _extremes_of_nan,
    "UNIQUE": _unique,
    "NON_MAX_SUPPRESSION": _boxes,
    "NON_MAX_SUPPRESSION_INDICES": _boxes,
    "POLYGON_NON_MAX_SUPPRESSION": _polygons,
}
"""The rule of each operator that leaves elements unspecified."""

REFUSABLE: dict[str, Callable[[Operator, Arrays, Array], bool]] = {
    "MAT_MUL": _sums_of_nothing,
    "RESHAPE": _reshaped,
}
"""Tells of a run that the reference computes whether a device may refuse it."""
