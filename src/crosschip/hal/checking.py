"""Checks of the sizes of runs, made of a model when a run first needs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from crosschip.ir import Array

if TYPE_CHECKING:
    from crosschip.hal.sizes import Sizes


class Needed(StrEnum):
    """The runs whose sizes need to be checked."""

    NEVER = "never"
    OF_NOTHING = "of nothing"
    """Those with an input that has no elements."""
    ALWAYS = "always"


class Checks:
    """The checks of the sizes of a program's runs.

    Args:
        needed: the runs that need them.
        make: makes them, which looks at the model's operations.
    """

    def __init__(self, needed: Needed, make: Callable[[], Sizes]) -> None:
        self._always = needed is Needed.ALWAYS
        self._make = make
        self._sizes: Sizes | None = None

    @classmethod
    def of(cls, needed: Needed, make: Callable[[], Sizes]) -> Checks | None:
        """The checks; `None` if no run needs any. The arguments are those of the class."""
        return None if needed is Needed.NEVER else cls(needed, make)

    def check(self, inputs: Sequence[Array]) -> list[Array] | None:
        """Refuse inputs whose sizes do not fit; see `Sizes.check`."""
        return self.check_shapes([array.shape for array in inputs])

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array] | None:
        """`check` of inputs by their shapes."""
        if self._sizes is None:
            if not self._always and not any(0 in shape for shape in shapes):
                return None
            self._sizes = self._make()
        return self._sizes.check_shapes(shapes)
