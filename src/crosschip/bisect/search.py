"""Delta debugging: the search for failing items with few trials of subsets.

A failing set is halved; a single failing item takes two trials per halving. If a set fails but both
halves pass, items fail only together. Then each half is searched with the other half present
(Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


def halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """Return both halves; the second is larger if they are not equal."""
    middle = len(items) // 2
    return items[:middle], items[middle:]


def _prefix_lengths(size: int, count: int) -> Sequence[int]:
    """Return at most `count` lengths of prefixes of a sequence, in ascending order.

    About half are evenly spaced. The others approach the end, where models average and normalize,
    which hides most errors.
    """
    near_end = [size - 2**k for k in range(min(count // 2, max(0, size - 1).bit_length()))]
    even = count - len(near_end)
    evenly = [size * part // (even + 1) for part in range(1, even + 1)]
    return sorted({end for end in (*near_end, *evenly) if 0 < end < size})


class Search(Generic[T]):
    """A search for failing items, whose trials are cached.

    Args:
        is_wrong: returns whether a subset of items, in order, fails.

    Attributes:
        groups: the failing groups so far: single items, or items that fail only together.
    """

    def __init__(self, is_wrong: Callable[[Sequence[T]], bool]) -> None:
        self.groups: list[tuple[T, ...]] = []
        self._is_wrong = is_wrong
        self._results: dict[frozenset[T], bool] = {}

    def exhaust(self, items: Sequence[T], pieces: int = 1) -> None:
        """Find failing groups until the remaining items pass, as a whole and in pieces.

        Pieces show errors that hide each other in the whole.

        Args:
            items: the items.
            pieces: the number of pieces of the remaining items that are tried; 1 for none.
        """
        remaining = self._exhaust_once(items)
        size = -(-len(remaining) // pieces) if pieces > 1 else len(remaining)
        if size == len(remaining):
            return
        for start in range(0, len(remaining), size):
            self._exhaust_once(remaining[start : start + size])

    def exhaust_prefixes(self, items: Sequence[T], count: int) -> None:
        """Find failing groups in prefixes of the items.

        A prefix shows errors that later items hide; and items that fail only together are in a
        common prefix, but maybe in different pieces.

        Args:
            items: the items.
            count: the maximum number of prefixes that are tried.
        """
        for end in _prefix_lengths(len(items), count):
            failing = {item for group in self.groups for item in group}
            self._exhaust_once([item for item in items[:end] if item not in failing])

    def _exhaust_once(self, items: Sequence[T]) -> Sequence[T]:
        """Find failing groups until the remaining items pass; return these."""
        remaining = list(items)
        while remaining and self._is_wrong_cached(remaining):
            self._find_groups(remaining)
            failing = {item for group in self.groups for item in group}
            remaining = [item for item in remaining if item not in failing]
        return remaining

    def _find_groups(self, items: Sequence[T]) -> None:
        """Find failing groups in a failing set of items."""
        if len(items) == 1:
            self.groups.append(tuple(items))
            return
        wrong = [half for half in halves(items) if self._is_wrong_cached(half)]
        for half in wrong:
            self._find_groups(half)
        if not wrong:
            self.groups.append(self._find_joint_group(items))

    def _find_joint_group(self, items: Sequence[T]) -> tuple[T, ...]:
        """Return items that fail only together, from a failing set with passing halves."""
        first, second = halves(items)
        required = self._required_items(first, second)
        required += self._required_items(second, required)
        return tuple(self._minimize([item for item in items if item in set(required)]))

    def _minimize(self, items: Sequence[T]) -> Sequence[T]:
        """Remove items from a failing group that need not be in it."""
        if len(items) <= 2:
            return items
        for item in items:
            others = [other for other in items if other != item]
            if self._is_wrong_cached(others):
                return self._minimize(others)
        return items

    def _required_items(self, items: Sequence[T], others: Sequence[T]) -> list[T]:
        """Return the items that `others` need to fail; with all items they fail."""
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
