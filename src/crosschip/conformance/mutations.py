"""Invalid uses of an operator, each with exactly one error that validation must report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from crosschip.ir import ElementType, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.examples import Example, Sample, samples
from crosschip.ops.definition.slots import Parameter, Slot

Mutation = tuple[str, str, Example]
"""The fault as one word, the slot that the message must name, and the arguments."""


def mutations(operator: type[Operator], arguments: Example) -> Iterator[Mutation]:
    """Generate invalid variants of an example, one for each error that all operators share."""
    # A plain number takes the type of the tensor before it, and complains first if that is wrong.
    plain = any(
        not slot.parameter and isinstance(arguments.get(slot.name), int | float)
        for slot in operator.slots
    )
    for slot in operator.slots:
        if isinstance(slot, Parameter):
            yield from _parameter_mutations(slot, arguments)
        elif not plain:
            yield from _tensor_mutations(slot, arguments)
        if not slot.optional and slot.name in arguments and not plain:
            rest = {name: value for name, value in arguments.items() if name != slot.name}
            yield f"{slot.name}-left-out", slot.name, rest
    yield "unknown-slot", "no_such_slot", {**arguments, "no_such_slot": 1}


def _parameter_mutations(slot: Parameter[object], arguments: Example) -> Iterator[Mutation]:
    name = slot.name
    rank = max((len(s.type.shape or ()) for _, s in samples(arguments)), default=0)
    if slot.kind == "integer" and name.endswith("axis") and name in arguments and rank:
        yield f"{name}-out-of-range", name, {**arguments, name: rank + 1}
        yield f"{name}-out-of-range-below", name, {**arguments, name: -rank - 2}
    if slot.options:
        yield f"{name}-no-such-choice", name, {**arguments, name: 99}
    if slot.kind == "element type":
        yield f"{name}-no-such-type", name, {**arguments, name: 9999}
    if slot.length is not None:
        yield f"{name}-too-long", name, {**arguments, name: (1,) * (slot.length + 1)}
    if slot.rank == 0:
        yield f"{name}-a-list", name, {**arguments, name: [1, 1]}
    yield f"{name}-text", name, {**arguments, name: "text"}


def _tensor_mutations(slot: Slot, arguments: Example) -> Iterator[Mutation]:
    for input_name, sample in samples(arguments):
        if input_name != slot.name:
            continue
        wrong = next((t for t in ElementType if t not in slot.types), None)
        if wrong is not None and not slot.like:
            yield f"{slot.name}-of-{wrong}", slot.name, {**arguments, slot.name: _of(sample, wrong)}
        if slot.like:
            own = ElementType.FLOAT32 if sample.type.quantization else sample.type.element_type
            others = sorted(slot.types - {own}, key=lambda t: t.code)
            other = next(iter(others), None)
            if other is not None:
                mutated = {**arguments, slot.name: _of(sample, other)}
                yield f"{slot.name}-of-{other}", slot.name, mutated


def _of(sample: Sample, element_type: ElementType) -> Sample:
    type_ = TensorType(element_type, sample.type.shape)
    if sample.value is None:
        return replace(sample, type=type_)
    with np.errstate(all="ignore"):
        return replace(sample, type=type_, value=sample.value.astype(element_type.dtype))
