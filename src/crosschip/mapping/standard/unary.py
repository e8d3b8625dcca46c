"""Names and codes of elementwise functions of one operand in other systems."""

from __future__ import annotations

import math

from crosschip.ir import ModelError, Operand
from crosschip.mapping.layer_rules import activation_node
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Import, Rule, number
from crosschip.mapping.rules import ConstantTerm, apply_constant
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


class ExpBase(Rule):
    """The base of EXP; -1, or an omitted operand, means e."""

    slot = ""
    text = "BASE is what is raised to it, -1 standing for e"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        base = -1 if operand is None else number(operand, "BASE")
        if base == -1:
            return
        if base <= 0:
            raise ModelError(f"BASE: is {base:g}, but must be positive, or -1")
        apply_constant(ctx, "input", Mul, math.log(base))


map_operator(
    Abs,
    nnadapter=NNAdapter(0),
    nnrt=(NNRt(58, "ABS"),),
    hdi=(activation_node(6, "ABS"),),
    onnx=("Abs",),
)

map_operator(Neg, nnrt=(NNRt(84, "NEG"),), onnx=("Neg",))
map_operator(Sign, hdi=(activation_node(17, "SIGN"),), onnx=("Sign",))
map_operator(Square, nnadapter=NNAdapter(80), nnrt=(NNRt(63, "SQUARE"),))
map_operator(Sqrt, nnrt=(NNRt(33, "SQRT"),), hdi=(HDI(146, "SQRT"),), onnx=("Sqrt",))
map_operator(Rsqrt, nnadapter=NNAdapter(72), nnrt=(NNRt(44, "RSQRT"),), hdi=(HDI(126, "RSQRT"),))
map_operator(Reciprocal, nnrt=(NNRt(85, "RECIPROCAL"),), onnx=("Reciprocal",))

map_operator(
    Exp,
    nnadapter=NNAdapter(22),
    nnrt=(
        NNRt(
            60,
            "EXP",
            ("input",),
            {
                "SCALE": ConstantTerm("input", Mul, 1, "the exponent is multiplied by SCALE"),
                "SHIFT": ConstantTerm("input", Add, 0, "SHIFT is added to it"),
                "BASE": ExpBase(),
            },
        ),
    ),
    onnx=("Exp",),
)

map_operator(Log, nnadapter=NNAdapter(43), nnrt=(NNRt(80, "LOG"),), onnx=("Log",))
map_operator(Erf, nnrt=(NNRt(59, "ERF"),), onnx=("Erf",))
map_operator(Floor, nnadapter=NNAdapter(27), nnrt=(NNRt(93, "FLOOR"),), onnx=("Floor",))
map_operator(Ceil, nnrt=(NNRt(90, "CEIL"),), onnx=("Ceil",))
map_operator(Round, nnrt=(NNRt(102, "ROUND"),), onnx=("Round",))
map_operator(IsNaN, onnx=("IsNaN",))
map_operator(IsInf, onnx=("IsInf",))
map_operator(Sin, nnadapter=NNAdapter(75), nnrt=(NNRt(86, "SIN"),), onnx=("Sin",))
map_operator(Cos, nnadapter=NNAdapter(16), nnrt=(NNRt(79, "COS"),), onnx=("Cos",))
map_operator(Tan, onnx=("Tan",))
map_operator(Asin, onnx=("Asin",))
map_operator(Acos, onnx=("Acos",))
map_operator(Atan, onnx=("Atan",))
map_operator(Sinh, onnx=("Sinh",))
map_operator(Cosh, onnx=("Cosh",))
map_operator(Asinh, onnx=("Asinh",))
map_operator(Acosh, onnx=("Acosh",))
map_operator(Atanh, onnx=("Atanh",))
