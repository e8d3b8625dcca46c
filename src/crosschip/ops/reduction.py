"""Operators that reduce axes to one value each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Quantization, Shape
from crosschip.ir.dimension import product
from crosschip.ir.types import BOOLEANS, FLOATS, NUMBERS
from crosschip.ops.conversion import Cast
from crosschip.ops.elementwise import Div
from crosschip.ops.examples import Example, example, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.joining import Gather
from crosschip.ops.layout import ShapeOf
from crosschip.ops.operator import Operator, UnknownRank, operator, shape_of, sizes_in
from crosschip.ops.shapes import axes_in, unknown_sizes
from crosschip.ops.slots import ComputedParameter, flag, integers, tensor

NARROW_FLOATS = frozenset({ElementType.FLOAT16, ElementType.BFLOAT16})
_EIGHTH = Quantization((0.125,))

REALS: tuple[Example, ...] = (
    example(input=random(2, 3, 4, low=0.5), axes=(1,)),
    example(input=random(2, 3, 4, low=0.5), axes=(0, -1), keepdim=False),
    example(input=random(3, 5, low=0.5)),
    example(input=random(2, 6, dtype=ElementType.FLOAT16, low=0.5), axes=(-1,)),
)
INTEGERS: tuple[Example, ...] = (
    example(input=random(3, 4, dtype=ElementType.INT32, low=-9, high=9), axes=(0,)),
    example(input=random(3, 4, dtype=ElementType.INT64, low=-9, high=9), axes=(1,), keepdim=False),
)
QUANTIZED: tuple[Example, ...] = (
    example(
        input=random(2, 9, dtype=ElementType.INT8, low=-128, high=128, quantization=_EIGHTH),
        axes=(1,),
        quantization=Quantization((0.5,)),
    ),
    example(
        input=random(
            *(2, 9), dtype=ElementType.UINT8, high=256, quantization=Quantization((0.1,), (128,))
        ),
        axes=(0,),
        quantization=Quantization((0.1,), (120,)),
    ),
)
_COMPARED: tuple[Example, ...] = (
    *(*REALS, *INTEGERS, *QUANTIZED),
    example(input=random(3, 4, dtype=ElementType.UINT8, high=256), axes=(1,)),
    example(input=random(3, 4, dtype=ElementType.BOOL), axes=(1,)),
)

COEFFICIENT = (
    "With REDUCE_TO_END, axes is the one axis named and all after it. A COEFF other than 0 (not "
    "set) and 1 multiplies the result: a MUL after this."
)


def reduce_face(code: int, name: str) -> NNRt:
    """NNRt's operator `REDUCE_<name>`: the face of all reductions is the same."""
    parameters = {"KEEP_DIMS": "keepdim", "REDUCE_TO_END": "", "COEFF": ""}
    return NNRt(code, f"REDUCE_{name}", ("input", "axes"), parameters, COEFFICIENT)


class Reduction(Operator):
    """What all reductions share: each reduces `axes` to one value, or all axes if it is empty.

    A negative axis counts from the last one; naming an axis twice is an error. A reduced axis has
    size 1 in the output with `keepdim`, else it is removed. The output's element type is the
    input's.
    """

    __slots__ = ()
    input = tensor(NUMBERS)
    axes = integers(())
    keepdim = flag(True)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        try:
            axes = axes_in(self.axes, len(shape)) or range(len(shape))
        except ComputedParameter:
            return self._shape_by_count(len(shape))
        if self.keepdim:
            return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in axes)

    def over(self) -> tuple[Operand | None, Operand | None]:
        """The operands for `axes` and `keepdim`, to reduce something else in the same way."""
        return self.operand("axes"), self.operand("keepdim")

    def _shape_by_count(self, rank: int) -> Shape:
        """What is known of the shape where only the number of axes is known, if at all."""
        if self.keepdim:
            return unknown_sizes(rank)
        axes = self.operand("axes")
        length = axes.type.static_shape if axes else None
        if length is None:
            raise ComputedParameter(type(self).axes)
        count = length[0] if length else 1
        if count > rank:
            raise ValueError(f"axes: are {count}, but the input has {rank}")
        return unknown_sizes(rank - count if count else 0, "axes")


