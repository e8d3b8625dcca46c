"""Names and codes of activation functions in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Operand, constant
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.layer_rules import activation_node
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Export, Import, Rule, rank_of, refusal, slot_operand
from crosschip.mapping.rules import FixedValue, PassThrough
from crosschip.ops.standard.activation import (
    Celu,
    Elu,
    Gelu,
    Hardmax,
    HardSigmoid,
    HardSwish,
    LeakyRelu,
    LogSoftmax,
    Mish,
    PRelu,
    Relu,
    Relu6,
    Selu,
    Shrink,
    Sigmoid,
    Softmax,
    Softplus,
    Softsign,
    Swish,
    Tanh,
    ThresholdedRelu,
)
from crosschip.ops.standard.layout import Reshape


def _is_per_channel(ctx: Export) -> bool:
    """Return whether the slopes have rank 1, which means one slope per channel (axis 1)."""
    slope = ctx.operation.operand("slope")
    return slope is not None and slope.type.shape is not None and len(slope.type.shape) == 1


class PReluInput(Rule):
    """The input of PRELU, which NNRt stores channels-last if the slopes are per channel."""

    slot = "input"
    text = "slopes run along the last axis"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        rule: Rule = ChannelsLast(self.slot) if _is_per_channel(ctx) else PassThrough(self.slot)
        return rule.export_operand(ctx)


class PReluSlope(Rule):
    """The slopes of PRELU, which NNRt applies along the last axis of the input."""

    slot = "slope"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None and rank_of(operand, self.slot) == 1 and ctx.channels_last:
            rank = rank_of(slot_operand(ctx, "input"), "input")
            operand = ctx.builder.add(Reshape, operand, (*(1,) * (rank - 1), -1))
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        assert operand is not None, "slope is required"
        if _is_per_channel(ctx):
            return operand
        *leading, size = operand.type.shape or (None,)
        on_last_axis = ctx.channels_last or size == 1
        if size is None or not on_last_axis or any(dim != 1 for dim in leading):
            raise refusal(ctx, self.slot, "must run along one axis in the target")
        return ctx.before.add(Reshape, operand, (-1,))


class PReluOutput(Rule):
    """The output of PRELU, transposed like the input."""

    slot = ""

    def export_operand(self, ctx: Export) -> Operand | None:
        return ChannelsLastOutput().export_operand(ctx) if _is_per_channel(ctx) else None


class ChannelShared(Rule):
    """Exports whether one slope is shared by all channels; ignored on import."""

    slot = ""

    def export_operand(self, ctx: Export) -> Operand | None:
        slope = ctx.operation.operand("slope")
        shape = None if slope is None else slope.type.shape
        shared = shape is not None and set(shape) <= {1}
        return constant(np.array(shared), f"{ctx.operation.name}.channel_shared")


_HARD_SIGMOID = (FixedValue("alpha", 1 / 6), FixedValue("beta", 0.5))

map_operator(
    Relu,
    nnadapter=NNAdapter(65),
    nnrt=(NNRt(47, "RELU"),),
    hdi=(activation_node(1, "RELU"),),
    onnx=("Relu",),
)

map_operator(
    Relu6, nnadapter=NNAdapter(66), nnrt=(NNRt(48, "RELU6"),), hdi=(activation_node(3, "RELU6"),)
)

map_operator(
    LeakyRelu,
    nnadapter=NNAdapter(40),
    nnrt=(NNRt(74, "LEAKY_RELU", parameters={"NEGATIVE_SLOPE": "alpha"}),),
    hdi=(activation_node(5, "LEAKY_RELU", {"alpha": "alpha"}),),
    onnx=("LeakyRelu",),
)

map_operator(
    PRelu,
    nnadapter=NNAdapter(59),
    nnrt=(NNRt(46, "PRELU", (PReluInput(), PReluSlope()), other_rules=(PReluOutput(),)),),
    hdi=(
        HDI(
            112,
            "PRELU_FUSION",
            (PReluInput(), PReluSlope()),
            {"channelShared": ChannelShared()},
            (PReluOutput(),),
        ),
    ),
    onnx=("PRelu",),
)

map_operator(
    Sigmoid,
    nnadapter=NNAdapter(74),
    nnrt=(NNRt(28, "SIGMOID"),),
    hdi=(activation_node(2, "SIGMOID"),),
    onnx=("Sigmoid",),
)

map_operator(
    Tanh,
    nnadapter=NNAdapter(86),
    nnrt=(NNRt(39, "TANH"),),
    hdi=(activation_node(10, "TANH"),),
    onnx=("Tanh",),
)

map_operator(
    HardSigmoid,
    nnadapter=NNAdapter(36),
    nnrt=(NNRt(107, "HARD_SIGMOID", other_rules=_HARD_SIGMOID),),
    hdi=(activation_node(13, "HSIGMOID", other_rules=_HARD_SIGMOID),),
    onnx=("HardSigmoid",),
)

map_operator(
    HardSwish,
    nnadapter=NNAdapter(37),
    nnrt=(NNRt(17, "HSWISH"),),
    hdi=(activation_node(12, "HSWISH"),),
    onnx=("HardSwish",),
)

map_operator(
    Swish,
    nnadapter=NNAdapter(85),
    nnrt=(NNRt(105, "SWISH"),),
    hdi=(activation_node(18, "SWISH"),),
    onnx=("Swish",),
)

map_operator(Softsign, hdi=(activation_node(8, "SOFTSIGN"),), onnx=("Softsign",))
map_operator(ThresholdedRelu, onnx=("ThresholdedRelu",))
map_operator(Shrink, onnx=("Shrink",))

map_operator(
    Softmax,
    nnadapter=NNAdapter(77),
    nnrt=(NNRt(30, "SOFTMAX", parameters={"AXIS": PassThrough("axis", default=-1)}),),
    hdi=(HDI(138, "SOFTMAX", attributes={"axis": "axis"}),),
    onnx=("Softmax",),
)

map_operator(
    LogSoftmax,
    nnadapter=NNAdapter(44),
    nnrt=(NNRt(95, "LOG_SOFTMAX", parameters={"AXIS": PassThrough("axis", default=-1)}),),
    onnx=("LogSoftmax",),
)

map_operator(
    Gelu,
    nnadapter=NNAdapter(31),
    nnrt=(NNRt(56, "GELU", parameters={"APPROXIMATE": "approximate"}),),
    hdi=(activation_node(19, "GELU", {"approximate": "approximate"}),),
    onnx=("Gelu", "com.microsoft.Gelu", "com.microsoft.BiasGelu", "com.microsoft.FastGelu"),
)

map_operator(
    Softplus,
    nnadapter=NNAdapter(78, ("input", "beta", "threshold")),
    hdi=(activation_node(9, "SOFTPLUS"),),
    onnx=("Softplus",),
)

map_operator(Mish, onnx=("Mish",))
map_operator(Elu, hdi=(activation_node(4, "ELU", {"alpha": "alpha"}),), onnx=("Elu",))
map_operator(Selu, hdi=(activation_node(11, "SELU"),), onnx=("Selu",))
map_operator(Celu, onnx=("Celu",))
map_operator(Hardmax, onnx=("Hardmax",))
