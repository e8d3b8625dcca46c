"""Operators that change a tensor's shape or the order of its elements, never their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape, unknown
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.operator import Operator, operator, shape_of
from crosschip.ops.shapes import axes_in, axis_in, broadcast, unknown_sizes
from crosschip.ops.slots import (
    ComputedParameter,
    element_type,
    integer,
    integers,
    optional_integers,
    tensor,
)


class _Layout(Operator):
    """Base of operators on one tensor of any element type."""

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)

    def sizes_asked(self, slot: str) -> Sequence[Dim]:
        """The value of a shape parameter, with unknown sizes where it is computed."""
        try:
            return tuple(getattr(self, slot))
        except ComputedParameter:
            operand = self.operand(slot)
            length = operand.type.static_shape if operand else None
            if length is None:
                raise
            return unknown_sizes(length[0] if length else 1, slot)


@operator("RESHAPE")
class Reshape(_Layout):
    """The same elements in another shape.

    In `shape`, 0 keeps the size that the input has on that axis, and one -1 stands for whatever
    makes the number of elements right.
    """

    __slots__ = ()
    shape = integers()

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
        sizes = [own[axis] if size == 0 else size for axis, size in enumerate(asked)]
        if -1 in sizes:
            place = sizes.index(-1)
            sizes[place] = 1
            sizes[place] = exact_quotient(product(own), product(tuple(sizes)))
        made, had = product(tuple(sizes)), product(own)
        if isinstance(made, int) and isinstance(had, int) and made != had:
            raise ValueError(f"shape: {list(asked)} does not hold the input's {had} elements")
        return tuple(sizes)

    def reference(self, input: Array, shape: Sequence[int]) -> Array:
        return input.reshape([input.shape[i] if n == 0 else n for i, n in enumerate(shape)])


@operator("TRANSPOSE")
class Transpose(_Layout):
    """Reorders the axes: axis `i` of the output is axis `perm[i]` of the input."""

    __slots__ = ()
    perm = integers()

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        perm = axes_in(self.perm, len(shape), "perm")
        if len(perm) != len(shape):
            raise ValueError(f"perm: has {len(perm)} axes, but the input has {len(shape)}")
        return tuple(shape[axis] for axis in perm)

    def reference(self, input: Array, perm: Sequence[int]) -> Array:
        return input.transpose(perm)


@operator("SQUEEZE")
class Squeeze(_Layout):
    """Removes axes of size 1: those in `axes`, or all of them if it is empty."""

    __slots__ = ()
    axes = integers(())

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axes = axes_in(self.axes, len(shape)) or _ones(shape)
        for axis in axes:
            if isinstance(shape[axis], int) and shape[axis] != 1:
                raise ValueError(f"axes: axis {axis} has size {shape[axis]}, not 1")
        return tuple(size for axis, size in enumerate(shape) if axis not in axes)

    def reference(self, input: Array, axes: Sequence[int]) -> Array:
        return np.squeeze(input, tuple(axes) or None)

    def decompose(self, b: Builder) -> Operand | None:
        return _reshaped(b, self.input, self.outputs)


@operator("UNSQUEEZE")
class Unsqueeze(_Layout):
    """Inserts axes of size 1 so that they are at `axes` of the output."""

    __slots__ = ()
    axes = integers()

    def infer_shape(self) -> Shape:
        shape = list(shape_of(self.input))
        for axis in sorted(axes_in(self.axes, len(shape) + len(self.axes))):
            shape.insert(axis, 1)
        return tuple(shape)

    def reference(self, input: Array, axes: Sequence[int]) -> Array:
        return np.expand_dims(input, tuple(axes))

    def decompose(self, b: Builder) -> Operand | None:
        return _reshaped(b, self.input, self.outputs)


@operator("FLATTEN")
class Flatten(_Layout):
    """Merges the axes from `start_axis` to `end_axis`, both included, into one."""

    __slots__ = ()
    start_axis = integer(1)
    end_axis = integer(-1)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        if not shape:
            return (1,)
        start = axis_in(self.start_axis, len(shape), "start_axis")
        end = axis_in(self.end_axis, len(shape), "end_axis")
        if end < start:
            raise ValueError(f"end_axis: {self.end_axis} is before start_axis {self.start_axis}")
        return (*shape[:start], product(shape[start : end + 1]), *shape[end + 1 :])

    def reference(self, input: Array, start_axis: int, end_axis: int) -> Array:
        if not input.ndim:
            return input.reshape(1)
        start, end = start_axis % input.ndim, end_axis % input.ndim
        merged = int(np.prod(input.shape[start : end + 1]))
        return input.reshape(*input.shape[:start], merged, *input.shape[end + 1 :])

    def decompose(self, b: Builder) -> Operand | None:
        shape = shape_of(self.input)
        start = self.start_axis % max(1, len(shape))
        end = self.end_axis % max(1, len(shape))
        kept = (0,) * start
        after = [size for size in shape[end + 1 :] if isinstance(size, int)]
        if len(after) == len(shape) - end - 1:
            return b.add(Reshape, self.input, (*kept, -1, *after))
        return _reshaped(b, self.input, self.outputs)


@operator("EXPAND")
class Expand(_Layout):
    """Broadcasts the input to `shape`, as NumPy does; a size of 1 or -1 keeps the input's."""

    __slots__ = ()
    shape = integers()

    def infer_shape(self) -> Shape:
        asked = self.sizes_asked("shape")
        return broadcast(shape_of(self.input), tuple(1 if size == -1 else size for size in asked))

    def reference(self, input: Array, shape: Sequence[int]) -> Array:
        wanted = tuple(1 if size == -1 else size for size in shape)
        return np.broadcast_to(input, np.broadcast_shapes(input.shape, wanted))


