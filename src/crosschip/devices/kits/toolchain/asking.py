"""Learning what a compiler takes: each form of an operation is tried once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.devices.kits.onnx.standalone import Dialect, fingerprint, unwritable
from crosschip.devices.kits.toolchain.answers import Answers
from crosschip.ir import Model, Operand, Operation


class Asking:
    """Asks about parts of models.

    Args:
        dialect: the ONNX that the compiler reads.
        answers: what is known.
        refusal: asks the compiler: why it refuses a model, empty if it does not.
    """

    def __init__(self, dialect: Dialect, answers: Answers, refusal: Callable[[Model], str]) -> None:
        self._dialect = dialect
        self._answers = answers
        self._refusal = refusal

    def reasons(self, parts: Sequence[Model]) -> list[str]:
        """The reason why the compiler refuses each part; empty for those that it takes."""
        return [self._reason(part) for part in parts]

    def _reason(self, part: Model) -> str:
        reason = unwritable(part, self._dialect)
        if reason:
            return reason
        key = fingerprint(part, self._dialect)
        known = self._answers.get(key)
        return self._answers.learn(key, self._refusal(part)) if known is None else known


def part_of(model: Model, operations: Sequence[Operation]) -> Model:
    """Operations of a model, given in any order, as one of their own."""
    chosen = {operation.name for operation in operations}
    operations = [operation for operation in model.operations if operation.name in chosen]
    computed = {output for operation in operations for output in operation.outputs}
    read: dict[Operand, None] = {}
    for operation in operations:
        for operand in operation.inputs:
            if operand is not None and not operand.is_constant and operand not in computed:
                read[operand] = None
    own: dict[Operand, int] = {}
    for operation in operations:
        for operand in operation.inputs:
            if operand is not None:
                own[operand] = own.get(operand, 0) + 1
    model_outputs = set(model.outputs.values())
    results = [
        output
        for operation in operations
        for output in operation.outputs
        if output in model_outputs
        or model.uses.get(output, 0) > own.get(output, 0)
        or output not in own
    ]
    return Model(
        operations[0].name,
        {f"input{index}": operand for index, operand in enumerate(read)},
        operations,
        {f"output{index}": operand for index, operand in enumerate(results)},
    )
