"""The models that drivers run in tests."""

from __future__ import annotations

from tests.modelling import float32, model_of

from crosschip.ir import Builder, Operand, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add


def _relus(b: Builder, x: Operand) -> tuple[Operand, ...]:
    return b.add(Relu, x), b.add(Add, x, x)


RELUS = model_of(_relus, float32(symbol("N"), 8), name="relus")
"""ReLU of the input, and its double; with an open size."""
