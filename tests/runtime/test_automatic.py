"""The devices that `"auto"` chooses: the fastest by measurement, which is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import DelegatingDevice, chain, float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options, Program, Sizes
from crosschip.ir import (
    Array,
    DeviceError,
    ElementType,
    Model,
    TensorType,
    UnsupportedError,
    symbol,
    unknown,
)
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.unary import Exp
from crosschip.runtime import discovery
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.choice import Choice, Trial
from crosschip.runtime.device_timing import measure, typical_inputs

RUNS: dict[str, int] = {}
"""The number of runs of a model on each device."""


class Timed(DelegatingDevice):
    """A device that takes its time, and counts its runs.

    Attributes:
        seconds: that a run takes.
        problem: with which a run fails; empty if it does not.
    """

    called = ""
    seconds = 0.0
    problem = ""
    without: Sequence[str] = ()

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(properties, name=self.called, declines=self.without)

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        return TimedProgram(self, model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        super().load(saved, model, options).close()
        return TimedProgram(self, model)


class TimedProgram(ReferenceProgram):
    def __init__(self, device: Timed, model: Model) -> None:
        super().__init__(model)
        self.device = device

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        RUNS[self.device.called] = RUNS.get(self.device.called, 0) + 1
        if self.device.problem:
            raise DeviceError(self.device.problem)
        time.sleep(self.device.seconds)
        return super().run(inputs)


class Slow(Timed):
    called, seconds = "slow", 0.02


class Fast(Timed):
    called = "fast"


class Failing(Timed):
    called, problem = "failing", "the chip is hot"


class Interrupted(Timed):
    called = "interrupted"

    def compile(self, model: Model, options: Options) -> Program:
        raise KeyboardInterrupt


class OfFour(Timed):
    """A device on which only inputs of four elements run."""

    called = "of-four"

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        return OfFourProgram(self, model)


class OfFourProgram(TimedProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        if inputs[0].size != 4:
            raise DeviceError(f"{inputs[0].size} elements are not four")
        return super().run(inputs)


class OfFourToo(OfFour):
    called = "of-four-too"


class NoTanh(Timed):
    called, without = "no-tanh", ("TANH",)


class NoExp(Timed):
    called, without = "no-exp", ("EXP", "TANH")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs devices of this module, and the reference."""
    RUNS.clear()

    def install(*classes: type[Timed]) -> None:
        values = {c.called: f"{__name__}:{c.__name__}" for c in classes}
        values["reference"] = "crosschip.devices.reference:ReferenceDevice"
        found = {n: [EntryPoint(n, value, discovery.GROUP)] for n, value in values.items()}
        monkeypatch.setattr(discovery, "entries", lambda: found)

    return install


def test_the_fastest_device_runs_the_model(installed: Callable[..., None], tmp_path: Path) -> None:
    installed(Slow, Fast)
    with crosschip.compile(chain(Relu, Tanh), cache=tmp_path) as compiled:
        choice = compiled.placement.choice
        assert choice is not None
        assert choice.order == ["fast", "slow", "reference"]
        assert {segment.device for segment in compiled.placement.segments} == {"fast"}
        np.testing.assert_array_equal(compiled(np.zeros(2, np.float32)), 0)
    fast, slow, _ = choice.trials
    assert fast.milliseconds is not None
    assert slow.milliseconds is not None
    assert fast.milliseconds < 20 <= slow.milliseconds
    assert "; not measured: reference (slower than any engine); no mixture" in str(choice)
    assert str(choice).startswith("measured at x0=2: fast ")
    assert choice.shapes == {"x0": (2,)}


