"""Activations that TOSA limits or selects; others decompose."""

from __future__ import annotations

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import NUMBERS, REALS, converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.ops.standard import activation


@converts(activation.Relu, types=NUMBERS)
def relu(g: Graph, op: activation.Relu) -> Value:
    return g.clamp(g[op.input], 0, np.inf)


@converts(activation.Relu6, types=NUMBERS)
def relu6(g: Graph, op: activation.Relu6) -> Value:
    return g.clamp(g[op.input], 0, 6)


@converts(activation.LeakyRelu, types=REALS)
def leaky_relu(g: Graph, op: activation.LeakyRelu) -> Value:
    value = g[op.input]
    scaled = g.product(value, g.number(op.alpha, value))
    return g.select(g.greater_equal(value, g.number(0, value)), value, scaled)
