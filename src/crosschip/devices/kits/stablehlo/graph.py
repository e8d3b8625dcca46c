"""Conversion of a model of static shapes to a JAX function.

Images are [N, C, H, W] in a model, but convolutions are fastest on [N, H, W, C]. An image keeps
that order between operations until one needs the model's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.narrow import entering, inner
from crosschip.hal import Converters, Precision
from crosschip.ir import Operand, Operation, Shape
from crosschip.ir.dataclass import dataclass

Value: TypeAlias = Any
"""A traced JAX array, or a NumPy array of constant elements."""

EXACT = lax.Precision.HIGHEST
"""The precision of float32 products; by default, GPUs and TPUs round the factors."""

_NARROW: dict[Precision, Any] = {Precision.BFLOAT16: jnp.bfloat16, Precision.FLOAT16: jnp.float16}
_SHORT = (jnp.float16, jnp.bfloat16)


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """An image with its channels last."""

    value: Value


def last_axes(rank: int) -> tuple[int, ...]:
    """Return the positions of an image's axes when the channels are last."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(image: Value) -> Value:
    """Move the channels of an image to the last axis."""
    return jnp.moveaxis(image, 1, -1)


@dataclass(frozen=True, slots=True)
class Emission:
    """How a device's models become functions.

    Attributes:
        converters: the device's converters.
        splits_groups: whether grouped convolutions become sums of shifted products or several
            convolutions, since the compiler's own are slow.
        returns_narrow: whether functions return integers of fewer than 8 bits; if not, they return
            the same values with 8 bits.
    """

    converters: Converters[Graph, Value]
    splits_groups: bool = False
    returns_narrow: bool = True


class Graph:
    """The computation of a model while JAX traces it, with the value of each operand.

    Args:
        values: the values of inputs and large constants.
        filters: the values of filters, as [window …, C_in / group, C_out].
        emission: the device's converters and choices.
        precision: the arithmetic of products of float32 tensors.

    Attributes:
        flags: for each rule, whether it holds in the run.
        rules: the error messages of the rules.
        counts: the actual sizes of padded, data-dependent dimensions.
    """

    def __init__(
        self,
        values: Mapping[Operand, Value],
        filters: Mapping[Operand, Value],
        emission: Emission,
        precision: Precision,
    ) -> None:
        self._values = dict(values)
        self._filters = dict(filters)
        self._last: dict[Operand, Value] = {}
        self.precision = precision
        self.emission = emission
        self.flags: list[Value] = []
        self.rules: list[str] = []
        self.counts: list[Value] = []

    def __getitem__(self, operand: Operand) -> Value:
        """Return the value of an operand; a small constant becomes part of the function."""
        value = self._values.get(operand)
        if value is None:
            if operand in self._last:
                value = jnp.moveaxis(self._last[operand], -1, 1)
            elif operand in self._filters:
                value = jnp.moveaxis(self._filters[operand], (-2, -1), (1, 0))
            else:
                elements = operand.value
                assert elements is not None, "an operation stands after those that it reads"
                value = jnp.asarray(entering(elements))
            self._values[operand] = value
        return value

    def last(self, operand: Operand) -> Value:
        """Return an image with its channels last."""
        value = self._last.get(operand)
        if value is None:
            value = self._last[operand] = channels_last(self[operand])
        return value

    def is_last(self, operand: Operand) -> bool:
        """Return whether an operand is stored only with its channels last."""
        return operand in self._last and operand not in self._values

    def filters(self, operand: Operand) -> Value:
        """Return filters as [window …, C_in / group, C_out]."""
        value = self._filters.get(operand)
        if value is None:
            value = self._filters[operand] = jnp.moveaxis(self[operand], (1, 0), (-2, -1))
        return value

    def define(self, operation: Operation, values: Sequence[Value | ChannelsLast]) -> None:
        """Store the values of an operation's outputs."""
        for output, value in zip(operation.outputs, values, strict=True):
            last = isinstance(value, ChannelsLast)
            array = jnp.asarray(value.value if isinstance(value, ChannelsLast) else value)
            shape = (
                tuple(array.shape[axis] for axis in last_axes(array.ndim)) if last else array.shape
            )
            dtype = inner(output.type.element_type.dtype)
            if array.dtype != dtype or not _fits(shape, output.type.shape):
                raise TypeError(f"made {array.dtype}{shape} where {output.type} belongs")
            (self._last if last else self._values)[output] = array

    def add(self, operation: Operation) -> None:
        """Compute an operation of the model."""
        self.define(operation, self.emission.converters.convert(self, operation))

    def require(self, operation: Operation, rule: str, holds: Value) -> None:
        """Refuse runs in which an element of a boolean tensor is false.

        Args:
            operation: the operation that requires it.
            rule: the error message, `slot: rule`.
            holds: the boolean tensor.
        """
        self.flags.append(jnp.all(holds))
        self.rules.append(f"{operation.type} {operation.name!r}: {rule}")

    def fill(self, count: Value) -> None:
        """Store the actual size of the padded dimension of an operation's outputs."""
        self.counts.append(count)

    def within(self, operation: Operation, indices: Value, size: int) -> Value:
        """Return non-negative indices; refuse runs with an index outside `[-size, size)`.

        Args:
            operation: the operation that reads the indices.
            indices: the indices; negative ones count from the end.
            size: the size of the indexed axis.
        """
        holds = (indices >= -size) & (indices < size)
        self.require(operation, f"indices: one is not in [-{size}, {size})", holds)
        return jnp.where(indices < 0, indices + size, indices)

    def factors(self, *values: Value) -> tuple[list[Value], Any]:
        """Return factors of a product in the requested precision, and the type of its sums."""
        narrow = _NARROW.get(self.precision)
        if narrow is not None and values[0].dtype == jnp.float32:
            return [value.astype(narrow) for value in values], jnp.float32
        summed = jnp.float32 if values[0].dtype in _SHORT else values[0].dtype
        return list(values), summed


def _fits(shape: tuple[int, ...], declared: Shape | None) -> bool:
    """Return whether a shape equals the declared one, except for padded dynamic dimensions."""
    return len(shape) == len(declared or ()) and all(
        size == other or not isinstance(other, int)
        for size, other in zip(shape, declared or (), strict=True)
    )


class View(Graph):
    """A graph with values in another form; its other state is shared."""

    def __init__(self, graph: Graph) -> None:
        vars(self).update(vars(graph))
        self._graph = graph


class Widened(View):
    """A view of 16-bit floats as float32."""

    def __getitem__(self, operand: Operand) -> Value:
        return _wide(self._graph[operand])

    def last(self, operand: Operand) -> Value:
        return _wide(self._graph.last(operand))


class Turned(View):
    """A view of operands in the shape that broadcasts to an image with its channels last."""

    def __init__(self, graph: Graph, rank: int) -> None:
        super().__init__(graph)
        self._rank = rank

    def __getitem__(self, operand: Operand) -> Value:
        rank = len(operand.type.shape or ())
        if rank == self._rank:
            return self._graph.last(operand)
        value = self._graph[operand]
        if rank == 0:
            return value
        return channels_last(value.reshape((1,) * (self._rank - rank) + value.shape))


def _wide(value: Value) -> Value:
    return value.astype(jnp.float32) if value.dtype in _SHORT else value
