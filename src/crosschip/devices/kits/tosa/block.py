"""A TOSA basic block under construction: constants, operators and the values between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.flatbuffer.schemas.tosa import DType, Op
from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import ElementType

BFLOAT16 = ElementType.BFLOAT16.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A tensor of a block.

    Attributes:
        name: the name in the file.
        dtype: the element type.
        shape: the sizes.
        elements: the elements of a constant; `None` for a computed value.
    """

    name: str
    dtype: DType
    shape: tuple[int, ...]
    elements: Array | None = None

    @property
    def rank(self) -> int:
        """Return the number of axes."""
        return len(self.shape)


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of a block, with the names of its operands."""

    op: Op
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]


class Block:
    """A basic block under construction.

    Args:
        reserved: names that inputs and outputs get.

    Attributes:
        nodes: the operators, in order.
        values: the tensors, by name.
        inputs: the names of inputs.
        outputs: the names of outputs.
    """

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self.nodes: list[Node] = []
        self.values: dict[str, Value] = {}
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self._constants: dict[tuple[DType, tuple[int, ...], bytes], Value] = {}

    def input(self, name: str, dtype: DType, shape: Sequence[int]) -> Value:
        """Add an input."""
        value = Value(name, dtype, tuple(shape))
        self.values[name] = value
        self.inputs.append(name)
        return value

    def output(self, name: str, value: Value) -> None:
        """Add an output."""
        result = Value(name, value.dtype, value.shape)
        if value.name not in self.values:
            self._write_constant(value)
        self.values[name] = result
        self.nodes.append(Node(Op.IDENTITY, (value.name,), (name,), {}))
        self.outputs.append(name)

    def constant(self, elements: Array, dtype: DType) -> Value:
        """Return a constant; it is written to the file when an operator first reads it."""
        elements = np.asarray(elements)
        key = dtype, elements.shape, elements.tobytes()
        if key not in self._constants:
            name = self._name("constant", len(self._constants))
            self._constants[key] = Value(name, dtype, elements.shape, elements)
        return self._constants[key]

    def shape(self, sizes: Sequence[int]) -> Value:
        """Return a constant list of sizes or positions, as operators take them."""
        return self.constant(np.array([*sizes], np.int64), DType.SHAPE)

    def add(
        self,
        op: Op,
        inputs: Sequence[Value],
        dtype: DType,
        shape: Sequence[int],
        **attributes: Any,
    ) -> Value:
        """Add an operator with one output of the given type; return the output."""
        for value in inputs:
            if value.name not in self.values:
                self._write_constant(value)
        result = Value(self._name("value", len(self.nodes)), dtype, tuple(shape))
        self.values[result.name] = result
        names = tuple(value.name for value in inputs)
        self.nodes.append(Node(op, names, (result.name,), attributes))
        return result

    def _name(self, kind: str, number: int) -> str:
        name = f"{kind}{number}"
        while name in self._reserved:
            name += "_"
        return name

    def _write_constant(self, value: Value) -> None:
        self.values[value.name] = value
        op = Op.CONST_SHAPE if value.dtype is DType.SHAPE else Op.CONST
        self.nodes.append(Node(op, (), (value.name,), {}))
