"""Fixing the sizes that a model leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.ir import Dim, InputError, Model, Operand, symbol
from crosschip.passes.base import Keeps, Pass
from crosschip.passes.rewriter import Rewriter


class Specialize(Pass):
    """Gives inputs fixed shapes and infers all types anew.

    Args:
        shapes: the shape of each input to fix, by input name.

    Raises:
        InputError: there is no such input, or it cannot have that shape.
    """

    keeps = Keeps.VALUES

    def __init__(self, shapes: Mapping[str, Sequence[int]]) -> None:
        self.shapes = {name: tuple(shape) for name, shape in shapes.items()}

    def __call__(self, model: Model) -> Model:
        sizes: dict[str, Dim] = {}
        for name, shape in self.shapes.items():
            if name not in model.inputs:
                known = ", ".join(model.inputs)
                raise InputError(f"the model has no input {name!r}; its inputs are {known}")
            bind(model.inputs[name], shape, sizes)
        rewriter = Rewriter(model)
        inputs = {}
        for name, operand in model.inputs.items():
            inputs[name] = fixed = Operand(operand.name, operand.type.substitute(sizes))
            rewriter.replace(operand, fixed)
        for operation in map(rewriter.resolved, model.operations):
            rewriter.emit(operation)
        finished = rewriter.finish()
        return Model(model.name, inputs, finished.operations, finished.outputs)


def bind(operand: Operand, shape: Sequence[int], sizes: dict[str, Dim]) -> None:
    """Add to `sizes` what a concrete shape says about an operand's named sizes.

    Raises:
        InputError: the operand cannot have the shape, or not together with `sizes`.
    """
    wanted = operand.type.shape
    if wanted is None:
        return
    fits = len(wanted) == len(shape) and all(
        _bind_size(size, actual, sizes) for size, actual in zip(wanted, shape, strict=True)
    )
    if not fits:
        known = {name: size for name, size in sizes.items() if not name.startswith("?")}
        given = f" where {known}" if known else ""
        raise InputError(
            f"input {operand.name!r} has shape {list(shape)}, but the model takes "
            f"{operand.type}{given}"
        )


def _bind_size(size: Dim, actual: int, sizes: dict[str, Dim]) -> bool:
    if isinstance(size, int):
        return size == actual
    names = size.names
    if len(names) == 1 and size == symbol(next(iter(names))):
        return sizes.setdefault(next(iter(names)), actual) == actual
    return True
