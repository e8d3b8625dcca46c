"""Dynamic dimensions, and the graph nodes that compute them.

A named dimension is read from the first tensor that has it; a broadcast dimension is computed from
the dimensions that were broadcast. So sizes are read from inputs as far as possible: OpenVINO does
not fuse an operation whose output has another reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import TypeAlias

import numpy as np
import openvino
from openvino import Node, Output
from openvino import opset15 as ops

from crosschip.ir import Dim, Operand, Operation
from crosschip.ir.dimension import is_natural, is_unknown, name_of, substitute, terms_of
from crosschip.ops.definition.kinds import Broadcast
from crosschip.ops.standard.layout import Expand, Reshape
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.matrix import MatMul

Value: TypeAlias = Node | Output


class OpenSizes:
    """The dynamic dimensions of a graph.

    Attributes:
        stretched: for the name of a broadcast size, the sizes that are broadcast: its value is that
            which is not 1.
    """

    def __init__(self) -> None:
        self.stretched: dict[str, tuple[Dim, ...]] = {}
        self._builders: dict[str, Callable[[], Node]] = {}
        self._nodes: dict[str, Node] = {}
        self._same: dict[str, Dim] = {}
        self._stretched_sizes: dict[tuple[Dim, ...], Dim] = {}

    def note_made(self, operation: Operation, values: Sequence[Value]) -> None:
        """Store the sizes of an operation's outputs."""
        self._note_stretched(operation)
        for operand, value in zip(operation.outputs, values, strict=True):
            self.note(operand, value)

    def note(self, operand: Operand, value: Value) -> None:
        """Store the sizes of a tensor, some of which may be new."""
        for axis, size in enumerate(operand.type.shape or ()):
            name = self._new_name(size)
            if name is not None:
                self._builders[name] = _size_builder(value, axis)

    def are_same(self, a: Dim, b: Dim) -> bool:
        """Return whether two sizes are known to be equal."""
        return self.resolved(a) == self.resolved(b)

    def take_for_same(self, a: Dim, b: Dim) -> None:
        """Treat two sizes as equal, since other runs are refused."""
        a, b = self.resolved(a), self.resolved(b)
        for size, equal in ((a, b), (b, a)):
            name = name_of(size)
            if name is not None and name.startswith("?") and name not in _names(equal):
                self._same[name] = equal
                return

    def resolved(self, size: Dim) -> Dim:
        """Replace names in a size by the sizes known to be equal."""
        while True:
            resolved = substitute(size, self._same)
            if resolved == size:
                return size
            size = resolved

    def value(self, size: Dim) -> Node | None:
        """Return a node that computes a size as int64; `None` if a tensor must be read for it."""
        size = self.resolved(size)
        if isinstance(size, int):
            return _integer(size)
        if not size.names <= self._builders.keys():
            return None
        terms = [self._product(term) for term in terms_of(size, lambda part: part)]
        total = terms[0]
        for term in terms[1:]:
            total = None if total is None or term is None else ops.add(total, term)
        return total

    def _product(self, term: object) -> Node | None:
        assert isinstance(term, list), "a coefficient and factors"
        coefficient, *factors = term
        product = None if coefficient == 1 and factors else _integer(coefficient)
        for factor in factors:
            if not isinstance(factor, str):
                return None
            part = self._named_size(factor)
            product = part if product is None else ops.multiply(product, part)
        return product

    def _named_size(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = self._builders[name]()
        return node

    def _note_stretched(self, operation: Operation) -> None:
        """Store the broadcast sizes of an operation."""
        for stretched, *read in _broadcast_axes(operation):
            name = self._new_name(stretched)
            if name is None:
                continue
            parts = tuple(dict.fromkeys(size for size in map(self.resolved, read) if size != 1))
            if len(parts) == 1 or parts in self._stretched_sizes:
                self._same[name] = parts[0] if len(parts) == 1 else self._stretched_sizes[parts]
                continue
            self._stretched_sizes[parts] = stretched
            self.stretched[name] = parts
            if all(self.value(part) is not None for part in parts):
                self._builders[name] = self._stretched_size_builder(parts)

    def _stretched_size_builder(self, parts: Sequence[Dim]) -> Callable[[], Node]:
        def find() -> Node:
            first, *others = (self.value(part) for part in parts)
            for other in others:
                first = ops.select(ops.equal(first, _integer(1)), other, first)
            assert first is not None, "each has a value"
            return first

        return find

    def _new_name(self, size: Dim) -> str | None:
        name = name_of(size)
        return None if name in self._builders or name in self._same else name


def requested_shape(operation: Reshape | Expand) -> Sequence[Dim] | None:
    """Return the requested shape; elements that do not follow from sizes are unknown."""
    operand = operation.operand("shape")
    assert operand is not None, "it is required"
    return operation.shape if operand.is_constant else operand.type.shape_value


def is_size(value: Dim) -> bool:
    """Return whether an element of a parameter is certainly 0 or more."""
    return is_natural(value) and not is_unknown(value)


def _broadcast_axes(operation: Operation) -> Iterator[Sequence[Dim]]:
    """Yield for each broadcast axis the resulting size and the operands' sizes."""
    shapes = [o.type.shape for o in (*operation.outputs, *operation.inputs) if o is not None]
    match operation:
        case Broadcast() | Where():
            read = shapes[1:]
        case MatMul():
            read = [shape and shape[:-2] for shape in shapes[1:3]]
            shapes[0] = shapes[0] and shapes[0][: max(map(len, filter(None, read)), default=0)]
        case Expand():
            requested = requested_shape(operation)
            if requested is None or not all(size == -1 or is_size(size) for size in requested):
                return
            read = [shapes[1], tuple(1 if size == -1 else size for size in requested)]
        case _:
            return
    known_shapes = [shape for shape in (shapes[0], *read) if shape is not None]
    if len(known_shapes) == 1 + len(read):
        yield from zip_longest(*(shape[::-1] for shape in known_shapes), fillvalue=1)


def _names(size: Dim) -> frozenset[str]:
    return frozenset() if isinstance(size, int) else size.names


def _size_builder(value: Value, axis: int) -> Callable[[], Node]:
    return lambda: ops.gather(ops.shape_of(value), _integer(axis), _integer(0))


def _integer(value: int) -> Node:
    tensor = openvino.Tensor(np.array(value, np.int64), shared_memory=False)
    return openvino.op.Constant(tensor, shared_memory=False)
