"""Simulated chips compute what the reference computes, in the time that the objective predicts."""

from __future__ import annotations

import time
from itertools import cycle

import numpy as np
from benchmarks.simulated_chips import (
    HOST_NAME,
    SimulatedChip,
    SimulatedChips,
    random_chips,
    simulated_devices,
    simulated_problem,
)
from tests.modelling import float32, outputs_of

import crosschip as cc
from crosschip.ir import Builder, Model
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.placement.search.solver import solve

OPERATORS = ("ADD", "RELU", "SIGMOID", "TANH")


def branched(length: int) -> Model:
    """Two branches of unary operators from one input, added at the end."""
    b = Builder("branched")
    x = b.input("x", float32(4, 1000))
    ends = []
    for operators in ((Relu, Tanh, Sigmoid), (Sigmoid, Relu, Tanh)):
        y = x
        for _, operator in zip(range(length), cycle(operators), strict=False):
            y = b.add(operator, y)
        ends.append(y)
    b.output("y", b.add(Add, *ends))
    return b.build()


def test_a_placement_takes_the_predicted_time() -> None:
    model = branched(5)
    inputs = {"x": np.random.default_rng(0).normal(size=(4, 1000)).astype(np.float32)}
    expected = outputs_of(model, inputs)["y"]
    several = 0
    for seed in range(4):
        chips = random_chips(seed, OPERATORS)
        problem = simulated_problem(model, chips)
        best = solve(problem)[0]
        several += len(set(best.devices)) > 1
        pins = {
            operation.name: problem.devices[device]
            for operation, device in zip(model.operations, best.devices, strict=True)
        }
        compiled = cc.compile(
            model, simulated_devices(chips), placement=cc.PlacementOptions(pin=pins), cache=False
        )
        assert len(compiled.placement.segments) == best.segments
        durations = []
        for _ in range(5):
            start = time.perf_counter()
            np.testing.assert_array_equal(compiled.run(inputs)["y"], expected)
            durations.append(time.perf_counter() - start)
        # A loaded machine runs late, but never early.
        assert min(durations) >= best.seconds
        assert min(durations) < 1.5 * best.seconds + 0.01
    assert several


def test_measured_placement_is_near_the_optimum_of_the_table() -> None:
    model = branched(8)
    chips = random_chips(2, OPERATORS)
    problem = simulated_problem(model, chips)
    alone = min(problem.predicted_seconds([chip] * problem.blocks) for chip in range(5))
    optimum = solve(problem)[0].seconds
    assert optimum < 0.8 * alone
    options = cc.PlacementOptions(strategy="measured", tuning_seconds=10)
    compiled = cc.compile(model, simulated_devices(chips), placement=options, cache=False)
    devices = {decision.operation: decision.device for decision in compiled.placement.decisions}
    numbers = {name: number for number, name in enumerate(problem.devices)}
    placed = [numbers[devices[operation] or ""] for operation in model.operations]
    assert problem.predicted_seconds(placed) < 1.1 * optimum


def test_a_tensor_goes_once_to_each_chip() -> None:
    chips = SimulatedChips(
        {name: SimulatedChip({}, 0.0, 0.0) for name in "ab"},
        {("a", "b"): 1.0, (HOST_NAME, "a"): 2.0},
        {("a", "b"): 0.5},
    )
    a, b = simulated_devices(chips)
    array = np.zeros(4, np.int8)
    assert a.transfer(array) == a.transfer(array) == 2.0  # the host's arrays are not remembered
    a.add_outputs([array])
    assert [a.transfer(array), b.transfer(array), b.transfer(array)] == [0.0, 3.0, 0.0]


def test_an_operator_that_is_not_in_the_table_is_declined() -> None:
    chips = SimulatedChips({"a": SimulatedChip({"RELU": 0.0, "TANH": 0.0}, None, 0.0)})
    placement = cc.explain(branched(2), [*simulated_devices(chips), "reference"])
    devices = {decision.type: decision.device for decision in placement.decisions}
    assert devices == {"RELU": "a", "TANH": "a", "SIGMOID": "reference", "ADD": "reference"}
