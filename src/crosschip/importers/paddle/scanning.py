"""Scans that an operator is made of: steps along the first axis of tensors, with a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from crosschip.importers.paddle.context import Context
from crosschip.ir import Builder, Model, Operand, Scan, TensorType

Step = Callable[[Builder, Operand, Sequence[Operand]], Sequence[Operand]]
"""Makes of a state and a slice of what is scanned the next state, and then what is collected.

It is a body of its own: it reads nothing from outside but constants.
"""


def scanned(
    op: Context, state: Operand, over: Sequence[Operand], step: Step, backwards: bool = False
) -> tuple[Operand, ...]:
    """The last state, and what was collected, of a scan along the first axis."""
    builder = Builder(f"{op.name}.body")
    inside = builder.input("state", state.type)
    slices = [
        builder.input(f"slice.{place}", TensorType(o.type.element_type, (o.type.shape or ())[1:]))
        for place, o in enumerate(over)
    ]
    outputs = step(builder, inside, slices)
    names = ["state.next", *(f"collected.{place}" for place in range(len(outputs) - 1))]
    inputs = {operand.name: operand for operand in (inside, *slices)}
    body = Model(builder.name, inputs, builder.operations, dict(zip(names, outputs, strict=True)))
    scan = Scan.of(
        op.values.builder.unique_name(f"{op.name}.scan"),
        [state],
        over,
        (),
        body,
        input_reversed=(backwards,) * len(over),
        output_reversed=(backwards,) * (len(outputs) - 1),
    )
    return op.values.builder.insert(scan)
