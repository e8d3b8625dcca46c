"""The nodes of the interface: the rows of the operators' faces, and attributes as operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from crosschip.hdi.v1_0.attributes import ATTRIBUTES
from crosschip.hdi.v1_0.types import NodeType
from crosschip.ir import Array, Operand, constant
from crosschip.ops import Operator, faces_of, operators
from crosschip.ops.definition.translation import (
    Expressed,
    InexpressibleError,
    Row,
    outward,
    row_of,
)
from crosschip.ops.faces.channels_last import ChannelsLast
from crosschip.ops.faces.common import HDI_CODES

VERSION = (1, 0)
"""The version of the interface, as its methods tell it."""


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


@cache
def rows() -> Mapping[NodeType, Sequence[Entry]]:
    """Every node of the interface, with the operators that stand for it."""
    found: dict[NodeType, list[Entry]] = {}
    for entries in uses().values():
        for entry in entries:
            found.setdefault(entry.node_type, []).append(entry)
    return found


@cache
def uses() -> Mapping[type[Operator], Sequence[Entry]]:
    """The nodes that a standard operator stands for, the first of which is written."""
    found: dict[type[Operator], list[Entry]] = {}
    for operator in operators().values():
        for face in faces_of(operator).hdi:
            if face.since <= VERSION:
                row = row_of(operator, face.operands, face.given, HDI_CODES)
                image = any(isinstance(rule, ChannelsLast) for rule in row.operands)
                parts = (len(face.inputs), tuple(face.attributes), image)
                found.setdefault(operator, []).append(Entry(NodeType(face.code), row, *parts))
    return found


def operands_of(attributes: Any) -> Mapping[str, Operand | None]:
    """Attributes as constants, by name; `None` for a list without elements.

    Args:
        attributes: one of the structures of `crosschip.hdi.v1_0.attributes`.
    """
    return {
        name: None if value == () else constant(_array(value), name)
        for name, value in msgspec.to_builtins(attributes, builtin_types=()).items()
    }


def expressed(entry: Entry, operation: Operator, channels_last: bool) -> tuple[Expressed, Any]:
    """Express an operation by a node.

    Args:
        entry: the node.
        operation: the operation.
        channels_last: whether to store images with their channels last.

    Returns:
        The node's inputs and outputs, and its attributes.

    Raises:
        UnsupportedError: it cannot be expressed; the message names the slot.
    """
    found = outward(entry.row, operation, channels_last)
    count = len(found.inputs) - len(entry.attributes)
    rules = entry.row.operands[len(entry.row.operands) - len(entry.attributes) :]
    structure = ATTRIBUTES[entry.node_type]
    fields = {field.encode_name: field for field in msgspec.structs.fields(structure)}
    told: dict[str, object] = {}
    for name, rule, operand in zip(entry.attributes, rules, found.inputs[count:], strict=True):
        if operand is None:
            continue
        slot = rule.slot or name
        if operand.value is None:
            raise InexpressibleError(operation, slot, "must be constant there")
        number = np.asarray(operand.value).tolist()
        try:
            told[name] = msgspec.convert(_like(number, fields[name].default), fields[name].type)
        except (msgspec.ValidationError, ValueError, OverflowError):
            detail = f"there is no number for {number}"
            raise InexpressibleError(operation, slot, detail) from None
    inputs = found.inputs[:count]
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    return found._replace(inputs=inputs), msgspec.convert(told, structure)


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
    if isinstance(default, bool):
        return bool(value) if value in (0, 1) else value
    return int(value) if value == int(value) else value


def _array(value: Any) -> Array:
    if isinstance(value, float):
        return np.array(value, np.float32)
    return np.array(value, np.bool_ if isinstance(value, bool) else np.int64)
