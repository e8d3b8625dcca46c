"""The nested blocks of an interactive page: segments, repeated blocks, stretches and bodies.

A block is a box that hides its content until it is opened. The operations of a block that is no
body are consecutive in an executable order, so that boxes never depend on each other in a cycle.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise, takewhile

from crosschip.drawing.graph import Labels
from crosschip.drawing.repeats import Item, Repeat, fold
from crosschip.ir.control import ControlFlow
from crosschip.ir.model import Model, Operation
from crosschip.ir.text import legible

_MOST_BOXES = 40
"""The maximum number of boxes in a block, where the model permits it."""

_LEAST_OPERATIONS = 3
"""The least number of operations that a segment's block hides."""


class BlockKind(StrEnum):
    """The kind of a block."""

    SEGMENT = "segment"
    REPEAT = "repeat"
    COPY = "copy"
    STRETCH = "stretch"
    CONTROL = "control"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Block:
    """A box that hides its content until it is opened.

    Attributes:
        kind: the kind.
        title: the title.
        items: the content, in an executable order.
        operation: the operation of control flow that the block stands for.
        body: the model of a body.
    """

    kind: BlockKind
    title: str
    items: Sequence[Block | Operation]
    operation: Operation | None = None
    body: Model | None = None


def blocks_of(model: Model, labels: Labels) -> list[Block | Operation]:
    """Return the content of a model: segments if there are several, and blocks in them.

    Args:
        model: the model.
        labels: the group and the segment of operations; segments in an executable order.
    """
    stretches = _stretches(model, labels)
    items: list[Block | Operation] = []
    for number, operations in stretches:
        content = _nested(fold(operations, labels.group), labels)
        if number and len(stretches) > 1 and len(operations) >= _LEAST_OPERATIONS:
            items.append(Block(BlockKind.SEGMENT, f"segment {number}", _chunked(content)))
        else:
            items += content
    return _chunked(items)


def _stretches(model: Model, labels: Labels) -> list[tuple[str, Sequence[Operation]]]:
    """Return the operations of each segment, with its number, in an executable order."""
    numbers = {operation: labels.segments.get(operation, "") for operation in model.operations}
    if all(numbers.values()):
        by_number: dict[str, list[Operation]] = {}
        within = numbers.keys()
        for operation, number in labels.segments.items():
            if operation in within:
                by_number.setdefault(number, []).append(operation)
        return list(by_number.items())
    runs = groupby(model.operations, numbers.__getitem__)
    return [(number, list(operations)) for number, operations in runs]


def _nested(items: Sequence[Item], labels: Labels) -> list[Block | Operation]:
    nested: list[Block | Operation] = []
    for item in items:
        if isinstance(item, Repeat):
            nested.append(_repeat(item, labels))
        elif isinstance(item, ControlFlow):
            bodies = [
                Block(BlockKind.BODY, role, blocks_of(body, labels), body=body)
                for role, body in zip(item.roles, item.bodies, strict=True)
            ]
            nested.append(Block(BlockKind.CONTROL, legible(item.name), bodies, operation=item))
        else:
            assert isinstance(item, Operation)
            nested.append(item)
    return nested


def _repeat(repeat: Repeat, labels: Labels) -> Block:
    """Return the block of a repeat: each of its copies is a block, or an operation."""
    count = len(repeat.blocks)
    how = "in a chain" if repeat.chained else "in parallel"
    if len(repeat.blocks[0]) == 1:
        copies: list[Block | Operation] = [operation for (operation,) in repeat.blocks]
        return Block(BlockKind.REPEAT, f"{count} × {repeat.blocks[0][0].type}", _chunked(copies))
    copies = [
        Block(
            BlockKind.COPY,
            f"{number} of {count} {_scope(operations)}".strip(),
            _chunked(_nested(fold(operations, labels.group), labels)),
        )
        for number, operations in enumerate(repeat.blocks, 1)
    ]
    return Block(BlockKind.REPEAT, f"{count} blocks {how}", _chunked(copies))


def _chunked(items: Sequence[Block | Operation]) -> list[Block | Operation]:
    """Return items with stretches of them in blocks if they are too many for one screen."""
    if len(items) <= _MOST_BOXES:
        return list(items)
    around = _around_large(items)
    return around if len(around) <= _MOST_BOXES else _cut(items)


def _around_large(items: Sequence[Block | Operation]) -> list[Block | Operation]:
    """Return items with stretches in place of what lies between large blocks."""
    chunked: list[Block | Operation] = []
    for is_large, run in groupby(items, _is_large):
        between = list(run)
        chunked += between if is_large or len(between) <= _LEAST_OPERATIONS else _cut(between)
    return chunked


def _is_large(item: Block | Operation) -> bool:
    if isinstance(item, Operation):
        return False
    return item.kind is BlockKind.CONTROL or len(list(operations_in(item))) >= _MOST_BOXES // 2


def _cut(items: Sequence[Block | Operation]) -> list[Block | Operation]:
    """Return items cut into stretches where few values cross."""
    crossing = _crossing(items)
    count = min(_MOST_BOXES // 2, math.ceil(len(items) / (_MOST_BOXES // 2)))
    length = len(items) / count
    cuts = [0]
    for number in range(1, count):
        near = range(
            max(cuts[-1] + 1, round(length * (number - 0.35))), round(length * (number + 0.35)) + 1
        )
        middle = length * number
        cuts.append(min(near, key=lambda cut: (crossing[cut], abs(cut - middle))))
    cuts.append(len(items))
    chunks = [items[start:end] for start, end in pairwise(cuts)]
    return [_stretch(chunk) if len(chunk) > 1 else chunk[0] for chunk in chunks]


def _stretch(items: Sequence[Block | Operation]) -> Block:
    operations = [operation for item in items for operation in operations_in(item)]
    counts = Counter(operation.type for operation in operations)
    types = [f"{type_} ×{count}" if count > 1 else type_ for type_, count in counts.most_common(3)]
    return Block(BlockKind.STRETCH, _scope(operations) or ", ".join(types), _chunked(items))


def _scope(operations: Sequence[Operation]) -> str:
    """Return the end of the path that the names of operations have in common; empty for none."""
    paths = [operation.name.split("/")[:-1] for operation in operations]
    parts = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    common = [part for part, *_ in parts]
    return legible("/".join(common[-_SCOPE_PARTS:]).strip("/"))


_SCOPE_PARTS = 2


def _crossing(items: Sequence[Block | Operation]) -> list[int]:
    """Return how many values each cut between items separates from readers after it."""
    position = {
        output: index
        for index, item in enumerate(items)
        for operation in operations_in(item)
        for output in operation.outputs
    }
    last = dict.fromkeys(position, 0)
    for index, item in enumerate(items):
        for operation in operations_in(item):
            last.update((o, index) for o in operation.inputs if o in position)
    change = [0] * (len(items) + 2)
    for operand, index in position.items():
        if last[operand] > index:
            change[index + 1] += 1
            change[last[operand] + 1] -= 1
    crossing, value = [], 0
    for step in change:
        value += step
        crossing.append(value)
    return crossing


def operations_in(item: Block | Operation) -> Iterator[Operation]:
    """Yield the operations of a block, without those of the bodies in it."""
    if isinstance(item, Operation):
        yield item
    elif item.operation is not None:
        yield item.operation
    else:
        for inner in item.items:
            yield from operations_in(inner)