def test_the_second_compilation_measures_nothing(
    installed: Callable[..., None], tmp_path: Path
) -> None:
    installed(Slow, Fast)
    model = chain(Relu, Tanh)
    crosschip.compile(model, cache=tmp_path).close()
    assert crosschip.explain(model, cache=tmp_path / "other").choice is None
    explained = crosschip.explain(model, cache=tmp_path)
    before = dict(RUNS)
    with crosschip.compile(model, cache=tmp_path) as compiled:
        assert compiled.placement.choice == explained.choice
        assert next(iter(compiled.placement.segments)).device == "fast"
    assert before == RUNS
    assert {decision.device for decision in explained.decisions} == {"fast"}


def test_another_model_threads_or_device_is_measured_again(
    installed: Callable[..., None], tmp_path: Path
) -> None:
    def runs(model: Model, threads: int | None = None) -> int:
        before = sum(RUNS.values())
        crosschip.compile(model, cache=tmp_path, threads=threads).close()
        return sum(RUNS.values()) - before

    installed(Slow, Fast)
    assert runs(chain(Relu)) > 0
    assert runs(chain(Relu)) == 0
    assert runs(chain(Tanh)) > 0
    assert runs(chain(Relu), threads=1) > 0
    installed(Slow, Fast, NoTanh)
    assert runs(chain(Relu)) > 0


def test_a_damaged_choice_is_made_again(installed: Callable[..., None], tmp_path: Path) -> None:
    installed(Slow, Fast)
    crosschip.compile(chain(Relu), cache=tmp_path).close()
    listed = [each.entry for each in Cache(tmp_path).listing()]
    (entry,) = [each for each in listed if each is not None and each.device == "auto"]
    Cache(tmp_path).write(entry, b'{"trials": 7}')
    before = sum(RUNS.values())
    crosschip.compile(chain(Relu), cache=tmp_path).close()
    assert sum(RUNS.values()) > before


@pytest.mark.slow
def test_a_device_that_fails_in_its_trial_comes_last(
    installed: Callable[..., None], tmp_path: Path
) -> None:
    installed(Failing, Slow)
    with crosschip.compile(chain(Relu), cache=tmp_path) as compiled:
        assert compiled.placement.choice is not None
        slow, failing, _ = compiled.placement.choice.trials
        assert (slow.device, failing.device) == ("slow", "failing")
        assert "the chip is hot" in failing.reason
        np.testing.assert_array_equal(compiled(np.ones(2, np.float32)), 1)


OPEN = model_of(lambda b, x: (b.add(Relu, x), b.add(Tanh, x)), float32(symbol("N"), symbol("S")))
HEIGHT = model_of(
    lambda b, x: b.add(Add, b.add(Relu, x), b.constant(np.ones((24, 1), np.float32))),
    float32(symbol("N"), 2, unknown(), symbol("W")),
)
"""Its third size must be 24."""


