"""Names and codes of functions of one number in other systems."""

from __future__ import annotations

import math

from crosschip.ir import ModelError, Operand
from crosschip.ops.definition.faces import HDI, NNAdapter, NNRt, faces
from crosschip.ops.definition.translation import Inward, Outward, Rule
from crosschip.ops.faces.nodes import activation
from crosschip.ops.faces.rules import Combined, combine, number
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.unary import (
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atan,
    Atanh,
    Ceil,
    Cos,
    Cosh,
    Erf,
    Exp,
    Floor,
    IsInf,
    IsNaN,
    Log,
    Neg,
    Reciprocal,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Square,
    Tan,
)


class Base(Rule):
    """The base that is raised to the exponent: e unless it is given."""

    slot = ""
    text = "BASE is what is raised to it, -1 standing for e"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        base = -1 if operand is None else number(operand, "BASE")
        if base == -1:
            return
        if base <= 0:
            raise ModelError(f"BASE: is {base:g}, but must be positive, or -1")
        combine(use, "input", Mul, math.log(base))

    def outward(self, use: Outward) -> Operand | None:
        return None


faces(
    Abs,
    nnadapter=NNAdapter(0),
    nnrt=(NNRt(58, "ABS"),),
    hdi=(activation(6, "ABS"),),
    onnx=("Abs",),
)

faces(
    Neg,
    nnrt=(NNRt(84, "NEG"),),
    onnx=("Neg",),
)

faces(
    Sign,
    hdi=(activation(17, "SIGN"),),
    onnx=("Sign",),
)

faces(
    Square,
    nnadapter=NNAdapter(80),
    nnrt=(NNRt(63, "SQUARE"),),
)

faces(
    Sqrt,
    nnrt=(NNRt(33, "SQRT"),),
    hdi=(HDI(146, "SQRT"),),
    onnx=("Sqrt",),
)

faces(
    Rsqrt,
    nnadapter=NNAdapter(72),
    nnrt=(NNRt(44, "RSQRT"),),
    hdi=(HDI(126, "RSQRT"),),
)

faces(
    Reciprocal,
    nnrt=(NNRt(85, "RECIPROCAL"),),
    onnx=("Reciprocal",),
)

faces(
    Exp,
    nnadapter=NNAdapter(22),
    nnrt=(
        NNRt(
            *(60, "EXP", ("input",)),
            {
                "SCALE": Combined("input", Mul, 1, "the exponent is multiplied by SCALE"),
                "SHIFT": Combined("input", Add, 0, "SHIFT is added to it"),
                "BASE": Base(),
            },
        ),
    ),
    onnx=("Exp",),
)

faces(
    Log,
    nnadapter=NNAdapter(43),
    nnrt=(NNRt(80, "LOG"),),
    onnx=("Log",),
)

faces(
    Erf,
    nnrt=(NNRt(59, "ERF"),),
    onnx=("Erf",),
)

faces(
    Floor,
    nnadapter=NNAdapter(27),
    nnrt=(NNRt(93, "FLOOR"),),
    onnx=("Floor",),
)

faces(
    Ceil,
    nnrt=(NNRt(90, "CEIL"),),
    onnx=("Ceil",),
)

faces(
    Round,
    nnrt=(NNRt(102, "ROUND"),),
    onnx=("Round",),
)

faces(
    IsNaN,
    onnx=("IsNaN",),
)

faces(
    IsInf,
    onnx=("IsInf",),
)

faces(
    Sin,
    nnadapter=NNAdapter(75),
    nnrt=(NNRt(86, "SIN"),),
    onnx=("Sin",),
)

faces(
    Cos,
    nnadapter=NNAdapter(16),
    nnrt=(NNRt(79, "COS"),),
    onnx=("Cos",),
)

faces(
    Tan,
    onnx=("Tan",),
)

faces(
    Asin,
    onnx=("Asin",),
)

faces(
    Acos,
    onnx=("Acos",),
)

faces(
    Atan,
    onnx=("Atan",),
)

faces(
    Sinh,
    onnx=("Sinh",),
)

faces(
    Cosh,
    onnx=("Cosh",),
)

faces(
    Asinh,
    onnx=("Asinh",),
)

faces(
    Acosh,
    onnx=("Acosh",),
)

faces(
    Atanh,
    onnx=("Atanh",),
)
