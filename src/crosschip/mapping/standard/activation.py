"""Names and codes of activation functions in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Operand, constant
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.nodes import activation
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import Fixed, filled, rank_of
from crosschip.mapping.translation import Export, Import, Passed, Rule, refusal
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


def _by_channel(use: Export) -> bool:
    """Tell whether the slopes run along axis 1 of the input."""
    slope = use.operation.operand("slope")
    return slope is not None and slope.type.shape is not None and len(slope.type.shape) == 1


class SlopedInput(Rule):
    """The input of slopes, which run along its last axis there."""

    slot = "input"
    text = "slopes run along the last axis"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        rule: Rule = ChannelsLast(self.slot) if _by_channel(use) else Passed(self.slot)
        return rule.export_operand(use)


class Slope(Rule):
    """Slopes, which run along the last axis there."""

    slot = "slope"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None and rank_of(operand, self.slot) == 1 and use.channels_last:
            rank = rank_of(filled(use, "input"), "input")
            operand = use.builder.add(Reshape, operand, (*(1,) * (rank - 1), -1))
        Passed(self.slot).import_operand(operand, use)

    def export_operand(self, use: Export) -> Operand | None:
        operand = use.operation.operand(self.slot)
        assert operand is not None, "there are slopes"
        if _by_channel(use):
            return operand
        *leading, size = operand.type.shape or (None,)
        last = use.channels_last or size == 1
        if size is None or not last or any(one != 1 for one in leading):
            raise refusal(use, self.slot, "must run along one axis there")
        return use.before.add(Reshape, operand, (-1,))


class SlopedOutput(Rule):
    """The output of slopes, turned as the input is."""

    slot = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        return ChannelsLastOutput().export_operand(use) if _by_channel(use) else None


class OneSlope(Rule):
    """A flag that there is one slope for all channels, which the slopes tell, too."""

    slot = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        slope = use.operation.operand("slope")
        one = slope is not None and slope.type.shape is not None and set(slope.type.shape) <= {1}
        return constant(np.array(one), f"{use.operation.name}.channel_shared")


_SIXTH = (Fixed("alpha", 1 / 6), Fixed("beta", 0.5))

map_operator(
    Relu,
    nnadapter=NNAdapter(65),
    nnrt=(NNRt(47, "RELU"),),
    hdi=(activation(1, "RELU"),),
    onnx=("Relu",),
)

map_operator(
    Relu6,
    nnadapter=NNAdapter(66),
    nnrt=(NNRt(48, "RELU6"),),
    hdi=(activation(3, "RELU6"),),
)

map_operator(
    LeakyRelu,
    nnadapter=NNAdapter(40),
    nnrt=(NNRt(74, "LEAKY_RELU", parameters={"NEGATIVE_SLOPE": "alpha"}),),
    hdi=(activation(5, "LEAKY_RELU", {"alpha": "alpha"}),),
    onnx=("LeakyRelu",),
)

map_operator(
    PRelu,
    nnadapter=NNAdapter(59),
    nnrt=(NNRt(46, "PRELU", (SlopedInput(), Slope()), other_rules=(SlopedOutput(),)),),
    hdi=(
        HDI(
            *(112, "PRELU_FUSION", (SlopedInput(), Slope())),
            {"channelShared": OneSlope()},
            (SlopedOutput(),),
        ),
    ),
    onnx=("PRelu",),
)

map_operator(
    Sigmoid,
    nnadapter=NNAdapter(74),
    nnrt=(NNRt(28, "SIGMOID"),),
    hdi=(activation(2, "SIGMOID"),),
    onnx=("Sigmoid",),
)

map_operator(
    Tanh,
    nnadapter=NNAdapter(86),
    nnrt=(NNRt(39, "TANH"),),
    hdi=(activation(10, "TANH"),),
    onnx=("Tanh",),
)

map_operator(
    HardSigmoid,
    nnadapter=NNAdapter(36),
    nnrt=(NNRt(107, "HARD_SIGMOID", other_rules=_SIXTH),),
    hdi=(activation(13, "HSIGMOID", other_rules=_SIXTH),),
    onnx=("HardSigmoid",),
)

map_operator(
    HardSwish,
    nnadapter=NNAdapter(37),
    nnrt=(NNRt(17, "HSWISH"),),
    hdi=(activation(12, "HSWISH"),),
    onnx=("HardSwish",),
)

map_operator(
    Swish,
    nnadapter=NNAdapter(85),
    nnrt=(NNRt(105, "SWISH"),),
    hdi=(activation(18, "SWISH"),),
    onnx=("Swish",),
)

map_operator(
    Softsign,
    hdi=(activation(8, "SOFTSIGN"),),
    onnx=("Softsign",),
)

map_operator(
    ThresholdedRelu,
    onnx=("ThresholdedRelu",),
)

map_operator(
    Shrink,
    onnx=("Shrink",),
)

map_operator(
    Softmax,
    nnadapter=NNAdapter(77),
    nnrt=(NNRt(30, "SOFTMAX", parameters={"AXIS": Passed("axis", default=-1)}),),
    hdi=(HDI(138, "SOFTMAX", attributes={"axis": "axis"}),),
    onnx=("Softmax",),
)

map_operator(
    LogSoftmax,
    nnadapter=NNAdapter(44),
    nnrt=(NNRt(95, "LOG_SOFTMAX", parameters={"AXIS": Passed("axis", default=-1)}),),
    onnx=("LogSoftmax",),
)

map_operator(
    Gelu,
    nnadapter=NNAdapter(31),
    nnrt=(NNRt(56, "GELU", parameters={"APPROXIMATE": "approximate"}),),
    hdi=(activation(19, "GELU", {"approximate": "approximate"}),),
    onnx=(
        "Gelu",
        "com.microsoft.Gelu",
        "com.microsoft.BiasGelu",
        "com.microsoft.FastGelu",
    ),
)

map_operator(
    Softplus,
    nnadapter=NNAdapter(78, ("input", "beta", "threshold")),
    hdi=(activation(9, "SOFTPLUS"),),
    onnx=("Softplus",),
)

map_operator(
    Mish,
    onnx=("Mish",),
)

map_operator(
    Elu,
    hdi=(activation(4, "ELU", {"alpha": "alpha"}),),
    onnx=("Elu",),
)

map_operator(
    Selu,
    hdi=(activation(11, "SELU"),),
    onnx=("Selu",),
)

map_operator(
    Celu,
    onnx=("Celu",),
)

map_operator(
    Hardmax,
    onnx=("Hardmax",),
)