@operator("SHAPE")
class ShapeOf(_Layout):
    """The input's shape, as a list of integers of type `dtype`."""

    __slots__ = ()
    dtype = element_type(ElementType.INT64)

    def infer_element_type(self) -> ElementType:
        return self.dtype

    def infer_shape(self) -> Shape:
        return (len(shape_of(self.input)),)

    def reference(self, input: Array, dtype: ElementType) -> Array:
        return np.array(input.shape, dtype.dtype)


@operator("SLICE")
class Slice(_Layout):
    """`input[starts[i]:ends[i]:steps[i]]` on each axis `axes[i]`, by Python's rules.

    `axes` are the first ones if left out, and `steps` are 1. A negative start or end counts from
    the end of the axis; both are clipped to the axis.
    """

    __slots__ = ()
    axes = optional_integers()
    starts = integers()
    ends = integers()
    steps = optional_integers()

    def infer_shape(self) -> Shape:
        shape = list(shape_of(self.input))
        try:
            slices = self._slices(self.axes, self.starts, self.ends, self.steps, len(shape))
        except ComputedParameter:
            axes = self.axes if self.axes is not None else range(len(shape))
            for axis in axes_in(axes, len(shape)):
                shape[axis] = unknown()
            return tuple(shape)
        for axis, part in slices.items():
            shape[axis] = _sliced(shape[axis], part)
        return tuple(shape)

    def reference(
        self,
        input: Array,
        axes: Sequence[int] | None,
        starts: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None,
    ) -> Array:
        slices = self._slices(axes, starts, ends, steps, input.ndim)
        return input[tuple(slices.get(axis, slice(None)) for axis in range(input.ndim))]

    @staticmethod
    def _slices(
        axes: Sequence[int] | None,
        starts: Sequence[int],
        ends: Sequence[int],
        steps: Sequence[int] | None,
        rank: int,
    ) -> dict[int, slice]:
        named = axes_in(range(len(starts)) if axes is None else axes, rank)
        strides = (1,) * len(starts) if steps is None else steps
        if not len(named) == len(starts) == len(ends) == len(strides):
            raise ValueError("starts: axes, starts, ends and steps must be equally many")
        if 0 in strides:
            raise ValueError("steps: 0 is not a step")
        return {
            axis: python_slice(start, end, step)
            for axis, start, end, step in zip(named, starts, ends, strides, strict=True)
        }


def python_slice(start: int, end: int, step: int) -> slice:
    """The slice that takes what the operator takes; an end far below 0 means "to the first"."""
    return slice(start, None if step < 0 and end < -(2**30) else end, step)


def _sliced(size: Dim, part: slice) -> Dim:
    if isinstance(size, int):
        return len(range(size)[part])
    takes_all = part.start == 0 and part.step == 1 and part.stop >= 2**30
    return size if takes_all else unknown()


def _ones(shape: Shape) -> tuple[int, ...]:
    if not all(isinstance(size, int) for size in shape):
        raise ValueError("axes: must be given, since not every size of the input is known")
    return tuple(axis for axis, size in enumerate(shape) if size == 1)


def _reshaped(b: Builder, input: Operand, outputs: Sequence[Operand]) -> Operand | None:
    """A reshape to an output's shape, if at most one of its sizes is unknown."""
    shape = outputs[0].type.shape
    if shape is None or sum(not isinstance(size, int) for size in shape) > 1:
        return None
    return b.add(Reshape, input, tuple(s if isinstance(s, int) else -1 for s in shape))
