"""Invalid operations are refused with a message that names the operator and the slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, DeviceError, ElementType, ModelError, Operand, TensorType
from crosschip.ops.standard.activation import LeakyRelu, LogSoftmax, PRelu, Relu, Sigmoid, Softmax
from crosschip.ops.standard.arithmetic import (
    Add,
    BiasAdd,
    Clip,
    FloorDiv,
    Mod,
    Scale,
    SquaredDifference,
    Sum,
)
from crosschip.ops.standard.comparison import Equal, Less
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.logical import And, BitShift, BitwiseAnd, BitwiseNot, Not, Where
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization, LayerNormalization
from crosschip.ops.standard.pooling import AdaptiveAveragePool2D, AveragePool2D, MaxPool2D
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Floor, IsNaN

IMAGE, MATRIX = (1, 4, 8, 9), (3, 5)
INT, BOOL = np.int32, np.bool_


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


BROKEN: list[tuple[tuple[int, ...], Callable[[Builder, Operand], Operand], str]] = [
    (MATRIX, lambda b, x: b.add(Relu), "RELU.input: is required"),
    (MATRIX, lambda b, x: b.add(Relu, x, alpha=1.0), "RELU.alpha: no such slot"),
    (MATRIX, lambda b, x: b.add(Relu, x, x), "RELU: takes 1 arguments, not 2"),
    (MATRIX, lambda b, x: b.add(Relu, x, input=x), "RELU.input: is given twice"),
    (MATRIX, lambda b, x: b.add(Relu, ones(2, dtype=np.bool_)), "RELU.input: takes .* not bool"),
    (MATRIX, lambda b, x: b.add(LeakyRelu, x, (0.1, 0.2)), "LEAKY_RELU.alpha: takes one value"),
    (MATRIX, lambda b, x: b.add(Softmax, x, 2), r"SOFTMAX.axis: 2 is not in \[-2, 2\)"),
    (MATRIX, lambda b, x: b.add(Add, x, ones(4)), "ADD.input1: shapes .* 5 meets 4"),
    (MATRIX, lambda b, x: b.add(Add, x, ones(5, dtype=np.float64)), "ADD.input1: is float64"),
    (MATRIX, lambda b, x: b.add(MatMul, x, ones(3, 5)), "MAT_MUL.y: .* 5 and 3 differ"),
    (MATRIX, lambda b, x: b.add(MatMul, x, ones()), "MAT_MUL.y: a scalar"),
    (MATRIX, lambda b, x: b.add(FullyConnected, x, ones(2, 4)), "FULLY_CONNECTED.weight: "),
    (MATRIX, lambda b, x: b.add(FullyConnected, x, ones(2, 5), ones(3)), "FULLY_CONNECTED.bias: "),
    (IMAGE, lambda b, x: b.add(Conv2D, x, ones(6, 3, 3, 3)), "CONV_2D.filter: .* 4 and 3 differ"),
    (IMAGE, lambda b, x: b.add(Conv2D, x, ones(6, 4, 3)), "CONV_2D.filter: has 3 axes"),
    (IMAGE, lambda b, x: b.add(Conv2D, x, ones(5, 2, 3, 3), group=2), "CONV_2D.group: 2 does not"),
    (IMAGE, lambda b, x: b.add(Conv2D, x, ones(6, 4, 3, 3), ones(5)), "CONV_2D.bias: "),
    (IMAGE, lambda b, x: b.add(Conv2D, x, ones(6, 4, 9, 3)), "CONV_2D.input: 8 .* window of 9"),
    (
        IMAGE,
        lambda b, x: b.add(Conv2D, x, ones(6, 4, 3, 3), strides=(0, 1)),
        "CONV_2D.strides: .* positive",
    ),
    (
        IMAGE,
        lambda b, x: b.add(Conv2D, x, ones(6, 4, 3, 3), pads=(1, 1)),
        "CONV_2D.pads: takes 4 values, not 2",
    ),
    (
        IMAGE,
        lambda b, x: b.add(Conv2DTranspose, x, ones(6, 3, 3, 3)),
        "CONV_2D_TRANSPOSE.filter: .* 4 and 6 differ",
    ),
    (IMAGE, lambda b, x: b.add(MaxPool2D, x), "MAX_POOL_2D.kernel_shape: is required"),
    (
        IMAGE,
        lambda b, x: b.add(AveragePool2D, x, kernel_shape=(9, 1)),
        "AVERAGE_POOL_2D.input: 8 .* window of 9",
    ),
    (
        MATRIX,
        lambda b, x: b.add(AdaptiveAveragePool2D, x, (1, 1)),
        "ADAPTIVE_AVERAGE_POOL_2D.input: has 2 axes",
    ),
    (IMAGE, lambda b, x: b.add(ResizeNearest, x), "RESIZE_NEAREST.shape: either it or scales"),
    (
        IMAGE,
        lambda b, x: b.add(
            ResizeNearest, x, (3, 4), align_mode=5, roi=(float("nan"), 0.0, 1.0, 1.0)
        ),
        "RESIZE_NEAREST.roi: .* has a number that is not finite",
    ),
    (MATRIX, lambda b, x: b.add(ResizeLinear, x, (2, 2)), "RESIZE_LINEAR.input: has 2 axes"),
    (
        IMAGE,
        lambda b, x: b.add(BatchNormalization, x, *(ones(3),) * 4),
        "BATCH_NORMALIZATION.scale: .* 3 and 4 differ",
    ),
    (
        MATRIX,
        lambda b, x: b.add(LayerNormalization, x, ones(3), ones(5)),
        "LAYER_NORMALIZATION.scale: ",
    ),
    (MATRIX, lambda b, x: b.add(ReduceMean, x, (0, -2)), "REDUCE_MEAN.axes: .* an axis twice"),
    (MATRIX, lambda b, x: b.add(Reshape, x, (4, 4)), "RESHAPE.shape: .* 15 elements"),
    (MATRIX, lambda b, x: b.add(Reshape, x, (-1, -1)), "RESHAPE.shape: .* more than one -1"),
    (MATRIX, lambda b, x: b.add(Reshape, x, (3, 5, 0)), "RESHAPE.shape: .* does not have"),
    (MATRIX, lambda b, x: b.add(Transpose, x, (0,)), "TRANSPOSE.perm: has 1 axes"),
    (MATRIX, lambda b, x: b.add(Transpose, x, (0, 0)), "TRANSPOSE.perm: .* an axis twice"),
    (MATRIX, lambda b, x: b.add(Squeeze, x, (0,)), "SQUEEZE.axes: axis 0 has size 3"),
    (MATRIX, lambda b, x: b.add(Unsqueeze, x, (4,)), "UNSQUEEZE.axes: 4 is not in"),
    (MATRIX, lambda b, x: b.add(Flatten, x, 1, 0), "FLATTEN.end_axis: 0 is before"),
    (MATRIX, lambda b, x: b.add(Expand, x, (2, 5)), "EXPAND"),
    (MATRIX, lambda b, x: b.add(Slice, x, (0,), (1,), (2,), (0,)), "SLICE.steps: 0 is not a step"),
    (MATRIX, lambda b, x: b.add(Slice, x, (0, 1), (1,), (2,)), "SLICE.starts: .* equally many"),
    (MATRIX, lambda b, x: b.add(Concat, [x, b.constant(ones(3, 4))], axis=0), "CONCAT.parts: "),
    (MATRIX, lambda b, x: b.add(Concat, [], axis=0), "CONCAT.parts: is required"),
    (MATRIX, lambda b, x: b.add_all(Split, x, 1, (2, 2))[0], "SPLIT.split: .* 5 and 4 differ"),
    (MATRIX, lambda b, x: b.add(Gather, x, x), "GATHER.indices: takes .* not float32"),
    (MATRIX, lambda b, x: b.add(Fill, (-1, 2), ones(1)), "FILL.shape: .* negative size"),
    (MATRIX, lambda b, x: b.add(Dequantize, ones(2, dtype=np.int8)), "DEQUANTIZE.input: is not"),
    (MATRIX, lambda b, x: b.add(Quantize, x, 0, (0.0,)), "QUANTIZE.scale: .* positive"),
    (MATRIX, lambda b, x: b.add(Quantize, x, 0, (1.0, 2.0)), "QUANTIZE.scale: .* differ"),
    (
        MATRIX,
        lambda b, x: b.add(Quantize, x, 0, (1.0,), (0.0,), ElementType.FLOAT32),
        "QUANTIZE.dtype: float32 is not a quantized type",
    ),
]

ELEMENTWISE: list[tuple[Callable[[Builder, Operand], Operand], str]] = [
    (lambda b, x: b.add(PRelu, x, ones(3)), r"PRELU.slope: its shape \[3\] cannot be broadcast"),
    (lambda b, x: b.add(PRelu, x, ones(2, 3, 5)), r"PRELU.slope: its shape \[2, 3, 5\]"),
    (lambda b, x: b.add(PRelu, ones(1, 5), x), r"PRELU.slope: its shape \[3, 5\]"),
    (lambda b, x: b.add(PRelu, x, ones(5, dtype=INT)), "PRELU.slope: is int32, but must be float"),
    (lambda b, x: b.add(BiasAdd, x, ones(3)), "BIAS_ADD.bias: .* 5 and 3 differ"),
    (lambda b, x: b.add(BiasAdd, x, ones(5), 2), r"BIAS_ADD.axis: 2 is not in \[-2, 2\)"),
    (lambda b, x: b.add(BiasAdd, x, ones(1, 5)), "BIAS_ADD.bias: has 2 axes, not 1"),
    (lambda b, x: b.add(BiasAdd, ones(), ones(1)), r"BIAS_ADD.axis: -1 is not in \[-0, 0\)"),
    (lambda b, x: b.add(Scale, x, ones(5)), "SCALE.axis: is required"),
    (lambda b, x: b.add(Scale, x, ones(5), axis=0), "SCALE.scale: .* 3 and 5 differ"),
    (lambda b, x: b.add(Scale, x, ones(5, 1), axis=1), "SCALE.scale: has 2 axes, but .* has 1"),
    (lambda b, x: b.add(Scale, x, ones(5), ones(1), axis=1), "SCALE.bias: .* 5 and 1 differ"),
    (lambda b, x: b.add(Clip, x, np.nan), "CLIP.min: NaN bounds nothing"),
    (lambda b, x: b.add(Clip, x, max=(1.0, 2.0)), "CLIP.max: takes one value"),
    (lambda b, x: b.add(Clip, ones(2, dtype=BOOL)), "CLIP.input: takes .* not bool"),
    (lambda b, x: b.add(Sum, []), "SUM.terms: is required"),
    (lambda b, x: b.add(Sum, [x, b.constant(ones(4))]), "SUM.terms: shapes .* 5 meets 4"),
    (lambda b, x: b.add(Sum, [x, b.constant(ones(5, dtype=INT))]), "SUM.terms: is int32"),
    (lambda b, x: b.add(SquaredDifference, x, ones(4)), "SQUARED_DIFFERENCE.input1: shapes"),
    (lambda b, x: b.add(FloorDiv, x, ones(5, dtype=INT)), "FLOOR_DIV.input1: is int32"),
    (lambda b, x: b.add(Mod, x, x, (True, False)), "MOD.fmod: takes one value"),
    (lambda b, x: b.add(Mod, ones(1, dtype=BOOL), x), "MOD.input0: takes .* not bool"),
    (lambda b, x: b.add(Floor, ones(2, dtype=INT)), "FLOOR.input: takes .* not int32"),
    (lambda b, x: b.add(Sigmoid, ones(2, dtype=INT)), "SIGMOID.input: takes .* not int32"),
    (lambda b, x: b.add(IsNaN, ones(2, dtype=INT)), "IS_NAN.input: takes .* not int32"),
    (lambda b, x: b.add(LogSoftmax, x, -3), r"LOG_SOFTMAX.axis: -3 is not in \[-2, 2\)"),
    (lambda b, x: b.add(LogSoftmax, ones(), 0), r"LOG_SOFTMAX.axis: 0 is not in \[-0, 0\)"),
    (lambda b, x: b.add(Equal, x, ones(5, dtype=np.float64)), "EQUAL.input1: is float64"),
    (lambda b, x: b.add(Less, ones(1, dtype=ml_dtypes.int4), x), "LESS.input0: takes .* not int4"),
    (lambda b, x: b.add(And, x, x), "AND.input0: takes bool, not float32"),
    (lambda b, x: b.add(Not, x), "NOT.input: takes bool, not float32"),
    (lambda b, x: b.add(Where, x, x, x), "WHERE.condition: takes bool, not float32"),
    (lambda b, x: b.add(Where, ones(1, dtype=BOOL), x, ones(1, dtype=INT)), "WHERE.input1: is int"),
    (lambda b, x: b.add(Where, ones(4, dtype=BOOL), x, x), "WHERE.*: shapes .* 4 meets 5"),
    (lambda b, x: b.add(BitwiseAnd, x, x), "BITWISE_AND.input0: takes .* not float32"),
    (lambda b, x: b.add(BitwiseNot, ones(1, dtype=BOOL)), "BITWISE_NOT.input: takes .* not bool"),
    (
        lambda b, x: b.add(BitShift, ones(1, dtype=INT), ones(1, dtype=INT), 2),
        "BIT_SHIFT.direction: 2 is not a valid ShiftDirection",
    ),
]
"""Invalid elementwise operations, whose input is a matrix."""

CASES = [*BROKEN, *((MATRIX, build, message) for build, message in ELEMENTWISE)]


@pytest.mark.parametrize(("shape", "build", "message"), CASES, ids=[m for *_, m in CASES])
def test_a_broken_rule_is_named(
    shape: tuple[int, ...], build: Callable[[Builder, Operand], Operand], message: str
) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, shape))
    with pytest.raises(ModelError, match=message):
        build(b, x)
    assert not b.build().operations


def test_a_computed_bound_that_is_no_number_is_refused() -> None:
    b = Builder()
    x, low = (b.input(name, TensorType(ElementType.FLOAT32, (1,))) for name in "xl")
    b.output("y", b.add(Clip, x, low))
    program = ReferenceProgram(b.build())
    assert program.run([ones(1), 2 * ones(1)])[0] == 2
    with pytest.raises(DeviceError, match="NaN bounds nothing"):
        program.run([ones(1), np.nan * ones(1)])
