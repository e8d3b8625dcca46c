"""Convolutions."""

from __future__ import annotations

import numpy as np

from crosschip.hal import Refusal
from crosschip.ops.standard.convolution import Conv2D
from fake_npu.assembly import Assembly
from fake_npu.converters.table import constant, converters, weighted
from fake_npu_ddk import Operator, Settings


def _limit(op: Conv2D) -> Refusal | None:
    """The chip convolves all channels with all, or each with itself."""
    channels = (op.input.type.static_shape or ())[1]
    out = (op.filter.type.static_shape or ())[0]
    if op.group != 1 and not op.group == channels == out:
        return Refusal("group", f"{op.group}; must be 1, or as many as channels in and out")
    return constant(op, "filter", "bias")


@converters.converts(Conv2D, limit=_limit, quantized=weighted("input", "filter"))
def conv_2d(g: Assembly, op: Conv2D) -> int:
    filters = np.asarray(op.filter.value)
    out, _, *kernel = filters.shape
    image = (op.input.type.static_shape or ())[2:]
    settings = Settings(
        strides=(op.strides[0], op.strides[1]),
        dilations=(op.dilations[0], op.dilations[1]),
        pads=op.windows(kernel).sides(image),
    )
    bias = g.bias(op.bias, out, op.input, op.filter)
    if op.group == 1:
        weights = g.weights(op.filter, filters.transpose(2, 3, 1, 0))
        return g.add(Operator.CONV_2D, [g[op.input], weights, bias], op, settings)
    weights = g.weights(op.filter, filters[:, 0].transpose(1, 2, 0))
    return g.add(Operator.DEPTHWISE_CONV_2D, [g[op.input], weights, bias], op, settings)
