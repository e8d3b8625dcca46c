"""Operators that change a tensor's shape or the order of its elements, never their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Quantization, Shape, unknown
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ops.examples import example, given, random
from crosschip.ops.faces import NNAdapter, NNRt, NodeType
from crosschip.ops.moving import BY_CHANNEL, INT8, Layout
from crosschip.ops.operator import operator, shape_of
from crosschip.ops.shapes import axes_in, axis_in, broadcast
from crosschip.ops.sizes import Sizes, reshaped
from crosschip.ops.slots import element_type, integer, integers


@operator(
    "RESHAPE",
    nnadapter=NNAdapter(67),
    nnrt=(NNRt(45, "RESHAPE", ("input", "shape")),),
    hdi=(NodeType.RESHAPE,),
    onnx=("Reshape",),
    core=True,
)
class Reshape(Layout):
    """The same elements, in C order, in another shape.

    In `shape`, 0 keeps the size that the input has on that axis, and one -1 at most stands for the
    product of the sizes of the input that are not kept, divided by that of the others in `shape`.
    """

    __slots__ = ()
    shape = integers()
    examples = (
        example(input=random(2, 3, 4), shape=(4, 6)),
        example(input=random(2, 3, 4), shape=(0, -1)),
        example(input=random(2, 3, 4, dtype=ElementType.INT32, low=-9, high=9), shape=(1, 0, 8)),
        example(input=random(1, 1), shape=()),
        example(input=random(4, 6), shape=given([2, 3, 4])),
        example(input=random(0, 3), shape=(0, 1, 3)),
        example(input=INT8, shape=(6, 4)),
    )

    def infer_shape(self) -> Shape:
        asked = self.sizes_asked("shape")
        if sum(size == -1 for size in asked) > 1:
            raise ValueError(f"shape: {list(asked)} has more than one -1")
        if any(isinstance(size, int) and size < -1 for size in asked):
            raise ValueError(f"shape: {list(asked)} has a negative size")
        if self.input.type.shape is None:
            return tuple(unknown() if size in (0, -1) else size for size in asked)
        own = self.input.type.shape
        if any(size == 0 and axis >= len(own) for axis, size in enumerate(asked)):
            raise ValueError(f"shape: {list(asked)} keeps a size that the input does not have")
        sizes = _filled(asked, own)
        made, had = product(sizes), product(own)
        if isinstance(made, int) and isinstance(had, int) and made != had:
            raise ValueError(f"shape: {list(asked)} does not hold the input's {had} elements")
        return sizes

    def reference(self, input: Array, shape: Sequence[int]) -> Array:
        return input.reshape(cast(tuple[int, ...], _filled(shape, input.shape)))


def _filled(asked: Sequence[Dim], own: Shape) -> Shape:
    """The sizes asked for, with numbers for 0 and -1."""
    moved = product(tuple(n for i, n in enumerate(own) if i >= len(asked) or asked[i] != 0))
    given = product(tuple(n for n in asked if n not in (0, -1)))
    rest = exact_quotient(moved, given) if -1 in asked else 1
    return tuple(own[i] if n == 0 else rest if n == -1 else n for i, n in enumerate(asked))


@operator(
    "TRANSPOSE",
    nnadapter=NNAdapter(89),
    nnrt=(NNRt(41, "TRANSPOSE", ("input", "perm")),),
    hdi=(NodeType.TRANSPOSE,),
    onnx=("Transpose",),
    core=True,
)
class Transpose(Layout):
    """Reorders the axes: axis `i` of the output is axis `perm[i]` of the input.

    `perm` names each axis once; a negative number counts from the last axis.
    """

    __slots__ = ()
    perm = integers()
    examples = (
        example(input=random(2, 3, 4), perm=(2, 0, 1)),
        example(input=random(2, 3, 4, 5), perm=(0, -2, -1, 1)),
        example(input=random(2, 3, dtype=ElementType.BOOL), perm=(1, 0)),
        example(input=random(), perm=()),
        example(input=BY_CHANNEL, perm=(1, 2, 0)),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        perm = axes_in(self.perm, len(shape), "perm")
        if len(perm) != len(shape):
            raise ValueError(f"perm: has {len(perm)} axes, but the input has {len(shape)}")
        return tuple(shape[axis] for axis in perm)

    def reference(self, input: Array, perm: Sequence[int]) -> Array:
        return input.transpose(perm)

    def moved_axis(self, axis: int, rank: int) -> int:
        return axes_in(self.perm, rank).index(axis)


@operator(
    "SQUEEZE",
    nnadapter=NNAdapter(81),
    nnrt=(NNRt(35, "SQUEEZE", parameters={"AXIS": "axes"}),),
    hdi=(NodeType.SQUEEZE,),
    onnx=("Squeeze",),
)
class Squeeze(Layout):
    """Removes axes of size 1: those in `axes`, or all of them if it is empty.

    A negative axis counts from the last one. An axis in `axes` whose size is not 1 is refused.
    """

    __slots__ = ()
    axes = integers(())
    examples = (
        example(input=random(1, 3, 1), axes=(0,)),
        example(input=random(1, 3, 1, 2), axes=(-2, 0)),
        example(input=given(np.ones((1, 3, 1), np.float32))),
        example(input=random(1, 1, dtype=ElementType.INT64, low=-9, high=9), axes=(0, 1)),
        example(
            input=random(
                *(1, 3, 1),
                dtype=ElementType.UINT8,
                high=256,
                quantization=Quantization((0.5, 2, 1), (128, 0, 3), axis=1),
            ),
            axes=(0,),
        ),
    )

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        removed = self._removed(shape)
        for axis in removed:
            if isinstance(shape[axis], int) and shape[axis] != 1:
                raise ValueError(f"axes: axis {axis} has size {shape[axis]}, not 1")
        return tuple(size for axis, size in enumerate(shape) if axis not in removed)

    def reference(self, input: Array, axes: Sequence[int]) -> Array:
        return np.squeeze(input, tuple(axes) or None)

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        removed = self._removed(sizes.shape)
        kept = [size for axis, size in enumerate(sizes.shape) if axis not in removed]
        return reshaped(b, self.input, sizes, sizes.shape, kept)

    def moved_axis(self, axis: int, rank: int) -> int | None:
        removed = self._removed(shape_of(self.input))
        return None if axis in removed else axis - sum(other < axis for other in removed)

    def _removed(self, shape: Shape) -> tuple[int, ...]:
        axes = axes_in(self.axes, len(shape))
        if not axes and not all(isinstance(size, int) for size in shape):
            raise ValueError("axes: must be given, since not every size of the input is known")
        return axes or tuple(axis for axis, size in enumerate(shape) if size == 1)


@operator(
    "UNSQUEEZE",
    nnadapter=NNAdapter(90),
    nnrt=(
        NNRt(13, "EXPAND_DIMS", ("input", "axes"), translation="The axis becomes a list of one."),
        NNRt(55, "UNSQUEEZE", parameters={"AXIS": "axes"}),
    ),
    hdi=(NodeType.EXPAND_DIMS, NodeType.UNSQUEEZE),
    onnx=("Unsqueeze",),
)
class Unsqueeze(Layout):
    """Inserts axes of size 1 so that they are at `axes` of the output.

    A negative axis counts from the last one of the output.
    """

    __slots__ = ()
    axes = integers()
    examples = (
        example(input=random(2, 3), axes=(0,)),
        example(input=random(2, 3), axes=(-1, 1)),
        example(input=random(dtype=ElementType.INT32, low=-9, high=9), axes=(0,)),
        example(input=given(np.zeros((0, 3), np.float32)), axes=(0,)),
        example(input=BY_CHANNEL, axes=(0, 4)),
    )

    def infer_shape(self) -> Shape:
        return self._inserted(shape_of(self.input))

    def reference(self, input: Array, axes: Sequence[int]) -> Array:
        return np.expand_dims(input, tuple(axes))

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        return reshaped(b, self.input, sizes, sizes.shape, self._inserted(sizes.shape))

    def moved_axis(self, axis: int, rank: int) -> int:
        inserted = axes_in(self.axes, rank + len(self.axes))
        return [other for other in range(rank + len(inserted)) if other not in inserted][axis]

    def _inserted(self, shape: Shape) -> Shape:
        sizes = list(shape)
        for axis in sorted(axes_in(self.axes, len(shape) + len(self.axes))):
            sizes.insert(axis, 1)
        return tuple(sizes)


@operator(
    "FLATTEN",
    nnadapter=NNAdapter(26),
    nnrt=(
        NNRt(
            *(64, "FLATTEN"),
            parameters={"AXIS": ""},
            translation="Two of them make the two axes: from 0 to before AXIS, then from 1 to the "
            "last; with AXIS 0, the whole is flattened and given a first axis of size 1.",
        ),
    ),
    onnx=("Flatten",),
)
class Flatten(Layout):
    """Merges the axes from `start_axis` to `end_axis`, both included, into one.

    A negative axis counts from the last one. A tensor without axes becomes one of one element.
    """

    __slots__ = ()
    start_axis = integer(1)
    end_axis = integer(-1)
    examples = (
        example(input=random(2, 3, 4)),
        example(input=random(2, 3, 4, 5), start_axis=1, end_axis=2),
        example(input=random(2, 3, 4), start_axis=-3, end_axis=-2),
        example(input=random()),
        example(input=INT8, start_axis=0),
    )

    def infer_shape(self) -> Shape:
        return self._merged(shape_of(self.input))

    def reference(self, input: Array, start_axis: int, end_axis: int) -> Array:
        if not input.ndim:
            return input.reshape(1)
        start, end = start_axis % input.ndim, end_axis % input.ndim
        merged = int(np.prod(input.shape[start : end + 1]))
        return input.reshape(*input.shape[:start], merged, *input.shape[end + 1 :])

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        return reshaped(b, self.input, sizes, sizes.shape, self._merged(sizes.shape))

    def _merged(self, shape: Shape) -> Shape:
        if not shape:
            return (1,)
        start = axis_in(self.start_axis, len(shape), "start_axis")
        end = axis_in(self.end_axis, len(shape), "end_axis")
        if end < start:
            raise ValueError(f"end_axis: {self.end_axis} is before start_axis {self.start_axis}")
        return (*shape[:start], product(shape[start : end + 1]), *shape[end + 1 :])


@operator(
    "EXPAND",
    nnadapter=NNAdapter(23),
    nnrt=(NNRt(69, "BROADCAST_TO", parameters={"SHAPE": "shape"}),),
    onnx=("Expand",),
    core=True,
)
class Expand(Layout):
    """Repeats axes of size 1 until the shape is that of the input and `shape` broadcast.

    Broadcasting is NumPy's: shapes are compared from the last axis, and what is missing at the
    front counts as 1. A size of 1 or -1 in `shape` keeps the input's, and `shape` may be shorter.
    """

    __slots__ = ()
    shape = integers()
    examples = (
        example(input=random(2, 1, 4), shape=(2, 3, 4)),
        example(input=random(2, 1, 4), shape=(5, 2, -1, 4)),
        example(input=random(3, 1), shape=(1, 1)),
        example(input=random(3, 1, dtype=ElementType.INT64), shape=given([2, 1, 5])),
        example(input=random(1, 2, dtype=ElementType.BOOL), shape=(0, 2)),
    )

    def infer_shape(self) -> Shape:
        asked = self.sizes_asked("shape")
        return broadcast(shape_of(self.input), tuple(1 if size == -1 else size for size in asked))

    def reference(self, input: Array, shape: Sequence[int]) -> Array:
        wanted = tuple(1 if size == -1 else size for size in shape)
        return np.broadcast_to(input, np.broadcast_shapes(input.shape, wanted))


@operator(
    "SHAPE",
    nnadapter=NNAdapter(73),
    nnrt=(NNRt(27, "SHAPE", translation="The output is int32."),),
    hdi=(NodeType.SHAPE,),
    onnx=("Shape",),
    core=True,
)
class ShapeOf(Layout):
    """The input's shape, as a list of integers of type `dtype`, int64 or int32."""

    __slots__ = ()
    dtype = element_type(ElementType.INT64)
    examples = (
        example(input=random(2, 3, 4)),
        example(input=random(0, 5), dtype=ElementType.INT32),
        example(input=random(dtype=ElementType.BOOL)),
    )

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        return (len(shape_of(self.input)),)

    def infer_sizes(self) -> Shape:
        return shape_of(self.input)

    def reference(self, input: Array, dtype: ElementType) -> Array:
        return np.array(input.shape, dtype.dtype)


@operator("RANK", nnrt=(NNRt(98, "RANK"),))
class Rank(Layout):
    """How many axes the input has, as a tensor without axes of type int32."""

    __slots__ = ()
    examples = (example(input=random(2, 3, 4)), example(input=random()))

    def infer_element_type(self) -> ElementType:
        return ElementType.INT32

    def infer_shape(self) -> Shape:
        return ()

    def infer_sizes(self) -> Shape:
        return (len(shape_of(self.input)),)

    def reference(self, input: Array) -> Array:
        return np.array(input.ndim, np.int32)

    def decompose(self, b: Builder) -> Operand:
        shape = b.add(ShapeOf, self.input, ElementType.INT32)
        return b.add(Reshape, b.add(ShapeOf, shape, ElementType.INT32), ())
