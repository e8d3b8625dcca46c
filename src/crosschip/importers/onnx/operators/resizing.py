"""Resampling of images and other tensors.

Standard operators resample the last two of four axes. Other axes are transposed there, two at a
time, which is valid because all methods are separable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crosschip.importers.facts import rank_of
from crosschip.importers.onnx.node import Node, axis_from_front, imports, only
from crosschip.ir import Dim, Dimension, ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops.definition.operator import Operator
from crosschip.ops.numerics.resampling import AlignMode, Rounding
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Floor

_ALIGNMENTS = {
    "half_pixel": AlignMode.HALF_PIXEL,
    "asymmetric": AlignMode.ASYMMETRIC,
    "pytorch_half_pixel": AlignMode.PYTORCH_HALF_PIXEL,
    "half_pixel_symmetric": AlignMode.SYMMETRIC_HALF_PIXEL,
    "tf_half_pixel_for_nn": AlignMode.WHOLE_HALF_PIXEL,
    "tf_crop_and_resize": AlignMode.CROP,
    "align_corners": AlignMode.SCALED_CORNERS,
}
_ROUNDINGS = {
    "round_prefer_floor": Rounding.DOWN_AT_HALF,
    "round_prefer_ceil": Rounding.UP_AT_HALF,
    "floor": Rounding.DOWN,
    "ceil": Rounding.UP,
}
_OPERATORS: dict[str, type[Operator]] = {
    "nearest": ResizeNearest,
    "linear": ResizeLinear,
    "cubic": ResizeCubic,
}
_REPEATING = {
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("tf_half_pixel_for_nn", "floor"),
}
"""Rules equal to (asymmetric, floor) if each pixel is repeated an integral number of times."""


class _Target(NamedTuple):
    """Target sizes of some axes.

    Attributes:
        axes: the axes.
        numbers: the scale or the new size of each.
        scaled: whether `numbers` are scales.
        roi: the region of the source to sample: begins of all axes, then ends.
    """

    axes: tuple[int, ...]
    numbers: Operand
    scaled: bool
    roi: Operand | None = None


class _PixelRule(NamedTuple):
    """Sampling method in ONNX's terms, and further arguments of the standard operator."""

    mode: str
    coordinates: str
    rounding: str
    options: dict[str, object]


@imports("Upsample")
def upsample(node: Node) -> Operand:
    """Import Upsample, replaced by Resize in opset 10; scales are an attribute before opset 9."""
    if node.opset > 9:
        raise ModelError("was removed in opset 10")
    if node.opset < 9:
        scales = node.constant(np.array(node.reals("scales"), np.float32))
    else:
        scales = node[1]
    mode = only("mode", node.text("mode"), "nearest", "linear")
    axes = tuple(range(rank_of(node[0])))
    return _resize(
        node, _Target(axes, scales, scaled=True), _PixelRule(mode, "asymmetric", "floor", {})
    )


@imports("Resize")
def resize(node: Node) -> Operand:
    """Import Resize; opset 10 has scales only, later ones also sizes and sampling methods."""
    rank = rank_of(node[0])
    mode = only("mode", node.text("mode"), *_OPERATORS)
    if node.opset == 10:
        scales = node[1]
        if mode == "nearest" and (scales.value is None or scales.value.min() < 1):
            raise UnsupportedError("ONNX did not say what a scale below 1 means in opset 10")
        target = _Target(tuple(range(rank)), scales, scaled=True)
        return _resize(node, target, _PixelRule(mode, "asymmetric", "floor", {}))
    coordinates = node.text("coordinate_transformation_mode")
    rounding = node.text("nearest_mode")
    options: dict[str, object] = {
        "extrapolation_value": node.real("extrapolation_value"),
        "exclude_outside": node.flag("exclude_outside"),
        "antialias": node.flag("antialias"),
        "coefficient": node.real("cubic_coeff_a"),
    }
    if mode == "nearest":
        options = {name: options[name] for name in ("extrapolation_value",)}
    elif mode == "linear":
        del options["coefficient"]
    return _resize(node, _target(node, rank), _PixelRule(mode, coordinates, rounding, options))


