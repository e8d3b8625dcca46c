"""Operators that change a tensor's shape or the order of its axes, but not its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape, unknown
from crosschip.ir.dimension import exact_quotient, product
from crosschip.ops.definition.kinds import Layout, shape_parameter
from crosschip.ops.definition.operator import UnknownRank, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, reshape
from crosschip.ops.definition.shapes import broadcast, normalize_axes, normalize_axis
from crosschip.ops.definition.slots import flag, integer, integers


@operator("RESHAPE", core=True)
class Reshape(Layout):
    """The same elements, in C order, in another shape.

    In `shape`, 0 keeps the input's size on that axis, and at most one -1 is inferred: the product
    of the input sizes that are not kept, divided by that of the other sizes in `shape`. With a -1
    and a kept size of 0, a device may reject the run. With `allow_zero`, 0 is the size of an axis
    without elements and excludes a -1.
    """

    __slots__ = ()
    shape_slots = frozenset({"shape"})
    shape = integers()
    allow_zero = flag(False)

    def infer_shape(self) -> Shape:
        requested = shape_parameter(self, "shape")
        if sum(size == -1 for size in requested) > 1:
            raise ValueError(f"shape: {list(requested)} has more than one -1")
        if any(isinstance(size, int) and size < -1 for size in requested):
            raise ValueError(f"shape: {list(requested)} has a negative size")
        if self.allow_zero and {0, -1} <= set(requested):
            raise ValueError(f"shape: {list(requested)} has a 0, which is a size, and a -1")
        input_shape = self.input.type.shape
        if input_shape is None:
            left_open = (-1,) if self.allow_zero else (0, -1)
            return tuple(unknown() if size in left_open else size for size in requested)
        sizes = self._resolve_sizes(requested, input_shape)
        new_count, old_count = product(sizes), product(input_shape)
        if isinstance(new_count, int) and isinstance(old_count, int) and new_count != old_count:
            raise ValueError(
                f"shape: {list(requested)} does not hold the input's {old_count} elements"
            )
        return sizes

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return preserved_row_axis(self, axes[0])

    def reference(self, input: Array) -> Array:
        if min(self.shape, default=0) < -1:
            raise ValueError(f"{list(self.shape)} has a negative size")
        return input.reshape(cast(tuple[int, ...], self._resolve_sizes(self.shape, input.shape)))

    def _resolve_sizes(self, requested: Sequence[Dim], sizes: Shape) -> Shape:
        """Return the requested sizes, with kept sizes and -1 resolved."""
        copied = {axis for axis, size in enumerate(requested) if size == 0 and not self.allow_zero}
        if copied and max(copied) >= len(sizes):
            raise ValueError(f"shape: {list(requested)} keeps a size that the input does not have")
        remaining = product(tuple(size for axis, size in enumerate(sizes) if axis not in copied))
        others = (size for axis, size in enumerate(requested) if axis not in copied and size != -1)
        inferred = exact_quotient(remaining, product(tuple(others))) if -1 in requested else 1
        return tuple(
            sizes[axis] if axis in copied else inferred if size == -1 else size
            for axis, size in enumerate(requested)
        )


def preserved_row_axis(operation: Layout, axis: int | None) -> int | None:
    """Return `Operator.row_axis` of an operation that keeps the order of elements.

    Rows keep their axis if its size and all sizes before it stay the same.
    """
    before, after = operation.input.type.shape, operation.infer()[0].shape
    if axis is None or before is None or after is None:
        return None
    return axis if before[: axis + 1] == after[: axis + 1] else None


@operator("TRANSPOSE", core=True)
class Transpose(Layout):
    """Permutation of the axes: axis `i` of the output is axis `perm[i]` of the input.

    `perm` contains each axis once; a negative number counts from the last axis.
    """

    __slots__ = ()
    perm = integers()

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        perm = normalize_axes(self.perm, len(shape), "perm")
        if len(perm) != len(shape):
            raise ValueError(f"perm: has {len(perm)} axes, but the input has {len(shape)}")
        return tuple(shape[axis] for axis in perm)

    def reference(self, input: Array) -> Array:
        return input.transpose(self.perm)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return None if axes[0] is None else self.moved_axis(axes[0], len(shape_of(self.input)))

    def moved_axis(self, axis: int, rank: int) -> int:
        return normalize_axes(self.perm, rank).index(axis)


@operator("SQUEEZE")
class Squeeze(Layout):
    """Removal of axes of size 1: those in `axes`, or all if `axes` is empty.

    A negative axis counts from the last one. An axis in `axes` whose size is not 1 is an error.
    Without `axes`, the output's rank is known only if all sizes of the input are.
    """

    __slots__ = ()
    axes = integers(())

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        removed = self._removed_axes(shape)
        for axis in removed:
            if isinstance(shape[axis], int) and shape[axis] != 1:
                raise ValueError(f"axes: axis {axis} has size {shape[axis]}, not 1")
        return tuple(size for axis, size in enumerate(shape) if axis not in removed)

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return preserved_row_axis(self, axes[0])

    def reference(self, input: Array) -> Array:
        return np.squeeze(input, self.axes or None)

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        removed = self._removed_axes(sizes.shape)
        remaining = [size for axis, size in enumerate(sizes.shape) if axis not in removed]
        if not all(sizes.shape[axis] == 1 for axis in removed):
            # Without a dynamic dimension in the shape, RESHAPE rejects another number of elements.
            return b.add(Reshape, self.input, sizes(remaining), allow_zero=True)
        return reshape(b, self.input, sizes, sizes.shape, remaining)

    def moved_axis(self, axis: int, rank: int) -> int | None:
        removed = self._removed_axes(shape_of(self.input))
        return None if axis in removed else axis - sum(other < axis for other in removed)

    def _removed_axes(self, shape: Shape) -> tuple[int, ...]:
        axes = normalize_axes(self.axes, len(shape))
        if not axes and not all(isinstance(size, int) for size in shape):
            raise UnknownRank
        return axes or tuple(axis for axis, size in enumerate(shape) if size == 1)


@operator("UNSQUEEZE")
class Unsqueeze(Layout):
    """Insertion of axes of size 1, which become `axes` of the output.

    A negative axis counts from the last one of the output.
    """

    __slots__ = ()
    axes = integers()

    def infer_shape(self) -> Shape:
        return self._insert_axes(shape_of(self.input))

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return preserved_row_axis(self, axes[0])

    def reference(self, input: Array) -> Array:
        return np.expand_dims(input, self.axes)

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        return reshape(b, self.input, sizes, sizes.shape, self._insert_axes(sizes.shape))

    def moved_axis(self, axis: int, rank: int) -> int:
        inserted = normalize_axes(self.axes, rank + len(self.axes))
        return [other for other in range(rank + len(inserted)) if other not in inserted][axis]

    def _insert_axes(self, shape: Shape) -> Shape:
        sizes = list(shape)
        for axis in sorted(normalize_axes(self.axes, len(shape) + len(self.axes))):
            sizes.insert(axis, 1)
        return tuple(sizes)


@operator("FLATTEN")
class Flatten(Layout):
    """Merging of the axes from `start_axis` to `end_axis` (inclusive) into one.

    A negative axis counts from the last one. A scalar becomes a list of one element.
    """

    __slots__ = ()
    start_axis = integer(1)
    end_axis = integer(-1)

    def infer_shape(self) -> Shape:
        return self._merge_axes(shape_of(self.input))

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return preserved_row_axis(self, axes[0])

    def reference(self, input: Array) -> Array:
        if not input.ndim:
            return input.reshape(1)
        start, end = self.start_axis % input.ndim, self.end_axis % input.ndim
        merged = int(np.prod(input.shape[start : end + 1]))
        return input.reshape(*input.shape[:start], merged, *input.shape[end + 1 :])

    def decompose(self, b: Builder) -> Operand:
        sizes = Sizes(b, self.input)
        return reshape(b, self.input, sizes, sizes.shape, self._merge_axes(sizes.shape))

    def _merge_axes(self, shape: Shape) -> Shape:
        if not shape:
            return (1,)
        start = normalize_axis(self.start_axis, len(shape), "start_axis")
        end = normalize_axis(self.end_axis, len(shape), "end_axis")
        if end < start:
            raise ValueError(f"end_axis: {self.end_axis} is before start_axis {self.start_axis}")
        return (*shape[:start], product(shape[start : end + 1]), *shape[end + 1 :])


@operator("EXPAND", core=True)
class Expand(Layout):
    """Broadcasting of the input to the broadcast shape of the input and `shape`.

    Broadcasting is NumPy's: shapes are aligned at their last axes, and missing axes have size 1. A
    size of 1 or -1 in `shape` keeps the input's, and `shape` may be shorter.
    """

    __slots__ = ()
    shape = integers()

    def infer_shape(self) -> Shape:
        requested = shape_parameter(self, "shape")
        if any(isinstance(size, int) and size < -1 for size in requested):
            raise ValueError(f"shape: {list(requested)} has a negative size")
        sizes = tuple(1 if size == -1 else size for size in requested)
        return broadcast(shape_of(self.input), sizes, slot="shape")

    def reference(self, input: Array) -> Array:
        requested = tuple(1 if size == -1 else size for size in self.shape)
        return np.broadcast_to(input, np.broadcast_shapes(input.shape, requested))
