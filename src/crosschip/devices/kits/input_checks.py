"""Checks of the sizes of runs, made of a model when a run first needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Any

from crosschip.ir import Array, Dim, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import is_natural, substitute
from crosschip.ir.encoding import Fresh, decode_size, decode_type, encode_size, encode_type
from crosschip.ir.size_reader import SizeReader

if TYPE_CHECKING:
    from crosschip.devices.kits.size_checks import Sizes


class Needed(StrEnum):
    """The runs whose sizes need to be checked."""

    NEVER = "never"
    OF_NOTHING = "of nothing"
    """Those with an input that has no elements."""
    UNLESS_FITTING = "unless fitting"
    """Those, and those in which sizes differ that should not, or are 0 or less."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class InputRequirements:
    """What of a run shows whether its sizes need to be checked.

    Attributes:
        needed: the runs in which they do.
        inputs: the types of the inputs, by whose shapes sizes are known.
        equal: the sizes that are equal, in pairs, in a run that needs no check.
        positive: the sizes that are 1 or more in such a run.
    """

    needed: Needed
    inputs: Sequence[TensorType] = ()
    equal: Sequence[tuple[Dim, Dim]] = ()
    positive: Sequence[Dim] = ()

    def to_plain(self) -> dict[str, Any]:
        """The same as JSON can say it."""
        return {
            "needed": self.needed,
            "inputs": [encode_type(type_, named=True) for type_ in self.inputs],
            "equal": [[encode_size(d, named=True) for d in pair] for pair in self.equal],
            "positive": [encode_size(d, named=True) for d in self.positive],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> InputRequirements:
        """Read what `to_plain` gave.

        Raises:
            LookupError, TypeError, ValueError: it is something else.
        """
        fresh: Fresh = {}
        return cls(
            Needed(plain["needed"]),
            [decode_type(type_, fresh) for type_ in plain["inputs"]],
            [(decode_size(a, fresh), decode_size(b, fresh)) for a, b in plain["equal"]],
            [decode_size(d, fresh) for d in plain["positive"]],
        )


class Checks:
    """The checks of the sizes of a program's runs.

    Args:
        needs: what shows whether they are needed.
        make: makes them, which looks at the model's operations.
    """

    def __init__(self, needs: InputRequirements, make: Callable[[], Sizes]) -> None:
        self._always = needs.needed is Needed.ALWAYS
        self._of_nothing = needs.needed is Needed.OF_NOTHING
        self._reader = SizeReader(needs.inputs)
        self._equal = needs.equal
        self._positive = needs.positive
        self._make = make
        self._sizes: Sizes | None = None
        self._seen: object = None

    @classmethod
    def of(cls, needs: InputRequirements, make: Callable[[], Sizes]) -> Checks | None:
        """The checks; `None` if no run needs any. The arguments are those of the class."""
        return None if needs.needed is Needed.NEVER else cls(needs, make)

    def check(self, inputs: Sequence[Array]) -> list[Array] | None:
        """Refuse inputs whose sizes do not fit; see `Sizes.check_shapes`."""
        if self._of_nothing and 0 not in [array.size for array in inputs]:
            return None
        return self.check_shapes([array.shape for array in inputs])

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array] | None:
        """`check` of inputs by their shapes."""
        if shapes == self._seen or (not self._always and self._shows(shapes)):
            self._seen = shapes
            return None
        if self._sizes is None:
            self._sizes = self._make()
        nothing = self._sizes.check_shapes(shapes)
        if nothing is None:
            self._seen = shapes
        return nothing

    def _shows(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Tell whether shapes show that they fit."""
        if 0 in chain.from_iterable(shapes):
            return False
        if not self._equal and not self._positive:
            return True
        sizes = self._reader.read(shapes)
        return all(
            substitute(one, sizes) == substitute(other, sizes) for one, other in self._equal
        ) and all(is_natural(substitute(size, sizes) - 1) for size in self._positive)
