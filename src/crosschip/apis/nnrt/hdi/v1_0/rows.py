"""The nodes of the driver interface: mapping rows, and attributes as operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np

from crosschip.apis.nnrt.hdi.v1_0.attributes import ATTRIBUTES, Attributes, decode
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
    """The mapping between a node, or a case of it, and a standard operator.

    Attributes:
        node_type: the node's operator.
        row: the mapping row, with the inputs first and then the attributes.
        inputs: the number of inputs.
        attributes: the names of the attributes.
        image: whether the node reads an image, whose layout may be NHWC or NCHW.
    """

    node_type: NodeType
    row: Row
    inputs: int
    attributes: tuple[str, ...]
    image: bool


class Nodes:
    """The nodes of a version of the interface.

    Args:
        version: the version.
        node_types: the version's enumeration of operators.
        structures: the structure of each node's attributes.
        more: returns further entries of an operator, beyond those in the opset mappings.

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
        """The entries of each node."""
        by_node: dict[int, list[Entry]] = {}
        for entries in self.by_operator.values():
            for entry in entries:
                by_node.setdefault(entry.node_type, []).append(entry)
        return by_node

    @cached_property
    def by_operator(self) -> Mapping[type[Operator], Sequence[Entry]]:
        """The entries of each standard operator; the first is used for export."""
        entries_of = {operator: list(self._entries(operator)) for operator in operators().values()}
        return {operator: entries for operator, entries in entries_of.items() if entries}

    def decode(self, node: Node) -> Any:
        """Return a node's attributes.

        Raises:
            HdiError: the operator is unknown, or the bytes do not encode its structure.
        """
        return decode(node.nodeType, node.nodeAttr, self.structures)

    def node_type(self, code: int) -> NodeType:
        """Return the operator of a code; in later versions a member of another enumeration."""
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
    """Return the entry of a node.

    Args:
        operator: the standard operator.
        node_type: the node's operator.
        inputs: the slot, or the rule, of each input.
        attributes: the slot, or the rule, of each attribute.
        other_rules: the rules of slots that no input or attribute fills.
    """
    row = row_of(operator, (*inputs, *attributes.values()), other_rules, HDI_CODES)
    image = any(isinstance(rule, ChannelsLast) for rule in row.operands)
    return Entry(node_type, row, len(inputs), tuple(attributes), image)


V1_0 = Nodes((1, 0), NodeType, ATTRIBUTES)
"""The nodes of version 1.0."""


def operands_of(attributes: Any) -> Mapping[str, Operand | None]:
    """Return attributes as constants, by name; `None` for an empty list.

    Args:
        attributes: a structure of `crosschip.apis.nnrt.hdi.v1_0.attributes`.
    """
    return {
        name: None if value == () else constant(_array(_WORDS.get(value, value)), name)
        for name, value in msgspec.to_builtins(attributes, builtin_types=()).items()
    }


_WORDS: Mapping[object, int] = {"DCR": 0, "CRD": 1, "ACROSS_CHANNELS": 0}
"""The numbers of attributes that are words."""


def convert_operation(
    entry: Entry, operation: Operator, channels_last: bool, structure: type[Attributes]
) -> tuple[Expressed, Any]:
    """Convert an operation to a node.

    Args:
        entry: the node's entry.
        operation: the operation.
        channels_last: whether images are NHWC.
        structure: the structure of the node's attributes.

    Returns:
        The node's inputs and outputs, and its attributes.

    Raises:
        UnsupportedError: the operation has no such form; the message names the slot.
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
            values[name] = msgspec.convert(
                _convert_field(number, fields[name].default), fields[name].type
            )
        except (msgspec.ValidationError, ValueError, OverflowError):
            detail = f"has no code for {number}"
            raise InexpressibleError(operation, slot, detail) from None
    inputs = expression.inputs[:count]
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return expression._replace(inputs=inputs), msgspec.convert(values, structure)


def _convert_field(value: Any, default: object) -> object:
    """Convert a number or list of numbers to the form of a field.

    Raises:
        ValueError: the field is float32 and cannot represent the number.
    """
    if isinstance(default, tuple):
        return value if isinstance(value, list) else [value]
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list):
        return value
    if isinstance(default, float):
        rounded = float(np.float32(value))
        if rounded != value and rounded == rounded:
            raise ValueError(value)
        return rounded
    if isinstance(default, str):
        return "CRD" if value else default
    if isinstance(default, bool):
        return bool(value) if value in (0, 1) else value
    return int(value) if value == int(value) else value


def _array(value: Any) -> Array:
    if isinstance(value, float) or (isinstance(value, tuple) and isinstance(value[0], float)):
        return np.array(value, np.float32)
    return np.array(value, np.bool_ if isinstance(value, bool) else np.int64)
