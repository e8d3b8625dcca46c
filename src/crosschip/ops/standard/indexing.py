"""Operators that read and write elements at indices from other tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum

import numpy as np

from crosschip.ir import Array, Builder, ElementType, Operand, Shape
from crosschip.ir.types import ALL_TYPES, INDICES, NUMBERS
from crosschip.ops.definition.kinds import shape_parameter
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import Sizes, shape_value_by_elements
from crosschip.ops.definition.shapes import normalize_axis, unify
from crosschip.ops.definition.slots import choice, integer, integers, optional_tensor, tensor
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import Fill, Range
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze


class Scatter(IntEnum):
    """Combination of an update with the element that it is written to."""

    NONE = 0
    """The update replaces the element; of several updates with one index, any may win."""
    ADD = 1
    MUL = 2
    MAX = 3
    MIN = 4


_COMBINE: dict[Scatter, Callable[[Array, tuple[Array, ...], Array], None]] = {
    Scatter.NONE: lambda target, places, updates: target.__setitem__(places, updates),
    Scatter.ADD: np.add.at,
    Scatter.MUL: np.multiply.at,
    Scatter.MAX: np.maximum.at,
    Scatter.MIN: np.minimum.at,
}


class _GatherBase(Operator):
    """Base class of operators that read elements of the input at indices."""

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    indices = tensor(INDICES)


@operator("GATHER_ND", core=True)
class GatherND(_GatherBase):
    """Elements or slices of the input at the index tuples in the last axis of `indices`.

    The last axis of `indices` holds one index for each of as many axes of the input, after the
    first `batch_dims` axes, which both inputs share:

        output[b…, i…] = input[b…][indices[b…, i…, 0], indices[b…, i…, 1], …]

    The output's shape is that of `indices` without its last axis, followed by the input axes
    without an index. A negative index counts from the end of the axis; one out of `[-size, size)`
    is an error. Source: ONNX's GatherND.
    """

    __slots__ = ()
    batch_dims = integer(0)

    def infer_shape(self) -> Shape:
        shape, index_shape, batch = shape_of(self.input), shape_of(self.indices), self.batch_dims
        if not 0 <= batch < min(len(shape), len(index_shape)):
            raise ValueError(f"batch_dims: {batch} is not less than the axes of both inputs")
        for size, other in zip(shape[:batch], index_shape[:batch], strict=True):
            unify(size, other, "indices: sizes of the axes in common")
        count = index_shape[-1]
        if not isinstance(count, int):
            raise UnknownRank
        if count > len(shape) - batch:
            raise ValueError(f"indices: tuples of {count} indices for {len(shape) - batch} axes")
        return (*index_shape[:-1], *shape[batch + count :])

    def reference(self, input: Array, indices: Array) -> Array:
        batch = np.ix_(*map(np.arange, input.shape[: self.batch_dims]))
        ones = (1,) * (indices.ndim - 1 - self.batch_dims)
        batch_indices = tuple(np.reshape(i, i.shape + ones) for i in batch)
        for axis, index in enumerate(np.moveaxis(indices, -1, 0), self.batch_dims):
            # Older versions of NumPy do not check indices if the slices have no elements.
            _check_index(index, axis, input.shape[axis])
        gathered = input[(*batch_indices, *np.moveaxis(indices, -1, 0))]
        rest = input.shape[self.batch_dims + indices.shape[-1] :]
        return np.broadcast_to(gathered, (*indices.shape[:-1], *rest))


@operator("GATHER_ELEMENTS")
class GatherElements(_GatherBase):
    """For each index, the element at the same position except on `axis`, where it is the index.

    For rank 3 and axis 1: `output[i, j, k] = input[i, indices[i, j, k], k]`. The output has the
    shape of `indices`, which on other axes is not larger than the input. A negative index or axis
    counts from the end; an index out of `[-size, size)` is an error. Source: ONNX's GatherElements.
    """

    __slots__ = ()
    axis = integer(0)

    def infer_shape(self) -> Shape:
        return _same_rank(self.input, self.indices, self.axis)

    def reference(self, input: Array, indices: Array) -> Array:
        return input[_elementwise_indices(indices, self.axis)]

    def decompose(self, b: Builder) -> Operand:
        return b.add(GatherND, self.input, _coordinates(b, self.indices, self.axis))


class _ScatterBase(Operator):
    """Base class of operators that write to a copy of the input at indices."""

    __slots__ = ()
    input = tensor(ALL_TYPES)
    indices = tensor(INDICES)
    updates = tensor(ALL_TYPES, like="input")

    def check_reduction(self, reduction: Scatter) -> None:
        """Raise ValueError if elements of the type cannot be combined by the reduction."""
        if reduction is not Scatter.NONE and self.input.type.element_type not in NUMBERS:
            raise ValueError(f"reduction: {reduction.name} is not for {self.input.type}")


@operator("SCATTER_ND", core=True)
class ScatterND(_ScatterBase):
    """The input, with `updates` written at the index tuples in the last axis of `indices`.

    The last axis of `indices` holds one index for each of the input's first axes. `updates` has the
    shape of `indices` without its last axis, followed by the input axes without an index.
    `reduction` combines an update with the element; `ADD` and `MUL` of integers wrap around, `MAX`
    and `MIN` of NaN and a number are unspecified. A negative index counts from the end of the axis;
    one out of `[-size, size)` is an error. Source: ONNX's ScatterND.
    """

    __slots__ = ()
    reduction = choice(Scatter, Scatter.NONE)

    def infer_shape(self) -> Shape:
        self.check_reduction(self.reduction)
        shape, index_shape = shape_of(self.input), shape_of(self.indices)
        count = index_shape[-1] if index_shape else 0
        if isinstance(count, int):
            if not index_shape or count > len(shape):
                raise ValueError(f"indices: tuples of {count} indices for {len(shape)} axes")
            expected = (*index_shape[:-1], *shape[count:])
            updates = self.updates.type.shape
            if updates is not None and len(updates) != len(expected):
                raise ValueError(f"updates: has {len(updates)} axes, not {len(expected)}")
            for size, other in zip(updates or (), expected, strict=False):
                unify(size, other, "updates: its sizes, and those that the indices select")
        return shape

    def reference(self, input: Array, indices: Array, updates: Array) -> Array:
        output = input.copy()
        _COMBINE[self.reduction](output[None], _numpy_indices(indices), updates)
        return output


@operator("SCATTER_ELEMENTS")
class ScatterElements(_ScatterBase):
    """The input, with each update written at its position except on `axis`, where it is the index.

    For rank 3 and axis 1: `output[i, indices[i, j, k], k] = updates[i, j, k]`. `updates` has the
    shape of `indices`, which on other axes is not larger than the input. `reduction` combines an
    update with the element, as in SCATTER_ND. A negative index or axis counts from the end; an
    index out of `[-size, size)` is an error. Source: ONNX's ScatterElements.
    """

    __slots__ = ()
    axis = integer(0)
    reduction = choice(Scatter, Scatter.NONE)

    def infer_shape(self) -> Shape:
        self.check_reduction(self.reduction)
        index_shape = _same_rank(self.input, self.indices, self.axis)
        updates = self.updates.type.shape
        if updates is not None and len(updates) != len(index_shape):
            raise ValueError(
                f"updates: has {len(updates)} axes, but indices has {len(index_shape)}"
            )
        for size, other in zip(updates or (), index_shape, strict=False):
            unify(size, other, "updates: its sizes, and those of indices")
        return shape_of(self.input)

    def reference(self, input: Array, indices: Array, updates: Array) -> Array:
        output = input.copy()
        _COMBINE[self.reduction](output, _elementwise_indices(indices, self.axis), updates)
        return output

    def decompose(self, b: Builder) -> Operand:
        coordinates = _coordinates(b, self.indices, self.axis)
        return b.add(ScatterND, self.input, coordinates, self.updates, self.reduction)


@operator("SPARSE_TO_DENSE")
class SparseToDense(Operator):
    """A tensor of the given shape with `values[i]` at the index tuple in row `i` of `indices`.

    `indices` has the shape `[count, rank]`, `values` the shape `[count]`. All other elements are
    `default_value`, one element of the type of the values, by default 0. Of several values with one
    index, any may win. A negative index counts from the end of the axis; one out of `[-size, size)`
    is an error.
    """

    __slots__ = ()
    indices = tensor(INDICES)
    values = tensor(ALL_TYPES)
    shape = integers()
    default_value = optional_tensor(ALL_TYPES, like="values")

    def infer_element_type(self) -> ElementType:
        return type(self).values.element_type(self.values)

    def infer_shape(self) -> Shape:
        shape = tuple(shape_parameter(self, "shape"))
        if any(isinstance(size, int) and size < 0 for size in shape):
            raise ValueError(f"shape: {list(shape)} has a negative size")
        index_shape, values = self.indices.type.shape, self.values.type.shape
        if index_shape is not None and len(index_shape) != 2:
            raise ValueError(f"indices: has {len(index_shape)} axes, not 2")
        if values is not None and len(values) != 1:
            raise ValueError(f"values: has {len(values)} axes, not 1")
        if index_shape is not None:
            unify(
                index_shape[1],
                len(shape),
                "indices: its last size, and the output rank",
            )
        if index_shape is not None and values is not None:
            unify(index_shape[0], values[0], "values: its size, and the number of index tuples")
        return shape

    def reference(self, indices: Array, values: Array, default_value: Array | None) -> Array:
        default = np.zeros((), values.dtype) if default_value is None else default_value
        output = np.full(self.shape, default.reshape(()), values.dtype)
        output[None][_numpy_indices(indices)] = values
        return output

    def decompose(self, b: Builder) -> Operand:
        zero = b.constant(np.zeros((), self.values.type.element_type.dtype))
        everywhere = b.add(Fill, self.operand("shape"), self.default_value or zero)
        return b.add(ScatterND, everywhere, self.indices, self.values)


def _same_rank(input: Operand, indices: Operand, axis: int) -> Shape:
    """Return the shape of the indices; raise ValueError unless they fit the input."""
    shape, index_shape = shape_of(input), shape_of(indices)
    if not shape or len(shape) != len(index_shape):
        raise ValueError(f"indices: has {len(index_shape)} axes, but the input has {len(shape)}")
    normalized = normalize_axis(axis, len(shape))
    for other, (size, count) in enumerate(zip(shape, index_shape, strict=True)):
        if (
            other != normalized
            and isinstance(size, int)
            and isinstance(count, int)
            and count > size
        ):
            raise ValueError(f"indices: has size {count} on axis {other}, the input only {size}")
    return index_shape


def _numpy_indices(indices: Array) -> tuple[Array, ...]:
    """Return NumPy indices from the last axis of `indices`, for a tensor with a new first axis.

    The new axis allows index tuples of length 0, which select the whole tensor.
    """
    return (np.zeros(indices.shape[:-1], np.int64), *np.moveaxis(indices, -1, 0))


def _check_index(indices: Array, axis: int, size: int) -> None:
    """Raise IndexError for indices out of an axis's range, in NumPy's words."""
    outside = indices[(indices < -size) | (indices >= size)]
    if outside.size:
        raise IndexError(
            f"index {outside.flat[0]} is out of bounds for axis {axis} with size {size}"
        )


def _elementwise_indices(indices: Array, axis: int) -> tuple[Array, ...]:
    result: list[Array] = list(np.indices(indices.shape, sparse=True))
    result[axis] = indices
    return tuple(result)


def _coordinates(b: Builder, indices: Operand, axis: int) -> Operand:
    """Build the full index tuples of elementwise indices on one axis, along a new last axis."""
    sizes = Sizes(b, indices)
    rank = len(sizes.shape)
    zero, one = b.constant(np.array(0)), b.constant(np.array(1))
    columns = []
    for other, size in enumerate(sizes.shape):
        if other == axis % rank:
            column = b.add(Cast, indices, ElementType.INT64)
        else:
            line = b.add(Range, zero, sizes.computed(size), one)
            numbers = b.add(Reshape, line, [-1 if i == other else 1 for i in range(rank)])
            column = b.add(Expand, numbers, sizes(sizes.shape))
        columns.append(b.add(Unsqueeze, column, (rank,)))
    return b.add(Concat, columns, rank)


@operator("GATHER", core=True)
class Gather(Operator):
    """The entries of `axis` at `indices`; a negative index or axis counts from the end.

    The output's shape is the input's with `axis` replaced by the shape of `indices`. An index out
    of `[-size, size)` is an error.
    """

    __slots__ = ()
    moves = True
    input = tensor(ALL_TYPES)
    indices = tensor(INDICES)
    axis = integer(0)
    infer_shape_value = shape_value_by_elements

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axis = normalize_axis(self.axis, len(shape))
        if self.indices.type.shape is None:
            raise UnknownRank
        return (*shape[:axis], *self.indices.type.shape, *shape[axis + 1 :])

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        axis = normalize_axis(self.axis, len(shape_of(self.input)))
        rows, index_rows = axes[:2]
        if rows is None and index_rows is not None:
            return axis + index_rows
        if rows is None or index_rows is not None or rows == axis:
            return None
        return rows if rows < axis else rows - 1 + len(shape_of(self.indices))

    def reference(self, input: Array, indices: Array) -> Array:
        if input.size == 0:  # NumPy does not check indices into an empty array
            np.take(np.empty(input.shape[self.axis], np.bool_), indices)
        return np.take(input, indices, self.axis)
