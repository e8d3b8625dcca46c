"""Names and codes of arithmetic in other systems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.ir import ElementType, ModelError, Operand, constant
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.layer_rules import ActivationCode, activation_node
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, refusal, static_shape
from crosschip.mapping.rules import (
    ChannelAxis,
    ConstantTerm,
    FixedValue,
    PassThrough,
    Selector,
    TypePromotion,
)
from crosschip.ops.definition import quantized
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
class ClipBound(Rule):
    """A bound that NNAdapter stores with the type of the input, quantization included."""

    slot: str

    @property
    def text(self) -> str:
        return f"`{self.slot}` has the type of the input, quantized if that is"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        scales = operand.type.quantization if operand is not None else None
        if operand is not None and scales is not None:
            if operand.value is None:
                raise ModelError(f"{self.slot}: is quantized, and so must be constant")
            real = quantized.reals(operand.value, scales).astype(np.float32)
            operand = constant(real, operand.name)
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        assert isinstance(ctx.operation, Clip), "only rows of CLIP have this rule"
        operand, type_ = ctx.operation.operand(self.slot), ctx.operation.input.type
        if operand is not None and operand.value is None:
            return operand
        number = getattr(ctx.operation, self.slot)
        if type_.quantization is not None:
            reals = np.array([number], np.float32)
            bound = quantized.stored(reals, type_.quantization, type_.element_type)
            dequantized = quantized.reals(bound, type_.quantization).astype(np.float32)
            if np.isfinite(number) and dequantized != reals:
                raise refusal(ctx, self.slot, f"no integer of the input represents {number:g}")
        elif type_.element_type.dtype.kind in "iu":
            bound = np.array([clamp_to_type(number, type_.element_type)], type_.element_type.dtype)
        else:
            bound = np.array([number]).astype(type_.element_type.dtype)
        return constant(bound, f"{ctx.operation.name}.{self.slot}", type_.quantization)


def clamp_to_type(number: float, element_type: ElementType) -> int:
    """Clamp a number to the range of an integer type, and truncate it."""
    low, high = quantized.limits(element_type)
    return low if number <= low else high if number >= high else int(number)


_PAIR = ("input0", TypePromotion("input1", "input0"))
_ACTIVATION: Mapping[str, str | Rule] = {"activationType": ActivationCode()}


def _eltwise(description: str, mode: int) -> NNRt:
    code = np.array([mode], np.int8)
    return NNRt(12, "ELTWISE", _PAIR, {"MODE": Selector("MODE", description, mode.__eq__, code)})


def _eltwise_node(description: str, mode: int) -> HDI:
    case = Selector("mode", description, mode.__eq__, np.array(mode))
    return HDI(52, "ELTWISE", _PAIR, {"mode": case})


class ScaleBias(Rule):
    """The bias of SCALE, which NNRt requires; an omitted one is exported as zeros."""

    slot = "bias"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        operand, scale = (ctx.operation.operand(slot) for slot in ("bias", "scale"))
        assert scale is not None, "scale is required"
        if operand is not None:
            return operand
        shape = static_shape(scale.type.shape)
        if shape is None or scale.type.quantization is not None:
            raise refusal(ctx, self.slot, "cannot be omitted in the target")
        zeros = np.zeros(shape, scale.type.element_type.dtype)
        return constant(zeros, f"{ctx.operation.name}.bias")


_SCALE = ConstantTerm("input0", Mul, 1, "the base is multiplied by SCALE")
_SHIFT = ConstantTerm("input0", Add, 0, "SHIFT is added to the base")

map_operator(
    Add,
    nnadapter=NNAdapter(3),
    nnrt=(NNRt(1, "ADD", _PAIR, {"ACTIVATIONTYPE": "fuse_code"}), _eltwise("1", 1)),
    hdi=(HDI(5, "ADD_FUSION", _PAIR, _ACTIVATION), _eltwise_node("1 SUM", 1)),
    onnx=("Add",),
)

map_operator(
    Sub,
    nnadapter=NNAdapter(83),
    nnrt=(NNRt(38, "SUB", _PAIR, {"ACTIVATIONTYPE": "fuse_code"}),),
    hdi=(HDI(152, "SUB_FUSION", _PAIR, _ACTIVATION),),
    onnx=("Sub",),
)

map_operator(
    Mul,
    nnadapter=NNAdapter(52),
    nnrt=(NNRt(22, "MUL", _PAIR, {"ACTIVATION_TYPE": "fuse_code"}), _eltwise("0", 0)),
    hdi=(HDI(99, "MUL_FUSION", _PAIR, _ACTIVATION), _eltwise_node("0 PROD", 0)),
    onnx=("Mul",),
)

map_operator(
    Div,
    nnadapter=NNAdapter(20),
    nnrt=(NNRt(11, "DIV", _PAIR, {"ACTIVATIONTYPE": "fuse_code"}),),
    hdi=(HDI(47, "DIV_FUSION", _PAIR, _ACTIVATION),),
    onnx=("Div",),
)

map_operator(
    Pow,
    nnadapter=NNAdapter(57),
    nnrt=(NNRt(25, "POW", _PAIR, {"SCALE": _SCALE, "SHIFT": _SHIFT}),),
    hdi=(HDI(110, "POW_FUSION", _PAIR, {"scale": _SCALE, "shift": _SHIFT}),),
    onnx=("Pow",),
)

map_operator(
    Max,
    nnadapter=NNAdapter(48),
    nnrt=(NNRt(20, "MAXIMUM", _PAIR), _eltwise("2", 2)),
    hdi=(HDI(90, "MAXIMUM", _PAIR), _eltwise_node("2 MAXIMUM", 2)),
    onnx=("Max",),
)

map_operator(Min, nnadapter=NNAdapter(51), nnrt=(NNRt(97, "MINIMUM", _PAIR),), onnx=("Min",))

map_operator(
    SquaredDifference,
    nnrt=(NNRt(34, "SQUARED_DIFFERENCE", _PAIR),),
    hdi=(HDI(149, "SQUARED_DIFFERENCE", _PAIR),),
)

map_operator(Sum, nnadapter=NNAdapter(84), onnx=("Sum",))

map_operator(
    Clip,
    nnadapter=NNAdapter(12, ("input", ClipBound("min"), ClipBound("max"))),
    nnrt=(NNRt(76, "CLIP", parameters={"MIN": "min", "MAX": "max"}),),
    hdi=(
        activation_node(16, "HARD_TANH", {"minVal": "min", "maxVal": "max"}),
        activation_node(7, "RELU1", other_rules=(FixedValue("min", 0.0), FixedValue("max", 1.0))),
        activation_node(14, "THRESHOLDRELU", {"maxVal": "max"}, (FixedValue("min", 0.0),)),
    ),
    onnx=("Clip",),
)

map_operator(
    BiasAdd,
    nnrt=(NNRt(5, "BIAS_ADD", ("input", "bias"), other_rules=(ChannelAxis(),)),),
    hdi=(HDI(23, "BIAS_ADD", ("input", "bias"), other_rules=(ChannelAxis(),)),),
)

map_operator(
    Scale,
    nnrt=(
        NNRt(
            26,
            "SCALE",
            ("input", "scale", ScaleBias()),
            {"AXIS": "axis", "ACTIVATIONTYPE": "fuse_code"},
        ),
    ),
    hdi=(
        HDI(127, "SCALE_FUSION", ("input", "scale", ScaleBias()), {"axis": "axis", **_ACTIVATION}),
    ),
)

map_operator(FloorDiv, nnadapter=NNAdapter(28))
map_operator(Mod, nnrt=(NNRt(83, "MOD", _PAIR),), onnx=("Mod",))
