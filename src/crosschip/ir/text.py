"""The readable form of a model, one operation a line."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from crosschip.ir.model import Model, Operand, Operation

_MAX_INLINE = 8


def to_text(model: Model) -> str:
    """The model as text: inputs, operations with inferred types, outputs.

    Small constants stand where they are used; large ones are `@name` and are listed first.
    """
    return "\n".join(_lines(model))


def operand_text(operand: Operand) -> str:
    """How the text form refers to an operand: `%name`, `@constant`, or a small constant's value."""
    if operand.value is None:
        return f"%{operand.name}"
    if not is_inline(operand):
        return f"@{operand.name}"
    # By the text of each element, so that the float32 nearest to 0.1 is 0.1.
    texts = np.array([str(element) for element in operand.value.flat], dtype=object)
    return str(texts.reshape(operand.value.shape).tolist()).replace("'", "")


def is_inline(operand: Operand) -> bool:
    """Whether an operand is a constant small enough to be printed where it is used."""
    return operand.value is not None and operand.value.size <= _MAX_INLINE


def arguments_text(operation: Operation) -> str:
    """The inputs of an operation as `slot=operand, …`; a slot that takes many is a list."""
    parts = []
    for slot, group in groupby(operation.named_inputs(), key=lambda pair: pair[0]):
        texts = [operand_text(operand) for _, operand in group]
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        parts.append(f"{slot}={text}")
    return ", ".join(parts)


def _lines(model: Model) -> Iterator[str]:
    yield f"model {model.name}"
    for name, operand in model.inputs.items():
        yield f"  input {name}: {operand.type}"
    for operand in model.constants:
        if not is_inline(operand):
            yield f"  constant @{operand.name}: {operand.type}"
    for operation in model.operations:
        made = ", ".join(f"%{output.name}" for output in operation.outputs)
        types = ", ".join(str(output.type) for output in operation.outputs)
        yield f"  {made} = {operation.type}({arguments_text(operation)}): {types}"
    for name, operand in model.outputs.items():
        yield f"  output {name} = {operand_text(operand)}"
