"""Outputs that a vendor's tool computes, and those that need no tool."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.ir import Array, Model, Operand


class Outputs:
    """The outputs of a model, of which a tool is asked for those that are computed, each once.

    Tools return fewer outputs than a model has, where some are equal or known. Those that repeat
    another, that are inputs or constants are filled in.

    Args:
        model: whose outputs they are.

    Attributes:
        asked: the model of the outputs that the tool is asked for.
    """

    def __init__(self, model: Model) -> None:
        names: dict[Operand, str] = {}
        for name, operand in model.outputs.items():
            names.setdefault(operand, name)
        computed = {name: o for o, name in names.items() if o in model.producers}
        constants = {o: value for o in names if (value := o.value) is not None}
        known = [*computed.values(), *model.inputs.values(), *constants]
        place = {operand: index for index, operand in enumerate(known)}
        self.requested = Model(model.name, model.inputs, model.operations, computed)
        self._constants = list(constants.values())
        self._sources = [
            (place[operand], name in computed) for name, operand in model.outputs.items()
        ]

    def filled(self, inputs: Sequence[Array], tool_outputs: Sequence[Array]) -> list[Array]:
        """All outputs, none of which shares memory with another, or with an input.

        Args:
            inputs: the model's.
            tool_outputs: the outputs that the tool was asked for.
        """
        known = [*tool_outputs, *inputs, *self._constants]
        return [known[index] if own else known[index].copy() for index, own in self._sources]
