"""Operators on bits."""

from __future__ import annotations

from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import Operand
from crosschip.ops.standard.arithmetic import Clip
from crosschip.ops.standard.logical import BitShift, BitwiseXor, ShiftDirection


@imports("BITWISE_XOR")
def bitwise_xor(node: Node) -> Operand:
    return node.add(BitwiseXor, node[0], node[1])


@imports("RIGHT_SHIFT")
def right_shift(node: Node) -> Operand:
    """Import a shift; numbers of bits beyond the type's are clamped to its bits less one."""
    bits = node[0].type.element_type.dtype.itemsize * 8
    count = node.add(Clip, node[1], 0, bits - 1)
    return node.add(BitShift, node[0], count, direction=ShiftDirection.RIGHT)
