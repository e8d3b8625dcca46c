"""Placements on several devices, chosen by measured costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.modelling import DelegatingDevice, chain, close, float32, outputs_of
from tests.random_models import Example, examples

import crosschip
from crosschip import PlacementOptions
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options, Program
from crosschip.ir import Array, Builder, Dim, InputError, Model, UnsupportedError, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.unary import Exp
from crosschip.runtime.choice import Choice, Mixture, Trial
from crosschip.runtime.compile import mixtures
from crosschip.runtime.costs import blocks
from crosschip.runtime.device_timing import measure
from crosschip.runtime.placement.costs import BlockCost, PlacementCosts
from crosschip.runtime.placement.memory import over_limit

pytestmark = pytest.mark.slow

SIZE = 250_000
"""The number of elements, so many that each operation is a block."""

SLOW, QUICK = 0.03, 0.001

OPERATORS = (Relu, Tanh, Relu, Tanh)


class Chip(DelegatingDevice):
    """A device that is slow at some operators."""

    def __init__(self, name: str, slow: Sequence[str], declines: Sequence[str] = ()) -> None:
        super().__init__(None, name=name, declines=declines)
        self.slow = slow
        self.programs = 0

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options).close()
        return ChipProgram(self, model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        super().load(saved, model, options).close()
        return ChipProgram(self, model)


class ChipProgram(ReferenceProgram):
    def __init__(self, chip: Chip, model: Model) -> None:
        super().__init__(model)
        self.chip = chip
        chip.programs += 1
        types = [operation.type for operation in model.operations]
        self.seconds = sum(SLOW if type_ in chip.slow else QUICK for type_ in types)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        end = time.perf_counter() + self.seconds
        results = super().run(inputs)
        time.sleep(max(0.0, end - time.perf_counter()))
        return results

    def close(self) -> None:
        self.chip.programs -= 1
        super().close()


def chips(*declined: str) -> list[Chip]:
    return [Chip("a", ["TANH"], declined), Chip("b", ["RELU"])]


def model(*operators: type) -> Model:
    return chain(*operators, size=SIZE)


MEASURED = PlacementOptions(strategy="measured", tuning_seconds=3)


def compiled(
    placement: PlacementOptions = MEASURED,
    operators: Sequence[type] = OPERATORS,
    cache: Path | bool = False,
    devices: Sequence[Chip] = (),
) -> crosschip.CompiledModel:
    return crosschip.compile(
        model(*operators), devices or chips(), placement=placement, cache=cache
    )


def devices_of(placed: crosschip.CompiledModel) -> list[str]:
    return [decision.device or "" for decision in placed.placement.decisions]


def test_each_operation_runs_where_it_is_fastest() -> None:
    with compiled() as placed:
        assert devices_of(placed) == ["a", "b", "a", "b"]
        values = np.linspace(-1, 1, SIZE, dtype=np.float32)
        expected = np.tanh(np.maximum(np.tanh(np.maximum(values, 0)), 0))
        np.testing.assert_allclose(placed(values), expected, rtol=1e-6)
        choice = placed.placement.choice
        assert choice is not None
        assert choice.mixture is not None
        assert choice.mixture.milliseconds < choice.mixture.milliseconds_alone
        assert "a + b in 4 segments" in str(choice) or "b + a in 4 segments" in str(choice)


def test_one_device_runs_all_if_that_is_as_fast() -> None:
    with compiled(operators=[Relu, Relu, Exp]) as placed:
        assert devices_of(placed) == ["a", "a", "a"]
        choice = placed.placement.choice
        assert choice is not None
        assert choice.mixture is None
        assert choice.costs is not None
        assert choice.costs.candidates[0].name == "a"


def test_costs_say_what_each_block_takes_here_and_elsewhere() -> None:
    with compiled() as placed:
        costs = placed.placement.costs
        assert costs is not None
        names = [name for block in costs.blocks for name in block.operations]
        assert names == [operation.name for operation in placed.placement.original.operations]
        for block in costs.blocks:
            assert not block.estimated
            assert 0 < block.seconds < SLOW
            (other,) = block.alternatives
            assert other.seconds > SLOW / 2
            assert str(block).startswith(f"on {block.device}: ")
        assert {(each.source, each.destination) for each in costs.transfers} >= {
            ("a", "b"), ("b", "a"), ("host", "a"), ("b", "host"),
        }  # fmt: skip
        assert set(costs.alone) == {"a", "b"}
        assert costs.predicted_seconds < min(costs.alone.values())


def test_the_placement_is_stored_with_its_costs(tmp_path: Path) -> None:
    with compiled(cache=tmp_path) as first:
        choice = first.placement.choice
    begin = time.perf_counter()
    with compiled(cache=tmp_path) as again:
        assert again.placement.choice == choice
        assert devices_of(again) == ["a", "b", "a", "b"]
    assert time.perf_counter() - begin < 5
    placement = crosschip.explain(model(*OPERATORS), chips(), placement=MEASURED, cache=tmp_path)
    assert placement.costs == (choice.costs if choice else None)
    assert [decision.device for decision in placement.decisions] == ["a", "b", "a", "b"]


def test_lists_go_by_order_unless_asked() -> None:
    with crosschip.compile(model(*OPERATORS), chips(), cache=False) as placed:
        assert devices_of(placed) == ["a"] * 4
        assert placed.placement.choice is None


def test_pins_hold() -> None:
    options = replace(MEASURED, pin={"TANH": "a"})
    with compiled(options, operators=[Relu, Tanh]) as placed:
        assert devices_of(placed) == ["a", "a"]


def test_a_limit_of_segments_holds() -> None:
    with compiled(replace(MEASURED, max_segments=2)) as placed:
        assert len(placed.placement.segments) <= 2


def test_what_no_device_runs_alone_is_placed_on_several() -> None:
    devices = [Chip("a", ["RELU"], ["EXP"]), Chip("b", [], ["TANH"])]
    with compiled(operators=[Relu, Exp, Tanh], devices=devices) as placed:
        assert devices_of(placed) == ["b", "b", "a"]
        choice = placed.placement.choice
        assert choice is not None
        assert choice.mixture is not None
        assert choice.mixture.milliseconds < choice.mixture.milliseconds_alone
        assert choice.costs is not None
        names = [candidate.name for candidate in choice.costs.candidates]
        assert {"a + b", "a + b (by order)"} <= set(names)
        assert len(set(names)) == len(names)
    assert all(device.programs == 0 for device in devices), "all programs are closed"


def test_without_time_nothing_is_divided() -> None:
    with compiled(PlacementOptions(strategy="measured", tuning_seconds=0)) as placed:
        choice = placed.placement.choice
        assert choice is not None
        assert choice.undivided == "tuning_seconds is 0"
        assert len(placed.placement.segments) == 1


@pytest.mark.parametrize("strategy", ["measured", "order"])
def test_what_does_not_fit_runs_elsewhere(strategy: str) -> None:
    size = SIZE * 4
    names = [f"w{index}" for index in range(3)]
    constants = {name: np.full(SIZE, 1.0, np.float32) for name in names}
    b = Builder("sums")
    value = b.input("x", float32(SIZE))
    for name in names:
        value = b.add(Add, value, b.constant(constants[name]))
    b.output("y", value)
    options = PlacementOptions(strategy=strategy, memory={"a": size * 2 + size})  # type: ignore[arg-type]
    with crosschip.compile(b.build(), chips(), placement=options, cache=False) as placed:
        on_a = devices_of(placed).count("a")
        assert on_a < 3
        np.testing.assert_array_equal(placed(np.zeros(SIZE, np.float32)), 3)
        if strategy == "order":
            assert devices_of(placed) == ["a", "a", "b"]
            (decision,) = placed.placement.fallbacks or placed.placement.decisions[2:]
            assert decision.reasons["a"] == (
                "ADD: does not fit in the 3000000 bytes of memory that the caller allows"
            )


def test_memory_that_suffices_nowhere_is_an_error() -> None:
    options = PlacementOptions(memory={"a": 0, "b": 0})
    with pytest.raises(UnsupportedError, match="does not fit in the 0 bytes"):
        crosschip.compile(model(Relu), chips(), placement=options, cache=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "fastest"}, "strategy is 'fastest', but must be 'measured' or 'order'"),
        ({"tuning_seconds": -1}, "tuning_seconds is -1, but must be a number of at least 0"),
        ({"memory": {"a": -1}}, "must be bytes by device"),
        ({"memory": ["a"]}, "must be bytes by device"),
    ],
)
def test_bad_options(options: Mapping[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PlacementOptions(**options)  # type: ignore[arg-type]


def test_bad_arguments() -> None:
    with pytest.raises(InputError, match="strategy is 'best'"):
        crosschip.compile(model(Relu), chips(), placement="best", cache=False)
    with pytest.raises(InputError, match="placement is 3, but must be"):
        crosschip.compile(model(Relu), chips(), placement=3, cache=False)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="memory limits 'c', but the devices are a, b"):
        crosschip.compile(
            model(Relu), chips(), placement=PlacementOptions(memory={"c": 1}), cache=False
        )


@settings(deadline=None)
@given(examples(), st.data())
def test_operations_within_the_limit_fit(example: Example, data: st.DataObject) -> None:
    """What remains after moving the rest away is within the limit; without limits all fits."""
    random_model = example.model
    count = len(random_model.operations)
    devices: list[str | None] = data.draw(
        st.lists(st.sampled_from(["a", "b"]), min_size=count, max_size=count)
    )
    assert not over_limit(random_model, devices, {})
    assert not over_limit(random_model, devices, {"a": 2**62})
    limit = data.draw(st.integers(0, 4000))
    for _ in range(count + 1):
        moved = over_limit(random_model, devices, {"a": limit})
        if not moved:
            break
        for device, index, refusal in moved:
            assert device == devices[index] == "a"
            assert not refusal.supported
            devices[index] = "b"
    assert not over_limit(random_model, devices, {"a": limit})


def test_choices_are_read_as_they_were_written() -> None:
    costs = PlacementCosts((BlockCost(("x",), "a", 0.5),), (), {"a": 0.1}, 0.6)
    mixture = Mixture((("a", 2), ("", 1), ("b", 1)), 1.0, 2.0, 3)
    choice = Choice((), {}, mixture=mixture, costs=costs, undivided="no")
    assert Choice.from_bytes(choice.to_bytes()) == choice
    assert mixture.requested == ["a", "a", None, "b"]
    assert mixture.devices == ["a", "b"]


def alone_takes_long(
    runs: Mapping[str, Callable[..., object]], *inputs: object, **options: object
) -> dict[str, Trial]:
    """What `measure` returns, but with an endless time for the best device alone."""
    trials = measure(runs, *inputs, **options)  # type: ignore[arg-type]
    alone = next(iter(runs))
    return trials | {alone: replace(trials[alone], milliseconds=1e9)}


def test_any_mixture_of_engines_answers_as_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operation is a block, and the best mixture is taken however slow it is."""
    monkeypatch.setattr(mixtures, "LEAST_MILLISECONDS", 0.0)
    monkeypatch.setattr(mixtures, "measure", alone_takes_long)
    monkeypatch.setattr(blocks, "LEAST_SECONDS", 0.0)
    options = PlacementOptions(strategy="measured", tuning_seconds=1)
    counts = []

    @settings(deadline=None, max_examples=8)
    @given(examples().filter(lambda e: e.positive and len(e.model.operations) > 2))
    def check(example: Example) -> None:
        devices = ["onnxruntime", "openvino", "reference"]
        with crosschip.compile(example.model, devices, placement=options, cache=False) as placed:
            results = placed.run(example.inputs)
            counts.append(len({segment.device for segment in placed.placement.segments}))
        for name, expected in outputs_of(example.model, example.inputs).items():
            close(results[name], expected)

    check()
    assert max(counts) > 1, "some are mixtures"


