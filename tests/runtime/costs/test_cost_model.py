"""The costs of blocks: measured within a budget, kept for later models, estimated for the rest.

The devices sleep after a table. The oracle is the table, with margins of several times, so that
other load does not matter.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import float32, model_of
from tests.runtime.costs.devices import (
    LAUNCH_SECONDS,
    SleepingDevice,
    answers_of,
    compilation_of,
    layers,
    sleeping,
)

from crosschip.hal import Options, Program
from crosschip.ir import Array, Builder, ElementType, If, Model, Operand, TensorType, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.searching import ArgMax
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.store import Store
from crosschip.runtime.costs.table import CostModel
from crosschip.runtime.placement.search.problem import HOST

pytestmark = pytest.mark.slow

SLOW, QUICK = 0.04, 0.002


def devices() -> dict[str, SleepingDevice]:
    """Two devices, each of which is slow where the other one is quick."""
    return sleeping(
        a={"RELU": QUICK, "TANH": SLOW, "SIGMOID": QUICK},
        b={"RELU": QUICK, "TANH": QUICK, "SIGMOID": SLOW},
    )


def whole_seconds(model: Model, devices: Mapping[str, SleepingDevice]) -> dict[str, float]:
    """The duration of a model on each device that runs it, after the tables."""
    types = [operation.type for operation in model.operations]
    return {
        name: LAUNCH_SECONDS + sum(device.seconds.get(type_, 0.0) for type_ in types)
        for name, device in devices.items()
        if not set(types) & set(device.declines)
    }


def cost_model(
    model: Model,
    devices: Mapping[str, SleepingDevice],
    store: Store | None = None,
    *,
    tuning_seconds: float = 8.0,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> CostModel:
    """The costs of a model's blocks, measured."""
    compilation = compilation_of(devices)
    costs = CostModel(
        model,
        compilation,
        answers_of(model, compilation),
        store,
        whole_seconds=whole_seconds(model, devices),
        tuning_seconds=tuning_seconds,
        shapes=shapes or {},
    )
    costs.measure()
    return costs


def test_costs_follow_the_devices() -> None:
    installed = devices()
    model = layers(3)
    costs = cost_model(model, installed)
    assert [block.operations for block in costs.blocks] == [(0,), (1,), (2,)]
    for index, operation in enumerate(model.operations):
        for name, device in installed.items():
            block = costs.costs(index, name)
            assert block is not None
            assert not block.estimated
            assert not block.reason
            expected = device.seconds[operation.type]
            assert expected / 3 < block.seconds < 3 * expected


def test_the_problem_predicts_mixtures() -> None:
    model = layers(4)
    problem = cost_model(model, devices()).problem()
    assert problem.devices == ("a", "b")
    quick, slow = [0, 1, 0, 0], [1, 0, 1, 1]
    assert 2 * QUICK < problem.predicted_seconds(quick) < SLOW
    assert SLOW < problem.predicted_seconds(slow) < 4 * SLOW
    assert problem.segments(quick) == [(0,), (1,), (2, 3)]
    whole = whole_seconds(model, devices())
    for index, name in enumerate(problem.devices):
        predicted = problem.predicted_seconds([index] * 4)
        assert predicted == pytest.approx(whole[name], rel=0.05)


def test_tensors_lead_from_the_host_through_the_blocks_to_the_host() -> None:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        y = b.add(Relu, x)
        return b.add(Tanh, y), y

    model = model_of(make, float32(1 << 16))
    costs = cost_model(model, devices())
    y = model.operations[0].outputs[0]
    assert {
        operand.name: (tensor.source, tensor.readers, tensor.bytes)
        for operand, tensor in costs.tensors
    } == {
        "x0": (HOST, (0,), 1 << 18),
        y.name: (0, (1, HOST), 1 << 18),
        model.operations[1].outputs[0].name: (1, (HOST,), 1 << 18),
    }
    problem = costs.problem(memory_limits={"a": 1000}, max_segments=2)
    assert problem.memory is not None
    np.testing.assert_array_equal(problem.memory, np.full((2, 2), 1 << 18))
    assert problem.memory_limits == {"a": 1000}
    assert problem.max_segments == 2


def test_a_device_has_no_costs_for_what_it_declines() -> None:
    installed = devices()
    installed["a"].declines = ("TANH",)
    costs = cost_model(layers(3), installed)
    assert costs.costs(1, "a") is None
    np.testing.assert_array_equal(np.isinf(costs.problem().seconds[:, 0]), [False, True, False])
    block = costs.costs(1, "b")  # nothing to choose, so nothing to measure
    assert block is not None
    assert block.estimated


def test_equal_blocks_are_measured_once() -> None:
    installed = devices()
    costs = cost_model(layers(30), installed)
    assert len(costs.blocks) == 30
    assert len({block.signature for block in costs.blocks}) == 3
    compiled = [name for name in installed["a"].compiled if name.endswith(".block.0")]
    assert len(compiled) == 3


def test_later_models_use_what_was_measured(tmp_path: Path) -> None:
    first, second = devices(), devices()
    expected = cost_model(layers(3), first, Cache(tmp_path)).problem().seconds
    costs = cost_model(layers(3), second, Cache(tmp_path))
    assert not any(device.runs or device.compiled for device in second.values())
    np.testing.assert_allclose(costs.problem().seconds, expected)
    longer = cost_model(layers(5), second, Cache(tmp_path))  # of the same blocks
    assert not any(device.runs for device in second.values())
    assert not any(block.estimated for i in range(5) if (block := longer.costs(i, "a")))


