"""Making a JAX function of a model whose sizes are all known.

Images are [N, C, H, W] in a model, and convolutions are fastest on [N, H, W, C]. So an image stays
in that order from one operation to the next until one needs it as the model has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
from jax import lax

from crosschip.devices.xla.narrow import entering, inner
from crosschip.hal import Precision
from crosschip.ir import Operand, Operation, Shape
from crosschip.ir.dataclass import dataclass

Value: TypeAlias = Any
"""A JAX array that is traced, or a NumPy array where the elements are known."""

EXACT = lax.Precision.HIGHEST
"""Products of float32 are products of float32: without it, GPUs and TPUs round the factors."""

_NARROW: dict[Precision, Any] = {
    Precision.BFLOAT16: jnp.bfloat16,
    Precision.FLOAT16: jnp.float16,
}
_SHORT = (jnp.float16, jnp.bfloat16)


@dataclass(frozen=True, slots=True)
class ChannelsLast:
    """An image with the channels behind its other axes."""

    value: Value


def last_axes(rank: int) -> tuple[int, ...]:
    """The places of an image's axes when the channels come last: axis 1 is the last, and so on."""
    return (0, rank - 1, *range(1, rank - 1))


def channels_last(image: Value) -> Value:
    """An image with its channels last."""
    return jnp.moveaxis(image, 1, -1)


class Graph:
    """The computation of a model while JAX traces it; knows the value of each operand.

    Args:
        values: those of inputs and large constants.
        filters: those of filters, as [window …, C_in / group, C_out].
        precision: the arithmetic of products of float32 tensors.
        on_processor: whether it will run on the processor.

    Attributes:
        flags: for each rule, whether it holds in the run.
        rules: the sentences about them.
        counts: how much of open sizes, which are padded, an operation has made.
    """

    def __init__(
        self,
        values: Mapping[Operand, Value],
        filters: Mapping[Operand, Value],
        precision: Precision,
        *,
        on_processor: bool,
    ) -> None:
        self._values = dict(values)
        self._filters = dict(filters)
        self._last: dict[Operand, Value] = {}
        self.precision = precision
        self.on_processor = on_processor
        self.flags: list[Value] = []
        self.rules: list[str] = []
        self.counts: list[Value] = []

    def __getitem__(self, operand: Operand) -> Value:
        """The value of an operand; a constant one is part of the function."""
        value = self._values.get(operand)
        if value is None:
            if operand in self._last:
                value = jnp.moveaxis(self._last[operand], -1, 1)
            else:
                elements = operand.value
                assert elements is not None, "an operation stands after those that it reads"
                value = jnp.asarray(entering(elements))
            self._values[operand] = value
        return value

    def last(self, operand: Operand) -> Value:
        """An image with its channels last."""
        value = self._last.get(operand)
        if value is None:
            value = self._last[operand] = channels_last(self[operand])
        return value

    def is_last(self, operand: Operand) -> bool:
        """Tell whether an operand is there with its channels last, and in no other order."""
        return operand in self._last and operand not in self._values

    def filters(self, operand: Operand) -> Value:
        """Filters, as [window …, C_in / group, C_out]."""
        value = self._filters.get(operand)
        if value is None:
            value = self._filters[operand] = jnp.moveaxis(self[operand], (1, 0), (-2, -1))
        return value

    def define(self, operation: Operation, values: Sequence[Value | ChannelsLast]) -> None:
        """Say what the outputs of an operation are."""
        for output, value in zip(operation.outputs, values, strict=True):
            last = isinstance(value, ChannelsLast)
            found = jnp.asarray(value.value if isinstance(value, ChannelsLast) else value)
            shape = (
                tuple(found.shape[axis] for axis in last_axes(found.ndim)) if last else found.shape
            )
            wanted = inner(output.type.element_type.dtype)
            if found.dtype != wanted or not _fits(shape, output.type.shape):
                raise TypeError(f"made {found.dtype}{shape} where {output.type} belongs")
            (self._last if last else self._values)[output] = found

    def require(self, operation: Operation, rule: str, holds: Value) -> None:
        """Refuse runs in which not all elements of a tensor of booleans are true.

        Args:
            operation: the one that wants it.
            rule: what it wants, `slot: rule`.
            holds: the booleans.
        """
        self.flags.append(jnp.all(holds))
        self.rules.append(f"{operation.type} {operation.name!r}: {rule}")

    def fill(self, count: Value) -> None:
        """Say how much there is of the padded sizes of an operation's outputs, at their front."""
        self.counts.append(count)

    def within(self, operation: Operation, places: Value, size: int) -> Value:
        """Indices counted from the front; runs in which one is not in `[-size, size)` are refused.

        Args:
            operation: the one that reads them.
            places: counted from the front, or if negative from the end.
            size: that of the axis that they count along.
        """
        holds = (places >= -size) & (places < size)
        self.require(operation, f"indices: one is not in [-{size}, {size})", holds)
        return jnp.where(places < 0, places + size, places)

    def factors(self, *values: Value) -> tuple[list[Value], Any]:
        """Factors of a product, in the precision asked for, and the type to sum it up in."""
        narrow = _NARROW.get(self.precision)
        if narrow is not None and values[0].dtype == jnp.float32:
            return [value.astype(narrow) for value in values], jnp.float32
        summed = jnp.float32 if values[0].dtype in _SHORT else values[0].dtype
        return list(values), summed


def _fits(shape: tuple[int, ...], wanted: Shape | None) -> bool:
    """Tell whether a shape is the one wanted, whose open sizes are padded."""
    return len(shape) == len(wanted or ()) and all(
        size == other or not isinstance(other, int)
        for size, other in zip(shape, wanted or (), strict=True)
    )


class View(Graph):
    """A graph whose values are read in another form; all else is the other graph's."""

    def __init__(self, graph: Graph) -> None:
        vars(self).update(vars(graph))
        self._graph = graph


class Widened(View):
    """Reads floats of 16 bits as float32."""

    def __getitem__(self, operand: Operand) -> Value:
        return _wide(self._graph[operand])

    def last(self, operand: Operand) -> Value:
        return _wide(self._graph.last(operand))


class Turned(View):
    """Reads everything in the shape in which it broadcasts to an image with its channels last."""

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
