"""Named sizes of model inputs, bound from concrete shapes and from the `shapes` option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import cast

from crosschip.ir.dimension import Dim, Dimension, Shape, name_of, substitute, symbol
from crosschip.ir.errors import InputError
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import TensorType


def shapes_and_sizes(
    types: Mapping[str, TensorType], shapes_or_sizes: Mapping[str, Sequence[int | None] | int]
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Split the caller's `shapes` option into input shapes and named sizes.

    Args:
        types: input types by input name.
        shapes_or_sizes: a shape by input name, in which `None` keeps a size dynamic; or an integer
            by the name of a dynamic size.

    Raises:
        InputError: a name is neither an input nor a dynamic size, or a value is neither a shape
            nor a size.
    """
    if not isinstance(shapes_or_sizes, Mapping):
        raise InputError(f'shapes is {shapes_or_sizes!r}, but must be like {{"x": [1, 3, 224]}}')
    open_sizes = open_names(types.values())
    shapes: dict[str, tuple[int, ...]] = {}
    sizes: dict[str, int] = {}
    for name, value in shapes_or_sizes.items():
        if name in types and isinstance(value, list | tuple) and None in value:
            for symbol_name, number in _fixed_sizes(name, types[name], value).items():
                if sizes.setdefault(symbol_name, number) != number:
                    raise _mismatch(name, types[name], value, sizes)
        elif name in types and not (isinstance(value, int) and name in open_sizes):
            shapes[name] = concrete(name, cast(Sequence[int], value), like=_LIKE_SHAPE)
        elif name in open_sizes:
            size = [value] if isinstance(value, int) else value
            (number,) = concrete(name, cast(Sequence[int], size), 1)
            if sizes.setdefault(name, number) != number:
                raise InputError(f"the size {name} is given as {sizes[name]} and as {number}")
        else:
            inputs, named = ", ".join(types) or "none", ", ".join(open_sizes) or "none"
            near = did_you_mean(str(name), [*types, *open_sizes])
            raise InputError(
                f"the model has no input {name!r}{near}; its inputs are {inputs}, its open sizes "
                f"{named}"
            )
    return shapes, sizes


def open_names(types: Iterable[TensorType]) -> list[str]:
    """Return the names of the dynamic sizes in the types, in order of appearance."""
    sizes = [size for type_ in types for size in type_.shape or () if isinstance(size, Dimension)]
    names = dict.fromkeys(name for size in sizes for name in sorted(size.names))
    return [name for name in names if not name.startswith("?")]


def _fixed_sizes(name: str, type_: TensorType, shape: Sequence[int | None]) -> dict[str, int]:
    """Return the named sizes that a shape fixes; `None` in the shape keeps a size dynamic.

    Raises:
        InputError: the shape does not match the input's type, or it fixes a derived size.
    """
    if type_.shape is None:
        raise InputError(
            f"input {name!r} may have any number of axes; give it a shape without None"
        )
    if len(type_.shape) != len(shape):
        raise _mismatch(name, type_, shape, {})
    sizes: dict[str, int] = {}
    for size, axis_size in zip(type_.shape, shape, strict=True):
        if axis_size is None:
            continue
        (number,) = concrete(name, [axis_size], 1)
        symbol_name = name_of(size)
        if isinstance(size, int):
            fits = size == number
        elif symbol_name is not None:
            fits = sizes.setdefault(symbol_name, number) == number
        else:
            raise InputError(
                f"the size {size} of input {name!r} follows from others; give those by their names"
            )
        if not fits:
            raise _mismatch(name, type_, shape, {})
    return sizes


_LIKE_SHAPE = (
    "[1, 3, 224], with None for a size that stays open, or give single sizes by their names, "
    "like {'N': 1}"
)


def unnamed_sizes(types: Mapping[str, TensorType]) -> dict[str, Dimension]:
    """Return a name for each anonymous size of the inputs: `x_2` for the third axis of input `x`.

    The keys of the result are the symbols of the anonymous sizes.
    """
    used_names = {*open_names(types.values()), *types}
    symbols: dict[str, Dimension] = {}
    for name, type_ in types.items():
        for axis, size in enumerate(type_.shape or ()):
            symbol_name = name_of(size)
            if (
                symbol_name is not None
                and symbol_name.startswith("?")
                and symbol_name not in symbols
            ):
                free = f"{name}_{axis}"
                while free in used_names:
                    free += "_"
                used_names.add(free)
                symbols[symbol_name] = symbol(free)
    return symbols


def concrete(
    name: str, shape: Sequence[int] | int, rank: int | None = None, like: str = "[1, 3, 224]"
) -> tuple[int, ...]:
    """Return a shape as a tuple of plain integers.

    Args:
        name: the input or size that the shape belongs to, for the message.
        shape: the shape that the caller passed.
        rank: the required number of sizes; `None` accepts any number.
        like: an example of a valid shape, for the message.

    Raises:
        InputError: it is not a list of sizes, a size is negative, or the rank differs.
    """
    try:
        sizes = tuple(map(index, shape))  # type: ignore[arg-type]  # what it raises is caught
    except TypeError:
        sizes = (-1,)
    if any(size < 0 for size in sizes) or rank not in (None, len(sizes)):
        expected = "a shape for" if rank is None else "the size"
        raise InputError(
            f"{shape!r} is not {expected} {name!r}; give one like {like if rank is None else '3'}"
        )
    return sizes


def bind(
    types: Mapping[str, TensorType],
    shapes: Mapping[str, Sequence[int]],
    known_sizes: Mapping[str, Dim] | None = None,
) -> dict[str, Dim]:
    """Return the values of the named sizes that concrete input shapes determine.

    Args:
        types: input types by input name.
        shapes: shapes of some or all inputs by input name.
        known_sizes: values of named sizes that are already bound.

    Raises:
        InputError: an input does not exist, a shape does not match its type, or two shapes
            contradict each other.
    """
    sizes: dict[str, Dim] = dict(known_sizes or {})
    derived: list[tuple[str, Dim, int]] = []
    for name, shape in shapes.items():
        if name not in types:
            known = ", ".join(types) or "none"
            near = did_you_mean(str(name), types)
            raise InputError(f"the model has no input {name!r}{near}; its inputs are {known}")
        declared = types[name].shape
        if declared is None:
            continue
        if len(declared) != len(shape):
            raise _mismatch(name, types[name], shape, sizes)
        for size, actual in zip(declared, shape, strict=True):
            symbol_name = name_of(size)
            if symbol_name is None:
                derived.append((name, size, actual))
            elif sizes.setdefault(symbol_name, actual) != actual:
                raise _mismatch(name, types[name], shape, sizes)
    for name, size, actual in derived:
        value = substitute(size, sizes)
        if isinstance(value, int) and value != actual:
            raise _mismatch(name, types[name], shapes[name], sizes)
    return sizes


def named_sizes(types: Sequence[TensorType], shapes: Sequence[Shape | None]) -> dict[str, Dim]:
    """Return the value of each named size in the types, read from tensors of these shapes."""
    sizes: dict[str, Dim] = {}
    for type_, shape in zip(types, shapes, strict=True):
        for size, actual in zip(type_.shape or (), shape or (), strict=False):
            name = name_of(size)
            if name is not None:
                sizes[name] = actual
    return sizes


def _mismatch(
    name: str, type_: TensorType, shape: Sequence[int | None], sizes: Mapping[str, Dim]
) -> InputError:
    known = {size: value for size, value in sizes.items() if not size.startswith("?")}
    where = f" where {known}" if known else ""
    return InputError(f"input {name!r} has shape {list(shape)}, but the model takes {type_}{where}")
