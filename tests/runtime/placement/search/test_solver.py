"""The search for placements, compared with exhaustive search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from benchmarks.placement_problems import optimal_seconds, random_problem, violations
from hypothesis import given, settings
from hypothesis import strategies as st

from crosschip.runtime.placement.search.costs import Costs
from crosschip.runtime.placement.search.cuts import place_by_cuts
from crosschip.runtime.placement.search.frontier import place_along
from crosschip.runtime.placement.search.problem import InfeasibleError, PlacementProblem, Solution
from crosschip.runtime.placement.search.solver import executable_order, solve

SEEDS = st.integers(0, 10**6)


def placements(problem: PlacementProblem) -> Sequence[Sequence[int]]:
    """All placements that meet the constraints."""
    everywhere = product(range(len(problem.devices)), repeat=problem.blocks)
    return [devices for devices in everywhere if not violations(problem, devices)]


@pytest.mark.parametrize("seed", range(60))
def test_small_graphs_are_within_a_percent_of_the_optimum(seed: int) -> None:
    problem = random_problem(seed, 2 + seed % 13)
    best = solve(problem)[0]
    assert best.seconds == pytest.approx(problem.predicted_seconds(best.devices))
    assert best.seconds <= 1.01 * optimal_seconds(problem, best.seconds)


@given(SEEDS, st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=30)
def test_the_oracle_finds_the_optimum_of_all_placements(
    seed: int, blocks: int, devices: int
) -> None:
    problem = random_problem(seed, blocks, devices)
    optimum = min(map(problem.predicted_seconds, placements(problem)))
    assert optimal_seconds(problem, np.inf) == pytest.approx(optimum)


@given(SEEDS, st.integers(1, 30), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_chains_are_optimal(seed: int, blocks: int, devices: int) -> None:
    problem = random_problem(seed, blocks, devices, chain=True)
    best = solve(problem)[0].seconds
    assert best == pytest.approx(optimal_seconds(problem, 1.001 * best))


@given(SEEDS, st.integers(1, 7), st.integers(1, 3))
@settings(max_examples=30, deadline=None)
def test_chains_keep_the_maximum_of_segments_optimally(seed: int, blocks: int, most: int) -> None:
    problem = replace(random_problem(seed, blocks, 3, chain=True), max_segments=most)
    allowed = placements(problem)
    if allowed:
        optimum = min(map(problem.predicted_seconds, allowed))
        assert solve(problem)[0].seconds == pytest.approx(optimum)
    else:
        with pytest.raises(InfeasibleError):
            solve(problem)


@pytest.mark.slow
@given(SEEDS, st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_two_devices_without_launches_are_optimal(seed: int, blocks: int) -> None:
    problem = random_problem(seed, blocks, 2, launch=0.0)
    best = solve(problem)[0].seconds
    assert best == pytest.approx(optimal_seconds(problem, 1.001 * best), rel=1e-6)
    # A cut from any placement that is allowed is optimal if it may go to the other device.
    refused = np.isinf(problem.seconds[:, 0])
    start = np.where(refused, 1, 0)
    cut = place_by_cuts(problem, Costs.of(problem), start, 0.0, 1, lambda: False)
    assert problem.predicted_seconds(cut) == pytest.approx(best, rel=1e-6)


@given(SEEDS, st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_dynamic_programming_is_exact_without_launches(seed: int, blocks: int) -> None:
    problem = random_problem(seed, blocks, 3, launch=0.0)
    orders = [
        range(blocks),
        executable_order(problem.transfers.readers, [-b for b in range(blocks)]),
    ]
    costs = Costs.of(problem)
    for order in orders:
        best = place_along(problem, costs, order, 10**6, limited=False)[0]
        seconds = problem.predicted_seconds(best)
        assert seconds == pytest.approx(optimal_seconds(problem, 1.001 * seconds))


@pytest.mark.slow
@given(SEEDS, st.integers(1, 14), st.integers(1, 5))
@settings(max_examples=150, deadline=None)
def test_constraints_are_never_violated(seed: int, blocks: int, devices: int) -> None:
    problem = random_problem(seed, blocks, devices, constraints=True)
    try:
        solutions = solve(problem)
    except InfeasibleError:
        return
    assert solutions
    assert [each.seconds for each in solutions] == sorted(each.seconds for each in solutions)
    assert len({each.devices for each in solutions}) == len(solutions)
    for each in solutions:
        assert not violations(problem, each.devices)
        assert each.seconds == pytest.approx(problem.predicted_seconds(each.devices))
        assert each.segments == len(problem.segments(each.devices))


@given(SEEDS, st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_a_placement_is_found_if_there_is_one(seed: int, blocks: int, devices: int) -> None:
    problem = random_problem(seed, blocks, devices, constraints=True)
    allowed = placements(problem)
    if allowed:
        optimum = min(map(problem.predicted_seconds, allowed))
        assert solve(problem)[0].seconds <= 1.01 * optimum
    else:
        with pytest.raises(InfeasibleError):
            solve(problem)


@pytest.mark.slow
@given(SEEDS, st.integers(1, 8))
@settings(max_examples=30, deadline=None)
def test_more_devices_and_fewer_limits_never_cost_time(seed: int, blocks: int) -> None:
    problem = random_problem(seed, blocks, 4, constraints=True)
    problem = replace(problem, memory_limits={}, max_segments=None)
    best = solve(problem)[0].seconds
    seconds = problem.seconds.copy()
    seconds[:, 3] = np.inf
    for harder in (
        replace(problem, seconds=seconds),
        replace(problem, max_segments=2),
        replace(problem, memory_limits=dict.fromkeys(problem.devices, 10**6)),
    ):
        try:
            assert best <= solve(harder)[0].seconds * (1 + 1e-9)
        except InfeasibleError:
            continue


def test_the_search_is_deterministic() -> None:
    problem = random_problem(3, 60)
    assert solve(problem, seconds=30.0) == solve(problem, seconds=30.0)


@pytest.mark.parametrize("chain", [True, False])
def test_ten_thousand_blocks_take_seconds(chain: bool) -> None:
    problem = random_problem(0, 10_000, chain=chain)
    solutions = solve(problem)
    singles = [
        problem.predicted_seconds(
            np.where(np.isfinite(row), device, problem.seconds.argmin(axis=1))
        )
        for device, row in enumerate(problem.seconds.T)
    ]
    assert solutions[0].seconds < min(singles)


@pytest.mark.slow
def test_large_problems_keep_memory_limits() -> None:
    problem = random_problem(0, 8_000)
    problem = replace(
        problem,
        memory=np.full(problem.seconds.shape, 1_000),
        memory_limits={"chip0": 500_000, "chip1": 1_000_000, "chip2": 100_000},
    )
    for each in solve(problem):
        assert not violations(problem, each.devices)


@pytest.mark.parametrize("blocks", [100, 2_000])
def test_a_slightly_lower_limit_costs_little(blocks: int) -> None:
    problem = random_problem(1, blocks, 3)
    free = solve(problem)[0]
    occupied = np.bincount(free.devices, minlength=3) * 1_000
    most = int(occupied.argmax())
    limited = replace(
        problem,
        memory=np.full(problem.seconds.shape, 1_000),
        memory_limits={problem.devices[most]: int(0.9 * occupied[most])},
    )
    assert solve(limited)[0].seconds < 1.05 * free.seconds


def test_slightly_fewer_segments_cost_little() -> None:
    problem = random_problem(1, 500, 3)
    free = solve(problem)[0]
    fewer = replace(problem, max_segments=int(0.7 * free.segments))
    best = solve(fewer)[0]
    assert not violations(fewer, best.devices)
    assert best.seconds < 1.1 * free.seconds


def test_no_blocks_need_no_device() -> None:
    assert solve(random_problem(0, 0)) == [Solution((), 0.0, 0)]


def test_the_error_names_the_device_and_the_missing_bytes() -> None:
    problem = random_problem(0, 4, 2)
    seconds = np.array([[1.0, np.inf]] * 2 + [[1.0, 1.0]] * 2)
    memory = np.full((4, 2), 600)
    pinned = replace(problem, seconds=seconds, memory=memory, memory_limits={"chip0": 1_000})
    with pytest.raises(
        InfeasibleError, match=r"chip0: 2 blocks .* 1,200 bytes, 200 more than .* 1,000"
    ):
        solve(pinned)
    everywhere = replace(pinned, memory_limits={"chip0": 1_300, "chip1": 1_000})
    with pytest.raises(
        InfeasibleError, match=r"at least 2,400 bytes, 100 more than the memory limits"
    ):
        solve(everywhere)
    with pytest.raises(InfeasibleError, match=r"chip1 would need 1,200 bytes, 100 more than"):
        solve(replace(pinned, memory_limits={"chip0": 1_300, "chip1": 1_100}))


def test_the_error_names_the_block_without_a_device() -> None:
    problem = random_problem(0, 4, 2)
    seconds = problem.seconds.copy()
    seconds[2] = np.inf
    with pytest.raises(InfeasibleError, match="no device may run block 2, and 1 in all"):
        solve(replace(problem, seconds=seconds))


def test_the_error_names_the_segments() -> None:
    problem = random_problem(0, 3, 2, chain=True)
    seconds = np.array([[1.0, np.inf], [np.inf, 1.0], [1.0, np.inf]])
    with pytest.raises(InfeasibleError, match="3 segments, more than the maximum of 2"):
        solve(replace(problem, seconds=seconds, max_segments=2))
