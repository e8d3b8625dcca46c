"""Tensors joined, padded and filled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import MirrorPadMode
from crosschip.flatbuffer.schemas.tflite.options import (
    ConcatenationOptions,
    MirrorPadOptions,
    PackOptions,
)
from crosschip.importers.facts import rank_of, size_of, static_shape_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ModelError, Operand
from crosschip.mapping.channels_last import channels_first_axes
from crosschip.ops.standard.creation import Fill, FillLike, Range
from crosschip.ops.standard.joining import Concat, Stack
from crosschip.ops.standard.layout import Reshape, Unsqueeze
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.slicing import Slice

_MIRRORED = {MirrorPadMode.REFLECT: PadMode.REFLECT, MirrorPadMode.SYMMETRIC: PadMode.SYMMETRIC}


@imports("CONCATENATION")
def concatenation(node: Node) -> Operand:
    """Import a concatenation; quantized parts with another scale are requantized."""
    options = node.options(ConcatenationOptions)
    target = node.output().quantization
    parts = [
        part if part.type.quantization == target else node.dequantized(part)
        for part in node.all_inputs()
    ]
    if len({part.type.element_type for part in parts}) > 1:
        parts = [node.dequantized(part) for part in parts]
    joined = node.add(Concat, parts=parts, axis=options.axis)
    return node.activate(joined, options.fused_activation_function)


@imports("PACK")
def pack(node: Node) -> Operand:
    return node.add(Stack, parts=node.all_inputs(), axis=node.options(PackOptions).axis)


@imports("PAD", "PADV2")
def pad(node: Node) -> Operand:
    pads = node[1]
    value = node.optional(2)
    if value is not None and value.type.shape != ():
        value = node.add(Reshape, value, ())
    if pads.value is None:
        return node.add(Pad, node[0], node.add(Reshape, pads, (-1,)), value=value)
    if pads.value.shape != (4, 2):
        return node.add(Pad, node[0], tuple(map(int, pads.value.ravel())), value=value)
    # Beside convolutions, in the layout of theirs, so that no transposition remains.
    amounts = pads.value[list(channels_first_axes(4))]
    padded = node.add(
        Pad, node.channels_first(node[0]), tuple(map(int, amounts.ravel())), value=value
    )
    return node.channels_last(node.fit(padded, node.output()))


@imports("MIRROR_PAD")
def mirror_pad(node: Node) -> Operand:
    amounts = tuple(map(int, node.value(1, "the list of paddings").ravel()))
    mode = _MIRRORED[MirrorPadMode(node.options(MirrorPadOptions).mode)]
    return node.add(Pad, node[0], amounts, mode=mode)


@imports("DILATE")
def dilate_(node: Node) -> Operand:
    factors = [int(each) for each in node.value(1, "the list of dilations").ravel()]
    return dilate(node, node[0], factors, node.add(Reshape, node[2], ()))


def dilate(node: Node, operand: Operand, factors: Sequence[int], value: Operand) -> Operand:
    """Return a tensor with values between its elements: `factor - 1` of them along each axis.

    Raises:
        ModelError: there is not a positive factor for each axis.
    """
    if len(factors) != rank_of(operand) or min(factors) < 1:
        raise ModelError(f"{list(factors)} are no dilations of {rank_of(operand)} axes")
    for axis, factor in enumerate(factors):
        size = size_of(operand, axis)
        if factor == 1 or not size:
            continue
        # Each element becomes the first of a row, and values fill the row.
        pads = [0] * (2 * rank_of(operand) + 2)
        pads[2 * axis + 3] = factor - 1
        rows = node.add(Pad, node.add(Unsqueeze, operand, (axis + 1,)), tuple(pads), value=value)
        sizes = list(static_shape_of(operand))
        sizes[axis] *= factor
        joined = node.add(Reshape, rows, tuple(sizes))
        operand = node.add(
            Slice, joined, axes=(axis,), starts=(0,), ends=((size - 1) * factor + 1,)
        )
    return operand


@imports("FILL")
def fill(node: Node) -> Operand:
    return node.add(Fill, node[0], node[1])


@imports("ZEROS_LIKE")
def zeros_like(node: Node) -> Operand:
    return node.add(FillLike, node[0], np.zeros((), node[0].type.element_type.dtype))


@imports("RANGE")
def range_(node: Node) -> Operand:
    return node.add(Range, node[0], node[1], node[2])
