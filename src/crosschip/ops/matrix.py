"""Matrix products."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Quantization, Shape
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ir.types import FLOATS, NUMBERS
from crosschip.ops.bias import check_quantized_bias
from crosschip.ops.convolution import check_bias
from crosschip.ops.elementwise import Add
from crosschip.ops.examples import Sample, example, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.layout import Reshape
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.shapes import broadcast, same
from crosschip.ops.slots import Fuse, flag, fuse, optional_tensor, tensor

_EIGHTH, _HALF = Quantization((0.125,)), Quantization((0.5,))
_SKEWED = Quantization((0.1,), (120,))
_CHANNELS = Quantization((0.25, 0.5, 0.125), axis=0)


def _bytes(*shape: int, quantization: Quantization) -> Sample:
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128, quantization=quantization)


@operator(
    "MAT_MUL",
    nnadapter=NNAdapter(47),
    nnrt=[
        NNRt(
            *(19, "MATMUL", ("x", "y")),
            {"TRANSPOSE_A": "transpose_x", "TRANSPOSE_B": "transpose_y", "ACTIVATION_TYPE": ""},
            "An ACTIVATION_TYPE becomes an operator after this.",
        )
    ],
    hdi=[NodeType.MATMUL_FUSION],
    onnx=["MatMul"],
    core=True,
)
class MatMul(Operator):
    """The matrix product of the last two axes: `output[…, i, j] = sum(x[…, i, k] * y[…, k, j])`.

    The axes before the last two broadcast, as in NumPy. `transpose_x` and `transpose_y` swap the
    last two axes of an input first. An input of one axis is a row (`x`) or a column (`y`), which
    transposing leaves alone, and the output lacks its axis. A scalar is an error.

    The output has the element type of the inputs: integers wrap around on overflow. Sums over no
    elements are 0. In which order products are added is free.

    Source: `numpy.matmul`, https://numpy.org/doc/stable/reference/generated/numpy.matmul.html.
    """

    __slots__ = ()
    x = tensor(NUMBERS)
    y = tensor(NUMBERS, like="x")
    transpose_x = flag(False)
    transpose_y = flag(False)
    examples = (
        example(x=random(3, 4), y=random(4, 5)),
        example(x=random(2, 1, 4, 3), y=random(5, 6, 4), transpose_x=True, transpose_y=True),
        example(x=random(4), y=random(2, 4, 3)),
        example(x=random(2, 3, 4), y=random(4)),
        example(x=random(4), y=random(4)),
        example(
            x=random(2, 3, dtype=ElementType.FLOAT16), y=random(3, 2, dtype=ElementType.FLOAT16)
        ),
        example(
            x=random(3, 4, dtype=ElementType.INT32, low=-9, high=9),
            y=random(4, 2, dtype=ElementType.INT32, low=-9, high=9),
        ),
        example(
            x=_bytes(3, 4, quantization=_EIGHTH),
            y=_bytes(4, 2, quantization=_HALF),
            quantization=Quantization((4.0,)),
        ),
        example(
            x=random(3, 4, dtype=ElementType.UINT8, high=256, quantization=_SKEWED),
            y=random(4, 2, dtype=ElementType.UINT8, high=256, quantization=_SKEWED),
        ),
    )

    def infer_shape(self) -> Shape:
        x, y = shape_of(self.x), shape_of(self.y)
        if not x or not y:
            raise ValueError(f"{'y' if x else 'x'}: a scalar has no matrix product")
        left = (1, *x) if len(x) == 1 else x
        right = (*y, 1) if len(y) == 1 else y
        rows, inner = _matrix(left, self.transpose_x and len(x) > 1)
        inner_y, columns = _matrix(right, self.transpose_y and len(y) > 1)
        same(inner, inner_y, "y: the inner sizes of x and y")
        batch = broadcast(left[:-2], right[:-2]) if len(left) + len(right) > 4 else ()
        return (*batch, *(() if len(x) == 1 else (rows,)), *(() if len(y) == 1 else (columns,)))

    def reference(self, x: Array, y: Array, transpose_x: bool, transpose_y: bool) -> Array:
        left = x.swapaxes(-1, -2) if transpose_x and x.ndim > 1 else x
        right = y.swapaxes(-1, -2) if transpose_y and y.ndim > 1 else y
        return np.matmul(left, right)


@operator(
    "FULLY_CONNECTED",
    nnadapter=NNAdapter(29),
    nnrt=[
        NNRt(
            *(15, "FULL_CONNECTION", ("input", "weight", "bias")),
            {"AXIS": "", "ACTIVATION_TYPE": "fuse_code", "HAS_BIAS": "", "USE_AXIS": ""},
            "With USE_AXIS, the input is first flattened from AXIS on. Without HAS_BIAS there is "
            "no bias input. An int32 bias without quantization gets that of the rule below.",
        )
    ],
    hdi=[NodeType.FULL_CONNECTION],
    onnx=["Gemm"],
)
class FullyConnected(Operator):
    """`output = input @ transposed weight + bias`, with `weight` of [num_units, input_size].

    An input of more than two axes is first flattened to [elements / input_size, input_size]; the
    output is [elements / input_size, num_units]. The bias, if there is one, has one number a unit.
    The activation `fuse_code` is applied to the result.

    A quantized bias is int32, symmetric, and its scale is that of the input times that of the
    weight, within the rounding of float32: one for the tensor, or where the weight has a scale for
    each unit (its axis 0), one for each unit.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    weight = tensor(FLOATS, like="input")
    bias = optional_tensor(FLOATS, like="input")
    fuse_code = fuse()
    examples = (
        example(input=random(2, 4), weight=random(3, 4), bias=random(3)),
        example(input=random(2, 4), weight=random(3, 4), fuse_code=Fuse.RELU),
        example(input=random(2, 3, 4), weight=random(5, 6), bias=random(5), fuse_code=Fuse.RELU6),
        example(
            input=random(2, 4, dtype=ElementType.FLOAT16),
            weight=random(3, 4, dtype=ElementType.FLOAT16),
        ),
        example(
            input=_bytes(2, 4, quantization=_EIGHTH),
            weight=_bytes(3, 4, quantization=_HALF),
            bias=random(
                *(3,),
                dtype=ElementType.INT32,
                low=-999,
                high=999,
                quantization=Quantization((0.0625,)),
            ),
            quantization=Quantization((4.0,)),
        ),
        example(
            input=_bytes(2, 4, quantization=_EIGHTH),
            weight=_bytes(3, 4, quantization=_CHANNELS),
            bias=random(
                *(3,),
                dtype=ElementType.INT32,
                low=-999,
                high=999,
                quantization=Quantization((0.03125, 0.0625, 0.015625), axis=0),
            ),
            fuse_code=Fuse.RELU,
            quantization=Quantization((4.0,)),
        ),
    )

    def infer_shape(self) -> Shape:
        check_quantized_bias(self.input, self.weight, self.bias)
        input, weight = shape_of(self.input), shape_of(self.weight)
        if len(weight) != 2:
            raise ValueError(f"weight: has {len(weight)} axes, but must have 2")
        if len(input) < 2:
            raise ValueError(f"input: has {len(input)} axes, but must have at least 2")
        check_bias(self.bias.type.shape if self.bias else None, weight[0])
        if len(input) == 2:
            same(input[1], weight[1], "weight: its second size, and the input's")
            return (input[0], weight[0])
        elements, size = product(input), weight[1]
        if size == 0 or (isinstance(elements, int) and isinstance(size, int) and elements % size):
            raise ValueError(f"weight: {elements} elements do not make rows of {size}")
        return (exact_quotient(elements, size), weight[0])

    def reference(self, input: Array, weight: Array, bias: Array | None) -> Array:
        rows = input if input.ndim == 2 else input.reshape(-1, weight.shape[1])
        output = rows @ weight.T
        return output if bias is None else output + bias

    def decompose(self, b: Builder) -> Operand | None:
        rows = self.input
        if len(shape_of(rows)) > 2:
            size = shape_of(self.weight)[1]
            if not isinstance(size, int):
                return None
            rows = b.add(Reshape, rows, (-1, size))
        output = b.add(MatMul, rows, self.weight, transpose_y=True)
        return output if self.bias is None else b.add(Add, output, self.bias)


def _matrix(shape: Shape, transpose: bool) -> Shape:
    return (shape[-1], shape[-2]) if transpose else (shape[-2], shape[-1])
