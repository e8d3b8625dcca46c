"""A small network with branches, and what can be planted in it."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.ops.standard.activation import LeakyRelu, Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.matrix import FullyConnected, MatMul

SHAPE = (3, 6)


def network(blocks: int = 3) -> Model:
    """Blocks of eight operations, each with a branch around most of it."""
    generator = np.random.default_rng(0)
    b = Builder("small")
    value = b.input("x", TensorType(ElementType.FLOAT32, SHAPE))
    for _ in range(blocks):
        weight = generator.standard_normal((6, 6)).astype(np.float32) / 2
        inner = b.add(MatMul, value, weight)
        inner = b.add(Add, inner, generator.standard_normal(6).astype(np.float32))
        gate = b.add(Sigmoid, inner)
        inner = b.add(Mul, inner, gate)
        inner = b.add(Tanh, inner)
        inner = b.add(FullyConnected, inner, weight)
        inner = b.add(Add, inner, value)
        value = b.add(Tanh, inner)
    for slope in (0.25, 0.5):
        value = b.add(LeakyRelu, value, alpha=slope)
    b.output("y", b.add(Relu, value))
    b.output("z", value)
    return b.build()


def inputs() -> dict[str, Array]:
    """What it reads."""
    return {"x": np.random.default_rng(1).standard_normal(SHAPE).astype(np.float32)}