def test_another_device_version_or_option_is_measured(tmp_path: Path) -> None:
    class Newer(SleepingDevice):
        version = "2.0"

    cost_model(layers(3), devices(), Cache(tmp_path))
    newer = {n: Newer(n, device.seconds) for n, device in devices().items()}
    cost_model(layers(3), newer, Cache(tmp_path))
    assert all(device.runs for device in newer.values())


@pytest.mark.parametrize("damage", [b"", b"garbage", b"\0" * 5000])
def test_damaged_records_are_measured_again(
    damage: bytes, tmp_path: Path, warnings: Callable[[], list[str]]
) -> None:
    cost_model(layers(3), devices(), Cache(tmp_path))
    for file in tmp_path.glob("*.chip"):
        file.write_bytes(damage)
    again = devices()
    costs = cost_model(layers(3), again, Cache(tmp_path))
    assert all(device.runs for device in again.values())
    assert len(warnings()) >= 2
    assert not any(block.estimated for i in range(3) if (block := costs.costs(i, "a")))


class Interrupted(SleepingDevice):
    """A device whose program is interrupted in its first run of a block."""

    def compile(self, model: Model, options: Options) -> Program:
        program = super().compile(model, options)
        if model.name.endswith("block.0"):
            program.run = self.interrupt  # type: ignore[method-assign]
        return program

    def interrupt(self, inputs: object) -> list[Array]:
        raise KeyboardInterrupt


def test_an_interruption_leaves_no_program_open(tmp_path: Path) -> None:
    installed = {"a": devices()["a"], "b": Interrupted("b", {})}
    with pytest.raises(KeyboardInterrupt):
        cost_model(layers(3), installed, Cache(tmp_path))
    assert [device.opened for device in installed.values()] == [0, 0]
    # What was measured before, the transfers, is kept.
    again = devices()
    cost_model(layers(3), again, Cache(tmp_path))
    assert not any(name.startswith("transfer") for d in again.values() for name in d.compiled)


class SlowCompiler(SleepingDevice):
    """A device that compiles a block in a fifth of a second."""

    def compile(self, model: Model, options: Options) -> Program:
        if "block" in model.name:
            time.sleep(0.2)
        return super().compile(model, options)


def test_the_budget_is_kept_and_the_rest_estimated() -> None:
    installed = {name: SlowCompiler(name, {}) for name in ("a", "b")}
    varied = model_of(
        lambda b, *xs: tuple(b.add(Relu, x) for x in xs),
        *[float32((1 << 16) + index) for index in range(40)],
    )
    begin = time.perf_counter()
    costs = cost_model(varied, installed, tuning_seconds=2.0)
    assert time.perf_counter() - begin < 6.0  # 16 seconds without a budget
    rows = [costs.costs(index, "a") for index in range(len(costs.blocks))]
    estimated = [row for row in rows if row is not None and row.estimated]
    assert 0 < len(estimated) < len(rows)
    assert {row.reason for row in estimated} == {"there was no time to measure it"}
    assert all(row.uncertainty > 0 for row in estimated)


def test_a_device_that_fails_is_estimated_with_the_reason() -> None:
    installed = devices()
    installed["b"].fails = ("TANH",)
    costs = cost_model(layers(3), installed)
    block = costs.costs(1, "b")
    assert block is not None
    assert block.estimated
    assert "does not compile: b: failed while compiling" in block.reason
    installed = devices()
    installed["b"].problem = "the chip is hot"
    block = cost_model(layers(3), installed).costs(0, "b")
    assert block is not None
    assert block.reason == "does not run: b: the chip is hot"


def test_indices_have_the_values_that_the_model_computes() -> None:
    """Random indices would be out of range."""

    def make(b: Builder, x: Operand) -> Operand:
        table = b.constant(np.ones((3, 4), np.float32))
        wide = b.add(Relu, x)
        return b.add(Relu, b.add(Gather, table, b.add(ArgMax, wide, 0)))

    model = model_of(make, float32(3, 1 << 16))
    costs = cost_model(model, devices())
    assert len(costs.blocks) > 1
    rows = [costs.costs(i, n) for i in range(len(costs.blocks)) for n in ("a", "b")]
    assert [row.reason for row in rows if row is not None] == [""] * len(rows)


def test_open_sizes_have_those_of_the_measurement() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Tanh, b.add(Relu, x))

    model = model_of(make, float32(symbol("N"), 1 << 16))
    costs = cost_model(model, devices(), shapes={"x0": (2, 1 << 16)})
    assert [tensor.bytes for _, tensor in costs.tensors] == [1 << 19] * 3
    rows = [costs.costs(index, name) for index in range(2) for name in ("a", "b")]
    assert [row.reason for row in rows if row is not None] == [""] * 4


def test_the_runtime_runs_control_flow_that_no_device_takes() -> None:
    def branch(name: str, operator: type) -> Model:
        return model_of(lambda b, x: b.add(operator, x), float32(1 << 16), name=name)

    b = Builder("conditional")
    x = b.input("x", float32(1 << 16))
    condition = b.input("condition", TensorType(ElementType.BOOL, ()))
    y = b.add(Relu, x)
    z = b.insert(If.of("if", condition, [y], [branch("then", Relu), branch("else", Tanh)]))[0]
    b.output("y", b.add(Tanh, z))
    installed = devices()
    for device in installed.values():
        device.declines = ("IF",)
    problem = cost_model(b.build(), installed).problem()
    assert problem.devices == ("a", "b", "runtime")
    np.testing.assert_array_equal(
        np.isfinite(problem.seconds),
        [[True, True, False], [False, False, True], [True, True, False]],
    )
    assert problem.segments([0, 2, 0]) == [(0,), (1,), (2,)]


def test_a_log_of_measured_blocks_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        cost_model(layers(3), devices())
    assert not caplog.records
