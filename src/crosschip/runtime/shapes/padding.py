"""Padding to larger sizes, for rows that are computed independently of each other.

An input is padded with copies of its last row, which are valid if the row is. The added rows are
cropped from the outputs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.ir import Array, Dimension, Model, ModelError, Operand, Operation
from crosschip.ir.dimension import name_of
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.ops import Operator
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.slots import ComputedParameter

Shapes = tuple[tuple[int, ...], ...]
Buckets = Mapping[str, Sequence[int]]
"""The sizes to pad to, in ascending order, by the name of a size."""


class Padding:
    """The padded sizes of a model, and the axes of its inputs and outputs that have them.

    Args:
        model: the model.
        buckets: the sizes to pad to; those that operators do not allow to pad are dropped.

    Attributes:
        buckets: the sizes that are padded.
    """

    def __init__(self, model: Model, buckets: Buckets) -> None:
        axes_by_name = {name: rows_of(model, name) for name in buckets}
        self.buckets = {
            name: buckets[name] for name, axes in axes_by_name.items() if axes is not None
        }
        axes = {name: axes_by_name[name] or {} for name in self.buckets}
        self._inputs, self._outputs = (
            [
                [(name, axes[name][operand]) for name in axes if operand in axes[name]]
                for operand in operands
            ]
            for operands in (model.inputs.values(), model.outputs.values())
        )

    def __bool__(self) -> bool:
        return bool(self.buckets)

    def __str__(self) -> str:
        return ", ".join(
            f"{name} to {', '.join(map(str, sizes))}" for name, sizes in self.buckets.items()
        )

    def shapes(self, shapes: Shapes) -> Shapes:
        """Return the padded shapes of inputs; sizes that are 0 or too large are unchanged."""
        sizes = self._sizes(shapes)
        wider = {name: self._bucket(name, size) for name, size in sizes.items()}
        return tuple(
            [
                _with_sizes(shape, axes, wider) if axes else shape
                for shape, axes in zip(shapes, self._inputs, strict=True)
            ]
        )

    def pad(self, inputs: Sequence[Array], shapes: Shapes) -> list[Array]:
        """Return inputs of these shapes padded with copies of their last rows."""
        return [
            array if array.shape == shape else _pad_array(array, shape)
            for array, shape in zip(inputs, shapes, strict=True)
        ]

    def crop(self, outputs: Sequence[Array], shapes: Shapes) -> list[Array]:
        """Return the outputs without the padding of inputs of these shapes."""
        sizes = self._sizes(shapes)
        return [
            np.ascontiguousarray(array[_crop_slices(array.ndim, axes, sizes)]) if axes else array
            for array, axes in zip(outputs, self._outputs, strict=True)
        ]

    def _sizes(self, shapes: Shapes) -> dict[str, int]:
        return {
            name: shape[axis]
            for shape, axes in zip(shapes, self._inputs, strict=True)
            for name, axis in axes
        }

    def _bucket(self, name: str, size: int) -> int:
        sizes = self.buckets[name]
        index = bisect_left(sizes, size)
        return sizes[index] if size and index < len(sizes) else size


def rows_of(model: Model, name: str) -> dict[Operand, int] | None:
    """Return the axis of rows of each operand with a size, if rows are independent.

    Args:
        model: the model.
        name: the name of the size.

    Returns:
        The axes of operands that have the size; `None` if, as far as operators declare, a row of an
        output depends on the number of rows or on other rows.
    """
    axes: dict[Operand, int] = {}
    for operand in model.inputs.values():
        if not _record_axis(operand, name, _axis_of(operand, name), axes):
            return None
    size_values: set[Operand] = set()  # operands whose elements depend on the size
    for operation in model.operations:
        if not _follow(operation, name, axes, size_values):
            return None
    outputs = model.outputs.values()
    return axes if axes and size_values.isdisjoint(outputs) else None


def _follow(
    operation: Operation, name: str, axes: dict[Operand, int], size_values: set[Operand]
) -> bool:
    """Record the row axis of an operation's outputs; return whether rows stay independent."""
    input_axes = [None if operand is None else axes.get(operand) for operand in operation.inputs]
    if any(_contains_size(output, name) for output in operation.outputs):
        size_values.update(operation.outputs)  # the number of rows itself, or what follows from it
        return True
    if any(operand in size_values for operand in operation.inputs):
        if all(map(_is_static_value, operation.outputs)):
            return True
        if not _reads_only_shape_sizes(operation, size_values):
            return False
    if all(axis is None for axis in input_axes):
        return all(_record_axis(output, name, None, axes) for output in operation.outputs)
    if not isinstance(operation, Operator) or operation.bodies:
        return False
    try:
        axis = operation.row_axis(input_axes)
    except (ModelError, ValueError, UnknownRank, ComputedParameter):
        return False
    return axis is not None and all(
        _record_axis(output, name, axis, axes) for output in operation.outputs
    )


