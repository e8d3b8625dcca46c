"""What a picture of a placement says about each operation: device, segment and reasons."""

from __future__ import annotations

from collections.abc import Iterator

from crosschip.drawing import Labels
from crosschip.ir import Operation
from crosschip.ir.bodies import walk_operations
from crosschip.ir.text import legible
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.segments import Segment

NO_DEVICE = "no device"
"""The label of operations that no device runs."""


def labels_of(placement: Placement) -> Labels:
    """Return the labels of the operations of a placement, and of the bodies in it."""
    groups: dict[Operation, str] = {}
    segments: dict[Operation, str] = {}
    notes: dict[Operation, str] = {}
    for segment in placement.all_segments():
        for operation in segment.operations:
            for inner in _with_bodies(operation):
                groups[inner] = segment.device
                segments[inner] = segment_number(placement, segment)
    for decision in placement.all_decisions():
        text = "\n".join(f"{device}: {reason}" for device, reason in decision.reasons.items())
        for part in decision.parts or (decision.operation,):
            notes[part] = text
            if decision.device is None:
                groups[part] = NO_DEVICE
    return Labels(groups, segments, notes)


def segment_number(placement: Placement, segment: Segment) -> str:
    """Return the name of a segment without that of the model: its number, or that in a body."""
    return legible(segment.name.removeprefix(f"{placement.model.name}."))


def _with_bodies(operation: Operation) -> Iterator[Operation]:
    yield operation
    for body in operation.bodies:
        yield from walk_operations(body)
