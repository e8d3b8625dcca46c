"""Names and codes of arithmetic in other systems."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosschip.ir import ElementType, ModelError, Operand, constant
from crosschip.ops.definition import quantized
from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.definition.translation import Inward, Outward, Passed, Rule, refusal
from crosschip.ops.faces.common import PROMOTED
from crosschip.ops.standard.arithmetic import (
    Add,
    BiasAdd,
    Clip,
    Div,
    FloorDiv,
    Max,
    Min,
    Mod,
    Mul,
    Pow,
    Scale,
    SquaredDifference,
    Sub,
    Sum,
)


@dataclass(frozen=True, slots=True)
class Bound(Rule):
    """A bound that has the type of the input, and so is quantized where that is.

    Args:
        slot: the slot.
    """

    slot: str

    @property
    def text(self) -> str:
        return f"`{self.slot}` has the type of the input, quantized if that is"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        scales = operand.type.quantization if operand is not None else None
        if operand is not None and scales is not None:
            if operand.value is None:
                raise ModelError(f"{self.slot}: is quantized, and so must be constant")
            real = quantized.reals(operand.value, scales).astype(np.float32)
            operand = constant(real, operand.name)
        Passed(self.slot).inward(operand, use)

    def outward(self, use: Outward) -> Operand | None:
        assert isinstance(use.operation, Clip), "its row has this rule"
        operand, type_ = use.operation.operand(self.slot), use.operation.input.type
        if operand is not None and operand.value is None:
            return operand
        number = getattr(use.operation, self.slot)
        if type_.quantization is not None:
            reals = np.array([number], np.float32)
            held = quantized.stored(reals, type_.quantization, type_.element_type)
            back = quantized.reals(held, type_.quantization).astype(np.float32)
            if np.isfinite(number) and back != reals:
                raise refusal(use, self.slot, f"no integer of the input's stands for {number:g}")
        elif type_.element_type.dtype.kind in "iu":
            held = np.array([bounded(number, type_.element_type)], type_.element_type.dtype)
        else:
            held = np.array([number]).astype(type_.element_type.dtype)
        return constant(held, f"{use.operation.name}.{self.slot}", type_.quantization)


def bounded(number: float, element_type: ElementType) -> int:
    """A bound of integers as one of them."""
    low, high = quantized.limits(element_type)
    return low if number <= low else high if number >= high else int(number)


FUSED = f"the activation is an OH_NN_FuseType, where RELU6 is 2; {PROMOTED}"

faces(
    Add,
    nnadapter=NNAdapter(3),
    nnrt=(
        NNRt(1, "ADD", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode SUM (1) is this operator"),
    ),
    hdi=(NodeType.ADD_FUSION, NodeType.ELTWISE),
    onnx=("Add",),
)

faces(
    Sub,
    nnadapter=NNAdapter(83),
    nnrt=(NNRt(38, "SUB", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),),
    hdi=(NodeType.SUB_FUSION,),
    onnx=("Sub",),
)

faces(
    Mul,
    nnadapter=NNAdapter(52),
    nnrt=(
        NNRt(22, "MUL", ("input0", "input1"), {"ACTIVATION_TYPE": "fuse_code"}, FUSED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode PROD (0) is this operator"),
    ),
    hdi=(NodeType.MUL_FUSION, NodeType.ELTWISE),
    onnx=("Mul",),
)

faces(
    Div,
    nnadapter=NNAdapter(20),
    nnrt=(NNRt(11, "DIV", ("input0", "input1"), {"ACTIVATIONTYPE": "fuse_code"}, FUSED),),
    hdi=(NodeType.DIV_FUSION,),
    onnx=("Div",),
)

faces(
    Pow,
    nnadapter=NNAdapter(57),
    nnrt=(
        NNRt(
            *(25, "POW", ("input0", "input1"), {"SCALE": "", "SHIFT": ""}),
            f"the base is scale * input + shift; {PROMOTED}",
        ),
    ),
    hdi=(NodeType.POW_FUSION,),
    onnx=("Pow",),
)

faces(
    Max,
    nnadapter=NNAdapter(48),
    nnrt=(
        NNRt(20, "MAXIMUM", ("input0", "input1"), translation=PROMOTED),
        NNRt(12, "ELTWISE", ("input0", "input1"), {"MODE": ""}, "mode MAX (2) is this operator"),
    ),
    hdi=(NodeType.MAXIMUM, NodeType.ELTWISE),
    onnx=("Max",),
)

faces(
    Min,
    nnadapter=NNAdapter(51),
    nnrt=(NNRt(97, "MINIMUM", ("input0", "input1"), translation=PROMOTED),),
    onnx=("Min",),
)

faces(
    SquaredDifference,
    nnrt=(NNRt(34, "SQUARED_DIFFERENCE", ("input0", "input1"), translation=PROMOTED),),
    hdi=(NodeType.SQUARED_DIFFERENCE,),
)

faces(
    Sum,
    nnadapter=NNAdapter(84),
    onnx=("Sum",),
)

faces(
    Clip,
    nnadapter=NNAdapter(12, ("input", Bound("min"), Bound("max"))),
    nnrt=(NNRt(76, "CLIP", parameters={"MIN": "min", "MAX": "max"}),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Clip",),
)

faces(
    BiasAdd,
    nnrt=(NNRt(5, "BIAS_ADD", ("input", "bias")),),
    hdi=(NodeType.BIAS_ADD,),
)

faces(
    Scale,
    nnrt=(
        NNRt(
            *(26, "SCALE", ("input", "scale", "bias")),
            {"AXIS": "axis", "ACTIVATIONTYPE": "fuse_code"},
            FUSED,
        ),
    ),
    hdi=(NodeType.SCALE_FUSION,),
)

faces(
    FloorDiv,
    nnadapter=NNAdapter(28),
)

faces(
    Mod,
    nnrt=(NNRt(83, "MOD", ("input0", "input1"), translation=PROMOTED),),
    onnx=("Mod",),
)
