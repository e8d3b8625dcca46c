"""Making a JAX function of a model whose sizes are all known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax import lax

from crosschip.hal import Precision
from crosschip.ir import Operand, Operation

Value: TypeAlias = Any
"""A JAX array that is traced, or a NumPy array where the elements are known."""

_NARROW: dict[Precision, Any] = {
    Precision.BFLOAT16: jnp.bfloat16,
    Precision.FLOAT16: jnp.float16,
}

_SHORT = (jnp.float16, jnp.bfloat16)


class Graph:
    """What a model computes, while JAX traces it; knows the value of each operand.

    Attributes:
        precision: the arithmetic of products of float32 tensors.
        on_processor: whether it will run on the processor.
        flags: for each rule, whether it holds in the run.
        rules: the sentences about them.
    """

    def __init__(
        self, values: Mapping[Operand, Value], precision: Precision, *, on_processor: bool
    ) -> None:
        self._values = dict(values)
        self.precision = precision
        self.on_processor = on_processor
        self.flags: list[Value] = []
        self.rules: list[str] = []

    def __getitem__(self, operand: Operand) -> Value:
        """The value of an operand; a constant one is part of the function."""
        value = self._values.get(operand)
        if value is None:
            elements = operand.value
            assert elements is not None, "an operation stands after those that it reads"
            value = self._values[operand] = jnp.asarray(elements)
        return value

    def define(self, operation: Operation, values: Sequence[Value]) -> None:
        """Say what the outputs of an operation are."""
        for output, value in zip(operation.outputs, values, strict=True):
            found = jnp.asarray(value)
            wanted = (output.type.element_type.dtype, output.type.shape)
            if (found.dtype, found.shape) != wanted:
                raise TypeError(f"made {found.dtype}{found.shape} where {output.type} belongs")
            self._values[output] = found

    def require(self, operation: Operation, rule: str, holds: Value) -> None:
        """Refuse runs in which not all elements of a tensor of booleans are true.

        Args:
            operation: the one that wants it.
            rule: what it wants, `slot: rule`.
            holds: the booleans.
        """
        self.flags.append(jnp.all(holds))
        self.rules.append(f"{operation.type} {operation.name!r}: {rule}")

    def within(self, operation: Operation, indices: Operand, size: int) -> Value:
        """Indices counted from the front; runs in which one is not in `[-size, size)` are refused.

        Args:
            operation: the one that reads them.
            indices: counted from the front, or if negative from the end.
            size: that of the axis that they count along.
        """
        return self.inside(operation, self[indices], size)

    def inside(self, operation: Operation, places: Value, size: int) -> Value:
        """Like `within`, for indices that are values."""
        holds = (places >= -size) & (places < size)
        self.require(operation, f"indices: one is not in [-{size}, {size})", holds)
        return jnp.where(places < 0, places + size, places)

    def widened(self) -> Graph:
        """The same graph, in which floats of 16 bits are of 32."""
        return _Widened(self)

    def factors(self, *values: Value) -> tuple[list[Value], Any]:
        """Factors of a product, in the precision asked for, and the type to sum it up in."""
        narrow = _NARROW.get(self.precision)
        if narrow is not None and values[0].dtype == jnp.float32:
            return [value.astype(narrow) for value in values], jnp.float32
        summed = jnp.float32 if values[0].dtype in _SHORT else values[0].dtype
        return list(values), summed


class _Widened(Graph):
    """Reads floats of 16 bits as float32; all else is the other graph's."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.precision = graph.precision
        self.on_processor = graph.on_processor
        self.flags = graph.flags
        self.rules = graph.rules

    def __getitem__(self, operand: Operand) -> Value:
        value = self._graph[operand]
        return value.astype(jnp.float32) if value.dtype in _SHORT else value

    def define(self, operation: Operation, values: Sequence[Value]) -> None:
        self._graph.define(operation, values)

    def widened(self) -> Graph:
        return self


EXACT = lax.Precision.HIGHEST
"""Products of float32 are products of float32: without it, GPUs and TPUs round the factors."""
