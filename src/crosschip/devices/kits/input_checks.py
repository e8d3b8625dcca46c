"""Size checks of a program's inputs, set up when a run first needs them."""

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
    """The runs that need a size check."""

    NEVER = "never"
    OF_NOTHING = "of nothing"
    """Runs with an empty input."""
    UNLESS_FITTING = "unless fitting"
    """Runs with an empty input, and runs that break the conditions of `InputRequirements`."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class InputRequirements:
    """The conditions under which a run needs no size check.

    Attributes:
        needed: the runs that need one.
        inputs: the types of the inputs, whose shapes determine the values of dimensions.
        equal: pairs of sizes that must be equal.
        positive: sizes that must be at least 1.
    """

    needed: Needed
    inputs: Sequence[TensorType] = ()
    equal: Sequence[tuple[Dim, Dim]] = ()
    positive: Sequence[Dim] = ()

    def to_plain(self) -> dict[str, Any]:
        """Return the conditions as JSON data."""
        return {
            "needed": self.needed,
            "inputs": [encode_type(type_, named=True) for type_ in self.inputs],
            "equal": [[encode_size(d, named=True) for d in pair] for pair in self.equal],
            "positive": [encode_size(d, named=True) for d in self.positive],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> InputRequirements:
        """Read conditions from the data of `to_plain`.

        Raises:
            LookupError, TypeError, ValueError: the data is malformed.
        """
        fresh: Fresh = {}
        return cls(
            Needed(plain["needed"]),
            [decode_type(type_, fresh) for type_ in plain["inputs"]],
            [(decode_size(a, fresh), decode_size(b, fresh)) for a, b in plain["equal"]],
            [decode_size(d, fresh) for d in plain["positive"]],
        )


class Checks:
    """The size checks of a program's inputs.

    Args:
        needs: the conditions under which a run needs no check.
        make: creates the checks from the model's operations.
    """

    def __init__(self, needs: InputRequirements, make: Callable[[], Sizes]) -> None:
        self._always = needs.needed is Needed.ALWAYS
        self._of_nothing = needs.needed is Needed.OF_NOTHING
        self._reader = SizeReader(needs.inputs)
        self._equal = needs.equal
        self._positive = needs.positive
        self._make = make
        self._sizes: Sizes | None = None
        self._last_shapes: object = None

    @classmethod
    def of(cls, needs: InputRequirements, make: Callable[[], Sizes]) -> Checks | None:
        """Return the checks; `None` if no run needs any."""
        return None if needs.needed is Needed.NEVER else cls(needs, make)

    def check(self, inputs: Sequence[Array]) -> list[Array] | None:
        """Check the sizes of inputs; see `Sizes.check_shapes`."""
        if self._of_nothing and 0 not in [array.size for array in inputs]:
            return None
        return self.check_shapes([array.shape for array in inputs])

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array] | None:
        """Check the shapes of inputs."""
        if shapes == self._last_shapes or (not self._always and self._need_no_check(shapes)):
            self._last_shapes = shapes
            return None
        if self._sizes is None:
            self._sizes = self._make()
        outputs = self._sizes.check_shapes(shapes)
        if outputs is None:
            self._last_shapes = shapes
        return outputs

    def _need_no_check(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        """Return whether shapes meet the conditions under which no check is needed."""
        if 0 in chain.from_iterable(shapes):
            return False
        if not self._equal and not self._positive:
            return True
        sizes = self._reader.read(shapes)
        return all(
            substitute(one, sizes) == substitute(other, sizes) for one, other in self._equal
        ) and all(is_natural(substitute(size, sizes) - 1) for size in self._positive)
