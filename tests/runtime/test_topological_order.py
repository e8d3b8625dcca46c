"""Groups of tasks: in one piece wherever others need not run in the middle of them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.placement.segments import topological_order


@st.composite
def tasks(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]]]:
    """The readers of what each task makes, and disjoint groups."""
    count = draw(st.integers(1, 9))
    later = [st.sets(st.integers(i + 1, count - 1), max_size=3) for i in range(count - 1)]
    readers = [sorted(draw(some)) for some in later] + [[]]
    numbers = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    groups = [[i for i, own in enumerate(numbers) if own == n] for n in (1, 2, 3)]
    return readers, [group for group in groups if group]


def reached(readers: Sequence[Sequence[int]], start: int) -> set[int]:
    found: set[int] = set()
    pending = [start]
    while pending:
        for reader in readers[pending.pop()]:
            if reader not in found:
                found.add(reader)
                pending.append(reader)
    return found


def is_open(readers: Sequence[Sequence[int]], group: Sequence[int]) -> bool:
    """Tell whether something outside of a group reads what one of it makes, for another of it."""
    behind = set().union(*(reached(readers, task) for task in group)) - set(group)
    return any(reached(readers, task) & set(group) for task in behind)


@given(tasks())
def test_each_task_is_there_once_after_those_that_it_waits_for(
    given: tuple[list[list[int]], list[list[int]]],
) -> None:
    readers, groups = given
    units = topological_order(readers, groups)
    assert sorted(task for unit in units for task in unit) == list(range(len(readers)))
    place = {task: number for number, unit in enumerate(units) for task in unit}
    for task, others in enumerate(readers):
        assert all(place[task] <= place[reader] for reader in others)
    for unit in units:
        assert len(unit) == 1 or unit in groups


@given(tasks())
def test_a_group_alone_falls_apart_only_if_others_must_run_in_the_middle(
    given: tuple[list[list[int]], list[list[int]]],
) -> None:
    readers, groups = given
    for group in groups:
        together = len(group) == 1 or group in topological_order(readers, [group])
        assert together != is_open(readers, group)


def test_two_groups_that_wait_for_each_other_cost_the_larger_one() -> None:
    readers = [[3], [2], [], [], []]  # 0 -> 3 and 1 -> 2
    units = topological_order(readers, [[0, 2, 4], [1, 3]])
    assert [1, 3] in units
    assert [0, 2, 4] not in units
