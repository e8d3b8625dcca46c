"""Names and codes of activation functions in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
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

faces(
    Relu,
    nnadapter=NNAdapter(65),
    nnrt=(NNRt(47, "RELU"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Relu",),
)

faces(
    Relu6,
    nnadapter=NNAdapter(66),
    nnrt=(NNRt(48, "RELU6"),),
    hdi=(NodeType.ACTIVATION,),
)

faces(
    LeakyRelu,
    nnadapter=NNAdapter(40),
    nnrt=(NNRt(74, "LEAKY_RELU", parameters={"NEGATIVE_SLOPE": "alpha"}),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("LeakyRelu",),
)

faces(
    PRelu,
    nnadapter=NNAdapter(59),
    nnrt=(NNRt(46, "PRELU", ("input", "slope"), translation="slopes run along the last axis"),),
    hdi=(NodeType.PRELU_FUSION,),
    onnx=("PRelu",),
)

faces(
    Sigmoid,
    nnadapter=NNAdapter(74),
    nnrt=(NNRt(28, "SIGMOID"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Sigmoid",),
)

faces(
    Tanh,
    nnadapter=NNAdapter(86),
    nnrt=(NNRt(39, "TANH"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Tanh",),
)

faces(
    HardSigmoid,
    nnadapter=NNAdapter(36),
    nnrt=(NNRt(107, "HARD_SIGMOID", translation="alpha is 1/6, beta 0.5"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("HardSigmoid",),
)

faces(
    HardSwish,
    nnadapter=NNAdapter(37),
    nnrt=(NNRt(17, "HSWISH"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("HardSwish",),
)

faces(
    Swish,
    nnadapter=NNAdapter(85),
    nnrt=(NNRt(105, "SWISH"),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Swish",),
)

faces(
    Softsign,
    hdi=(NodeType.ACTIVATION,),
    onnx=("Softsign",),
)

faces(
    ThresholdedRelu,
    hdi=(NodeType.ACTIVATION,),
    onnx=("ThresholdedRelu",),
)

faces(
    Shrink,
    onnx=("Shrink",),
)

faces(
    Softmax,
    nnadapter=NNAdapter(77),
    nnrt=(NNRt(30, "SOFTMAX", parameters={"AXIS": "axis"}),),
    hdi=(NodeType.SOFTMAX,),
    onnx=("Softmax",),
)

faces(
    LogSoftmax,
    nnadapter=NNAdapter(44),
    nnrt=(NNRt(95, "LOG_SOFTMAX", parameters={"AXIS": "axis"}),),
    onnx=("LogSoftmax",),
)

faces(
    Gelu,
    nnadapter=NNAdapter(31),
    nnrt=(NNRt(56, "GELU", parameters={"APPROXIMATE": "approximate"}),),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Gelu",),
)

faces(
    Softplus,
    nnadapter=NNAdapter(78, ("input", "beta", "threshold")),
    hdi=(NodeType.ACTIVATION,),
    onnx=("Softplus",),
)

faces(
    Mish,
    onnx=("Mish",),
)

faces(
    Elu,
    hdi=(NodeType.ACTIVATION,),
    onnx=("Elu",),
)

faces(
    Selu,
    hdi=(NodeType.ACTIVATION,),
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
