"""Functions of one tensor: bounds, tables of 256 bytes, and softmax."""

from __future__ import annotations

import numpy as np

from crosschip.hal import Refusal
from crosschip.ops.definition.kinds import Elementwise
from crosschip.ops.standard.activation import (
    Elu,
    Gelu,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    Mish,
    Relu,
    Relu6,
    Sigmoid,
    Softmax,
    Softplus,
    Swish,
    Tanh,
)
from crosschip.ops.standard.arithmetic import Clip
from crosschip.ops.standard.unary import Abs, Exp, Neg, Square
from fake_npu.assembly import Assembly
from fake_npu.converters.table import bytes_in, converters
from fake_npu.forms import decoded, encoded
from fake_npu_ddk import DataType, Operator, Settings, Tensor


@converters.converts(Relu, quantized=bytes_in("input"))
def relu(g: Assembly, op: Relu) -> int:
    return g.add(Operator.RESCALE, [g[op.input]], op, Settings(low=0))


@converters.converts(Relu6, quantized=bytes_in("input"))
def relu6(g: Assembly, op: Relu6) -> int:
    return g.add(Operator.RESCALE, [g[op.input]], op, Settings(low=0, high=6))


@converters.converts(Clip, quantized=bytes_in("input"))
def clip(g: Assembly, op: Clip) -> int:
    return g.add(Operator.RESCALE, [g[op.input]], op, Settings(low=op.min, high=op.max))


@converters.converts(
    *(Abs, Elu, Exp, Gelu, HardSigmoid, HardSwish, LeakyRelu, Mish, Neg),
    *(Sigmoid, Softplus, Square, Swish, Tanh),
    types=(),
    quantized=bytes_in("input"),
)
def looked_up(g: Assembly, op: Elementwise) -> int:
    """Any function of one byte: its 256 values, as the operator defines them."""
    every = np.arange(256, dtype=np.uint8)
    source = op.inputs[0]
    assert source is not None, "it is filled"
    read = decoded(every, source.type.element_type)
    (made,) = op.kernel()([read, *(None if o is None else o.value for o in op.inputs[1:])])
    table = g.graph.constant(Tensor(DataType.UINT8, (256,), scale=1.0), encoded(made))
    return g.add(Operator.LOOK_UP, [g[source], table], op)


def _along_channels(op: Softmax) -> Refusal | None:
    rank = len(op.input.type.shape or ())
    last = 1 if rank == 4 else rank - 1
    return None if rank and op.axis % rank == last else Refusal("axis", f"{op.axis} of {rank}")


@converters.converts(Softmax, limit=_along_channels)
def softmax(g: Assembly, op: Softmax) -> int:
    return g.add(Operator.SOFTMAX, [g[op.input]], op)
