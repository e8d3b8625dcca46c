"""The search among things of which parts can be tried."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from crosschip.bisect.search import Search


class Planted:
    """Things of which some are wrong, or wrong only together; counts how often it is asked."""

    def __init__(self, groups: Sequence[frozenset[int]]) -> None:
        self.groups = groups
        self.asked = 0

    def __call__(self, items: Sequence[int]) -> bool:
        assert sorted(items) == list(items) or len(set(items)) == len(items)
        self.asked += 1
        return any(group.issubset(items) for group in self.groups)


@st.composite
def planted(draw: st.DrawFn) -> tuple[int, list[frozenset[int]]]:
    """A number of things, and disjoint groups of one or two of them."""
    count = draw(st.integers(1, 300))
    sizes = draw(st.lists(st.integers(1, 2), max_size=3))
    most = min(count, sum(sizes))
    chosen = draw(st.lists(st.integers(0, count - 1), unique=True, min_size=most, max_size=most))
    groups = []
    for size in sizes:
        group, chosen = chosen[:size], chosen[size:]
        if group:
            groups.append(frozenset(group))
    return count, groups


@given(planted())
def test_what_is_named_is_what_is_wrong_and_it_takes_few_trials(
    case: tuple[int, list[frozenset[int]]],
) -> None:
    count, groups = case
    is_wrong = Planted(groups)
    search = Search(is_wrong)
    search.exhaust(range(count), 1)
    assert sorted(map(sorted, search.groups)) == sorted(map(sorted, groups))
    guilty = sum(map(len, groups))
    assert is_wrong.asked <= 1 + guilty * (3 * math.ceil(math.log2(count + 1)) + 3)


def test_pieces_show_what_hides_in_the_whole() -> None:
    """Each of the two is wrong, but they make good for each other."""
    search: Search[int] = Search(lambda items: (3 in items) != (40 in items))
    search.exhaust(range(64), 1)
    assert search.groups == []
    search.exhaust(range(64), 16)
    assert sorted(search.groups) == [(3,), (40,)]


def test_nothing_is_tried_twice() -> None:
    seen: set[frozenset[int]] = set()

    def is_wrong(items: Sequence[int]) -> bool:
        assert frozenset(items) not in seen
        seen.add(frozenset(items))
        return 7 in items

    search = Search(is_wrong)
    search.exhaust(range(100))
    assert search.groups == [(7,)]


def test_beginnings_show_what_later_things_hide() -> None:
    """Two that are wrong only together, too far from each other for a piece, hidden at the end."""
    trials: list[int] = []

    def is_wrong(items: Sequence[int]) -> bool:
        trials.append(len(items))
        return {10, 70} <= set(items) and 90 not in items

    search = Search(is_wrong)
    search.exhaust(range(100), 8)
    assert not search.groups
    search.exhaust_prefixes(range(100), 8)
    assert search.groups == [(10, 70)]
    assert len(trials) < 60


@given(size=st.integers(0, 300), count=st.integers(0, 40), data=st.data())
def test_beginnings_go_up_to_places_all_along_and_closer_at_the_end(
    size: int, count: int, data: st.DataObject
) -> None:
    trials: list[int] = []

    def is_right(items: Sequence[int]) -> bool:
        trials.append(len(items))
        return False

    search = Search(is_right)
    search.exhaust_prefixes(range(size), count)
    assert len(trials) <= count
    assert trials == sorted(set(trials))
    assert all(0 < each < size for each in trials)
    if size < 10 or count < 16:
        return
    # Two that are wrong only together, the second close to the end, and hidden there.
    last = data.draw(st.integers(size - 8, size - 2))
    first = data.draw(st.integers(0, last - 1))

    def is_wrong(items: Sequence[int]) -> bool:
        return {first, last} <= set(items) and not set(range(last + 3, size)) & set(items)

    search = Search(is_wrong)
    search.exhaust_prefixes(range(size), count)
    if any(last < size - 2**k <= last + 3 for k in range(4)):
        assert search.groups == [(first, last)]
