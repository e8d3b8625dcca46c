"""Elements of outputs that operator definitions leave unspecified, so that they may have any value.

There is one function for each operator whose documentation leaves something unspecified or to the
device. It returns a mask of the unspecified elements of the first output, computed from the inputs.

The first paragraph of its docstring, and a second one with the reason, are a row of the table in
docs/conformance.md, which `make docs` writes.
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
from crosschip.ops.numerics.overlap import crosses_itself
from crosschip.ops.standard.adaptive_pooling import AdaptiveMaxPool
from crosschip.ops.standard.convolution import Conv
from crosschip.ops.standard.indexing import Scatter
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.normalization import LRN, BatchNormalization
from crosschip.ops.standard.pooling import MaxPool
from crosschip.ops.standard.unary import Exp

Rule = Callable[[Operator, Arrays, Array], bool | Array]
"""Returns the unspecified elements, given the first expected output: all, none, or a mask."""


def is_real(array: Array) -> bool:
    """Return whether an array has a float type."""
    return ElementType.of(array.dtype) in FLOATS


def alternatives(operation: Operator, arrays: Arrays, expected: Array) -> tuple[list[Array], Array]:
    """Return other permitted elements of the first output, and a mask for the further outputs.

    The arrays of other elements are NaN where none is permitted. The mask is true for the elements
    of further outputs that may have any value.
    """
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
    """Return arrays of pixels whose maximum is each element of the output."""
    (input,) = arrays["input"]
    wide = input.astype(np.float64)
    if isinstance(operation, MaxPool):
        return [pixels for _, pixels in operation.windows.sliding_windows(wide, -np.inf)]
    cells = [(p, cell.reshape(*cell.shape[:2], -1)) for p, cell, _ in operation.cells(wide)]
    most = max(cell.shape[2] for _, cell in cells)
    pixels = np.empty((most, *wide.shape[:2], *operation.output_shape))
    for cell_index, cell in cells:
        index: tuple[slice | int, ...] = (*(slice(None),) * 3, *cell_index)
        pixels[index] = np.moveaxis(cell[..., np.arange(most).clip(max=cell.shape[2] - 1)], -1, 0)
    return list(pixels)


def _cast(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: reals beyond an integer type's range, and NaN in float4.

    ONNX's Cast says "undefined if OOR"; engines keep low bits or give the nearest end.
    """
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
    """Return a mask of infinite or NaN elements, reduced by `any` over some axes."""
    finite = np.isfinite(array.astype(np.float64))
    return np.asarray(np.any(~finite, axis=axes, keepdims=keepdims))


def _any(masks: Sequence[Array]) -> Array:
    """Return the union of masks of one shape."""
    return np.asarray(np.any(masks, axis=0))


def _along(mask: Array, rank: int, axis: int = 1) -> Array:
    """Reshape a list of booleans to broadcast along an axis of a tensor."""
    return mask.reshape([-1 if each == axis else 1 for each in range(rank)])


