"""Resampling of [N, C, H, W] images."""

from __future__ import annotations

import numpy as np
from openvino import Node
from openvino import opset15 as ops

from crosschip.devices.limits import divides_exactly
from crosschip.devices.openvino.converters.table import converts, exact_quotient
from crosschip.devices.openvino.graph import Graph
from crosschip.ops.resizing import AlignMode, ResizeLinear, ResizeNearest


@converts(ResizeLinear, computed=["shape", "scales"])
def resize_linear(g: Graph, op: ResizeLinear) -> Node:
    places = "half_pixel" if op.align_mode is AlignMode.HALF_PIXEL else "asymmetric"
    return _interpolate(g, op, "linear_onnx", "align_corners" if op.align_corners else places)


@converts(ResizeNearest, computed=["shape", "scales"])
def resize_nearest(g: Graph, op: ResizeNearest) -> Node:
    if divides_exactly(op):
        return _interpolate(g, op, "nearest", "asymmetric")
    image = g[op.input]
    for axis in (2, 3):
        image = ops.gather(image, _sources(g, op, axis), g.int64([axis]))
    return image


def _interpolate(g: Graph, op: ResizeLinear | ResizeNearest, mode: str, places: str) -> Node:
    shape, scales = op.operand("shape"), op.operand("scales")
    if shape:
        sizes = g.indices(shape)
    else:
        assert scales, "inference asks for one of the two"
        sizes = ops.convert(g[scales], "f32")
    return ops.interpolate(
        g[op.input],
        sizes,
        mode,
        "sizes" if shape else "scales",
        coordinate_transformation_mode=places,
        nearest_mode="floor",
        axes=g.int64([2, 3]),
    )


def _sources(g: Graph, op: ResizeNearest, axis: int) -> Node:
    """The row (axis 2) or column (axis 3) of the source that each one of the target shows."""

    def number(value: float) -> Node:
        return g.constant(np.array(value, np.float32))

    def at(values: Node, place: int) -> Node:
        return ops.gather(ops.convert(values, "f32"), g.scalar(place), g.scalar(0))

    size = at(ops.shape_of(g[op.input]), axis)
    shape, scales = op.operand("shape"), op.operand("scales")
    if shape:
        new = at(g.indices(shape), axis - 2)
        ratio = exact_quotient(size, new)
    else:
        assert scales, "inference asks for one of the two"
        scale = at(g[scales], axis - 2)
        new, ratio = ops.floor(ops.multiply(size, scale)), exact_quotient(number(1), scale)
    last = ops.subtract(size, number(1))
    if op.align_corners:
        ratio = exact_quotient(last, ops.maximum(ops.subtract(new, number(1)), number(1)))
    places = ops.multiply(ops.range(number(0), new, number(1), "f32"), ratio)
    if op.align_corners:
        places = ops.add(places, number(0.5))
    return ops.convert(ops.minimum(ops.floor(places), last), "i32")
