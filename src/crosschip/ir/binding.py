"""The sizes that inputs leave open, as shapes of arrays and the words of callers tell them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index

from crosschip.ir.dimension import Dim, Dimension, Shape, name_of, substitute
from crosschip.ir.errors import InputError
from crosschip.ir.suggestion import meant
from crosschip.ir.types import TensorType


def shapes_and_sizes(
    types: Mapping[str, TensorType], given: Mapping[str, Sequence[int] | int]
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """The caller's words about a model's inputs, as shapes of inputs and as named sizes.

    Args:
        types: the inputs' types, by name.
        given: a shape by the name of an input, or one size by the name that types have for it.

    Raises:
        InputError: there is neither an input nor an open size of a name, or what is given is not
            a shape or a size.
    """
    if not isinstance(given, Mapping):
        raise InputError(f'shapes is {given!r}, but must be like {{"x": [1, 3, 224]}}')
    open_sizes = open_names(types.values())
    shapes: dict[str, tuple[int, ...]] = {}
    sizes: dict[str, int] = {}
    for name, value in given.items():
        if name in types and not (isinstance(value, int) and name in open_sizes):
            shapes[name] = concrete(name, value)
        elif name in open_sizes:
            (sizes[name],) = concrete(name, [value] if isinstance(value, int) else value, 1)
        else:
            inputs, named = ", ".join(types) or "none", ", ".join(open_sizes) or "none"
            near = meant(str(name), [*types, *open_sizes])
            raise InputError(
                f"the model has no input {name!r}{near}; its inputs are {inputs}, its open sizes "
                f"{named}"
            )
    return shapes, sizes


def open_names(types: Iterable[TensorType]) -> list[str]:
    """The names of the sizes that types leave open, in order of appearance."""
    sizes = [size for type_ in types for size in type_.shape or () if isinstance(size, Dimension)]
    names = dict.fromkeys(name for size in sizes for name in sorted(size.names))
    return [name for name in names if not name.startswith("?")]


def concrete(name: str, shape: Sequence[int] | int, rank: int | None = None) -> tuple[int, ...]:
    """The shape as plain integers; if `rank` is given, so many.

    Raises:
        InputError: it is not a list of sizes, or one of them is negative.
    """
    try:
        sizes = tuple(map(index, shape))  # type: ignore[arg-type]  # what it raises is caught
    except TypeError:
        sizes = (-1,)
    if any(size < 0 for size in sizes) or rank not in (None, len(sizes)):
        wanted = "a shape for" if rank is None else "the size"
        like = "[1, 3, 224]" if rank is None else "3"
        raise InputError(f"{shape!r} is not {wanted} {name!r}; give one like {like}")
    return sizes


def bind(
    types: Mapping[str, TensorType],
    shapes: Mapping[str, Sequence[int]],
    given: Mapping[str, int] | None = None,
) -> dict[str, Dim]:
    """The named sizes that concrete shapes of inputs tell.

    Args:
        types: the inputs' types, by name.
        shapes: the shapes of some or all of them, by name.
        given: named sizes that are known besides.

    Raises:
        InputError: there is no such input, or it cannot have its shape, or not together with
            the others.
    """
    sizes: dict[str, Dim] = dict(given or {})
    derived: list[tuple[str, Dim, int]] = []
    for name, shape in shapes.items():
        if name not in types:
            known = ", ".join(types) or "none"
            near = meant(str(name), types)
            raise InputError(f"the model has no input {name!r}{near}; its inputs are {known}")
        wanted = types[name].shape
        if wanted is None:
            continue
        if len(wanted) != len(shape):
            raise _misfit(name, types[name], shape, sizes)
        for size, actual in zip(wanted, shape, strict=True):
            own = name_of(size)
            if own is None:
                derived.append((name, size, actual))
            elif sizes.setdefault(own, actual) != actual:
                raise _misfit(name, types[name], shape, sizes)
    for name, size, actual in derived:
        value = substitute(size, sizes)
        if isinstance(value, int) and value != actual:
            raise _misfit(name, types[name], shapes[name], sizes)
    return sizes


def named_sizes(types: Sequence[TensorType], shapes: Sequence[Shape | None]) -> dict[str, Dim]:
    """The sizes that types have names for, as they are in tensors of these shapes."""
    found: dict[str, Dim] = {}
    for type_, shape in zip(types, shapes, strict=True):
        for size, actual in zip(type_.shape or (), shape or (), strict=False):
            name = name_of(size)
            if name is not None:
                found[name] = actual
    return found


def _misfit(
    name: str, type_: TensorType, shape: Sequence[int], sizes: Mapping[str, Dim]
) -> InputError:
    known = {size: value for size, value in sizes.items() if not size.startswith("?")}
    given = f" where {known}" if known else ""
    return InputError(f"input {name!r} has shape {list(shape)}, but the model takes {type_}{given}")