def _filters(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: output channels whose filter is not finite; all, if padding crops all."""
    (filter,) = arrays["filter"]
    if isinstance(operation, Conv):
        return _along(_bad(filter, *range(1, filter.ndim)), filter.ndim)
    if 0 in expected.shape[2:]:
        return True
    group = int(arrays["group"][0].item()) if "group" in arrays else 1
    grouped = filter.reshape(group, filter.shape[0] // group, *filter.shape[1:])
    return _along(_bad(grouped, 1, *range(3, grouped.ndim)).ravel(), filter.ndim)


def _deformable(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """Unspecified: images with an input that is not finite, and channels with such a weight."""
    images_in = (arrays[slot][0] for slot in ("input", "offset", "mask") if slot in arrays)
    images = _any([_bad(array, 1, 2, 3) for array in images_in])
    return _along(images, 4, 0) | _along(_bad(arrays["filter"][0], 1, 2, 3), 4)


def _channels_of_images(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """Unspecified: the channels of images with a pixel that is not finite."""
    (input,) = arrays["input"]
    return _bad(input, *range(2, input.ndim), keepdims=True)


def _resized(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: the channels with a pixel that is not finite; all if the output is empty."""
    return expected.size == 0 or _channels_of_images(operation, arrays, expected)


def _without_pixels(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Unspecified: all, if the images are empty."""
    return 0 in arrays["input"][0].shape[1:]


def _cells(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: all, if images are empty; else channels that are not finite.

    Nothing is marked if all cells have one size.
    """
    (input,) = arrays["input"]
    if 0 in input.shape[1:]:
        return True
    counts = zip(input.shape[2:], expected.shape[2:], strict=True)
    if all(count and size % count == 0 for size, count in counts):
        return False
    return _channels_of_images(operation, arrays, expected)


def _sampled(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """Unspecified: channels with a pixel, and grid points, that are not finite."""
    points = _bad(arrays["grid"][0], 3)[:, None]
    return points | _channels_of_images(operation, arrays, expected)


def _regions(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: all, if a region is not finite, else channels with such a pixel."""
    (rois,), images = arrays["rois"], _bad(arrays["input"][0], 2, 3)
    wide = rois if rois.dtype == np.float64 else rois.astype(np.float32)
    scale = arrays["spatial_scale"][0].item() if "spatial_scale" in arrays else 1.0
    scaled = wide * np.array(scale, wide.dtype)
    bad = _bad(np.hstack([scaled, scaled[:, 2:] - scaled[:, :2]]), 1)
    return bool(bad.any()) or images[arrays["batch_indices"][0]][:, :, None, None]


def _matrices(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """Unspecified: matrices with an element that is not finite."""
    return _bad(arrays["input"][0], -2, -1)


def _neighbours(operation: Operator, arrays: Arrays, expected: Array) -> Array:
    """Unspecified: pixels with a channel that is not finite or whose divisor exceeds float32."""
    assert isinstance(operation, LRN), "it is in the table for that"
    (input,), scales = arrays["input"], operation.input.type.quantization
    wide = input.astype(np.float64) if scales is None else reals(input, scales)
    divisor, range_ = np.abs(operation.divisor(wide)), np.finfo(np.float32)
    beyond = (divisor > range_.max) | (divisor < range_.tiny)
    return np.asarray(_bad(input, 1, keepdims=True) | beyond)


def _channels(*slots: str) -> Rule:
    """Return the rule of operators with a number per channel in some slots."""

    def rule(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
        """Unspecified: channels with a scale or another number that is not finite."""
        flags = [_bad(arrays[slot][0]) for slot in slots if slot in arrays]
        return _along(_any(flags), expected.ndim) if flags else False

    return rule


def _divided(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: channels with a parameter that is not finite, or divided by 0."""
    assert isinstance(operation, BatchNormalization), "it is in the table for that"
    (variance,) = arrays["variance"]
    nothing = variance + np.array(operation.epsilon, variance.dtype) == 0
    channels = _channels("scale", "bias", "mean", "variance")(operation, arrays, expected)
    return channels | _along(nothing, expected.ndim)


def _scales(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: elements whose scale or bias is not finite; all for empty inputs."""
    if expected.size == 0:
        return True
    mask = np.zeros(expected.shape, np.bool_)
    for slot in ("scale", "bias"):
        for array in arrays.get(slot, ()):
            mask = mask | _bad(array)
    return mask


def _sequences(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: all, if a weight is not finite, else sequences with such an element."""
    if any(_bad(array).any() for slot in WEIGHTS for array in arrays.get(slot, ())):
        return True
    states = ("input", "initial_hidden", "initial_cell")
    masks = [_bad(array, 0, 2) for slot in states for array in arrays.get(slot, ())]
    return _any(masks)[:, None]


def _sequences_in_bytes(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: all, if any input is not finite, because all sequences share a scale."""
    return any(_bad(array).any() for slot_arrays in arrays.values() for array in slot_arrays)


def _attended(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: all, if an input is not finite, else queries that attend to no key."""
    wide = {slot: arrays[slot][0].astype(np.float64) for slot in arrays if slot in _ATTENDED}
    mask = wide.get("mask", np.zeros(()))
    if np.isnan(mask).any() or np.isposinf(mask).any():
        return True
    if any(not np.isfinite(array).all() for slot, array in wide.items() if slot != "mask"):
        return True
    return np.isnan(expected.astype(np.float64))


def _cached_attention(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Unspecified: all, if an input is not finite or a cache is shorter than its new tokens."""
    if any(
        is_real(slot_arrays[0]) and not np.isfinite(slot_arrays[0]).all()
        for slot_arrays in arrays.values()
    ):
        return True
    return bool((arrays["lengths"][0] + 1 < expected.shape[1]).any())


def _bytes_of_reals(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Unspecified: all, if any input is not finite.

    ONNX's formula has no scale for such inputs.
    """
    return not np.isfinite(arrays["input"][0]).all()


def _extremes_of_nan(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: elements where NaN is compared with the extreme of several elements.

    ONNX names the reductions MAX and MIN and does not define them.
    """
    name = Scatter(int(arrays["reduction"][0].item())).name if "reduction" in arrays else ""
    return np.isnan(expected.astype(np.float64)) if name in ("MAX", "MIN") else False


def _products(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: elements of which a partial product overflows or underflows the type."""
    (input,) = arrays["input"]
    if not is_real(input):
        return False
    wide = np.abs(input.astype(np.float64))
    powers = np.log2(wide, where=np.isfinite(wide) & (wide > 0), out=np.zeros_like(wide))
    axes = tuple(arrays["axes"][0].ravel().tolist()) if "axes" in arrays else ()
    keepdims = bool(arrays["keepdim"][0].item()) if "keepdim" in arrays else True
    greatest, least = (
        bounded.sum(axes or None, keepdims=keepdims)
        for bounded in (np.maximum(powers, 0), np.minimum(powers, 0))
    )
    range_ = ml_dtypes.finfo(input.dtype)  # type: ignore[no-untyped-call]  # has no types
    return np.asarray((greatest >= range_.maxexp - 1) | (least <= range_.minexp + 1))


def _remainders(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: remainders of quotients with more digits than the type holds."""
    if not is_real(expected):
        return False
    dividend, divisor = (arrays[slot][0].astype(np.float64) for slot in ("input0", "input1"))
    quotient = np.abs(dividend / divisor)
    return np.asarray(
        np.isfinite(quotient) & (quotient > 1 / epsilon(ElementType.of(expected.dtype)))
    )


def _sums_of_nothing(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Return whether each element is a sum of no terms."""
    return bool(expected.size) and not (arrays["x"][0].size and arrays["y"][0].size)


def _reshaped(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Return whether a kept size of 0 meets a size inferred from the number of elements."""
    assert isinstance(operation, Reshape), "it is in the table for that"
    requested, own = arrays["shape"][0].ravel().tolist(), arrays["input"][0].shape
    copied = [size for size, n in zip(own, requested, strict=False) if n == 0]
    return not operation.allow_zero and -1 in requested and 0 in copied


def _quantize(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: NaN in an integer type.

    ONNX's QuantizeLinear says how numbers saturate, and nothing about NaN.
    """
    if "int" not in operation.outputs[0].type.element_type.value:
        return False
    return np.asarray(np.isnan(arrays["input"][0].astype(np.float64)))


def _boxes(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Unspecified: all, if a box has a number that is not finite or its corners are swapped."""
    boxes = arrays["bboxes" if "bboxes" in arrays else "boxes"][0].astype(np.float64)
    is_inside_out = "bboxes" in arrays and (boxes[..., 2:] < boxes[..., :2]).any()
    return bool(is_inside_out) or not np.isfinite(boxes).all()


def _polygons(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Unspecified: all, if a corner is not finite or the sides of a polygon cross."""
    polygons = arrays["bboxes"][0].astype(np.float64)
    if not np.isfinite(polygons).all():
        return True
    corners = polygons.reshape(-1, polygons.shape[-1] // 2, 2)
    return any(crosses_itself(points) for points in corners)


def _unique(operation: Operator, arrays: Arrays, expected: Array) -> bool:
    """Unspecified: all, if there is a NaN.

    ONNX's Unique does not say whether NaN equals itself.
    """
    return bool(np.isnan(arrays["input"][0].astype(np.float64)).any())


def _searched(operation: Operator, arrays: Arrays, expected: Array) -> bool | Array:
    """Unspecified: places in sequences that are not ascending, and of values that are NaN.

    Engines search by bisection, and NumPy alone says where NaN is in the order.
    """
    (sequences,), (values,) = arrays["sorted_sequence"], arrays["values"]
    is_single = sequences.ndim == 1  # whose values may be a scalar
    is_ascending = (sequences[..., 1:] >= sequences[..., :-1]).all(-1, keepdims=not is_single)
    return np.asarray(~is_ascending | (values != values))


_INSTEAD: dict[str, Sequence[float]] = {"SOFTMAX": (0.0,), "LOG_SOFTMAX": (-np.inf,)}
"""The numbers that some operators may return instead of NaN."""

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
    "GROUP_QUERY_ATTENTION": _cached_attention,
    "DYNAMIC_QUANTIZE": _bytes_of_reals,
    "LAYER_NORMALIZATION": _scales,
    "SKIP_LAYER_NORMALIZATION": _scales,
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
    "SEARCH_SORTED": _searched,
    "NON_MAX_SUPPRESSION": _boxes,
    "NON_MAX_SUPPRESSION_INDICES": _boxes,
    "POLYGON_NON_MAX_SUPPRESSION": _polygons,
}
"""The rule of each operator that leaves elements unspecified."""

REFUSABLE: dict[str, Callable[[Operator, Arrays, Array], bool]] = {
    "MAT_MUL": _sums_of_nothing,
    "RESHAPE": _reshaped,
}
"""Returns whether a device may refuse a run that the reference computes, by operator."""
