"""Conditions that run inputs must meet so that a device computes correctly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field

import numpy as np

from crosschip.hal.device import OutOfRange as OutOfRange
from crosschip.hal.program import Program
from crosschip.hal.support import Offer
from crosschip.ir import Array, Dim, Model
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import substitute
from crosschip.ir.size_reader import SizeReader

_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


@dataclass(frozen=True, slots=True)
class InputRange:
    """Range that a device requires of the elements of an input.

    Attributes:
        input: the input's name.
        low: the smallest allowed element.
        high: the largest allowed element.
        device: the device's name.
        operations: the indices of the operations that require it.
    """

    input: str
    low: int
    high: int
    device: str
    operations: frozenset[int] = field(default=frozenset(), compare=False)

    @property
    def of(self) -> str:
        """Return what the range applies to, for messages."""
        return f"input {self.input!r}"

    def check(self, array: Array) -> None:
        """Raise OutOfRange if the array has an element outside the range."""
        if not array.size:
            return
        # As unsigned integers, negative elements exceed `high`: one reduction usually suffices.
        if np.maximum.reduce(array.view(_UNSIGNED[array.itemsize]), axis=None) <= self.high:
            return
        least, greatest = int(array.min()), int(array.max())
        if least < self.low or greatest > self.high:
            value = least if least < self.low else greatest
            raise OutOfRange(_range_sentence(self, value))


@dataclass(frozen=True, slots=True)
class SizeRange:
    """Range that a device requires of a size, or of an expression over sizes.

    Attributes:
        size: an expression in the named sizes of the model's inputs.
        low: the smallest allowed value.
        high: the largest allowed value.
        device: the device's name.
        operations: the indices of the operations that require it.
    """

    size: Dim
    low: int
    high: int
    device: str
    operations: frozenset[int] = field(default=frozenset(), compare=False)

    @property
    def of(self) -> str:
        """Return what the range applies to, for messages."""
        return f"size {self.size}"

    def check(self, sizes: Mapping[str, Dim]) -> None:
        """Raise OutOfRange if the size is outside the range."""
        value = substitute(self.size, sizes)
        if isinstance(value, int) and not self.low <= value <= self.high:
            raise OutOfRange(_range_sentence(self, value))


Condition = InputRange | SizeRange


def _range_sentence(condition: Condition, value: int) -> str:
    return (
        f"{condition.device}: {condition.of}: {value} is not from {condition.low} to "
        f"{condition.high}; for values outside, intermediate integers may need more bits than the "
        f"device has"
    )


@dataclass(frozen=True, slots=True)
class ConditionalOffer(Offer):
    """Offer that is valid for runs that meet conditions.

    Attributes:
        conditions: the conditions that the supported operations require.
    """

    conditions: Sequence[Condition] = field(default=())


class InputGuard:
    """Check of conditions on the inputs of each run.

    Args:
        model: the model that runs.
        conditions: the conditions that each run must meet.
    """

    def __init__(self, model: Model, conditions: Sequence[Condition]) -> None:
        indices = {name: index for index, name in enumerate(model.inputs)}
        self._reader = SizeReader([operand.type for operand in model.inputs.values()])
        self._inputs = [(indices[c.input], c) for c in conditions if isinstance(c, InputRange)]
        self._sizes = [c for c in conditions if isinstance(c, SizeRange)]
        self._last_shapes: object = None

    def __bool__(self) -> bool:
        """Return whether there is anything to check."""
        return bool(self._inputs or self._sizes)

    def check(self, arrays: Sequence[Array]) -> None:
        """Raise OutOfRange unless all conditions are met."""
        self.check_elements(arrays)
        if self._sizes:
            self.check_shapes([array.shape for array in arrays])

    @property
    def checked(self) -> Collection[int]:
        """Return the indices of the inputs whose elements are checked."""
        return {index for index, _ in self._inputs}

    def check_elements(self, arrays: Sequence[Array]) -> None:
        """Check conditions on elements; other arrays are ignored."""
        for index, condition in self._inputs:
            condition.check(arrays[index])

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Check conditions on sizes, if the shapes differ from the last ones."""
        if self._sizes and shapes != self._last_shapes:
            sizes = self._reader.read(shapes)
            for condition in self._sizes:
                condition.check(sizes)
            self._last_shapes = shapes


class Conditional(Program):
    """Program that rejects runs that do not meet conditions.

    Args:
        program: the program.
        guard: checks the conditions.
    """

    def __init__(self, program: Program, guard: InputGuard) -> None:
        self._program = program
        self._guard = guard
        self.rules = program.rules

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self._guard.check(inputs)
        return self._program.run(inputs)

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        self._guard.check(inputs)
        return self._program.run_into(inputs, places)

    def save(self) -> bytes | None:
        return self._program.save()

    def saving(self) -> Callable[[], Sequence[bytes | memoryview]] | None:
        return self._program.saving()

    def close(self) -> None:
        self._program.close()
