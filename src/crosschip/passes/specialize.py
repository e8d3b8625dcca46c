"""Specialization of dynamic dimensions to static sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from crosschip.ir import Dim, InputError, Model, ModelError, Operand
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass
from crosschip.ir.frozen import set_field
from crosschip.ir.shape_binding import bind, concrete
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class Specialize(Pass):
    """Fixes input shapes and infers all types again.

    Args:
        shapes: the static shapes of inputs, by input name.
        sizes: sizes for dynamic dimensions of inputs, or new names, by dimension name.

    Raises:
        InputError: there is no such input, or its type does not allow the shape.
    """

    shapes: Mapping[str, Sequence[int]] = field(hash=False)
    sizes: Mapping[str, Dim] = field(hash=False, default_factory=dict)

    def __post_init__(self) -> None:
        shapes = {name: concrete(name, shape) for name, shape in self.shapes.items()}
        set_field(self, "shapes", shapes)

    def requires(self, model: Model) -> None:
        self._bind_sizes(model)

    def ensures(self, before: Model, after: Model) -> None:
        super().ensures(before, after)
        for name, shape in self.shapes.items():
            if after.inputs[name].type.shape != shape:
                raise ModelError(f"input {name!r} is {after.inputs[name].type}, not {list(shape)}")

    def rewrite(self, model: Model) -> Model:
        sizes = self._bind_sizes(model)
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
            sizes = {name: size for name, size in self.sizes.items() if name[0] != "?"}
            fixed_sizes = ", ".join(f"{name} {size}" for name, size in {**shapes, **sizes}.items())
            raise InputError(f"{model.name} does not run with {fixed_sizes}: {error}") from None
        finished = rewriter.finish()
        return Model(model.name, inputs, finished.operations, finished.outputs)

    def _bind_sizes(self, model: Model) -> dict[str, Dim]:
        types = {name: operand.type for name, operand in model.inputs.items()}
        return bind(types, self.shapes, self.sizes)
