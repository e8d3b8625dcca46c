"""Types of values that come from several places, or that change from one time to the next.

A body of control flow is read with the types that all its values have: where an axis has one size
one time and another the next, the type says that the size is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from crosschip.ir.dimension import Dim, Dimension, Shape, name_of, unknown
from crosschip.ir.errors import ModelError
from crosschip.ir.types import TensorType


def names_in(types: Iterable[TensorType]) -> frozenset[str]:
    """The names of all sizes that types depend on."""
    return frozenset(
        name
        for type_ in types
        for size in (*(type_.shape or ()), *(type_.shape_value or ()))
        if isinstance(size, Dimension)
        for name in size.names
    )


def joined(first: TensorType, second: TensorType) -> TensorType:
    """The narrowest type of values that are of the one or of the other; differing sizes are open.

    Raises:
        ModelError: element types or quantizations differ.
    """
    _expect_alike(first, second)
    value = first.shape_value if first.shape_value == second.shape_value else None
    return replace(first, shape=_joined_shape(first.shape, second.shape), shape_value=value)


def visible(type_: TensorType, names: frozenset[str]) -> TensorType:
    """The type as it is seen where only sizes of these names mean something; others are unknown."""

    def seen(size: Dim) -> Dim:
        return size if isinstance(size, int) or size.names <= names else unknown()

    shape = None if type_.shape is None else tuple(map(seen, type_.shape))
    known = type_.shape_value is not None and names_in([type_]) <= names
    return replace(type_, shape=shape, shape_value=type_.shape_value if known else None)


def widened(old: TensorType, new: TensorType, outer: frozenset[str], effort: int) -> TensorType:
    """The type of a carried value that begins with one type, once it may have another, too.

    Args:
        old: its type so far; a size that is just a name, and none of `outer`, is open already.
        new: the type of what takes its place.
        outer: the names of sizes that stay what they are as long as values are carried.
        effort: how many times it has been widened; from the third time on all sizes are given
            up, and then the rank, so that an end is reached soon.

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
    """Tell whether a size may be any: it is a name of its own."""
    name = name_of(size)
    return name is not None and name not in outer


def without_axis(type_: TensorType, axis: int) -> TensorType:
    """The type of a slice along an axis, which is counted from either end.

    Raises:
        ModelError: there is no such axis.
    """
    if type_.shape is None:
        return replace(type_, shape_value=None)
    shape = list(type_.shape)
    del shape[axis_of(type_, axis)]
    return replace(type_, shape=tuple(shape), shape_value=None)


def with_axis(type_: TensorType, axis: int, size: Dim) -> TensorType:
    """The type of slices of a type along a new axis, which is counted from either end.

    Raises:
        ModelError: the result cannot have such an axis.
    """
    if type_.shape is None:
        return replace(type_, shape_value=None)
    rank = len(type_.shape) + 1
    if not -rank <= axis < rank:
        raise ModelError(f"there is no axis {axis} of {rank}")
    place = axis % rank
    shape = (*type_.shape[:place], size, *type_.shape[place:])
    return replace(type_, shape=shape, shape_value=None)


def axis_of(type_: TensorType, axis: int) -> int:
    """The axis counted from the front; `ModelError` if there is none."""
    rank = len(type_.shape or ())
    if not -rank <= axis < rank:
        raise ModelError(f"there is no axis {axis} of {type_}")
    return axis % rank


def common_size(sizes: Sequence[Dim]) -> Dim:
    """The size that all of these are: the first that is known, else the first.

    Raises:
        ModelError: two are known and differ.
    """
    known = sorted({size for size in sizes if isinstance(size, int)})
    if len(known) > 1:
        raise ModelError(f"the sizes {known} must be alike")
    return known[0] if known else sizes[0]


def _joined_shape(first: Shape | None, second: Shape | None) -> Shape | None:
    if first is None or second is None or len(first) != len(second):
        return None
    return tuple(a if a == b else unknown() for a, b in zip(first, second, strict=True))


def _expect_alike(first: TensorType, second: TensorType) -> None:
    if first.element_type is not second.element_type or first.quantization != second.quantization:
        raise ModelError(f"is {first} one time and {second} the other")
