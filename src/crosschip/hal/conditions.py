"""Conditions on the inputs of runs in which a device computes right."""

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
    """The range in which a device needs the elements of an input.

    Attributes:
        input: the input's name.
        low: the least one.
        high: the greatest one.
        device: the device's name.
        operations: the indices of the operations for which it needs that.
    """

    input: str
    low: int
    high: int
    device: str
    operations: frozenset[int] = field(default=frozenset(), compare=False)

    @property
    def of(self) -> str:
        """What the range is of."""
        return f"input {self.input!r}"

    def check(self, array: Array) -> None:
        """Raise an `OutOfRange` for an array with elements beyond it."""
        if not array.size:
            return
        # Taken as unsigned, what is negative is too great: one look does where nothing is.
        if np.maximum.reduce(array.view(_UNSIGNED[array.itemsize]), axis=None) <= self.high:
            return
        least, greatest = int(array.min()), int(array.max())
        if least < self.low or greatest > self.high:
            value = least if least < self.low else greatest
            raise OutOfRange(_range_sentence(self, value))


@dataclass(frozen=True, slots=True)
class SizeRange:
    """The range in which a device needs a size, or a number that a model computes from sizes.

    Attributes:
        size: the size, by the names that the model's inputs have for theirs.
        low: the least value.
        high: the greatest value.
        device: the device's name.
        operations: the indices of the operations for which it needs that.
    """

    size: Dim
    low: int
    high: int
    device: str
    operations: frozenset[int] = field(default=frozenset(), compare=False)

    @property
    def of(self) -> str:
        """What the range is of."""
        return f"size {self.size}"

    def check(self, sizes: Mapping[str, Dim]) -> None:
        """Raise an `OutOfRange` for sizes beyond it."""
        value = substitute(self.size, sizes)
        if isinstance(value, int) and not self.low <= value <= self.high:
            raise OutOfRange(_range_sentence(self, value))


Condition = InputRange | SizeRange


def _range_sentence(condition: Condition, value: int) -> str:
    return (
        f"{condition.device}: {condition.of}: {value} is not from {condition.low} to "
        f"{condition.high}; beyond, what the model makes of it may take more bits than the device "
        f"computes in"
    )


@dataclass(frozen=True, slots=True)
class ConditionalOffer(Offer):
    """An offer that holds in runs that meet conditions.

    Attributes:
        conditions: those that the operations in question need.
    """

    conditions: Sequence[Condition] = field(default=())


class InputGuard:
    """What is checked of the inputs of every run.

    Args:
        model: whose inputs they are.
        conditions: those that a run must meet.
    """

    def __init__(self, model: Model, conditions: Sequence[Condition]) -> None:
        places = {name: index for index, name in enumerate(model.inputs)}
        self._reader = SizeReader([operand.type for operand in model.inputs.values()])
        self._inputs = [(places[c.input], c) for c in conditions if isinstance(c, InputRange)]
        self._sizes = [c for c in conditions if isinstance(c, SizeRange)]
        self._last: object = None

    def __bool__(self) -> bool:
        """Tell whether there is anything to check."""
        return bool(self._inputs or self._sizes)

    def check(self, arrays: Sequence[Array]) -> None:
        """Raise an `OutOfRange` if a condition is not met."""
        self.check_elements(arrays)
        if self._sizes:
            self.check_shapes([array.shape for array in arrays])

    @property
    def checked(self) -> Collection[int]:
        """The indices of the inputs whose elements are checked."""
        return {place for place, _ in self._inputs}

    def check_elements(self, arrays: Sequence[Array]) -> None:
        """`check` of elements; arrays that it does not check may be anything."""
        for place, condition in self._inputs:
            condition.check(arrays[place])

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """`check` of sizes."""
        if self._sizes and shapes != self._last:
            sizes = self._reader.read(shapes)
            for each in self._sizes:
                each.check(sizes)
            self._last = shapes


class Conditional(Program):
    """A program that refuses runs in which a condition is not met.

    Args:
        program: the program.
        border: checks the conditions.
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
