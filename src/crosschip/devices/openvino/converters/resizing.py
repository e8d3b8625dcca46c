"""Resampling of [N, C, H, W] images."""

from __future__ import annotations

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.kits.limits import (
    coordinate_mode,
    divides_exactly,
    interpolation_limit,
    usual_pixels,
)
from crosschip.devices.openvino.converters.table import converts, exact_quotient
from crosschip.devices.openvino.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import Operand, Operation
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest


def _check_scales(op: ResizeCubic | ResizeLinear) -> Refusal | None:
    scales = op.operand("scales")
    if op.operand("shape") is None and scales is not None and scales.value is not None:
        old, new = op.input.type.shape or (), op.outputs[0].type.shape or ()
        for axis, scale in enumerate(op.scales or (), 2):
            # Quirk `scale-that-keeps-size`.
            known = isinstance(old[axis], int)
            if scale != 1 and (old[axis] == new[axis] if known else 1 < scale < 1.5):
                return Refusal("scales", f"{scale} may leave a size of {old[axis]} as it is")
    return interpolation_limit(op)


# Computed scales are refused: they may keep a size.
@converts(ResizeLinear, computed=["shape"], limit=_check_scales, nonempty=True)
def resize_linear(g: Graph, op: ResizeLinear) -> Node:
    return _interpolate(g, op, "linear_onnx", coordinate_mode(op))


def _check_cubic(op: ResizeCubic) -> Refusal | None:
    return Refusal("exclude_outside", "is set") if op.exclude_outside else _check_scales(op)


@converts(ResizeCubic, computed=["shape"], limit=_check_cubic, nonempty=True)
def resize_cubic(g: Graph, op: ResizeCubic) -> Node:
    return _interpolate(g, op, "cubic", coordinate_mode(op), cube_coeff=op.coefficient)


def _check_nearest(op: ResizeNearest) -> Refusal | None:
    if 0 in (op.outputs[0].type.shape or ()):  # quirk `image-of-nothing`
        return Refusal("shape", "has no pixels", Rule.SHAPE)
    return usual_pixels(op)


@converts(ResizeNearest, computed=["shape", "scales"], limit=_check_nearest, nonempty=True)
def resize_nearest(g: Graph, op: ResizeNearest) -> Node:
    if divides_exactly(op):
        return _interpolate(g, op, "nearest", "asymmetric")
    g.some(op, [2, 3])
    image = g[op.input]
    for axis in (2, 3):
        image = ops.gather(image, _sources(g, op, axis), g.int64([axis]))
    return image


def _interpolate(
    g: Graph,
    op: ResizeCubic | ResizeLinear | ResizeNearest,
    mode: str,
    coordinates: str,
    **attributes: float,
) -> Node:
    g.some(op, [2, 3])
    shape, scales = op.operand("shape"), op.operand("scales")
    if shape:
        sizes = g.indices(shape)
        _require_sizes(g, op, shape)
    else:
        assert scales, "inference asks for one of the two"
        sizes = ops.convert(g[scales], "f32")
    return ops.interpolate(
        g[op.input],
        sizes,
        mode,
        "sizes" if shape else "scales",
        coordinate_transformation_mode=coordinates,
        nearest_mode="floor",
        axes=g.int64([2, 3]),
        **attributes,
    )


def _require_sizes(g: Graph, op: Operation, shape: Operand) -> None:
    """Refuse runs with negative sizes."""
    if not g.require_natural(op, "shape: is negative", shape):
        g.require(op, "shape: is negative", ops.greater_equal(g.indices(shape), g.scalar(0)))


def _require_factors(g: Graph, op: Operation, scales: Operand) -> None:
    """Refuse runs with scales that are not positive and finite."""
    if scales.value is None:
        factors = ops.convert(g[scales], "f32")
        zero, far = (g.constant(np.array(bound, np.float32)) for bound in (0, np.inf))
        is_factor = ops.logical_and(ops.less(zero, factors), ops.less(factors, far))
        g.require(op, "scales: one is no factor", is_factor)


def _sources(g: Graph, op: ResizeNearest, axis: int) -> Node:
    """Return the source row (axis 2) or column (axis 3) of each target row or column."""

    def number(value: float) -> Node:
        return g.constant(np.array(value, np.float32))

    def at(values: Node, place: int) -> Node:
        return ops.gather(ops.convert(values, "f32"), g.scalar(place), g.scalar(0))

    size = at(ops.shape_of(g[op.input]), axis)
    shape, scales = op.operand("shape"), op.operand("scales")
    if shape:
        _require_sizes(g, op, shape)
        new = at(g.indices(shape), axis - 2)
        ratio = exact_quotient(size, new)
    else:
        assert scales, "inference asks for one of the two"
        _require_factors(g, op, scales)
        scale = at(g[scales], axis - 2)
        new, ratio = ops.floor(ops.multiply(size, scale)), exact_quotient(number(1), scale)
    last = ops.subtract(size, number(1))
    if op.align_corners:
        ratio = exact_quotient(last, ops.maximum(ops.subtract(new, number(1)), number(1)))
    positions = ops.multiply(ops.range(number(0), new, number(1), "f32"), ratio)
    if op.align_corners:
        positions = ops.add(positions, number(0.5))
    return ops.convert(ops.minimum(ops.floor(positions), last), "i32")
