"""Operations as the simpler ones that a device runs in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.hal.support import Offer
from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Assign

Ask = Callable[[Model], Offer]
"""A device's offer for a model, whatever device it is."""


def decomposed(operation: Operator, ask: Ask, taken: set[str]) -> Sequence[Operation] | None:
    """The operation as simpler ones that the device supports; `None` if there is no such way."""
    builder = Builder(prefix=f"{operation.name}.", used_names=taken)
    results = operation.decomposition(builder)
    if results is None:
        return None
    simpler = operations_for(operation.outputs, results, builder)
    offer = ask(model_of_parts(operation, simpler))
    if offer.groups or any(answer.dialect for answer in offer.answers):
        return None
    parts: list[Operation] = []
    for part, answer in zip(simpler, offer.answers, strict=True):
        if answer:
            parts.append(part)
            continue
        smaller = decomposed(part, ask, taken) if isinstance(part, Operator) else None
        if smaller is None:
            return None
        parts.extend(smaller)
    return parts


def model_of_parts(operation: Operation, parts: Sequence[Operation]) -> Model:
    """The parts of an operation as a model that reads and makes what the operation does."""
    read = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    return Model(
        operation.name,
        {f"input{index}": operand for index, operand in enumerate(read)},
        parts,
        {f"output{index}": operand for index, operand in enumerate(operation.outputs)},
    )


def operations_for(
    outputs: Sequence[Operand], results: Sequence[Operand], builder: Builder
) -> Sequence[Operation]:
    """The builder's operations, with the results renamed to the outputs that they replace."""
    made = {operand for operation in builder.operations for operand in operation.outputs}
    renamed: dict[Operand, Operand] = {}
    for output, result in zip(outputs, results, strict=True):
        if result not in made or result in renamed:
            result = builder.add(Assign, renamed.get(result, result))
        renamed[result] = output
    return [
        operation.with_inputs(
            tuple(None if o is None else renamed.get(o, o) for o in operation.inputs),
            tuple(renamed.get(o, o) for o in operation.outputs),
        )
        for operation in builder.operations
    ]
