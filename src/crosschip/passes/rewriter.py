"""One sweep over a model's operations that builds the rewritten model."""

from __future__ import annotations

from crosschip.ir import Array, Model, ModelError, Operand, Operation, constant


class Rewriter:
    """Builds a new model from an old one, operation by operation, in order.

    Each operation of the old model, as it reads what its inputs have become (`resolved`), is either
    kept (`keep`), or made superfluous because other operands take the place of its outputs
    (`replace`), or replaced by a new operation that makes the same outputs (`emit`). What is left
    without use is for `RemoveUnused` to sweep up, so a rewrite never has to know who else reads an
    operand.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._operations: dict[Operation, None] = {}  # in order; a set does not keep one
        self._producers: dict[Operand, Operation] = {}
        self._replacements: dict[Operand, Operand] = {}
        self._replaced: dict[Operand, list[Operand]] = {}  # what each operand took the place of

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
        if self._replacements.keys().isdisjoint(operation.inputs):
            return operation
        inputs = tuple(None if o is None else self.resolve(o) for o in operation.inputs)
        return self._refined(operation.with_inputs(inputs))

    def keep(self, operation: Operation) -> None:
        """Add an operation of the old model, as it has been resolved."""
        self._operations[operation] = None
        for output in operation.outputs:
            self._producers[output] = operation

    def emit(self, operation: Operation) -> None:
        """Add a new operation, which makes outputs of the old model; their types are inferred.

        Raises:
            ModelError: it breaks a rule of its operator, or makes something else.
        """
        self.keep(self._refined(operation))

    def withdraw(self, operation: Operation) -> None:
        """Take back an operation that nothing reads any more, to be merged into another."""
        del self._operations[operation]

    def replace(self, old: Operand, new: Operand) -> None:
        """Let an operand take the place of an output of the operation at hand.

        Raises:
            ModelError: it cannot, since it is known to be of another type.
        """
        if not new.type.fits(old.type):
            raise ModelError(f"{old.name!r} is {old.type}, but was to become {new.type}")
        self._replacements[old] = new
        self._replaced.setdefault(new, []).extend((old, *self._replaced.pop(old, ())))

    def replace_by_value(self, old: Operand, value: Array) -> None:
        """Let a constant take the place of an output of the operation at hand."""
        self.replace(old, constant(value, old.name, old.type.quantization))

    def producer(self, operand: Operand) -> Operation | None:
        """The operation of the new model that makes an operand, if one does."""
        return self._producers.get(operand)

    def used_once(self, operand: Operand) -> bool:
        """Tell whether the old model reads an operand, or what it replaces, at most once."""
        uses = self.model.uses
        return sum(uses.get(o, 0) for o in (operand, *self._replaced.get(operand, ()))) <= 1

    def finish(self) -> Model:
        """The new model, with the inputs and the output names of the old one.

        It is the old one itself if nothing was changed.
        """
        operations = tuple(self._operations)
        if not self._replacements and operations == self.model.operations:
            return self.model
        outputs = {name: self.resolve(operand) for name, operand in self.model.outputs.items()}
        return Model(self.model.name, self.model.inputs, operations, outputs)

    def _refined(self, operation: Operation) -> Operation:
        """The operation with the types of its outputs as they are inferred.

        Outputs of the old model whose types are known better now are replaced.
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
