"""Finding what a compiler refuses, where it does not say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def refused(parts: Sequence[T], compiles: Callable[[Sequence[T]], bool], tries: int) -> list[T]:
    """The parts that do not compile on their own, of a whole that does not.

    Args:
        parts: what the whole is made of, in order.
        compiles: whether some of them, in order, compile without the rest.
        tries: how many times to ask at most.

    Returns:
        Those that were found; none if all halves compile and only the whole does not, or if the
        tries did not do.
    """
    found: list[T] = []
    pending = [parts]
    while pending:
        whole = pending.pop()
        if len(whole) == 1:
            found.extend(whole)
            continue
        middle = len(whole) // 2
        for half in (whole[:middle], whole[middle:]):
            tries -= 1
            if tries < 0:
                return found
            if not compiles(half):
                pending.append(half)
    return found
