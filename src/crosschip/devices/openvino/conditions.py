"""Conditions on sizes that the shapes of a run's inputs tell of, so that no graph looks at them."""

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
    """What must hold of the sizes of a run.

    Attributes:
        natural: expressions, of which one must be 0 or more.
        rule: which operation wants it, and of what.
    """

    natural: tuple[Dim, ...]
    rule: str

    def holds(self, sizes: Mapping[str, Dim]) -> bool:
        """Tell whether it does with these sizes."""
        return any(is_natural(substitute(each, sizes)) for each in self.natural)


def equal(one: Dim, other: Dim) -> Dim:
    """An expression that is 0 where two sizes are equal, and below 0 elsewhere."""
    return -((one - other) * (one - other))


class Conditions:
    """The conditions on the sizes of a program's runs.

    Args:
        inputs: the types of the inputs, by whose shapes sizes are known.
        stretched: for the names of other sizes, those that each is one of: whichever is not 1.
    """

    def __init__(self, inputs: Sequence[TensorType], stretched: Mapping[str, Sequence[Dim]]):
        self._inputs = inputs
        self._stretched = stretched
        self._reader = SizeReader(inputs)
        self._needed: dict[str, Sequence[Dim]] = {}
        self._stored: list[Condition] = []
        self._held: Shapes | None = None

    def tell(self, sizes: Iterable[Dim]) -> bool:
        """Tell whether the shapes of inputs determine some sizes."""
        return all(self._reader.knows(symbol(name)) or self._find(name) for name in _names(sizes))

    def add(self, condition: Condition) -> None:
        """Have runs be refused in which a condition does not hold; inputs `tell` its sizes."""
        if all(condition.natural != known.natural for known in self._stored):
            self._stored.append(condition)

    def check(self, shapes: Shapes) -> None:
        """Raise a `DeviceError` for shapes of inputs with which not all conditions hold."""
        if not self._stored or shapes == self._held:
            return
        sizes = self._reader.read(shapes)
        for name, parts in self._needed.items():
            sizes[name] = _longest(substitute(part, sizes) for part in parts)
        for condition in self._stored:
            if not condition.holds(sizes):
                raise DeviceError(f"openvino: {condition.rule}")
        self._held = shapes

    def to_plain(self) -> dict[str, Any] | None:
        """The same as JSON can say it; `None` if there is no condition."""
        if not self._stored:
            return None
        return {
            "inputs": [encode_type(type_, named=True) for type_ in self._inputs],
            "stretched": [_encoded([symbol(name), *parts]) for name, parts in self._needed.items()],
            "conditions": [[one.rule, *_encoded(one.natural)] for one in self._stored],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any] | None) -> Conditions:
        """Read what `to_plain` gave.

        Raises:
            LookupError, TypeError, ValueError: it is something else.
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

    def _find(self, name: str) -> bool:
        """Tell whether a size is one of several that inputs tell; if so, note that, and theirs."""
        parts = self._stretched.get(name)
        if parts is None or not self.tell(parts):
            return False
        self._needed.setdefault(name, parts)
        return True


def _names(sizes: Iterable[Dim]) -> Iterable[str]:
    return (name for size in sizes if not isinstance(size, int) for name in size.names)


def _longest(sizes: Iterable[Dim]) -> Dim:
    """What sizes are stretched to: that which is not 1."""
    return next((size for size in sizes if size != 1), 1)


def _encoded(sizes: Iterable[Dim]) -> list[object]:
    return [encode_size(size, named=True) for size in sizes]
