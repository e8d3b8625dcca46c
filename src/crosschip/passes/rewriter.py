"""Construction of a rewritten model in one sweep over the operations."""

from __future__ import annotations

from crosschip.ir import Array, Model, ModelError, Operand, Operation, constant


class Rewriter:
    """Builds a new model from an old one, operation by operation, in order.

    Each operation of the old model is first resolved: its inputs become operands of the new model
    (`resolved`). It is then kept (`keep`), dropped with its outputs replaced by other operands
    (`replace`), or replaced by a new operation with the same outputs (`emit`). `RemoveUnused` later
    removes unused operations, so a rewrite need not know the other readers of an operand.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._operations: dict[Operation, None] = {}  # an ordered set
        self._producers: dict[Operand, Operation] = {}
        self._replacements: dict[Operand, Operand] = {}
        self._replaced: dict[Operand, list[Operand]] = {}  # the operands that each one replaced

    def resolve(self, operand: Operand) -> Operand:
        """Return the operand of the new model for an operand of the old one."""
        while operand in self._replacements:
            operand = self._replacements[operand]
        return operand

    def resolved(self, operation: Operation) -> Operation:
        """Return the operation on operands of the new model, with inferred output types.

        Raises:
            ModelError: the new inputs break a rule of the operator.
        """
        if self._replacements.keys().isdisjoint(operation.inputs):
            return operation
        inputs = tuple(None if o is None else self.resolve(o) for o in operation.inputs)
        return self._refine(operation.with_inputs(inputs))

    def keep(self, operation: Operation) -> None:
        """Add a resolved operation of the old model."""
        self._operations[operation] = None
        for output in operation.outputs:
            self._producers[output] = operation

    def emit(self, operation: Operation) -> None:
        """Add a new operation that produces outputs of the old model; infer their types.

        Raises:
            ModelError: the operation breaks a rule of its operator, or an output's type does not
            fit.
        """
        self.keep(self._refine(operation))

    def withdraw(self, operation: Operation) -> None:
        """Remove an added operation that was merged into another one."""
        del self._operations[operation]

    def replace(self, old: Operand, new: Operand) -> None:
        """Replace an output of the current operation by an operand.

        Raises:
            ModelError: the types are known to differ.
        """
        if not new.type.fits(old.type):
            raise ModelError(f"{old.name!r} is {old.type}, but was to become {new.type}")
        self._replacements[old] = new
        self._replaced.setdefault(new, []).extend((old, *self._replaced.pop(old, ())))

    def replace_by_value(self, old: Operand, value: Array) -> None:
        """Replace an output of the current operation by a constant."""
        self.replace(old, constant(value, old.name, old.type.quantization))

    def producer(self, operand: Operand) -> Operation | None:
        """Return the operation of the new model that produces an operand, if any."""
        return self._producers.get(operand)

    def used_once(self, operand: Operand) -> bool:
        """Return whether an operand and those that it replaced have at most one use in all."""
        uses = self.model.uses
        return sum(uses.get(o, 0) for o in (operand, *self._replaced.get(operand, ()))) <= 1

    def finish(self) -> Model:
        """Return the new model, with the inputs and the output names of the old one.

        If nothing was changed, that is the old model itself.
        """
        operations = tuple(self._operations)
        if not self._replacements and operations == self.model.operations:
            return self.model
        outputs = {name: self.resolve(operand) for name, operand in self.model.outputs.items()}
        return Model(self.model.name, self.model.inputs, operations, outputs)

    def _refine(self, operation: Operation) -> Operation:
        """Return the operation with inferred output types.

        Outputs of the old model with less specific types are replaced.
        """
        try:
            types = operation.infer()
        except ModelError as error:
            raise type(error)(f"{operation.name!r}: {error}") from None
        pairs = list(zip(operation.outputs, types, strict=True))
        if all(output.type == inferred for output, inferred in pairs):
            return operation
        refined = tuple(Operand(output.name, inferred) for output, inferred in pairs)
        for old, new in zip(operation.outputs, refined, strict=True):
            self.replace(old, new)
        return operation.with_outputs(refined)