@settings(deadline=None, max_examples=15)
@given(st.data())
def test_constraints_hold_in_any_combination(data: st.DataObject) -> None:
    """Pins, memory, limits of segments, open sizes, declined operators, and both strategies."""
    operators = data.draw(st.lists(st.sampled_from([Relu, Tanh, Exp]), min_size=1, max_size=4))
    devices = [
        Chip("a", ["TANH"], data.draw(st.lists(st.just("EXP"), max_size=1))),
        Chip("b", ["RELU"], data.draw(st.lists(st.just("TANH"), max_size=1))),
    ]
    types = {operator.__name__.upper() for operator in operators}
    sizes: list[Dim] = [SIZE, symbol("N")]
    size = data.draw(st.sampled_from(sizes))
    pins = data.draw(st.dictionaries(st.sampled_from(["RELU", "TANH"]), st.sampled_from("ab")))
    limits = data.draw(st.dictionaries(st.sampled_from("ab"), st.sampled_from([0, 4 * SIZE])))
    options = PlacementOptions(
        strategy=data.draw(st.sampled_from(["measured", "order"])),
        tuning_seconds=1,
        pin={name: device for name, device in pins.items() if name in types},
        memory=limits,
        min_segment=data.draw(st.sampled_from([1, 2])),
        max_segments=data.draw(st.sampled_from([None, 1, 2])),
        strict=data.draw(st.booleans()),
    )
    whole = chain(*operators, size=size)
    try:
        placed = crosschip.compile(whole, devices, placement=options, cache=False)
    except UnsupportedError:
        return
    with placed:
        placement = placed.placement
        values = np.linspace(-1, 1, SIZE, dtype=np.float32)
        expected = outputs_of(whole, {"x0": values})["y0"]
        np.testing.assert_allclose(placed(values), expected, rtol=1e-6)
        assert options.max_segments is None or len(placement.segments) <= options.max_segments
        assert not over_limit(placement.original, placement.assignment.devices, limits)
        for decision in placement.decisions:
            assert options.pin is not None
            assert decision.device == options.pin.get(decision.type, decision.device)
    assert all(device.programs == 0 for device in devices), "all programs are closed"
