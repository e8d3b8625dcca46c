"""Uses of Paddle's operators, one a model: what goes in, and with which attributes.

A file a family. An array is an input of the model, whose first size is left open; `fixed`, `loose`
and `saved` say otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Attributes = dict[str, Any]


@dataclass(frozen=True)
class Variable:
    """A variable with its value.

    Attributes:
        array: the value.
        shape: the shape that the model declares, -1 for a size left open.
        is_saved: whether it is a parameter; else it is an input of the model.
        levels: the offsets of the sequences that it holds (LoD), the coarsest first.
    """

    array: Array
    shape: tuple[int, ...]
    is_saved: bool = False
    levels: tuple[tuple[int, ...], ...] = ()


Slots = Mapping[str, Variable | Sequence[Variable]]


@dataclass(frozen=True)
class Use:
    """An operator with one setting of its attributes.

    Attributes:
        operator: its type in Paddle 2.6, which computes it.
        inputs: the variables in its slots.
        attributes: the attributes that are not left at their defaults.
        outputs: how many tensors to make in each output slot that is handed out; if there are
            none here, one in the operator's first.
        written_as: the type in the file, if it is an older one that Paddle 2.6 no longer has.
    """

    operator: str
    inputs: Slots
    attributes: Mapping[str, Any]
    outputs: Mapping[str, int] = field(default_factory=dict)
    written_as: str = ""

    @property
    def holds_sequences(self) -> bool:
        """Tell whether an input holds sequences (LoD), which Paddle 3 has no more."""
        return any(
            variable.levels
            for given in self.inputs.values()
            for variable in ([given] if isinstance(given, Variable) else given)
        )


USES: dict[str, dict[str, Use]] = {}
"""All uses, by the operator's type in the file and by setting."""


def use(
    operator: str,
    setting: str,
    inputs: Mapping[str, object],
    *,
    outputs: str = "",
    written_as: str = "",
    **attributes: Any,
) -> None:
    """Add a use.

    Args:
        operator: its type in Paddle 2.6.
        setting: what to call the use.
        inputs: an array or variable, or a list of these, by slot.
        outputs: the output slots to hand out, `Out*3` for one of three tensors.
        written_as: the type in the file, if it is an older one.
        attributes: those that are not left at their defaults.
    """
    slots: dict[str, Variable | Sequence[Variable]] = {
        slot: [_variable(part) for part in given] if isinstance(given, list) else _variable(given)
        for slot, given in inputs.items()
    }
    counts: dict[str, int] = {}
    for output in outputs.split():
        slot, _, count = output.partition("*")
        counts[slot] = int(count or 1)
    settings = USES.setdefault(written_as or operator, {})
    if setting in settings:
        raise ValueError(f"{operator} has two uses called {setting!r}")
    older = "" if written_as == operator else written_as
    settings[setting] = Use(operator, slots, attributes, counts, older)


def normal(*shape: int, seed: int = 0) -> Array:
    """Seeded random numbers, as float32."""
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def positive(*shape: int, seed: int = 0) -> Array:
    """Seeded random numbers of at least 0.1, as float32."""
    return np.abs(normal(*shape, seed=seed)) + np.float32(0.1)


def whole(*shape: int, seed: int = 0, dtype: str = "int64", low: int = -9, high: int = 10) -> Array:
    """Seeded random integers."""
    return np.random.RandomState(seed).randint(low, high, shape).astype(dtype)


def integers(*values: int, dtype: str = "int32") -> Array:
    """A list of integers."""
    return np.array(values, dtype)


def real(value: float) -> Array:
    """A tensor [1] of one float32."""
    return np.array([value], np.float32)


def fixed(array: ArrayLike) -> Variable:
    """An input of which all sizes are declared."""
    value = np.asarray(array)
    return Variable(value, value.shape)


def loose(array: ArrayLike, *known: int) -> Variable:
    """An input of which only the rank is declared, and the sizes of the known axes."""
    value = np.asarray(array)
    sizes = (size if axis in known else -1 for axis, size in enumerate(value.shape))
    return Variable(value, tuple(sizes))


def saved(array: ArrayLike) -> Variable:
    """A parameter."""
    value = np.asarray(array)
    return Variable(value, value.shape, is_saved=True)


def ragged(array: ArrayLike, *levels: Sequence[int]) -> Variable:
    """An input of sequences, whose number of rows is left open."""
    value = np.asarray(array)
    return Variable(value, (-1, *value.shape[1:]), levels=tuple(map(tuple, levels)))


def each(*values: int) -> list[object]:
    """Integers in a parameter each."""
    return [saved(integers(value)) for value in values]


def _variable(given: object) -> Variable:
    if isinstance(given, Variable):
        return given
    if not isinstance(given, np.ndarray):
        raise TypeError(f"{given!r} is no array")
    return Variable(given, (-1, *given.shape[1:]) if given.ndim else ())
