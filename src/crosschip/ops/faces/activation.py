"""Names and codes of activation functions in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Operand, constant
from crosschip.ops.definition.faces import HDI, NNAdapter, NNRt, faces
from crosschip.ops.definition.translation import Inward, Outward, Passed, Rule, refusal
from crosschip.ops.faces.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.ops.faces.nodes import activation
from crosschip.ops.faces.rules import Fixed, filled, rank_of
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


def _by_channel(use: Outward) -> bool:
    """Tell whether the slopes run along axis 1 of the input."""
    slope = use.operation.operand("slope")
    return slope is not None and slope.type.shape is not None and len(slope.type.shape) == 1


class SlopedInput(Rule):
    """The input of slopes, which run along its last axis there."""

    slot = "input"
    text = "slopes run along the last axis"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        Passed(self.slot).inward(operand, use)

    def outward(self, use: Outward) -> Operand | None:
        rule: Rule = ChannelsLast(self.slot) if _by_channel(use) else Passed(self.slot)
        return rule.outward(use)


class Slope(Rule):
    """Slopes, which run along the last axis there."""

    slot = "slope"

    def inward(self, operand: Operand | None, use: Inward) -> None:
        if operand is not None and rank_of(operand, self.slot) == 1 and use.channels_last:
            rank = rank_of(filled(use, "input"), "input")
            operand = use.builder.add(Reshape, operand, (*(1,) * (rank - 1), -1))
        Passed(self.slot).inward(operand, use)

    def outward(self, use: Outward) -> Operand | None:
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

    def inward(self, operand: Operand | None, use: Inward) -> None:
        return

    def outward(self, use: Outward) -> Operand | None:
        return ChannelsLastOutput().outward(use) if _by_channel(use) else None


class OneSlope(Rule):
    """A flag that there is one slope for all channels, which the slopes tell, too."""

    slot = ""

    def inward(self, operand: Operand | None, use: Inward) -> None:
        return

    def outward(self, use: Outward) -> Operand | None:
        slope = use.operation.operand("slope")
        one = slope is not None and slope.type.shape is not None and set(slope.type.shape) <= {1}
        return constant(np.array(one), f"{use.operation.name}.channel_shared")


_SIXTH = (Fixed("alpha", 1 / 6), Fixed("beta", 0.5))

faces(
    Relu,
    nnadapter=NNAdapter(65),
    nnrt=(NNRt(47, "RELU"),),
    hdi=(activation(1, "RELU"),),
    onnx=("Relu",),
)

faces(
    Relu6,
    nnadapter=NNAdapter(66),
    nnrt=(NNRt(48, "RELU6"),),
    hdi=(activation(3, "RELU6"),),
)

faces(
    LeakyRelu,
    nnadapter=NNAdapter(40),
    nnrt=(NNRt(74, "LEAKY_RELU", parameters={"NEGATIVE_SLOPE": "alpha"}),),
    hdi=(activation(5, "LEAKY_RELU", {"alpha": "alpha"}),),
    onnx=("LeakyRelu",),
)

faces(
    PRelu,
    nnadapter=NNAdapter(59),
    nnrt=(NNRt(46, "PRELU", (SlopedInput(), Slope()), given=(SlopedOutput(),)),),
    hdi=(
        HDI(
            *(112, "PRELU_FUSION", (SlopedInput(), Slope())),
            {"channelShared": OneSlope()},
            (SlopedOutput(),),
        ),
    ),
    onnx=("PRelu",),
)

faces(
    Sigmoid,
    nnadapter=NNAdapter(74),
    nnrt=(NNRt(28, "SIGMOID"),),
    hdi=(activation(2, "SIGMOID"),),
    onnx=("Sigmoid",),
)

faces(
    Tanh,
    nnadapter=NNAdapter(86),
    nnrt=(NNRt(39, "TANH"),),
    hdi=(activation(10, "TANH"),),
    onnx=("Tanh",),
)

faces(
    HardSigmoid,
    nnadapter=NNAdapter(36),
    nnrt=(NNRt(107, "HARD_SIGMOID", given=_SIXTH),),
    hdi=(activation(13, "HSIGMOID", given=_SIXTH),),
    onnx=("HardSigmoid",),
)

faces(
    HardSwish,
    nnadapter=NNAdapter(37),
    nnrt=(NNRt(17, "HSWISH"),),
    hdi=(activation(12, "HSWISH"),),
    onnx=("HardSwish",),
)

faces(
    Swish,
    nnadapter=NNAdapter(85),
    nnrt=(NNRt(105, "SWISH"),),
    hdi=(activation(18, "SWISH"),),
    onnx=("Swish",),
)

faces(
    Softsign,
    hdi=(activation(8, "SOFTSIGN"),),
    onnx=("Softsign",),
)

faces(
    ThresholdedRelu,
    onnx=("ThresholdedRelu",),
)

faces(
    Shrink,
    onnx=("Shrink",),
)

faces(
    Softmax,
    nnadapter=NNAdapter(77),
    nnrt=(NNRt(30, "SOFTMAX", parameters={"AXIS": Passed("axis", default=-1)}),),
    hdi=(HDI(138, "SOFTMAX", attributes={"axis": "axis"}),),
    onnx=("Softmax",),
)

faces(
    LogSoftmax,
    nnadapter=NNAdapter(44),
    nnrt=(NNRt(95, "LOG_SOFTMAX", parameters={"AXIS": Passed("axis", default=-1)}),),
    onnx=("LogSoftmax",),
)

faces(
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

faces(
    Softplus,
    nnadapter=NNAdapter(78, ("input", "beta", "threshold")),
    hdi=(activation(9, "SOFTPLUS"),),
    onnx=("Softplus",),
)

faces(
    Mish,
    onnx=("Mish",),
)

faces(
    Elu,
    hdi=(activation(4, "ELU", {"alpha": "alpha"}),),
    onnx=("Elu",),
)

faces(
    Selu,
    hdi=(activation(11, "SELU"),),
    onnx=("Selu",),
)

faces(
    Celu,
    onnx=("Celu",),
)

faces(
    Hardmax,
    onnx=("Hardmax",),
)
