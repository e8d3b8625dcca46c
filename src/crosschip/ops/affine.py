"""Scales and biases that run along some axes of a tensor."""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array, Builder, Operand, Quantization, Shape
from crosschip.ir.types import NUMBERS
from crosschip.ops.elementwise import FUSED, INT8, INT32, Add, Elementwise, Mul
from crosschip.ops.examples import example, random
from crosschip.ops.faces import NNRt, NodeType
from crosschip.ops.operator import operator, operator_named, shape_of
from crosschip.ops.shapes import axis_in, same
from crosschip.ops.slots import Fuse, fuse, integer, optional_tensor, tensor


class Affine(Elementwise):
    """Base of arithmetic with tensors whose axes run along those of the input from `axis` on."""

    __slots__ = ()
    input = tensor(NUMBERS)

    def check_along(self, slot: str, operand: Operand, axis: int) -> None:
        """`ValueError` if an operand has not the sizes of the input's axes from `axis` on."""
        shape, laid = shape_of(self.input), shape_of(operand)
        start = axis_in(axis, len(shape))
        if _axes_after(len(shape), len(laid), axis) < 0:
            raise ValueError(
                f"{slot}: has {len(laid)} axes, but the input has {len(shape) - start} from axis "
                f"{axis} on"
            )
        for along, size in enumerate(laid):
            same(shape[start + along], size, f"{slot}: the sizes of the input's axis and its own")

    def laid(self, b: Builder, operand: Operand, axis: int) -> Operand:
        """An operand in a shape that broadcasts to the input's."""
        rank = len(shape_of(operand))
        after = _axes_after(len(shape_of(self.input)), rank, axis)
        if not after:
            return operand
        return b.add(operator_named("RESHAPE"), operand, (0,) * rank + (1,) * after)


@operator("BIAS_ADD", nnrt=(NNRt(5, "BIAS_ADD", ("input", "bias")),), hdi=(NodeType.BIAS_ADD,))
class BiasAdd(Affine):
    """`output = input + bias`, where the one axis of the bias runs along `axis` of the input.

    A negative axis counts from the end. Integers wrap around on overflow.
    """

    __slots__ = ()
    bias = tensor(NUMBERS, like="input")
    axis = integer(-1)
    examples = (
        example(input=random(2, 3), bias=random(3)),
        example(input=random(2, 3, 4, 5), bias=random(3), axis=1),
        example(
            input=random(2, 3, dtype=INT32, low=-9, high=9),
            bias=np.array([1, 2], np.int32),
            axis=-2,
        ),
        example(
            input=random(2, 3, dtype=INT8, low=-128, high=128, quantization=Quantization((0.05,))),
            bias=random(3, dtype=INT32, low=-99, high=99, quantization=Quantization((0.01,))),
            quantization=Quantization((0.05,)),
        ),
    )

    def infer_shape(self) -> Shape:
        axes = len(shape_of(self.bias))
        if axes != 1:
            raise ValueError(f"bias: has {axes} axes, not 1")
        self.check_along("bias", self.bias, self.axis)
        return shape_of(self.input)

    def reference(self, input: Array, bias: Array, axis: int) -> Array:
        return input + _spread(bias, input.ndim, axis)

    def decompose(self, b: Builder) -> Operand:
        return b.add(Add, self.input, self.laid(b, self.bias, self.axis))


@operator(
    "SCALE",
    nnrt=(
        NNRt(
            *(26, "SCALE", ("input", "scale", "bias")),
            {"AXIS": "axis", "ACTIVATIONTYPE": "fuse_code"},
            FUSED,
        ),
    ),
    hdi=(NodeType.SCALE_FUSION,),
)
class Scale(Affine):
    """`output = input * scale + bias`, where both run along the axes of the input from `axis` on.

    Scale and bias have one or more axes of the sizes that the input has there, and repeat along the
    others; without a bias, none is added. A negative axis counts from the end. Integers wrap around
    on overflow. The activation `fuse_code` is applied to the result.
    """

    __slots__ = ()
    scale = tensor(NUMBERS, like="input")
    bias = optional_tensor(NUMBERS, like="input")
    axis = integer()
    fuse_code = fuse()
    examples = (
        example(input=random(2, 3, 4, 5), scale=random(3), bias=random(3), axis=1),
        example(input=random(2, 3, 4), scale=random(3, 4), axis=-2, fuse_code=Fuse.RELU),
        example(input=random(2, 3), scale=random(), bias=random(2), axis=0),
        example(
            input=random(2, 3, dtype=INT8, low=-128, high=128, quantization=Quantization((0.05,))),
            scale=random(3),
            bias=random(3),
            axis=1,
            fuse_code=Fuse.RELU6,
            quantization=Quantization((0.05,)),
        ),
    )

    def infer_shape(self) -> Shape:
        for slot, operand in (("scale", self.scale), ("bias", self.bias)):
            if operand:
                self.check_along(slot, operand, self.axis)
        return shape_of(self.input)

    def reference(self, input: Array, scale: Array, bias: Array | None, axis: int) -> Array:
        scaled = input * _spread(scale, input.ndim, axis)
        return scaled if bias is None else scaled + _spread(bias, input.ndim, axis)

    def decompose(self, b: Builder) -> Operand:
        scaled = b.add(Mul, self.input, self.laid(b, self.scale, self.axis))
        return b.add(Add, scaled, self.laid(b, self.bias, self.axis)) if self.bias else scaled


def _axes_after(rank: int, laid_rank: int, axis: int) -> int:
    """How many axes of an input come after those that a tensor runs along."""
    return rank - axis % max(rank, 1) - laid_rank


def _spread(array: Array, rank: int, axis: int) -> Array:
    """An array in a shape that broadcasts to an input's."""
    return array.reshape(array.shape + (1,) * _axes_after(rank, array.ndim, axis))
