"""The objective of placement, compared with sums in plain Python and all orders of blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from benchmarks.placement_problems import random_problem
from hypothesis import given
from hypothesis import strategies as st

from crosschip.runtime.placement.search.alternatives import alternatives
from crosschip.runtime.placement.search.problem import HOST, PlacementProblem, Solution, Tensor


def fewest_launches(problem: PlacementProblem, devices: list[int]) -> tuple[int, set[float]]:
    """The fewest segments of all orders of blocks, and the launches of orders that have them."""
    labels = [
        (device, 0 if problem.dialects is None else int(problem.dialects[block, device]))
        for block, device in enumerate(devices)
    ]
    before: list[set[int]] = [set() for _ in labels]
    for tensor in problem.tensors:
        for reader in tensor.readers:
            if reader != HOST and tensor.source != HOST:
                before[reader].add(tensor.source)

    @cache
    def rest(done: frozenset[int], last: tuple[int, int] | None) -> frozenset[tuple[int, float]]:
        if len(done) == len(labels):
            return frozenset({(0, 0.0)})
        options = set()
        for block, label in enumerate(labels):
            if block not in done and before[block] <= done:
                starts = label != last
                seconds = float(problem.launch_seconds[label[0]]) if starts else 0.0
                for count, launches in rest(done | {block}, label):
                    options.add((count + starts, round(launches + seconds, 12)))
        least = min(count for count, _ in options)
        return frozenset(option for option in options if option[0] <= least + 1)

    options = rest(frozenset(), None)
    least = min(count for count, _ in options)
    return least, {launches for count, launches in options if count == least}


def plain_seconds(problem: PlacementProblem, devices: list[int]) -> float:
    """The duration of blocks and transfers."""
    host = len(problem.devices)
    total = sum(problem.seconds[block, device] for block, device in enumerate(devices))
    for tensor in problem.tensors:
        origin = host if tensor.source == HOST else devices[tensor.source]
        for destination in {host if r == HOST else devices[r] for r in tensor.readers} - {origin}:
            total += problem.latency[origin, destination]
            total += tensor.bytes * problem.seconds_per_byte[origin, destination]
    return float(total)


@given(st.integers(0, 10**6), st.integers(1, 7), st.integers(1, 4), st.booleans(), st.data())
def test_the_objective_is_the_sum_of_blocks_transfers_and_launches(
    seed: int, blocks: int, devices: int, constraints: bool, data: st.DataObject
) -> None:
    problem = random_problem(seed, blocks, devices, constraints=constraints)
    placed = data.draw(st.lists(st.integers(0, devices - 1), min_size=blocks, max_size=blocks))
    count, launches = fewest_launches(problem, placed)
    segments = problem.segments(placed)
    assert len(segments) == count
    assert sorted(block for segment in segments for block in segment) == list(range(blocks))
    expected = {plain_seconds(problem, placed) + each for each in launches}
    assert any(problem.predicted_seconds(placed) == pytest.approx(each) for each in expected)


@given(st.integers(0, 10**6), st.integers(1, 8), st.data())
def test_alternatives_are_the_differences_of_the_whole(
    seed: int, blocks: int, data: st.DataObject
) -> None:
    problem = random_problem(seed, blocks, 3, constraints=True)
    allowed = [np.flatnonzero(np.isfinite(row)).tolist() for row in problem.seconds]
    placed = [data.draw(st.sampled_from(devices)) for devices in allowed]
    seconds = problem.predicted_seconds(placed)
    transfers = problem.transfers.count(np.array(placed))
    solution = Solution(tuple(placed), seconds, len(problem.segments(placed)))
    for block, others in enumerate(alternatives(problem, solution)):
        assert [other.device for other in others] == sorted({0, 1, 2} - {placed[block]})
        for other in others:
            moved = [*placed[:block], other.device, *placed[block + 1 :]]
            assert other.transfers == problem.transfers.count(np.array(moved)) - transfers
            whole = problem.predicted_seconds(moved)
            assert seconds + other.seconds == pytest.approx(whole)


def test_a_tensor_goes_once_to_each_device() -> None:
    ones = np.ones((4, 4)) - np.eye(4)
    problem = PlacementProblem(
        devices=("a", "b", "c"),
        seconds=np.zeros((4, 3)),
        tensors=(Tensor(0, (1, 2, 3, HOST), 10),),
        latency=ones,
        seconds_per_byte=ones / 10,
        launch_seconds=np.zeros(3),
    )
    assert problem.predicted_seconds([0, 1, 1, 2]) == pytest.approx(2 + 2 + 2)
    assert problem.predicted_seconds([0, 0, 0, 1]) == pytest.approx(2 + 2)
    assert problem.transfers.count(np.array([0, 1, 1, 2])) == 3


def test_the_runtime_can_have_a_segment_for_each_block() -> None:
    problem = random_problem(0, 3, 1, chain=True)
    assert len(problem.segments([0, 0, 0])) == 1
    apart = replace(problem, dialects=np.arange(3)[:, None])
    assert len(apart.segments([0, 0, 0])) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latency": np.zeros((2, 2))}, r"latency has shape \(2, 2\), not \(3, 3\)"),
        ({"tensors": (Tensor(1, (0,), 1),)}, "block 0 reads a tensor of block 1"),
        ({"tensors": (Tensor(5, (0,), 1),)}, "a tensor's source is no block"),
        ({"tensors": (Tensor(0, (7,), 1),)}, "a tensor's reader is no block"),
        ({"memory_limits": {"chip0": 1}}, "memory_limits without memory"),
    ],
)
def test_invalid_problems_are_refused(changes: dict[str, Any], message: str) -> None:
    problem = random_problem(0, 3, 2)
    with pytest.raises(ValueError, match=message):
        replace(problem, **changes)
