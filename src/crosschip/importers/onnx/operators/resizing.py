"""Resampling of images.

ONNX relates source and target pixels in more ways than `RESIZE_NEAREST` and `RESIZE_LINEAR` do;
what they cannot express exactly is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from crosschip.importers.onnx.node import Node, imports, only
from crosschip.importers.onnx.operators.windows import image_of
from crosschip.ir import Dim, ModelError, Operand, UnsupportedError
from crosschip.ops.layout import Slice
from crosschip.ops.resizing import AlignMode, ResizeLinear, ResizeNearest

_NEAREST = {("asymmetric", "floor"): False, ("align_corners", "round_prefer_ceil"): True}
"""The ways to the nearest pixel that can be expressed, and whether each aligns corners."""

_REPEATING = {
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
    ("pytorch_half_pixel", "round_prefer_floor"),
    ("pytorch_half_pixel", "round_prefer_ceil"),
    ("tf_half_pixel_for_nn", "floor"),
}
"""Those that are (asymmetric, floor) where each pixel is repeated a whole number of times."""

_LINEAR = ("half_pixel", "asymmetric", "align_corners")

_ALL_AXES = (0, 1, 2, 3)
_UNSCALED = (1, 1, 1, 1)

Sizes = Operand | tuple[float, float]
"""A number each for height and width, constant or computed."""


class _Target(NamedTuple):
    """How large the image becomes, by one of the two; numbers where they are constant."""

    image: Sequence[Dim]
    shape: Sizes | None = None
    scales: Sizes | None = None

    @property
    def repeats(self) -> bool:
        """Whether every pixel is known to be repeated a whole number of times."""
        if isinstance(self.scales, tuple):
            return all(scale % 1 == 0 for scale in self.scales)
        if not isinstance(self.shape, tuple):
            return False
        pairs = zip(self.shape, self.image, strict=True)
        return all(isinstance(old, int) and old and new % old == 0 for new, old in pairs)

    @property
    def shrinks(self) -> bool:
        """Whether a scale is known to be below 1."""
        return isinstance(self.scales, tuple) and min(self.scales) < 1

    @property
    def more_than_a_pixel(self) -> bool:
        """Whether both height and width are known not to become 1."""
        if isinstance(self.shape, tuple):
            return min(self.shape) > 1
        if not isinstance(self.scales, tuple):
            return False
        pairs = zip(self.scales, self.image, strict=True)
        return all(scale * (old if isinstance(old, int) else 1) >= 2 for scale, old in pairs)


@imports("Upsample")
def upsample(node: Node) -> Operand:
    """The scales are an attribute before opset 9, then an input; since opset 10 it is `Resize`."""
    if node.opset > 9:
        raise ModelError("was removed in opset 10")
    image = image_of(node)
    given = node.reals("scales") if node.opset < 9 else node[1]
    return _resize(
        node, _Target(image, scales=_spatial(node, given, _UNSCALED)), "asymmetric", "floor"
    )


@imports("Resize")
def resize(node: Node) -> Operand:
    """Opset 10 knows scales only; since then there is a size too, and a choice of pixels."""
    if node.opset == 10:
        target = _Target(image_of(node), scales=_spatial(node, node[1], _UNSCALED))
        return _resize(node, target, "asymmetric", "undefined" if target.shrinks else "floor")
    node.ignore("cubic_coeff_a", "exclude_outside", "extrapolation_value")
    only("antialias", node.integer("antialias", 0), 0)
    only("keep_aspect_ratio_policy", node.text("keep_aspect_ratio_policy", "stretch"), "stretch")
    coordinates = node.text("coordinate_transformation_mode", "half_pixel")
    return _resize(
        node, _target(node), coordinates, node.text("nearest_mode", "round_prefer_floor")
    )


def _resize(node: Node, target: _Target, coordinates: str, rounding: str) -> Operand:
    mode = only("mode", node.text("mode", "nearest"), "nearest", "linear")
    arguments = {"input": node[0], "shape": target.shape, "scales": target.scales}
    if mode == "nearest":
        way = (coordinates, rounding)
        if way in _REPEATING and target.repeats:
            way = ("asymmetric", "floor")
        if way not in _NEAREST:
            raise UnsupportedError(
                f"coordinate_transformation_mode {coordinates} with nearest_mode {rounding} cannot "
                f"be expressed; asymmetric with floor can, and align_corners with round_prefer_ceil"
            )
        return node.add(ResizeNearest, **arguments, align_corners=_NEAREST[way])
    if coordinates == "pytorch_half_pixel" and target.more_than_a_pixel:
        coordinates = "half_pixel"
    only("coordinate_transformation_mode", coordinates, *_LINEAR)
    return node.add(
        ResizeLinear,
        **arguments,
        align_corners=coordinates == "align_corners",
        align_mode=AlignMode.ASYMMETRIC if coordinates == "asymmetric" else AlignMode.HALF_PIXEL,
    )


def _target(node: Node) -> _Target:
    """What the inputs of a `Resize` since opset 11 ask for."""
    image = image_of(node)
    axes = tuple(axis % 4 for axis in node.integers("axes", _ALL_AXES))
    scales, shape = node.optional(2), node.optional(3)
    if scales is not None and scales.type.static_shape != (0,):
        return _Target(image, scales=_spatial(node, scales, _UNSCALED, axes))
    if shape is None:
        raise ModelError("neither scales nor sizes are given")
    return _Target(image, shape=_spatial(node, shape, node[0].type.shape or (), axes))


def _spatial(
    node: Node,
    given: Operand | Sequence[float],
    unchanged: Sequence[Dim],
    axes: Sequence[int] = _ALL_AXES,
) -> Sizes:
    """Of scales or sizes for some axes, those for height and width.

    Those for the other axes must leave them as they are; computed ones are taken to do so.
    """
    if isinstance(given, Operand):
        if given.value is None:
            return _computed(node, given, axes)
        given = given.value.ravel().tolist()
    if len(given) != len(axes):
        raise ModelError(f"{list(given)} are not numbers for {len(axes)} axes")
    found = {**dict(enumerate(unchanged)), **dict(zip(axes, given, strict=True))}
    for axis, size in enumerate(unchanged[:2]):
        if isinstance(size, int) and found[axis] != size:
            raise UnsupportedError(f"{list(given)} would resize more than height and width")
    height, width = found.get(2), found.get(3)
    if not isinstance(height, int | float) or not isinstance(width, int | float):
        raise UnsupportedError("a size that is kept must be known")
    if not (min(height, width) > 0 and max(height, width) < math.inf):
        raise ModelError(f"{list(given)} are not positive")
    return height, width


def _computed(node: Node, given: Operand, axes: Sequence[int]) -> Operand:
    if tuple(axes) == _ALL_AXES[2:]:
        return given
    if tuple(axes) != _ALL_AXES:
        raise UnsupportedError(f"axes {list(axes)} with computed scales or sizes")
    return node.add(Slice, given, axes=(0,), starts=(2,), ends=(4,))
