"""The search for what is wrong among things of which parts can be tried, in few trials.

Halves are tried, and halves of those that are wrong: a culprit takes two trials for each time that
the number of things can be halved. Where both halves are right but not the whole, things are wrong
only together: then those of one half are sought while the other half is there, and the other way
round (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


def halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """The first half and the second, which is the larger one if they are not equal."""
    middle = len(items) // 2
    return items[:middle], items[middle:]


def _ends(size: int, count: int) -> Sequence[int]:
    """So many places in a row of things, at most, in their order.

    About half are evenly apart. The others come closer and closer to the end: there models average,
    and normalize, which hides most.
    """
    close = [size - 2**k for k in range(min(count // 2, max(0, size - 1).bit_length()))]
    even = count - len(close)
    even_ends = [size * part // (even + 1) for part in range(1, even + 1)]
    return sorted({end for end in (*close, *even_ends) if 0 < end < size})


class Search(Generic[T]):
    """A search; what has been tried once is not tried again.

    Args:
        is_wrong: tries things, in their order, without all others.

    Attributes:
        found: the culprits so far, each one thing or those that are wrong only together.
    """

    def __init__(self, is_wrong: Callable[[Sequence[T]], bool]) -> None:
        self.groups: list[tuple[T, ...]] = []
        self._is_wrong = is_wrong
        self._tried: dict[frozenset[T], bool] = {}

    def exhaust(self, items: Sequence[T], pieces: int = 1) -> None:
        """Find culprits until what is left is right, as a whole and in pieces.

        Of errors that hide each other in the whole, pieces show each.

        Args:
            items: where to look.
            pieces: how many parts of what looks right are tried by themselves; 1 for none.
        """
        left = self._cleared(items)
        size = -(-len(left) // pieces) if pieces > 1 else len(left)
        if size == len(left):
            return
        for start in range(0, len(left), size):
            self._cleared(left[start : start + size])

    def exhaust_beginnings(self, items: Sequence[T], count: int) -> None:
        """Find culprits among the first things, in one trial after another more of them.

        What later things hide shows at the end of a beginning; those that are wrong only together
        are both in one, as they are in no piece.

        Args:
            items: where to look.
            count: how many beginnings are tried, at most.
        """
        for end in _ends(len(items), count):
            guilty = {item for group in self.groups for item in group}
            self._cleared([item for item in items[:end] if item not in guilty])

    def _cleared(self, items: Sequence[T]) -> Sequence[T]:
        """What is left of things once all culprits are found that the whole shows."""
        left = list(items)
        while left and self._wrong(left):
            self._find_within(left)
            guilty = {item for group in self.groups for item in group}
            left = [item for item in left if item not in guilty]
        return left

    def _find_within(self, items: Sequence[T]) -> None:
        """Find culprits among things that are wrong."""
        if len(items) == 1:
            self.groups.append(tuple(items))
            return
        wrong = [half for half in halves(items) if self._wrong(half)]
        for half in wrong:
            self._find_within(half)
        if not wrong:
            self.groups.append(self._together(items))

    def _together(self, items: Sequence[T]) -> tuple[T, ...]:
        """Those that are wrong only together, of things whose halves are right."""
        first, second = halves(items)
        needed = self._needed(first, second)
        needed += self._needed(second, needed)
        return tuple(self._fewest([item for item in items if item in set(needed)]))

    def _fewest(self, items: Sequence[T]) -> Sequence[T]:
        """What is left of a few things without those that need not be there.

        Larger parts may not have been what they would be: not all of them can be tried.
        """
        if len(items) <= 2:
            return items
        for item in items:
            others = [other for other in items if other != item]
            if self._wrong(others):
                return self._fewest(others)
        return items

    def _needed(self, items: Sequence[T], others: Sequence[T]) -> list[T]:
        """Those without which the others are right, while with all of them they are wrong."""
        if len(items) == 1:
            return list(items)
        first, second = halves(items)
        for half in (first, second):
            if self._wrong([*half, *others]):
                return self._needed(half, others)
        needed = self._needed(first, [*second, *others])
        return needed + self._needed(second, [*needed, *others])

    def _wrong(self, items: Sequence[T]) -> bool:
        key = frozenset(items)
        known = self._tried.get(key)
        if known is None:
            known = self._tried[key] = self._is_wrong(items)
        return known
