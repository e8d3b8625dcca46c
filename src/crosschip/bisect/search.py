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


def _prefix_lengths(size: int, count: int) -> Sequence[int]:
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
        self._results: dict[frozenset[T], bool] = {}

    def exhaust(self, items: Sequence[T], pieces: int = 1) -> None:
        """Find culprits until what is left is right, as a whole and in pieces.

        Of errors that hide each other in the whole, pieces show each.

        Args:
            items: where to look.
            pieces: how many parts of what looks right are tried by themselves; 1 for none.
        """
        remaining = self._exhaust_once(items)
        size = -(-len(remaining) // pieces) if pieces > 1 else len(remaining)
        if size == len(remaining):
            return
        for start in range(0, len(remaining), size):
            self._exhaust_once(remaining[start : start + size])

    def exhaust_prefixes(self, items: Sequence[T], count: int) -> None:
        """Find culprits among the first things, in one trial after another more of them.

        What later things hide shows at the end of a beginning; those that are wrong only together
        are both in one, as they are in no piece.

        Args:
            items: where to look.
            count: how many beginnings are tried, at most.
        """
        for end in _prefix_lengths(len(items), count):
            failing = {item for group in self.groups for item in group}
            self._exhaust_once([item for item in items[:end] if item not in failing])

    def _exhaust_once(self, items: Sequence[T]) -> Sequence[T]:
        """What is left of things once all culprits are found that the whole shows."""
        remaining = list(items)
        while remaining and self._is_wrong_cached(remaining):
            self._find_groups(remaining)
            failing = {item for group in self.groups for item in group}
            remaining = [item for item in remaining if item not in failing]
        return remaining

    def _find_groups(self, items: Sequence[T]) -> None:
        """Find culprits among things that are wrong."""
        if len(items) == 1:
            self.groups.append(tuple(items))
            return
        wrong = [half for half in halves(items) if self._is_wrong_cached(half)]
        for half in wrong:
            self._find_groups(half)
        if not wrong:
            self.groups.append(self._find_joint_group(items))

    def _find_joint_group(self, items: Sequence[T]) -> tuple[T, ...]:
        """Those that are wrong only together, of things whose halves are right."""
        first, second = halves(items)
        required = self._required_items(first, second)
        required += self._required_items(second, required)
        return tuple(self._minimize([item for item in items if item in set(required)]))

    def _minimize(self, items: Sequence[T]) -> Sequence[T]:
        """What is left of a few things without those that need not be there.

        Larger parts may not have been what they would be: not all of them can be tried.
        """
        if len(items) <= 2:
            return items
        for item in items:
            others = [other for other in items if other != item]
            if self._is_wrong_cached(others):
                return self._minimize(others)
        return items

    def _required_items(self, items: Sequence[T], others: Sequence[T]) -> list[T]:
        """Those without which the others are right, while with all of them they are wrong."""
        if len(items) == 1:
            return list(items)
        first, second = halves(items)
        for half in (first, second):
            if self._is_wrong_cached([*half, *others]):
                return self._required_items(half, others)
        required = self._required_items(first, [*second, *others])
        return required + self._required_items(second, [*required, *others])

    def _is_wrong_cached(self, items: Sequence[T]) -> bool:
        key = frozenset(items)
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = self._is_wrong(items)
        return result
