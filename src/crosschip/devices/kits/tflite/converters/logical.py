"""Comparison, logic and choice."""

from __future__ import annotations

from crosschip.devices.kits.tflite.converters.table import (
    ARITHMETIC,
    MOVABLE,
    converts,
    same,
)
from crosschip.ir import ElementType
from crosschip.ir.types import BOOLEANS
from crosschip.ops.standard.comparison import (
    Equal,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    NotEqual,
)
from crosschip.ops.standard.logical import And, BitwiseXor, Not, Or, Where, Xor

_COMPARED = ARITHMETIC
_BITS = {ElementType.INT8, ElementType.UINT8, ElementType.INT16, ElementType.INT32}

converts(Equal, types=_COMPARED | BOOLEANS, output_types=BOOLEANS)(same("EQUAL"))
converts(NotEqual, types=_COMPARED | BOOLEANS, output_types=BOOLEANS)(same("NOT_EQUAL"))
converts(Xor, types=BOOLEANS)(same("NOT_EQUAL"))
converts(Less, types=_COMPARED, output_types=BOOLEANS)(same("LESS"))
converts(LessEqual, types=_COMPARED, output_types=BOOLEANS)(same("LESS_EQUAL"))
converts(Greater, types=_COMPARED, output_types=BOOLEANS)(same("GREATER"))
converts(GreaterEqual, types=_COMPARED, output_types=BOOLEANS)(same("GREATER_EQUAL"))
converts(And, types=BOOLEANS)(same("LOGICAL_AND"))
converts(Or, types=BOOLEANS)(same("LOGICAL_OR"))
converts(Not, types=BOOLEANS)(same("LOGICAL_NOT"))
converts(BitwiseXor, types=_BITS)(same("BITWISE_XOR"))
converts(Where, types=MOVABLE - {ElementType.FLOAT16})(same("SELECT_V2"))
