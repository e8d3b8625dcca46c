"""Fixing the sizes that a model leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index

from crosschip.ir import Dim, InputError, Model, ModelError, Operand, TensorType
from crosschip.ir.dimension import name_of, substitute
from crosschip.ir.frozen import settle
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class Specialize(Pass):
    """Gives inputs fixed shapes and infers all types anew.

    Args:
        shapes: the shape of each input to fix, by input name.

    Raises:
        InputError: there is no such input, or it cannot have that shape.
    """

    shapes: Mapping[str, Sequence[int]] = field(hash=False)

    def __post_init__(self) -> None:
        shapes = {name: concrete(name, shape) for name, shape in self.shapes.items()}
        settle(self, "shapes", shapes)

    def requires(self, model: Model) -> None:
        self._sizes(model)

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for name, shape in self.shapes.items():
            if after.inputs[name].type.shape != shape:
                raise ModelError(f"input {name!r} is {after.inputs[name].type}, not {list(shape)}")

    def rewrite(self, model: Model) -> Model:
        sizes = self._sizes(model)
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
                rewriter.keep(operation)
        except ModelError as error:
            given = ", ".join(f"{name} {list(shape)}" for name, shape in self.shapes.items())
            raise InputError(f"{model.name} does not run with {given}: {error}") from None
        finished = rewriter.finish()
        return Model(model.name, inputs, finished.operations, finished.outputs)

    def _sizes(self, model: Model) -> dict[str, Dim]:
        return bind({name: operand.type for name, operand in model.inputs.items()}, self.shapes)


def concrete(name: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The shape as plain integers.

    Raises:
        InputError: it is not a list of sizes, or one of them is negative.
    """
    try:
        sizes = tuple(map(index, shape))
    except TypeError:
        sizes = (-1,)
    if any(size < 0 for size in sizes):
        raise InputError(f"{shape!r} is not a shape for input {name!r}; give one like [1, 3, 224]")
    return sizes


def bind(types: Mapping[str, TensorType], shapes: Mapping[str, Sequence[int]]) -> dict[str, Dim]:
    """What concrete shapes of inputs say about their named sizes.

    Args:
        types: the inputs' types, by name.
        shapes: the shapes of some or all of them, by name.

    Raises:
        InputError: there is no such input, or it cannot have its shape, or not together with
            the others.
    """
    sizes: dict[str, Dim] = {}
    derived: list[tuple[str, Dim, int]] = []
    for name, shape in shapes.items():
        if name not in types:
            known = ", ".join(types) or "none"
            raise InputError(f"the model has no input {name!r}; its inputs are {known}")
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
