"""Text form of models: one line per operation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import groupby

import numpy as np

from crosschip.ir.control import ControlFlow
from crosschip.ir.model import Model, Operand, Operation

_MAX_INLINE = 8


def to_text(model: Model) -> str:
    """Return the model as text: inputs, operations with inferred types, outputs.

    Small constants appear inline, enumerated values and element types by name; large constants are
    listed first as `@name`. Parameters with default values are omitted. Operands with equal names
    get numbers. Bodies of control flow follow their operation, indented.
    """
    return "\n".join(_lines(model, _labels(model)))


def legible(name: str) -> str:
    """Escape all unprintable characters in a name, as in a Python string."""
    if name.isprintable():
        return name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def _labels(model: Model) -> Mapping[Operand, str]:
    """Return the label of each operand: `%name`, `@constant`, or the value of a small constant."""
    labels: dict[Operand, str] = {}
    counts: dict[str, int] = {}

    def add(operand: Operand) -> None:
        if operand in labels:
            return
        if is_inline(operand):
            labels[operand] = value_text(operand)
            return
        label = stem = f"{'@' if operand.is_constant else '%'}{legible(operand.name)}"
        while label in counts:
            counts[stem] += 1
            label = f"{stem}#{counts[stem]}"
        counts[label] = 1
        labels[operand] = label

    for operand in (*model.inputs.values(), *model.constants):
        add(operand)
    for operation in model.operations:
        for operand in filter(None, (*operation.inputs, *operation.outputs)):
            add(operand)
    for operand in model.outputs.values():
        add(operand)
    return labels


def value_text(operand: Operand) -> str:
    """Return the value of a constant operand as nested lists of numbers."""
    elements = np.asarray(operand.value)
    # Elements are formatted one by one, so that the float32 nearest to 0.1 prints as 0.1.
    texts = np.array([str(element) for element in elements.flat], dtype=object)
    return str(texts.reshape(elements.shape).tolist()).replace("'", "")


def is_inline(operand: Operand) -> bool:
    """Return whether an operand is a constant small enough to be printed inline."""
    return operand.content is not None and math.prod(operand.content.shape) <= _MAX_INLINE


def _arguments(operation: Operation, labels: Mapping[Operand, str]) -> str:
    """Return the inputs of an operation as `slot=operand, …`; a variadic slot is a list."""
    parts = []
    for slot, group in groupby(operation.named_inputs(), key=lambda pair: pair[0]):
        texts = [operation.symbol(slot, operand) or labels[operand] for _, operand in group]
        text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        parts.append(f"{slot}={text}")
    if isinstance(operation, ControlFlow):
        parts += [f"{name}={_plain_text(value)}" for name, value in operation.attributes.items()]
    return ", ".join(parts)


def _plain_text(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _lines(model: Model, labels: Mapping[Operand, str]) -> Iterator[str]:
    yield f"model {legible(model.name)}"
    yield from _content(model, labels)


def _content(model: Model, labels: Mapping[Operand, str]) -> Iterator[str]:
    for name, operand in model.inputs.items():
        yield f"  input {legible(name)}: {operand.type}"
    for operand in model.constants:
        if not is_inline(operand):
            yield f"  constant {labels[operand]}: {operand.type}"
    for operation in model.operations:
        results = ", ".join(labels[output] for output in operation.outputs)
        types = ", ".join(str(output.type) for output in operation.outputs)
        yield f"  {results} = {operation.type}({_arguments(operation, labels)}): {types}"
        if isinstance(operation, ControlFlow):
            for role, body in zip(operation.roles, operation.bodies, strict=True):
                yield f"    {role}"
                yield from (f"    {line}" for line in _content(body, _labels(body)))
    for name, operand in model.outputs.items():
        yield f"  output {legible(name)} = {labels[operand]}"