@operator(
    "REDUCE_SUM",
    nnadapter=NNAdapter(64),
    nnrt=[reduce_face(101, "SUM")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceSum"],
    core=True,
)
class ReduceSum(Reduction):
    """The sum of the elements; integers wrap around on overflow, no elements give 0.

    A NaN makes the sum NaN, and so do infinities of both signs. In which order floating-point
    numbers are added is free.
    """

    __slots__ = ()
    examples = (*REALS, *INTEGERS, *QUANTIZED)

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.sum(input, tuple(axes) or None, input.dtype, keepdims=keepdim)


@operator(
    "REDUCE_PROD",
    nnrt=[reduce_face(50, "PROD")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceProd"],
    core=True,
)
class ReduceProd(Reduction):
    """The product of the elements; integers wrap around on overflow, no elements give 1.

    A NaN makes the product NaN, and so does 0 with an infinity. In which order floating-point
    numbers are multiplied is free.
    """

    __slots__ = ()
    examples = (*REALS, *INTEGERS)

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.prod(input, tuple(axes) or None, input.dtype, keepdims=keepdim)

    def infer_sizes(self) -> Sequence[Dim]:
        if len(shape_of(self.input)) != 1:
            raise UnknownRank
        return [product(tuple(sizes_in(self.input)))]


@operator(
    "REDUCE_MAX",
    nnadapter=NNAdapter(63),
    nnrt=[reduce_face(99, "MAX")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceMax"],
    core=True,
)
class ReduceMax(Reduction):
    """The greatest element; NaN if there is a NaN.

    No elements give the least value of the type: minus infinity, the lowest integer, or false.
    Of booleans, true is the greater one.
    """

    __slots__ = ()
    input = tensor(NUMBERS | BOOLEANS)
    examples = _COMPARED

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        least = limits(input.dtype)[0]
        return np.max(input, tuple(axes) or None, keepdims=keepdim, initial=least)


@operator(
    "REDUCE_MIN",
    nnrt=[reduce_face(100, "MIN")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceMin"],
    core=True,
)
class ReduceMin(Reduction):
    """The least element; NaN if there is a NaN.

    No elements give the greatest value of the type: infinity, the highest integer, or true.
    Of booleans, false is the lesser one.
    """

    __slots__ = ()
    input = tensor(NUMBERS | BOOLEANS)
    examples = _COMPARED

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        greatest = limits(input.dtype)[1]
        return np.min(input, tuple(axes) or None, keepdims=keepdim, initial=greatest)


@operator(
    "REDUCE_MEAN",
    nnadapter=NNAdapter(62),
    nnrt=[reduce_face(42, "MEAN")],
    hdi=[NodeType.REDUCE_FUSION],
    onnx=["ReduceMean"],
)
class ReduceMean(Reduction):
    """The arithmetic mean: the sum, as REDUCE_SUM has it, divided by the number of elements.

    No elements give NaN, and so does a NaN among them.
    """

    __slots__ = ()
    input = tensor(FLOATS)
    examples = (*REALS, *QUANTIZED)

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        total = np.sum(input, tuple(axes) or None, keepdims=keepdim)
        count = np.prod([input.shape[axis] for axis in axes or range(input.ndim)])
        return np.asarray(total / count.astype(input.dtype))

    def decompose(self, b: Builder) -> Operand:
        dtype = self.input.type.element_type
        wide = self.input
        if dtype in NARROW_FLOATS:  # whose range a sum may leave that the mean is in
            wide = b.add(Cast, wide, ElementType.FLOAT32)
        total = b.add(ReduceSum, wide, *self.over())
        mean = b.add(Div, total, self._count(b, wide))
        return mean if wide is self.input else b.add(Cast, mean, dtype)

    def _count(self, b: Builder, wide: Operand) -> Operand:
        """How many elements are reduced to one."""
        shape, dtype = shape_of(wide), wide.type.element_type
        axes = axes_in(self.axes, len(shape)) or tuple(range(len(shape)))
        count = product(tuple(shape[axis] for axis in axes))
        if isinstance(count, int):
            return b.constant(np.array(count, dtype.dtype))
        sizes = b.add(Gather, b.add(ShapeOf, wide), b.constant(np.array(axes)), 0)
        return b.add(Cast, b.add(ReduceProd, sizes, keepdim=False), dtype)


@operator(
    "REDUCE_ALL",
    nnrt=[
        reduce_face(51, "ALL"),
        NNRt(
            *(77, "ALL", ("input", "axes"), {"KEEP_DIMS": "keepdim"}),
            translation="The input is first cast to bool: what is not 0 is true.",
        ),
    ],
    hdi=[NodeType.REDUCE_FUSION],
)
class ReduceAll(Reduction):
    """Whether all elements are true; of no elements, they are."""

    __slots__ = ()
    input = tensor(BOOLEANS)
    examples = (
        example(input=random(4, 2, dtype=ElementType.BOOL), axes=(1,)),
        example(input=random(4, 2, dtype=ElementType.BOOL), axes=(-1,), keepdim=False),
        example(input=random(2, 3, dtype=ElementType.BOOL)),
    )

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.all(input, tuple(axes) or None, keepdims=keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceMin, self.input, *self.over())


@operator("REDUCE_ANY")
class ReduceAny(Reduction):
    """Whether any element is true; of no elements, none is."""

    __slots__ = ()
    input = tensor(BOOLEANS)
    examples = ReduceAll.examples

    def reference(self, input: Array, axes: Sequence[int], keepdim: bool) -> Array:
        return np.any(input, tuple(axes) or None, keepdims=keepdim)

    def decompose(self, b: Builder) -> Operand:
        return b.add(ReduceMax, self.input, *self.over())


def limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The least and the greatest value of an element type."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return -np.inf, np.inf
