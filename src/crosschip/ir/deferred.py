"""Models whose operations are read when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

from crosschip.ir.dimension import Dim, name_of
from crosschip.ir.frozen import set_field
from crosschip.ir.model import Model, Operand, Operation


class Deferred(Model):
    """A model that is known by its name, inputs and outputs, until its operations are asked for.

    Args:
        name: what messages call it.
        inputs: the operands that the caller provides, by name.
        outputs: the operands that the caller gets back, by name.
        load: makes the model with its operations, on operands of its own.
    """

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, Operand],
        outputs: Mapping[str, Operand],
        load: Callable[[], Model],
    ) -> None:
        set_field(self, "name", name)
        set_field(self, "inputs", MappingProxyType(dict(inputs)))
        set_field(self, "outputs", MappingProxyType(dict(outputs)))
        set_field(self, "_load", load)

    @cached_property
    def operations(self) -> tuple[Operation, ...]:  # type: ignore[override]  # it is set once
        """The operations, on the operands that the model has been known by.

        Raises:
            ModelFileError: what they are read from is not there any more, or is damaged.
        """
        loaded: Model = self._load()  # type: ignore[attr-defined]  # `set_field` has set it
        mine: dict[Operand, Operand] = {}
        for theirs, ours in ((loaded.inputs, self.inputs), (loaded.outputs, self.outputs)):
            mine.update(zip(theirs.values(), ours.values(), strict=True))
        sizes = _renamed(mine)
        return tuple(_on_copies(operation, mine, sizes) for operation in loaded.operations)


def _on_copies(
    operation: Operation, copies: dict[Operand, Operand], sizes: Mapping[str, Dim]
) -> Operation:
    """An operation on other operands, to which those that it makes are added."""
    for output in operation.outputs:
        if output not in copies:
            copies[output] = Operand(output.name, output.type.substitute(sizes))
    return operation.with_inputs(
        tuple([None if o is None else copies.get(o, o) for o in operation.inputs]),
        tuple([copies[o] for o in operation.outputs]),
    )


def _renamed(mine: Mapping[Operand, Operand]) -> dict[str, Dim]:
    """What sizes are called here that nothing is known about: they are named anew when read."""
    sizes: dict[str, Dim] = {}
    for theirs, ours in mine.items():
        for size, own in zip(theirs.type.shape or (), ours.type.shape or (), strict=False):
            name = name_of(size)
            if name is not None and own != size:
                sizes.setdefault(name, own)
    return sizes