def _target(node: Node, rank: int) -> _Target:
    """Return the target that the inputs of Resize since opset 11 define."""
    axis_attribute = node.optional_integers("axes")
    axes = tuple(range(rank)) if axis_attribute is None else axis_attribute
    axes = tuple(axis_from_front(axis, rank) for axis in axes)
    roi, scales, sizes = node.optional(1), node.optional(2), node.optional(3)
    policy = node.text("keep_aspect_ratio_policy")
    if scales is not None and scales.type.static_shape != (0,):
        return _Target(axes, scales, True, roi)
    if sizes is None:
        raise ModelError("neither scales nor sizes are given")
    only("keep_aspect_ratio_policy", policy, "stretch", "not_larger", "not_smaller")
    if policy != "stretch":
        sizes = _proportional_sizes(node, sizes, axes, largest=policy == "not_smaller")
    return _Target(axes, sizes, False, roi)


def _proportional_sizes(
    node: Node, sizes: Operand, axes: Sequence[int], *, largest: bool
) -> Operand:
    """Return sizes with a single scale: the largest or smallest of the requested ones."""
    real = ElementType.FLOAT64
    input_sizes = node.add(Gather, node.add(ShapeOf, node[0]), np.array(axes), 0)
    old = node.add(Cast, input_sizes, real)
    scales = node.add(Div, node.add(Cast, sizes, real), old)
    scale = node.add(ReduceMax if largest else ReduceMin, scales, (0,), keepdim=True)
    exact = node.add(Mul, old, scale)
    return node.add(Cast, node.add(Floor, node.add(Add, exact, 0.5)), ElementType.INT64)


def _resize(node: Node, target: _Target, rule: _PixelRule) -> Operand:
    """Resample the first input, two axes at a time.

    For 8-bit integers, the linear mode computes reals and truncates them.
    """
    changed = _resized_axes(node, target, rule)
    result, bytes_ = node[0], node[0].type.element_type
    is_mean = rule.mode == "linear" and bytes_ in (ElementType.INT8, ElementType.UINT8)
    if is_mean:
        result = node.add(Cast, result, ElementType.FLOAT32)
    while changed:
        pair = changed[-2:]
        result = _resize_pair(node, result, pair, target, rule)
        changed = changed[: -len(pair)]
    return node.add(Cast, result, bytes_) if is_mean else result


def _resized_axes(node: Node, target: _Target, rule: _PixelRule) -> list[int]:
    """Return the axes to resample, in order.

    The first two axes are assumed to keep their size unless the opposite is static.
    """
    shape = node[0].type.shape or ()
    numbers = target.numbers
    if numbers.type.static_shape not in (None, (len(target.axes),)):
        raise ModelError(f"{numbers.name!r} are not numbers for {len(target.axes)} axes")
    if numbers.value is None:
        if len(target.axes) < len(shape):
            return sorted(target.axes)
        return list(range(min(2, len(shape) - 1), len(shape)))
    values = numbers.value.ravel().tolist()
    if not all(0 < value < math.inf for value in values):
        raise ModelError(f"{values} are not positive")
    changed = []
    for axis, value in zip(target.axes, values, strict=True):
        if target.scaled:
            unchanged = value == 1
        else:
            unchanged = value == shape[axis] or (axis < 2 and isinstance(shape[axis], Dimension))
        if not unchanged or rule.coordinates == "tf_crop_and_resize":
            changed.append(axis)
    return sorted(changed)


def _resize_pair(
    node: Node, operand: Operand, pair: Sequence[int], target: _Target, rule: _PixelRule
) -> Operand:
    """Resample one or two axes."""
    rank, operator = rank_of(node[0]), _OPERATORS[rule.mode]
    if rank == 4 and {2, 3}.issuperset(pair):
        return node.add(operator, operand, **_arguments(node, operand, (2, 3), target, rule))
    shape = operand.type.static_shape
    if shape is None:
        raise UnsupportedError("resampling other axes than height and width needs a known shape")
    others = [axis for axis in range(rank) if axis not in pair]
    outer = [shape[axis] for axis in others]
    inner = [shape[axis] for axis in pair]
    order = (*others, *pair)
    flat = (1, math.prod(outer), *(1,) * (2 - len(pair)), *inner)
    transposed = node.add(Reshape, node.add(Transpose, operand, order), flat)
    image = (None, *pair) if len(pair) == 1 else tuple(pair)
    resized = node.add(operator, transposed, **_arguments(node, operand, image, target, rule))
    sizes = node.add(
        Slice, node.add(ShapeOf, resized), axes=(0,), starts=(4 - len(pair),), ends=(4,)
    )
    parts = [node.constant(np.array(outer, np.int64)), sizes]
    unmerged = node.add(Reshape, resized, node.add(Concat, parts=parts, axis=0))
    return node.add(Transpose, unmerged, tuple(order.index(axis) for axis in range(rank)))


