"""Quirks of operators on quantized integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosschip.devices.kits.quirks import Raises
from crosschip.devices.litert import limits, lowering
from crosschip.devices.litert.quirks.registry import Node, options, quirk
from crosschip.ir import Builder, Operand, Quantization
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Add, Mul, Sub
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.quantization import Dequantize, Reinterpret
from crosschip.ops.standard.unary import Abs, Exp, Log, Rsqrt


def _between(operator: type[Operator], source: float, target: float) -> Any:
    """Return a builder of an operator between integers with two scales."""

    def build(b: Builder, x: Operand) -> Operand:
        result = b.add(
            operator, b.add(Reinterpret, x, scale=source), quantization=Quantization((target,))
        )
        return b.add(Reinterpret, result, bare=True)

    return build


@quirk(
    *(Abs, Add, MaxPool2D, Mul, Sub),
    when="all scales are powers of 2, and a result is in the middle between two integers",
    what="rounds it away from 0",
    avoided_by=limits.exact_halves,
    inputs=[np.array([1, 3, 5], np.int8)],
    right=np.array([0, 2, 2], np.int8),
    wrong=np.array([1, 2, 3], np.int8),
    model=_between(Abs, 0.5, 1.0),
)
def halves() -> Node:
    return Node("ABS", options("AbsOptions"), scales=[0.5, 1.0], version=2)


@quirk(
    *(Exp, Log),
    when="the elements are int16",
    what="interpolates in a table of 513 numbers",
    avoided_by=limits.no_words,
    inputs=[np.array([1, 100, 1000], np.int16)],
    right=np.array([-3454, -1151, 0], np.int16),
    wrong=np.array([-24821, -6263, 0], np.int16),
    model=_between(Log, 1e-3, 2e-3),
)
def table_of_int16() -> Node:
    return Node("LOG", scales=[1e-3, 2e-3], version=2)


@quirk(
    Dequantize,
    when="the integers are constant, and the reals an output",
    what="fails",
    avoided_by=lowering.reals_of_constant,
    right=np.array([1, 1.5]),
    wrong=Raises("failed to setup"),
    model=lambda b: b.add(
        Dequantize, b.constant(np.array([2, 3], np.int8), quantization=Quantization((0.5,)))
    ),
)
def dequantized_constant() -> Node:
    return Node(
        "DEQUANTIZE",
        options("DequantizeOptions"),
        [np.array([2, 3], np.int8)],
        [(np.float32, (2,))],
        [0.5],
        version=2,
    )


@quirk(
    Rsqrt,
    when="an integer stands for a negative number",
    what="fails",
    avoided_by=limits.no_integers,
    inputs=[np.array([4, -1], np.int8)],
    right=np.array([1, 0], np.int8),
    wrong=Raises("only defined for positive values"),
)
def rsqrt_of_negative_integers() -> Node:
    return Node("RSQRT", scales=[0.3, 1.0], version=2)
