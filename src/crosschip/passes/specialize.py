"""Fixing the sizes that a model leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index

from crosschip.ir import Dim, Dimension, InputError, Model, ModelError, Operand, TensorType
from crosschip.ir.budget import spend
from crosschip.ir.dimension import name_of, substitute
from crosschip.ir.frozen import settle
from crosschip.ir.suggestion import meant
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class Specialize(Pass):
    """Gives inputs fixed shapes and infers all types anew.

    Args:
        shapes: the shape of each input to fix, by input name.
        sizes: sizes that inputs leave open, by the names that their types have for them.

    Raises:
        InputError: there is no such input, or it cannot have that shape.
    """

    shapes: Mapping[str, Sequence[int]] = field(hash=False)
    sizes: Mapping[str, int] = field(hash=False, default_factory=dict)

    def __post_init__(self) -> None:
        shapes = {name: concrete(name, shape) for name, shape in self.shapes.items()}
        settle(self, "shapes", shapes)

    def requires(self, model: Model) -> None:
        self._bound(model)

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for name, shape in self.shapes.items():
            if after.inputs[name].type.shape != shape:
                raise ModelError(f"input {name!r} is {after.inputs[name].type}, not {list(shape)}")

    def rewrite(self, model: Model) -> Model:
        sizes = self._bound(model)
        rewriter = Rewriter(model)
        inputs = {}
        for name, operand in model.inputs.items():
            type_ = operand.type.substitute(sizes)
            if name in self.shapes:
                type_ = replace(type_, shape=tuple(self.shapes[name]))
            inputs[name] = fixed = Operand(operand.name, type_)
            rewriter.replace(operand, fixed)
        try:
            for operation in map(rewriter.resolved, model.operations):
                spend()
                rewriter.keep(operation)
        except ModelError as error:
            shapes = {name: list(shape) for name, shape in self.shapes.items()}
            given = ", ".join(f"{name} {size}" for name, size in {**shapes, **self.sizes}.items())
            raise InputError(f"{model.name} does not run with {given}: {error}") from None
        finished = rewriter.finish()
        return Model(model.name, inputs, finished.operations, finished.outputs)

    def _bound(self, model: Model) -> dict[str, Dim]:
        types = {name: operand.type for name, operand in model.inputs.items()}
        return bind(types, self.shapes, self.sizes)


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


def _misfit(
    name: str, type_: TensorType, shape: Sequence[int], sizes: Mapping[str, Dim]
) -> InputError:
    known = {size: value for size, value in sizes.items() if not size.startswith("?")}
    given = f" where {known}" if known else ""
    return InputError(f"input {name!r} has shape {list(shape)}, but the model takes {type_}{given}")