def _arguments(
    node: Node, operand: Operand, image: Sequence[int | None], target: _Target, rule: _PixelRule
) -> dict[str, object]:
    """Return the standard operator's arguments for two axes; `None` means an axis of size 1."""
    alignment = _ALIGNMENTS[only("coordinate_transformation_mode", rule.coordinates, *_ALIGNMENTS)]
    coordinates, rounding = rule.coordinates, rule.rounding
    numbers = _numbers(node, operand, image, target)
    sizes = [1 if axis is None else (operand.type.shape or ())[axis] for axis in image]
    repeating = rule.mode == "nearest" and (coordinates, rounding) in _REPEATING
    if repeating and _repeats(sizes, numbers, target):
        coordinates, rounding, alignment = "asymmetric", "floor", AlignMode.ASYMMETRIC
    corners = coordinates == "align_corners" and _is_exact(sizes, numbers, target)
    arguments: dict[str, object] = {**rule.options, "align_corners": corners}
    if not corners:
        arguments["align_mode"] = alignment
    if rule.mode == "nearest":
        usual = "round_prefer_ceil" if corners else "floor"
        rounding_mode = _ROUNDINGS[only("nearest_mode", rounding, *_ROUNDINGS)]
        arguments["rounding"] = Rounding.USUAL if rounding == usual else rounding_mode
    if alignment is AlignMode.CROP:
        arguments["roi"] = _crop_region(node, image, target)
    arguments["scales" if target.scaled else "shape"] = numbers
    return arguments


def _numbers(node: Node, operand: Operand, image: Sequence[int | None], target: _Target) -> Operand:
    """Return the sizes or scales of two axes; axes without a target keep their size."""
    numbers, parts = target.numbers, []
    for axis in image:
        if axis in target.axes:
            parts.append(_pick(node, numbers, [target.axes.index(axis)]))
        elif axis is None or target.scaled:
            parts.append(node.constant(np.ones(1, numbers.type.element_type.dtype)))
        else:
            parts.append(_pick(node, node.add(ShapeOf, operand), [axis]))
    return node.add(Concat, parts=parts, axis=0)


def _crop_region(node: Node, image: Sequence[int | None], target: _Target) -> Operand:
    """Return the sampled region of two axes: the begins, then the ends."""
    if target.roi is None:
        raise ModelError("roi is required with tf_crop_and_resize")
    parts, count = [], len(target.axes)
    for default, first in ((0, 0), (1, count)):
        for axis in image:
            if axis in target.axes:
                parts.append(_pick(node, target.roi, [first + target.axes.index(axis)]))
            else:
                parts.append(node.constant(np.array([default], target.roi.type.element_type.dtype)))
    return node.add(Concat, parts=parts, axis=0)


def _pick(node: Node, numbers: Operand, indices: Sequence[int]) -> Operand:
    return node.add(Gather, numbers, np.array(indices), 0)


def _repeats(sizes: Sequence[Dim], numbers: Operand, target: _Target) -> bool:
    """Return whether each pixel is statically known to be repeated an integral number of times."""
    if numbers.value is None:
        return False
    values = numbers.value.tolist()
    if target.scaled:
        return all(scale % 1 == 0 for scale in values)
    pairs = zip(values, sizes, strict=True)
    return all(isinstance(size, int) and size and new % size == 0 for new, size in pairs)


def _is_exact(sizes: Sequence[Dim], numbers: Operand, target: _Target) -> bool:
    """Return whether size times scale is statically known to be integral."""
    if not target.scaled:
        return True
    return numbers.value is not None and all(
        scale % 1 == 0 or (isinstance(size, int) and (size * scale) % 1 == 0)
        for size, scale in zip(sizes, numbers.value.tolist(), strict=True)
    )
