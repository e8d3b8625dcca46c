"""Arithmetic on two tensors."""

from __future__ import annotations

from crosschip.ops.definition.kinds import Binary
from crosschip.ops.standard.arithmetic import Add, Mul, Sub
from fake_npu.assembly import Assembly
from fake_npu.converters.table import bytes_in, converters
from fake_npu_ddk import Operator

_OPERATORS: dict[type[Binary], Operator] = {
    Add: Operator.ADD,
    Sub: Operator.SUBTRACT,
    Mul: Operator.MULTIPLY,
}


@converters.converts(*_OPERATORS, quantized=bytes_in("input0", "input1"))
def binary(g: Assembly, op: Binary) -> int:
    rank = len(op.outputs[0].type.shape or ())
    operands = [g.beside(operand, rank) for operand in (op.input0, op.input1)]
    return g.add(_OPERATORS[type(op)], operands, op)
