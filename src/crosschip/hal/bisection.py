"""Bisection of compiler failures that name no operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Generic, TypeVar

from crosschip.ir.dataclass import dataclass

T = TypeVar("T")
E = TypeVar("E")


class Extent(Enum):
    """The extent to which a search has narrowed down a failure."""

    ALONE = "alone"
    """The part is a single one, or the error names it."""
    TOGETHER = "together"
    """Both halves of the part compile, but the whole part does not."""
    UNFINISHED = "unfinished"
    """The part does not compile, and the limit of compilations is reached."""


@dataclass(frozen=True, slots=True)
class Failure(Generic[T, E]):
    """Part that does not compile.

    Attributes:
        parts: its elements, in order.
        error: the error of compiling it.
        extent: how far it was narrowed down.
    """

    parts: Sequence[T]
    error: E
    extent: Extent


class Bisection(Generic[T, E]):
    """Search for parts that do not compile, by recursive bisection.

    Args:
        compile: compiles some parts, in order; returns the error, or `None` on success.
        named: returns the parts that an error names.
        allowed: the limit of compilations over all searches.

    Attributes:
        compilations: the number of compilations so far.
        allowed: the limit.
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
        """Return the failures in parts that do not compile together.

        At the limit of compilations, the remaining parts are returned as one failure if no failure
        was found in them; otherwise they are left to the next search.

        Args:
            whole: all parts, in order.
            error: the error of compiling all parts.
        """
        named = self._named(error, whole)
        if named:
            return [Failure([part], error, Extent.ALONE) for part in named]
        if len(whole) == 1:
            return [Failure(whole, error, Extent.ALONE)]
        middle = len(whole) // 2
        failures: list[Failure[T, E]] = []
        remaining: Sequence[T] = whole
        for half in (whole[:middle], whole[middle:]):
            if self.compilations >= self.allowed:
                return failures or [Failure(remaining, error, Extent.UNFINISHED)]
            self.compilations += 1
            failure = self._compile(half)
            if failure is None:
                remaining = whole[middle:]
            else:
                failures += self.search(half, failure)
        return failures or [Failure(whole, error, Extent.TOGETHER)]
