"""The nodes of the interface: the rows of operators' mappings, and attributes as operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0.attributes import ATTRIBUTES, Attributes, decoded
from crosschip.apis.nnrt.hdi.v1_0.types import Node, NodeType
from crosschip.ir import Array, Operand, constant
from crosschip.mapping.channels_last import ChannelsLast
from crosschip.mapping.common import HDI_CODES
from crosschip.mapping.opsets import opset_mapping
from crosschip.mapping.rule import InexpressibleError, Rule
from crosschip.mapping.translation import (
    Expressed,
    Row,
    export_operation,
    row_of,
)
from crosschip.ops import Operator, operators


class Entry(NamedTuple):
    """A standard operator that stands for a node, or for a case of it.

    Attributes:
        node_type: the node's operator.
        row: its row, with the inputs first and then the attributes.
        inputs: how many inputs there are.
        attributes: the names of the attributes.
        image: whether it reads an image, whose axes may be in either order.
    """

    node_type: NodeType
    row: Row
    inputs: int
    attributes: tuple[str, ...]
    image: bool


class Nodes:
    """The nodes of a version of the interface.

    Args:
        version: the version, as its methods tell it.
        node_types: its operators.
        structures: the structure of each node's attributes.
        more: entries beyond those that the opset mappings' nodes have.

    Attributes:
        version: the version.
        node_types: its operators.
        structures: the structure of each node's attributes.
    """

    def __init__(
        self,
        version: tuple[int, int],
        node_types: type[IntEnum],
        structures: Mapping[int, type[Attributes]],
        more: Callable[[type[Operator]], Iterable[Entry]] = lambda operator: (),
    ) -> None:
        self.version = version
        self.node_types = node_types
        self.structures = structures
        self._more = more

    @cached_property
    def rows(self) -> Mapping[int, Sequence[Entry]]:
        """Every node, with the operators that stand for it."""
        by_node: dict[int, list[Entry]] = {}
        for entries in self.uses.values():
            for entry in entries:
                by_node.setdefault(entry.node_type, []).append(entry)
        return by_node

    @cached_property
    def uses(self) -> Mapping[type[Operator], Sequence[Entry]]:
        """The nodes that a standard operator stands for, the first of which is written."""
        by_operator = {operator: list(self._entries(operator)) for operator in operators().values()}
        return {operator: entries for operator, entries in by_operator.items() if entries}

    def decoded(self, node: Node) -> Any:
        """The attributes of a node.

        Raises:
            HdiError: they are not those of its operator, or there is no such operator.
        """
        return decoded(node.nodeType, node.nodeAttr, self.structures)

    def node_type(self, code: int) -> NodeType:
        """The operator of a code; in later versions a member of another enumeration."""
        return cast(NodeType, self.node_types(code))

    def _entries(self, operator: type[Operator]) -> Iterable[Entry]:
        mappings = [
            foreign for foreign in opset_mapping(operator).hdi if foreign.since <= self.version
        ]
        for foreign in sorted(mappings, key=lambda foreign: foreign.since, reverse=True):
            yield entry_of(
                *(operator, self.node_type(foreign.code), foreign.inputs),
                foreign.attributes,
                foreign.other_rules,
            )
        yield from self._more(operator)


def entry_of(
    operator: type[Operator],
    node_type: NodeType,
    inputs: Sequence[str | Rule],
    attributes: Mapping[str, str | Rule],
    other_rules: Sequence[Rule],
) -> Entry:
    """The entry of an operator that stands for a node.

    Args:
        operator: the operator.
        node_type: the node's.
        inputs: the slot that each input fills as it is, or the rule for it.
        attributes: the same for each attribute.
        other_rules: the rules for what neither tells.
    """
    row = row_of(operator, (*inputs, *attributes.values()), other_rules, HDI_CODES)
    image = any(isinstance(rule, ChannelsLast) for rule in row.operands)
    return Entry(node_type, row, len(inputs), tuple(attributes), image)


V1_0 = Nodes((1, 0), NodeType, ATTRIBUTES)
"""The nodes of version 1.0."""


def operands_of(attributes: Any) -> Mapping[str, Operand | None]:
    """Attributes as constants, by name; `None` for a list without elements.

    Args:
        attributes: one of the structures of `crosschip.apis.nnrt.hdi.v1_0.attributes`.
    """
    return {
        name: None if value == () else constant(_array(_WORDS.get(value, value)), name)
        for name, value in msgspec.to_builtins(attributes, builtin_types=()).items()
    }


_WORDS: Mapping[object, int] = {"DCR": 0, "CRD": 1, "ACROSS_CHANNELS": 0}
"""The numbers of words that are attributes."""


def expressed(
    entry: Entry, operation: Operator, channels_last: bool, structure: type[Attributes]
) -> tuple[Expressed, Any]:
    """Express an operation by a node.

    Args:
        entry: the node.
        operation: the operation.
        channels_last: whether to store images with their channels last.
        structure: the structure of the node's attributes.

    Returns:
        The node's inputs and outputs, and its attributes.

    Raises:
        UnsupportedError: it cannot be expressed; the message names the slot.
    """
    expression = export_operation(entry.row, operation, channels_last)
    count = len(expression.inputs) - len(entry.attributes)
    rules = entry.row.operands[len(entry.row.operands) - len(entry.attributes) :]
    fields = {field.encode_name: field for field in msgspec.structs.fields(structure)}
    values: dict[str, object] = {}
    for name, rule, operand in zip(entry.attributes, rules, expression.inputs[count:], strict=True):
        if operand is None:
            continue
        slot = rule.slot or name
        if operand.value is None:
            raise InexpressibleError(operation, slot, "must be constant in the target")
        number = np.asarray(operand.value).tolist()
        try:
            values[name] = msgspec.convert(_like(number, fields[name].default), fields[name].type)
        except (msgspec.ValidationError, ValueError, OverflowError):
            detail = f"has no code for {number}"
            raise InexpressibleError(operation, slot, detail) from None
    inputs = expression.inputs[:count]
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return expression._replace(inputs=inputs), msgspec.convert(values, structure)


def _like(value: Any, default: object) -> object:
    """A number or list of numbers in the form that a field has them.

    Raises:
        ValueError: the field, which is float32, does not hold the number.
    """
    if isinstance(default, tuple):
        return value if isinstance(value, list) else [value]
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        return value
    if isinstance(default, float):
        held = float(np.float32(value))
        if held != value and held == held:
            raise ValueError(value)
        return held
    if isinstance(default, str):
        return "CRD" if value else default
    if isinstance(default, bool):
        return bool(value) if value in (0, 1) else value
    return int(value) if value == int(value) else value


def _array(value: Any) -> Array:
    if isinstance(value, float) or (isinstance(value, tuple) and isinstance(value[0], float)):
        return np.array(value, np.float32)
    return np.array(value, np.bool_ if isinstance(value, bool) else np.int64)
