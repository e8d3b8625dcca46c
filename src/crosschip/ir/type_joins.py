"""Types of values that several bodies produce, or that change between iterations of a loop.

A body's type is valid for all values: a size that differs between them is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crosschip.ir.dimension import Dim, Dimension, Shape, name_of, unknown
from crosschip.ir.errors import ModelError
from crosschip.ir.types import TensorType


def names_in(types: Iterable[TensorType]) -> frozenset[str]:
    """Return the names of all sizes that the types depend on."""
    return frozenset(
        name
        for type_ in types
        for size in (*(type_.shape or ()), *(type_.shape_value or ()))
        if isinstance(size, Dimension)
        for name in size.names
    )


def join_types(first: TensorType, second: TensorType) -> TensorType:
    """Return the most specific type that includes both types; sizes that differ are unknown.

    Raises:
        ModelError: element types or quantizations differ.
    """
    _expect_alike(first, second)
    value = first.shape_value if first.shape_value == second.shape_value else None
    return replace(first, shape=_join_shapes(first.shape, second.shape), shape_value=value)


def hide_inner_sizes(type_: TensorType, names: frozenset[str]) -> TensorType:
    """Return the type outside a scope: sizes that depend on other names than these are unknown."""

    def hide_inner(size: Dim) -> Dim:
        return size if isinstance(size, int) or size.names <= names else unknown()

    shape = None if type_.shape is None else tuple(map(hide_inner, type_.shape))
    is_visible = type_.shape_value is not None and names_in([type_]) <= names
    return replace(type_, shape=shape, shape_value=type_.shape_value if is_visible else None)


def widen_type(old: TensorType, new: TensorType, outer: frozenset[str], effort: int) -> TensorType:
    """Return a loop-carried type that includes the old and the new type.

    Args:
        old: the type so far; a size that is a mere name, not in `outer`, is unknown already.
        new: the type of the next value.
        outer: the names of sizes that are constant during the loop.
        effort: the number of previous widenings; from the third on, all sizes become unknown, then
            the rank, so that the iteration terminates.

    Raises:
        ModelError: element types or quantizations differ.
    """
    _expect_alike(old, new)
    if old.shape is None or new.shape is None or len(old.shape) != len(new.shape):
        return replace(old, shape=None, shape_value=None)
    shape = tuple(
        size if is_open(size, outer) or size == other else unknown()
        for size, other in zip(old.shape, new.shape, strict=True)
    )
    if shape != old.shape and effort >= _MAX_WIDENINGS:
        shape = tuple(size if is_open(size, outer) else unknown() for size in shape)
    if shape != old.shape and effort > _MAX_WIDENINGS:
        return replace(old, shape=None, shape_value=None)
    return replace(old, shape=shape, shape_value=None)


_MAX_WIDENINGS = 2


def is_open(size: Dim, outer: frozenset[str]) -> bool:
    """Return whether a size may have any value: it is a mere name from inside the loop."""
    name = name_of(size)
    return name is not None and name not in outer


def without_axis(type_: TensorType, axis: int) -> TensorType:
    """Return the type of a slice along an axis, which may be negative.

    Raises:
        ModelError: the type has no such axis.
    """
    if type_.shape is None:
        return replace(type_, shape_value=None)
    shape = list(type_.shape)
    del shape[axis_of(type_, axis)]
    return replace(type_, shape=tuple(shape), shape_value=None)


def with_axis(type_: TensorType, axis: int, size: Dim) -> TensorType:
    """Return the type of slices stacked along a new axis, which may be negative.

    Raises:
        ModelError: the axis is out of range.
    """
    if type_.shape is None:
        return replace(type_, shape_value=None)
    rank = len(type_.shape) + 1
    if not -rank <= axis < rank:
        raise ModelError(f"there is no axis {axis} of {rank}")
    position = axis % rank
    shape = (*type_.shape[:position], size, *type_.shape[position:])
    return replace(type_, shape=shape, shape_value=None)


def axis_of(type_: TensorType, axis: int) -> int:
    """Return a non-negative axis; raise ModelError if the type has no such axis."""
    rank = len(type_.shape or ())
    if not -rank <= axis < rank:
        raise ModelError(f"there is no axis {axis} of {type_}")
    return axis % rank


def common_size(sizes: Sequence[Dim]) -> Dim:
    """Return the common value of equal sizes: the known one, else the first.

    Raises:
        ModelError: two known sizes differ.
    """
    known = sorted({size for size in sizes if isinstance(size, int)})
    if len(known) > 1:
        raise ModelError(f"the sizes {known} must be alike")
    return known[0] if known else sizes[0]


def _join_shapes(first: Shape | None, second: Shape | None) -> Shape | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else unknown() for a, b in zip(first, second, strict=True))


def _expect_alike(first: TensorType, second: TensorType) -> None:
    if first.element_type is not second.element_type or first.quantization != second.quantization:
        raise ModelError(f"is {first} one time and {second} the other")
