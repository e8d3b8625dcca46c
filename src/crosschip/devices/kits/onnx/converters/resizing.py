"""Resampling of [N, C, H, W] images."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.devices.kits.limits import (
    coordinate_mode,
    divides_exactly,
    interpolation_limit,
    usual_pixels,
)
from crosschip.devices.kits.onnx.converters.table import NARROW_FLOATS, converts, refused_unless
from crosschip.devices.kits.onnx.graph import Graph
from crosschip.hal import Refusal, Rule
from crosschip.ir import ElementType, Operand
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear, ResizeNearest


def _limit(op: ResizeCubic | ResizeLinear) -> Refusal | None:
    is_empty = 0 in (op.outputs[0].type.shape or ())
    return (
        Refusal("shape", "the image has no pixels", Rule.SHAPE)
        if is_empty
        else interpolation_limit(op)
    )


@converts(ResizeLinear, types=NARROW_FLOATS, computed=["shape", "scales"], limit=_limit)
def resize_linear(g: Graph, op: ResizeLinear) -> str:
    return _resize(g, op, "linear", coordinate_mode(op))


@converts(ResizeCubic, types={ElementType.FLOAT32}, computed=["shape", "scales"], limit=_limit)
def resize_cubic(g: Graph, op: ResizeCubic) -> str:
    weights = {"cubic_coeff_a": op.coefficient, "exclude_outside": int(op.exclude_outside)}
    return _resize(g, op, "cubic", coordinate_mode(op), **weights)


@converts(ResizeNearest, types=NARROW_FLOATS, computed=["shape", "scales"], limit=usual_pixels)
def resize_nearest(g: Graph, op: ResizeNearest) -> str:
    if divides_exactly(op):
        return _resize(g, op, "nearest", "asymmetric", nearest_mode="floor")
    image, shape = g[op.input], op.operand("shape")
    target_size = "" if shape is None else g.cast(_check_sizes(g, shape), np.float32)
    for axis in (2, 3):
        image = g.add("Gather", image, _sources(g, op, axis, target_size), axis=axis)
    return image


def _resize(
    g: Graph,
    op: ResizeCubic | ResizeLinear | ResizeNearest,
    mode: str,
    coordinates: str,
    **attributes: Any,
) -> str:
    return g.add(
        "Resize",
        g[op.input],
        *_sizes(g, op),
        mode=mode,
        coordinate_transformation_mode=coordinates,
        **attributes,
    )


def _sizes(g: Graph, op: ResizeCubic | ResizeLinear | ResizeNearest) -> list[str]:
    """Return the inputs of `Resize` with the output size, for all four axes.

    With an attribute `axes`, ONNX Runtime (1.31) fails to move transpositions past the node.
    """
    shape, scales = op.operand("shape"), op.operand("scales")
    if shape is None:
        assert scales, "inference requires one of the two"
        if scales.value is not None:
            return ["", g.constant(np.append([1, 1], scales.value).astype(np.float32))]
        ones = g.constant(np.ones(2, np.float32))
        return ["", g.add("Concat", ones, g.cast(g[scales], np.float32), axis=0)]
    leading = [n for n in (op.input.type.shape or ())[:2] if isinstance(n, int)]
    if shape.value is not None and len(leading) == 2:
        return ["", "", g.int64([*leading, *shape.value.ravel().tolist()])]
    return ["", "", g.add("Concat", g.add("Shape", g[op.input], end=2), g.indices(shape), axis=0)]


def _check_sizes(g: Graph, shape: Operand) -> str:
    """Return height and width; fail the run if one is negative."""
    sizes = g.indices(shape)
    if shape.value is not None:
        return sizes
    least = g.add("ReduceMin", sizes)
    return refused_unless(g, g.add("GreaterOrEqual", least, g.int64([0])), sizes, g.int64([2]))


def _factors(g: Graph, scales: Operand) -> str:
    """Return the scales of height and width; fail the run unless they are positive and finite."""
    factors = g.cast(g[scales], np.float32)
    if scales.value is not None:
        return factors
    zero, infinity = (g.constant(np.array(n, np.float32)) for n in (0, np.inf))
    is_valid = g.add("And", g.add("Greater", factors, zero), g.add("Less", factors, infinity))
    all_valid = g.add("ReduceProd", g.cast(is_valid, np.float32))
    return refused_unless(g, g.add("Greater", all_valid, zero), factors, g.int64([2]))


def _sources(g: Graph, op: ResizeNearest, axis: int, target_size: str) -> str:
    """Return the source row (axis 2) or column (axis 3) of each target row or column.

    Args:
        g: the graph.
        op: the operation.
        axis: the axis.
        target_size: the value with height and width of the target; empty if scales are given.
    """
    one, index = g.constant(np.array(1, np.float32)), g.constant(np.array(axis - 2))
    image = g.cast(g.add("Shape", g[op.input], start=2), np.float32)

    def quotient(a: str, b: str) -> str:
        # 2a / 2b: ONNX Runtime would rewrite a * (1 / b) to a division, which rounds differently.
        return g.add("Div", g.add("Add", a, a), g.add("Add", b, b))

    size = g.add("Gather", image, index)
    if target_size:
        new = g.add("Gather", target_size, index)
        ratio = quotient(size, new)
    else:
        scales = op.operand("scales")
        assert scales, "inference requires one of the two"
        scale = g.add("Gather", _factors(g, scales), index)
        new, ratio = g.add("Floor", g.add("Mul", size, scale)), quotient(one, scale)
    last = g.add("Sub", size, one)
    if op.align_corners:
        ratio = quotient(last, g.add("Max", g.add("Sub", new, one), one))
    positions = g.add("Mul", g.add("Range", g.constant(np.array(0, np.float32)), new, one), ratio)
    if op.align_corners:
        positions = g.add("Add", positions, g.constant(np.array(0.5, np.float32)))
    return g.cast(g.add("Min", g.add("Floor", positions), last), np.int64)
