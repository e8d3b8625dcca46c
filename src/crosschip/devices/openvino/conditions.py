"""Conditions on sizes that are checked on the shapes of a run's inputs, not in the graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crosschip.ir import DeviceError, Dim, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import is_natural, name_of, substitute, symbol
from crosschip.ir.encoding import Fresh, decode_size, decode_type, encode_size, encode_type
from crosschip.ir.size_reader import SizeReader

Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on the sizes of a run.

    Attributes:
        natural: expressions, at least one of which must be 0 or more.
        rule: the error message: operation, operand and rule.
    """

    natural: tuple[Dim, ...]
    rule: str

    def holds(self, sizes: Mapping[str, Dim]) -> bool:
        """Return whether the condition holds for these sizes."""
        return any(is_natural(substitute(each, sizes)) for each in self.natural)


def equal(a: Dim, b: Dim) -> Dim:
    """Return an expression that is 0 where two sizes are equal and negative otherwise."""
    return -((a - b) * (a - b))


class Conditions:
    """The conditions on the sizes of a program's runs.

    Args:
        inputs: the types of the inputs, whose shapes determine the sizes.
        stretched: for the name of a broadcast size, the sizes that are broadcast: its value is that
            which is not 1.
    """

    def __init__(self, inputs: Sequence[TensorType], stretched: Mapping[str, Sequence[Dim]]):
        self._inputs = inputs
        self._stretched = stretched
        self._reader = SizeReader(inputs)
        self._needed: dict[str, Sequence[Dim]] = {}
        self._stored: list[Condition] = []
        self._held: Shapes | None = None

    def determines(self, sizes: Iterable[Dim]) -> bool:
        """Return whether the shapes of the inputs determine all sizes."""
        return all(
            self._reader.knows(symbol(name)) or self._determine_broadcast(name)
            for name in _names(sizes)
        )

    def add(self, condition: Condition) -> None:
        """Add a condition whose sizes the inputs determine (see `determines`)."""
        if all(condition.natural != stored.natural for stored in self._stored):
            self._stored.append(condition)

    def check(self, shapes: Shapes) -> None:
        """Raise `DeviceError` if a condition does not hold for these input shapes."""
        if not self._stored or shapes == self._held:
            return
        sizes = self._reader.read(shapes)
        for name, parts in self._needed.items():
            sizes[name] = _broadcast_size(substitute(part, sizes) for part in parts)
        for condition in self._stored:
            if not condition.holds(sizes):
                raise DeviceError(f"openvino: {condition.rule}")
        self._held = shapes

    def to_plain(self) -> dict[str, Any] | None:
        """Return the conditions as JSON values; `None` if there are none."""
        if not self._stored:
            return None
        return {
            "inputs": [encode_type(type_, named=True) for type_ in self._inputs],
            "stretched": [_encode([symbol(name), *parts]) for name, parts in self._needed.items()],
            "conditions": [
                [condition.rule, *_encode(condition.natural)] for condition in self._stored
            ],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any] | None) -> Conditions:
        """Read the result of `to_plain`.

        Raises:
            LookupError, TypeError, ValueError: the data has another form.
        """
        if plain is None:
            return cls((), {})
        fresh: Fresh = {}
        conditions = cls([decode_type(type_, fresh) for type_ in plain["inputs"]], {})
        for encoded in plain["stretched"]:
            size, *parts = (decode_size(each, fresh) for each in encoded)
            conditions._needed[name_of(size) or ""] = parts
        for rule, *encoded in plain["conditions"]:
            conditions.add(
                Condition(tuple(decode_size(each, fresh) for each in encoded), str(rule))
            )
        return conditions

    def _determine_broadcast(self, name: str) -> bool:
        """Return whether the inputs determine a broadcast size; if so, store its parts."""
        parts = self._stretched.get(name)
        if parts is None or not self.determines(parts):
            return False
        self._needed.setdefault(name, parts)
        return True


def _names(sizes: Iterable[Dim]) -> Iterable[str]:
    return (name for size in sizes if not isinstance(size, int) for name in size.names)


def _broadcast_size(sizes: Iterable[Dim]) -> Dim:
    """Return the broadcast size: that which is not 1."""
    return next((size for size in sizes if size != 1), 1)


def _encode(sizes: Iterable[Dim]) -> list[object]:
    return [encode_size(size, named=True) for size in sizes]
