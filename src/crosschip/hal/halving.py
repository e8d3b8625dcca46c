"""The search for what a compiler fails on, where it does not say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Generic, TypeVar

from crosschip.ir.dataclass import dataclass

T = TypeVar("T")
E = TypeVar("E")


class Extent(Enum):
    """How far a failure has been narrowed down."""

    ALONE = "alone"
    """The part is a single one, or the error names it."""
    TOGETHER = "together"
    """Both halves of the part compile, and the whole of it does not."""
    UNFINISHED = "unfinished"
    """The part does not compile, and no more compilations were allowed."""


@dataclass(frozen=True, slots=True)
class Failure(Generic[T, E]):
    """A part that does not compile.

    Attributes:
        parts: what it consists of, in order.
        error: what its own compilation failed with.
        extent: how far it has been narrowed down.
    """

    parts: Sequence[T]
    error: E
    extent: Extent


class Halving(Generic[T, E]):
    """Finds what does not compile by compiling halves of it, one after the other.

    Args:
        compile: compiles some parts, in order, without the others; the error, `None` if it works.
        named: those of some parts that an error names.
        allowed: how many compilations there may be in all searches.

    Attributes:
        compilations: how many there were.
        allowed: as given.
    """

    def __init__(
        self,
        compile: Callable[[Sequence[T]], E | None],
        named: Callable[[E, Sequence[T]], Sequence[T]],
        allowed: int,
    ) -> None:
        self.compilations = 0
        self.allowed = allowed
        self._compile = compile
        self._named = named

    def search(self, whole: Sequence[T], error: E) -> list[Failure[T, E]]:
        """What fails in a whole that does not compile.

        Where no more compilations are allowed, what is left of a failing part is told as a whole if
        nothing in it has been found, and else is left to the next search.

        Args:
            whole: all parts, in order.
            error: what the compilation of the whole failed with.
        """
        named = self._named(error, whole)
        if named:
            return [Failure([part], error, Extent.ALONE) for part in named]
        if len(whole) == 1:
            return [Failure(whole, error, Extent.ALONE)]
        middle = len(whole) // 2
        failures: list[Failure[T, E]] = []
        left: Sequence[T] = whole
        for half in (whole[:middle], whole[middle:]):
            if self.compilations >= self.allowed:
                return failures or [Failure(left, error, Extent.UNFINISHED)]
            self.compilations += 1
            failure = self._compile(half)
            if failure is None:
                left = whole[middle:]
            else:
                failures += self.search(half, failure)
        return failures or [Failure(whole, error, Extent.TOGETHER)]
