"""The graph of an interactive page as plain data: columns of operations, values and blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from crosschip.drawing.graph import Labels
from crosschip.drawing.html.hierarchy import Block, blocks_of
from crosschip.ir.model import Model, Operand, Operation
from crosschip.ir.text import is_inline, legible, value_text


class GraphData:
    """The operations, values and blocks of a model, by number.

    Attributes:
        operations: the operations, including those of bodies.
        number: the number of each operation.
        value_number: the number of each operand.
    """

    def __init__(self, model: Model, labels: Labels) -> None:
        """Number the operations and operands of a model.

        Args:
            model: the model.
            labels: the group and the segment of each operation.
        """
        self._model, self._labels = model, labels
        self.operations: list[Operation] = []
        self.number: dict[Operation, int] = {}
        self.value_number: dict[Operand, int] = {}
        self._blocks: list[dict[str, Any]] = []
        self._block_of: list[int] = []
        self._root = self._add_block(blocks_of(model, labels), "model", legible(model.name), -1)
        self._blocks[self._root] |= self._ends(model)

    def document(self, groups: Sequence[str], segments: Sequence[str]) -> dict[str, Any]:
        """Return the graph as JSON values.

        Args:
            groups: the groups that operations refer to by number.
            segments: the segments that operations refer to by number.
        """
        group_number = {group: number for number, group in enumerate(groups)}
        segment_number = {segment: number for number, segment in enumerate(segments)}
        type_number: dict[str, int] = {}
        columns: dict[str, list[Any]] = {
            "names": [legible(operation.name) for operation in self.operations],
            "types": [type_number.setdefault(o.type, len(type_number)) for o in self.operations],
            "groups": [group_number.get(self._labels.group(o), -1) for o in self.operations],
            "segments": [
                segment_number.get(self._labels.segments.get(o, ""), -1) for o in self.operations
            ],
            "origins": [_origin_text(operation) for operation in self.operations],
            "blocks": self._block_of,
            "inputs": [list(self._inputs(operation)) for operation in self.operations],
            "outputs": [
                [self._value(o) for o in operation.outputs] for operation in self.operations
            ],
        }
        return {
            "operators": list(type_number),
            "operations": columns,
            "blocks": self._blocks,
            "values": self._values(),
        }

    def _add_block(
        self,
        items: Sequence[Block | Operation],
        kind: str,
        title: str,
        parent: int,
        operation: Operation | None = None,
    ) -> int:
        index = len(self._blocks)
        self._blocks.append({"kind": kind, "title": title, "parent": parent})
        if operation is not None:
            self._blocks[index]["operation"] = self._add_operation(operation, index)
        for item in items:
            if isinstance(item, Operation):
                self._add_operation(item, index)
            else:
                inner = self._add_block(item.items, item.kind, item.title, index, item.operation)
                if item.body is not None:
                    self._blocks[inner] |= self._ends(item.body)
        return index

    def _add_operation(self, operation: Operation, block: int) -> int:
        self.number[operation] = len(self.operations)
        self.operations.append(operation)
        self._block_of.append(block)
        return self.number[operation]

    def _ends(self, model: Model) -> dict[str, list[tuple[str, int]]]:
        return {
            "inputs": [(legible(name), self._value(o)) for name, o in model.inputs.items()],
            "outputs": [(legible(name), self._value(o)) for name, o in model.outputs.items()],
        }

    def _value(self, operand: Operand) -> int:
        return self.value_number.setdefault(operand, len(self.value_number))

    def _inputs(self, operation: Operation) -> Iterator[tuple[str, int | str]]:
        """Yield each slot with the number of its value, or the text of a named constant."""
        for slot, operand in operation.named_inputs():
            yield slot, operation.symbol(slot, operand) or self._value(operand)

    def _values(self) -> Mapping[str, list[Any]]:
        types = [str(operand.type) for operand in self.value_number]
        type_number = {text: number for number, text in enumerate(dict.fromkeys(types))}
        return {
            "typeTexts": list(type_number),
            "names": [legible(operand.name) for operand in self.value_number],
            "types": [type_number[text] for text in types],
            "constants": [_constant_text(operand) for operand in self.value_number],
        }


def _constant_text(operand: Operand) -> str | int:
    """Return the value of a small constant; 1 for another constant, 0 for no constant."""
    if is_inline(operand):
        return value_text(operand)
    return int(operand.is_constant)


def _origin_text(operation: Operation) -> str:
    """Return the operators of the model file that an operation is, or is part of."""
    origins = (f"{o.type} {o.outputs[0] if o.outputs else ''}" for o in operation.origins)
    return legible(", ".join(islice(origins, _MOST_ORIGINS)))


_MOST_ORIGINS = 4