def test_devices_are_measured_at_sizes_that_run(
    installed: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installed(Slow, Fast)
    caplog.set_level("INFO", "crosschip")
    for cache in ("miss", "hit"):
        with crosschip.compile(HEIGHT, cache=tmp_path) as compiled:
            choice = compiled.report.choice
            assert choice is not None
            assert (choice.order[0], choice.shapes) == ("fast", {"x0": (1, 2, 24, 224)})
            assert compiled.report.cache == cache
        (line,) = [r.message for r in caplog.records if "operations in" in r.message]
        assert "; measured at x0=1x2x24x224: fast " in line
        caplog.clear()
    explained = crosschip.explain(HEIGHT, cache=tmp_path).choice
    assert explained == choice


def test_other_sizes_are_tried_where_the_first_do_not_run(
    installed: Callable[..., None], tmp_path: Path
) -> None:
    installed(OfFour, OfFourToo)
    square = model_of(lambda b, x: b.add(Relu, x), float32(1, symbol("tokens")))
    with crosschip.compile(
        square, shapes=crosschip.ShapeOptions(ranges={"tokens": (1, 4)}), cache=tmp_path
    ) as compiled:
        assert compiled.placement.choice is not None
        assert compiled.placement.choice.shapes == {"x0": (1, 4)}


def test_where_no_size_runs_a_warning_tells_sizes_to_give(
    installed: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In each process, although nothing is tried in the second; and no partial device is first."""
    installed(NoTanh, OfFour, OfFourToo)
    caplog.set_level("INFO", "crosschip")
    for _ in range(2):
        with crosschip.compile(OPEN, cache=tmp_path) as compiled:
            assert compiled.placement.choice is not None
            assert compiled.placement.choice.order[0] == "of-four"
            assert {s.device for s in compiled.placement.segments} == {"of-four"}
        told = [(r.levelname, r.message) for r in caplog.records]
        assert any(text.endswith("; no device was measured") for _, text in told)
        (warning,) = [text for level, text in told if level == "WARNING"]
        assert (
            "no device was measured: the model did not run on made-up inputs (x0=1x128: " in warning
        )
        assert "128 elements are not four" in warning
        assert warning.endswith("as in shapes={'N': 1, 'S': 128}")
        caplog.clear()
    with crosschip.compile(OPEN, cache=tmp_path, shapes={"N": 1, "S": 4}) as compiled:
        assert compiled.placement.choice is not None
        assert compiled.placement.choice.shapes == {"x0": (1, 4)}


def test_measuring_is_not_counted(installed: Callable[..., None]) -> None:
    installed(Slow, Fast)
    with crosschip.compile(chain(Relu, Tanh), cache=False) as compiled:
        statistics = compiled.statistics()
        assert statistics.calls == 0
        assert statistics.latency.most == 0
        (segment,) = statistics.segments
        assert (segment.runs, segment.bytes_in, segment.bytes_out) == (0, 0, 0)
        compiled(np.zeros(2, np.float32))
        statistics = compiled.statistics()
        assert (statistics.calls, [s.runs for s in statistics.segments]) == (1, [1])


@pytest.mark.slow
def test_what_runs_most_comes_first_where_nothing_is_measured(
    installed: Callable[..., None],
) -> None:
    installed(NoExp, NoTanh, Slow)
    model = chain(Exp, Relu, Tanh)
    options = crosschip.PlacementOptions(pin={model.operations[1].name: "slow"})
    for placement in (
        crosschip.explain(model, placement=options, cache=False),
        crosschip.explain(model, cache=False),
    ):
        assert placement.devices == ("slow", "no-tanh", "no-exp", "reference")
    with crosschip.compile(model, placement=options, cache=False) as compiled:
        assert compiled.placement.decisions[1].device == "slow"


def test_a_choice_that_is_interrupted_closes_what_was_compiled(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(TimedProgram, "close", lambda program: closed.append(program.device.called))
    installed(Fast, Interrupted)
    with pytest.raises(KeyboardInterrupt):
        crosschip.compile(chain(Relu), cache=False)
    assert closed == ["fast"]


def test_the_only_device_for_the_whole_model_is_not_measured(
    installed: Callable[..., None], tmp_path: Path
) -> None:
    installed(NoTanh, Fast)
    with crosschip.compile(chain(Relu, Tanh), cache=tmp_path) as compiled:
        assert compiled.placement.choice is not None
        fast, no_tanh, _ = compiled.placement.choice.trials
        assert (fast.device, fast.whole, fast.reason) == ("fast", True, "")
        said = (
            "nothing to measure: only fast runs the whole model; not measured: no-tanh (runs 1 of"
        )
        assert str(compiled.placement.choice).startswith(said)
        assert no_tanh.reason == "runs 1 of 2 operations"
    assert set(RUNS) == {"fast"}


def test_the_device_that_runs_most_comes_first_where_none_runs_all(
    installed: Callable[..., None], tmp_path: Path
) -> None:
    installed(NoExp, NoTanh)
    model = chain(Exp, Relu, Tanh)
    with crosschip.compile(model, cache=tmp_path) as compiled:
        choice = compiled.placement.choice
        assert choice is not None
        assert choice.order == ["no-tanh", "no-exp", "reference"]
        assert choice.trials[0].reason == "runs 2 of 3 operations"
        runs = {d.type: d.device for d in compiled.placement.decisions}
    assert runs == {"EXP": "no-tanh", "RELU": "no-tanh", "TANH": "reference"}


def test_what_no_device_runs_is_the_usual_error(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(NoTanh, NoExp)
    found = {n: e for n, e in discovery.entries().items() if n != "reference"}
    monkeypatch.setattr(discovery, "entries", lambda: found)
    with pytest.raises(UnsupportedError, match="TANH"):
        crosschip.compile(chain(Tanh), cache=False)


def test_inputs_are_made_up_for_open_sizes() -> None:
    images = float32(symbol("N"), 3, unknown(), symbol("W"))
    tokens = TensorType(ElementType.INT64, (symbol("N"), symbol("length")))
    model = model_of(lambda b, x, y: (b.add(Exp, x), b.add(Add, y, y)), images, tokens)

    def shapes(sizes: Sizes) -> list[tuple[int, ...]]:
        return [array.shape for array in typical_inputs(model, sizes).values()]

    assert shapes(Sizes()) == [(1, 3, 224, 224), (1, 128)]
    ranges = Sizes.of({"N": (1, 8)}, [{"length": 7, "W": 5}])
    assert shapes(ranges) == [(8, 3, 224, 5), (8, 7)]
    anything = model_of(lambda b, x: b.add(Exp, x), TensorType(ElementType.FLOAT32, None))
    assert [x.ndim for x in typical_inputs(anything, Sizes()).values()] == [4]


trials = st.builds(
    Trial,
    st.text(),
    st.none() | st.floats(0, 1e9),
    st.booleans(),
    st.integers(0, 10**6),
    st.text(),
)
shapes = st.dictionaries(st.text(), st.lists(st.integers(0, 2**40)).map(tuple))


@given(st.builds(Choice, st.lists(trials).map(tuple), shapes))
def test_choices_are_read_as_they_were_written(choice: Choice) -> None:
    assert Choice.from_bytes(choice.to_bytes()) == choice


@given(st.binary() | st.from_regex(rb'\{"trials": .*\}', fullmatch=True))
def test_other_bytes_are_no_choice(data: bytes) -> None:
    with suppress(ValueError):
        Choice.from_bytes(data)


class Clock:
    """A clock that only runs advance, each by the next of its device's times; the last holds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.runs: dict[str, int] = {}
        monkeypatch.setattr("crosschip.runtime.device_timing.time.perf_counter", lambda: self.now)

    def running(self, name: str, *seconds: float) -> Callable[[Mapping[str, Array]], object]:
        def run(inputs: Mapping[str, Array]) -> None:
            number = self.runs.get(name, 0)
            self.now += seconds[min(number, len(seconds) - 1)]
            self.runs[name] = number + 1

        return run


def test_disturbed_runs_do_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other work of the machine slows down every other run of the faster device."""
    clock = Clock(monkeypatch)
    disturbed = clock.running("fast", *[2e-3, 9e-3] * 100)
    trials = measure({"fast": disturbed, "steady": clock.running("steady", 4e-3)}, {})
    assert trials["fast"].milliseconds == pytest.approx(2)
    assert trials["steady"].milliseconds == pytest.approx(4)


def test_close_devices_have_more_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs_of(fast: float, slow: float) -> int:
        clock = Clock(monkeypatch)
        measure({"fast": clock.running("fast", fast), "slow": clock.running("slow", slow)}, {})
        return clock.runs["fast"]

    assert runs_of(10e-3, 11e-3) > 2 * runs_of(10e-3, 13e-3)
    # A second a run: two turns of one run to wake up and one that counts, and no more.
    assert runs_of(1.0, 1.1) == 4


def test_short_runs_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    measure({"short": clock.running("short", 1e-4), "long": clock.running("long", 5e-2)}, {})
    assert clock.runs["short"] > 10 * clock.runs["long"]