def _record_axis(operand: Operand, name: str, axis: int | None, axes: dict[Operand, int]) -> bool:
    """Record `axis` as the row axis of an operand, if possible.

    Returns:
        Whether the size `name` occurs on exactly that axis (for `None`, on no axis).
    """
    shape = operand.type.shape
    if shape is None or operand.type.element_type in PYTHONS_TYPES:
        return False
    axes_with_size = [
        index
        for index, size in enumerate(shape)
        if isinstance(size, Dimension) and name in size.names
    ]
    if axis is None:
        return not axes_with_size
    if axes_with_size != [axis] or name_of(shape[axis]) != name or _has_scales(operand, axis):
        return False
    axes[operand] = axis
    return True


def _has_scales(operand: Operand, axis: int) -> bool:
    """Return whether there is a scale for each index of an axis."""
    quantization = operand.type.quantization
    along = None if quantization is None else quantization.axis
    return along is not None and along % len(operand.type.shape or ()) == axis


def _axis_of(operand: Operand, name: str) -> int | None:
    """Return the axis that has the size, if any."""
    shape = operand.type.shape or ()
    return next((axis for axis, size in enumerate(shape) if name_of(size) == name), None)


def _contains_size(operand: Operand, name: str) -> bool:
    """Return whether the elements of an operand depend on the size."""
    sizes = operand.type.shape_value or ()
    return any(isinstance(size, Dimension) and name in size.names for size in sizes)


def _is_static_value(operand: Operand) -> bool:
    """Return whether the elements of an operand are known for all sizes."""
    sizes = operand.type.shape_value
    return sizes is not None and all(isinstance(size, int) for size in sizes)


def _reads_only_shape_sizes(operation: Operation, size_values: set[Operand]) -> bool:
    """Return whether an operation reads sizes only to shape its result.

    `_record_axis` checks that the result has the size on the row axis alone.
    """
    return isinstance(operation, Operator) and all(
        slot.name in operation.shape_slots
        for slot, operand in operation.filled()
        if operand in size_values
    )


def _with_sizes(
    shape: tuple[int, ...], axes: Sequence[tuple[str, int]], sizes: Mapping[str, int]
) -> tuple[int, ...]:
    wider = list(shape)
    for name, axis in axes:
        wider[axis] = sizes[name]
    return tuple(wider)


def _pad_array(array: Array, shape: tuple[int, ...]) -> Array:
    """Return an array padded with the last element of each axis."""
    wide = np.empty(shape, array.dtype)
    wide[tuple(map(slice, array.shape))] = array
    for axis, size in enumerate(array.shape):
        if size < shape[axis]:
            rows = np.moveaxis(wide, axis, 0)
            rows[size:] = rows[size - 1]
    return wide


def _crop_slices(
    rank: int, axes: Sequence[tuple[str, int]], sizes: Mapping[str, int]
) -> tuple[slice, ...]:
    slices = [slice(None)] * rank
    for name, axis in axes:
        slices[axis] = slice(sizes[name])
    return tuple(slices)
