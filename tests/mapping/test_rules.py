"""Breaking an operator's rules is refused, by a message that names the operator and the slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosschip.ir import Builder, ElementType, ModelError, Operand, TensorType
from crosschip.ops.standard.activation import LeakyRelu, Relu, Softmax
from crosschip.ops.standard.adaptive_pooling import AdaptiveAveragePool2D
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.creation import Fill
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat, Split
from crosschip.ops.standard.layout import Expand, Flatten, Reshape, Squeeze, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.normalization import BatchNormalization, LayerNormalization
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.resizing import ResizeLinear, ResizeNearest
from crosschip.ops.standard.slicing import Slice

IMAGE, MATRIX = (1, 4, 8, 9), (3, 5)


def ones(*shape: int, dtype: type[np.generic] = np.float32) -> Any:
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


@pytest.mark.parametrize(("shape", "build", "message"), BROKEN, ids=[m for *_, m in BROKEN])
def test_a_broken_rule_is_named(
    shape: tuple[int, ...], build: Callable[[Builder, Operand], Operand], message: str
) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, shape))
    with pytest.raises(ModelError, match=message):
        build(b, x)
    assert not b.build().operations
