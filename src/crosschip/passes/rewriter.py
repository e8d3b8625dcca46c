"""One sweep over a model's operations that builds the rewritten model."""

from __future__ import annotations

from crosschip.ir import Array, Model, ModelError, Operand, Operation, constant


class Rewriter:
    """Builds a new model from an old one, operation by operation, in order.

    Each operation of the old model is either kept (`keep`), or made superfluous because other
    operands take the place of its outputs (`replace`), or replaced by a new operation that makes
    the same outputs (`emit`). What is left without use is for `RemoveUnused` to sweep up, so a
    rewrite never has to know who else reads an operand.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._operations: list[Operation] = []
        self._producers: dict[Operand, Operation] = {}
        self._replacements: dict[Operand, Operand] = {}

    def resolve(self, operand: Operand) -> Operand:
        """The operand of the new model that an operand of the old one has become."""
        while operand in self._replacements:
            operand = self._replacements[operand]
        return operand

    def resolved(self, operation: Operation) -> Operation:
        """The operation, reading what its inputs have become, with its output types refined.

        Raises:
            ModelError: what its inputs have become does not fit it.
        """
        inputs = tuple(None if o is None else self.resolve(o) for o in operation.inputs)
        if inputs == operation.inputs:
            return operation
        renewed = operation.with_inputs(inputs)
        try:
            types = renewed.infer()
        except ModelError as error:
            raise ModelError(f"{operation.name!r}: {error}") from None
        if all(o.type == t for o, t in zip(operation.outputs, types, strict=True)):
            return renewed
        outputs = tuple(
            Operand(old.name, new) for old, new in zip(operation.outputs, types, strict=True)
        )
        self._replacements.update(zip(operation.outputs, outputs, strict=True))
        return renewed.with_inputs(inputs, outputs)

    def emit(self, operation: Operation) -> None:
        """Add an operation of the new model."""
        self._operations.append(operation)
        for output in operation.outputs:
            self._producers[output] = operation

    def replace(self, old: Operand, new: Operand) -> None:
        """Let an operand take the place of an output of the operation at hand."""
        self._replacements[old] = new

    def replace_by_value(self, old: Operand, value: Array) -> None:
        """Let a constant take the place of an output of the operation at hand."""
        self.replace(old, constant(value, old.name, old.type.quantization))

    def producer(self, operand: Operand) -> Operation | None:
        """The operation of the new model that makes an operand, if one does."""
        return self._producers.get(operand)

    def used_once(self, operand: Operand) -> bool:
        """Whether the old model reads an operand at most once."""
        return self.model.uses.get(operand, 0) <= 1

    def finish(self) -> Model:
        """The new model, with the inputs and the output names of the old one."""
        outputs = {name: self.resolve(operand) for name, operand in self.model.outputs.items()}
        return Model(self.model.name, self.model.inputs, self._operations, outputs)
