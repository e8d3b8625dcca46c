"""Models whose operations are loaded at first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import MappingProxyType

from crosschip.ir.dimension import Dim, name_of
from crosschip.ir.frozen import set_field
from crosschip.ir.model import Model, Operand, Operation


class Deferred(Model):
    """Model of which only name, inputs and outputs are loaded until its operations are used.

    Args:
        name: the model's name, for messages.
        inputs: the model's input operands by name.
        outputs: the model's output operands by name.
        load: returns the model with its operations, on operands of its own.
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
        """Return the operations, on the operands of this model's inputs and outputs.

        Raises:
            ModelFileError: the file with the operations is missing or damaged.
        """
        loaded: Model = self._load()  # type: ignore[attr-defined]  # `set_field` has set it
        copies: dict[Operand, Operand] = {}
        for theirs, ours in ((loaded.inputs, self.inputs), (loaded.outputs, self.outputs)):
            copies.update(zip(theirs.values(), ours.values(), strict=True))
        sizes = _match_sizes(copies)
        return tuple(_copy_operation(operation, copies, sizes) for operation in loaded.operations)


def _copy_operation(
    operation: Operation, copies: dict[Operand, Operand], sizes: Mapping[str, Dim]
) -> Operation:
    """Return an operation on copies of its operands; add copies of its outputs to `copies`."""
    for output in operation.outputs:
        if output not in copies:
            copies[output] = Operand(output.name, output.type.substitute(sizes))
    return operation.with_inputs(
        tuple([None if o is None else copies.get(o, o) for o in operation.inputs]),
        tuple([copies[o] for o in operation.outputs]),
    )


def _match_sizes(copies: Mapping[Operand, Operand]) -> dict[str, Dim]:
    """Return this model's size for each anonymous size of the loaded one, which has fresh names."""
    sizes: dict[str, Dim] = {}
    for theirs, ours in copies.items():
        for size, own in zip(theirs.type.shape or (), ours.type.shape or (), strict=False):
            name = name_of(size)
            if name is not None and own != size:
                sizes.setdefault(name, own)
    return sizes
