"""`compile` with `wait=False`: the device that is ready first answers, and the fastest stays."""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from tests.modelling import DelegatingDevice, float32, model_of, python_path

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Capabilities, DeviceLost, Forking, Options, Program
from crosschip.ir import Array, Builder, DeviceError, InputError, Model, Operand, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.unary import Exp
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.placement.descriptions import placement_notes

pytestmark = pytest.mark.slow

LONG = 60.0
"""Seconds after which a wait counts as hanging."""

X = np.array([1.0, -2.0], np.float32)


class Simulated(DelegatingDevice):
    """The reference, with times of its own, whose answers tell which device they are from.

    Attributes:
        run_seconds: the time of a run, by the number of elements of its first input.
        mark: is added to each output.
        compile_gate: compiling waits for it.
        error: is raised by each run, if it is set.
        open_programs: the number of programs that have not been closed.
        forking: whether programs run after a fork.
    """

    forking = Forking.ALWAYS

    def __init__(
        self,
        name: str,
        mark: float = 0.0,
        run_seconds: float | Callable[[int], float] = 0.0,
        compile_seconds: float = 0.0,
        **more: Any,
    ) -> None:
        super().__init__(name=name, **more)
        self.mark = mark
        self.run_seconds = run_seconds
        self.compile_seconds = compile_seconds
        self.compile_gate = threading.Event()
        self.compile_gate.set()
        self.error: BaseException | None = None
        self.compile_error: BaseException | None = None
        self.open_programs = 0

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), forking=self.forking)

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        assert self.compile_gate.wait(LONG)
        time.sleep(self.compile_seconds)
        if self.compile_error is not None:
            raise self.compile_error
        return SimulatedProgram(self, model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        super().load(saved, model, options).close()
        return SimulatedProgram(self, model)


class SimulatedProgram(ReferenceProgram):
    def __init__(self, device: Simulated, model: Model) -> None:
        super().__init__(model)
        self.device = device
        device.open_programs += 1
        self._is_open = True

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        assert self._is_open, "a closed program was run"
        device = self.device
        if device.error is not None:
            raise device.error
        seconds = device.run_seconds
        time.sleep(seconds if isinstance(seconds, float) else seconds(inputs[0].size))
        results = [result + np.float32(device.mark) for result in super().run(inputs)]
        assert self._is_open, "a program was closed while it ran"
        return results

    def close(self) -> None:
        assert self._is_open, "a program was closed twice"
        self._is_open = False
        self.device.open_programs -= 1
        super().close()


def relus() -> Model:
    """A model with two outputs: `relu(x)` and `relu(x) + x`."""

    def make(b: Builder, x: Operand) -> tuple[Operand, Operand]:
        y = b.add(Relu, x)
        return y, b.add(Add, y, x)

    return model_of(make, float32(2), name="relus")


def answer(mark: float) -> list[list[float]]:
    """The outputs of `relus` for `X`, on a device with a mark."""
    y = np.maximum(X, 0)
    return [(y + np.float32(mark)).tolist(), (y + X + np.float32(mark)).tolist()]


def outputs(compiled: CompiledModel) -> list[list[float]]:
    return [value.tolist() for value in compiled.run({"x0": X}).values()]


def moved(compiled: CompiledModel) -> None:
    """Run a model until its trials end."""
    outputs(compiled)
    assert compiled.wait_for_trials(LONG)


def background_threads() -> list[threading.Thread]:
    names = ("crosschip trials", "crosschip compiling")
    return [thread for thread in threading.enumerate() if thread.name.startswith(names)]


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    yield
    assert not background_threads()


def slow_and_fast(**more: Any) -> tuple[Simulated, Simulated]:
    """A device that is ready at once and runs slowly, and one that is the other way round."""
    return Simulated("slow", 1.0, 0.01), Simulated("fast", 2.0, 0.001, **more)


def test_the_device_that_is_ready_first_answers_before_the_other_is_compiled() -> None:
    slow, fast = slow_and_fast()
    fast.compile_gate.clear()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        assert outputs(compiled) == answer(1.0)
        assert not fast.open_programs
        assert not compiled.report.moves
        assert not compiled.wait_for_trials(0.01)
        fast.compile_gate.set()
        moved(compiled)
        assert outputs(compiled) == answer(2.0)
    assert not slow.open_programs
    assert not fast.open_programs


def test_a_move_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    slow, fast = slow_and_fast()
    with (
        caplog.at_level(logging.INFO, "crosschip"),
        crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled,
    ):
        milliseconds = compiled.report.milliseconds
        moved(compiled)
        (move,) = compiled.report.moves
        assert (move.source, move.destination) == ("slow", "fast")
        assert move.milliseconds_before > 9 > 2 * move.milliseconds_after
        assert move.calls >= 1
        assert move.seconds > 0
        assert compiled.report.milliseconds == milliseconds
        choice = compiled.report.choice
        assert choice is not None
        assert choice.on_calls
        assert choice.order == ["fast", "slow"]
        assert compiled.placement.choice == choice
        assert compiled.placement.moves == (move,)
        assert str(move) in placement_notes(compiled.placement)
        assert [segment.device for segment in compiled.placement.segments] == ["fast"]
        assert list(compiled.devices) == ["fast"]
        assert compiled.statistics().calls == move.calls
    assert str(move) in caplog.text
    assert "moved from slow to fast after" in caplog.text


def test_programs_of_the_device_that_lost_are_closed() -> None:
    slow, fast = slow_and_fast()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        moved(compiled)
        assert (slow.open_programs, fast.open_programs) == (0, 1)
    slow, fast = slow_and_fast()
    with crosschip.compile(relus(), [fast, slow], wait=False, cache=False) as compiled:
        moved(compiled)
        assert not compiled.report.moves
        assert outputs(compiled) == answer(2.0)
        assert (slow.open_programs, fast.open_programs) == (0, 1)
        choice = compiled.report.choice
        assert choice is not None
        assert choice.order == ["fast", "slow"]


def test_a_device_that_is_hardly_faster_does_not_win() -> None:
    one, other = Simulated("one", 1.0, 0.02), Simulated("other", 2.0, 0.0199)
    with crosschip.compile(relus(), [one, other], wait=False, cache=False) as compiled:
        moved(compiled)
        assert not compiled.report.moves
        assert compiled.report.choice is not None
        assert compiled.report.choice.order == ["one", "other"]


def test_the_next_device_begins_when_the_first_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosschip.runtime.compile.first_ready.STAGGER_SECONDS", 0.05)
    slow, fast = slow_and_fast()
    fast.compile_gate.clear()
    with crosschip.compile(relus(), [fast, slow], wait=False, cache=False) as compiled:
        assert outputs(compiled) == answer(1.0)
        fast.compile_gate.set()
        moved(compiled)
        assert outputs(compiled) == answer(2.0)


def test_devices_begin_with_the_one_that_starts_soonest() -> None:
    slow, fast = slow_and_fast()
    slow.startup_seconds, fast.startup_seconds = 2.0, 0.1  # type: ignore[misc]
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        assert outputs(compiled) == answer(2.0)


@pytest.mark.parametrize("calls", [6000])
def test_no_call_is_wrong_or_lost_across_the_move(calls: int) -> None:
    slow, fast = Simulated("slow", 1.0, 0.001), Simulated("fast", 2.0, 0.0)
    fast.compile_gate.clear()
    threads = 8
    answers: list[list[list[list[float]]]] = [[] for _ in range(threads)]

    def work(index: int) -> None:
        mine, later = answers[index], 0
        while len(mine) < calls // threads or later < 100:
            later += bool(compiled.report.moves)
            mine.append(outputs(compiled))
            if len(mine) == 50:
                fast.compile_gate.set()

    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
        assert compiled.wait_for_trials(LONG)
        assert compiled.statistics().calls == sum(map(len, answers))
    for mine in answers:
        before = mine.count(answer(1.0))
        assert before >= 50
        assert mine == [answer(1.0)] * before + [answer(2.0)] * (len(mine) - before)
        assert len(mine) >= before + 100


def test_requests_targets_and_asynchronous_runs_move() -> None:
    slow, fast = slow_and_fast()
    fast.compile_gate.clear()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        requests = [compiled.submit({"x0": X}) for _ in range(20)]
        fast.compile_gate.set()
        target = np.empty(2, np.float32)
        while not compiled.report.moves:
            results = compiled.run({"x0": X}, {"y0": target}, ["y1"])
            assert results["y0"] is target
            assert target.tolist() in (answer(1.0)[0], answer(2.0)[0])
        requests += [compiled.submit({"x0": X}, {"y0": target}) for _ in range(20)]
        answers = [[v.tolist() for v in request.result(LONG).values()] for request in requests]
        assert all(each in (answer(1.0), answer(2.0)) for each in answers)
        assert answers[0] == answer(1.0)
        assert answers[-1] == answer(2.0)
        assert len(compiled.profile({"x0": X}, runs=2).runs) == 2


def counters() -> Model:
    """A model with a state: `total + x` becomes `total`."""

    def make(b: Builder, x: Operand, total: Operand) -> Operand:
        return b.add(Add, x, total)

    return model_of(make, float32(2), float32(2), name="counter")


def test_a_session_stays_where_it_began_and_later_ones_begin_on_the_new_device() -> None:
    slow, fast = slow_and_fast()
    one = np.ones(2, np.float32)
    with crosschip.compile(counters(), [slow, fast], wait=False, cache=False) as compiled:
        early = compiled.session({"y0": "x1"})
        early.run({"x0": one})
        compiled.run({"x0": one, "x1": one})
        assert compiled.wait_for_trials(LONG)
        assert compiled.report.moves
        early.run({"x0": one})
        assert early.state()["x1"].tolist() == [4.0, 4.0]  # two of (1 + mark)
        late = compiled.session({"y0": "x1"}, early.state())
        late.run({"x0": one})
        assert late.state()["x1"].tolist() == [7.0, 7.0]  # and one of (1 + 2)
        assert slow.open_programs == 1
        early.close()
    assert not slow.open_programs
    assert not fast.open_programs


def test_devices_that_fail_are_reported_and_the_first_goes_on() -> None:
    slow, fast = slow_and_fast()
    hot, partial = Simulated("hot", 3.0), Simulated("partial", declines=["ADD"])
    broken = Simulated("broken")
    broken.compile_error = RuntimeError("the compiler is out of ink")
    fast.error = DeviceError("no chip answers")
    hot.error = ValueError("the chip is hot")
    devices = [slow, fast, hot, partial, broken]
    with crosschip.compile(relus(), devices, wait=False, cache=False) as compiled:
        moved(compiled)
        assert outputs(compiled) == answer(1.0)
        choice = compiled.report.choice
        assert choice is not None
        trials = {trial.device: trial for trial in choice.trials}
        assert choice.order[0] == "slow"
        assert "no chip answers" in trials["fast"].reason
        assert "the chip is hot" in trials["hot"].reason
        assert trials["partial"].reason == "runs 1 of 2 operations"
        assert "out of ink" in trials["broken"].reason
    assert not any(device.open_programs for device in devices)


def test_a_device_that_is_lost_after_the_move_is_replaced() -> None:
    slow, fast = slow_and_fast()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        moved(compiled)
        fast.error = DeviceLost("the driver died")
        assert outputs(compiled) == answer(1.0)
        assert compiled.submit({"x0": X}).result(LONG)["y0"].tolist() == answer(1.0)[0]
        fast.error = None
        assert outputs(compiled) == answer(2.0)
    assert not slow.open_programs
    assert not fast.open_programs


def test_an_unexpected_error_in_the_background_is_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError("no more memory")

    monkeypatch.setattr("crosschip.runtime.device_timing.measure", fail)
    slow, fast = slow_and_fast()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        moved(compiled)
        assert outputs(compiled) == answer(1.0)
        assert compiled.report.choice is not None
        assert "no more memory" in compiled.report.choice.problem
    assert "no more memory" in caplog.text
    assert not fast.open_programs


def test_devices_that_cannot_run_the_whole_model_are_passed_over() -> None:
    partial, broken, fast = Simulated("partial", declines=["ADD"]), Simulated("broken"), None
    broken.compile_error = RuntimeError("the compiler is out of ink")
    fast = Simulated("fast", 2.0)
    with crosschip.compile(relus(), [partial, broken, fast], wait=False, cache=False) as compiled:
        assert outputs(compiled) == answer(2.0)
        moved(compiled)
        assert compiled.report.choice is not None
        assert compiled.report.choice.order[0] == "fast"


def test_a_model_that_no_device_runs_whole_is_compiled_for_several() -> None:
    devices = [Simulated("a", 1.0, declines=["ADD"]), Simulated("b", 1.0, declines=["EXP"])]
    model = model_of(lambda b, x: b.add(Exp, b.add(Add, x, x)), float32(2))
    with crosschip.compile(model, devices, wait=False, cache=False) as compiled:
        assert compiled.trials is None
        assert {segment.device for segment in compiled.placement.segments} == {"a", "b"}
        assert compiled.wait_for_trials()


def test_arguments_are_refused_as_with_waiting() -> None:
    a = Simulated("a")
    with pytest.raises(InputError, match="given twice"):
        crosschip.compile(relus(), [a, a], wait=False, cache=False)
    with pytest.raises(DeviceError, match="there is no device 'nothing'"):
        crosschip.compile(relus(), [a, "nothing"], wait=False, cache=False)
    with pytest.raises(InputError, match="there is no precision 'float17'"):
        crosschip.compile(relus(), [a, "reference/float17"], wait=False, cache=False)
    with pytest.raises(InputError, match="no devices were given"):
        crosschip.compile(relus(), [], wait=False, cache=False)


def test_an_interruption_of_the_first_compilation_reaches_the_caller() -> None:
    slow, fast = slow_and_fast()
    slow.compile_error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        crosschip.compile(relus(), [slow, fast], wait=False, cache=False)
    assert not slow.open_programs
    assert not fast.open_programs


@settings(max_examples=60)
@given(st.floats(0, 0.25), st.booleans(), st.booleans())
def test_closing_at_any_moment_ends_all(delay: float, is_running: bool, has_session: bool) -> None:
    slow = Simulated("slow", 1.0, 0.002)
    fast = Simulated("fast", 2.0, 0.0005, compile_seconds=0.02)
    compiled = crosschip.compile(counters(), [slow, fast], wait=False, cache=False)
    values = {"x0": X, "x1": X}
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while True:
                result = compiled.run(values)["y0"].tolist()
                assert result in ((2 * X + 1).tolist(), (2 * X + 2).tolist())
        except InputError:  # it has been closed
            pass
        except BaseException as error:
            errors.append(error)

    compiled.run(values)
    threads = [threading.Thread(target=work) for _ in range(3 if is_running else 0)]
    for thread in threads:
        thread.start()
    if has_session:
        compiled.session({"y0": "x1"}).run({"x0": X})
    time.sleep(delay)
    compiled.close()
    for thread in threads:
        thread.join(LONG)
    assert not errors
    assert not slow.open_programs
    assert not fast.open_programs
    assert not background_threads()
    with pytest.raises(InputError, match="closed"):
        compiled.run(values)


def test_a_model_that_is_dropped_ends_its_trials() -> None:
    slow, fast = slow_and_fast()
    fast.compile_gate.clear()
    compiled = crosschip.compile(relus(), [slow, fast], wait=False, cache=False)
    outputs(compiled)
    gone = weakref.ref(compiled)
    trials = compiled.trials
    assert trials is not None
    del compiled
    gc.collect()
    assert gone() is None
    fast.compile_gate.set()
    assert trials.wait(LONG)
    assert not fast.open_programs


n = symbol("n")


def dynamic() -> Model:
    return model_of(lambda b, x: b.add(Tanh, b.add(Relu, x)), float32(n), name="dynamic")


def test_calls_with_other_sizes_have_devices_tried_again() -> None:
    # One device is fast for few elements, the other for many.
    few = Simulated("few", 1.0, lambda size: 0.0001 * size)
    many = Simulated("many", 2.0, lambda size: 0.004)

    def device_at(size: int) -> str:
        compiled.run({"x0": np.zeros(size, np.float32)})
        assert compiled.wait_for_trials(LONG)
        return next(iter(compiled.devices))

    with crosschip.compile(dynamic(), [many, few], wait=False, cache=False) as compiled:
        assert device_at(4) == "few"
        assert device_at(5) == "few"
        rounds = compiled.report.choice
        assert device_at(6) == "few"
        assert compiled.report.choice is rounds  # the sizes do not differ enough
        assert device_at(300) == "many"
        assert [move.destination for move in compiled.report.moves] == ["few", "many"]
        for size in (2000, 9000, 40000, 200000):
            device_at(size)
        assert len(compiled.report.moves) == 2
    assert (few.open_programs, many.open_programs) == (0, 0)
    assert few.compiled.count("dynamic.0") <= 4


def test_calls_are_not_copied_after_the_trials() -> None:
    one, other = Simulated("one", 1.0), Simulated("other", 2.0)
    with crosschip.compile(dynamic(), [one, other], wait=False, cache=False) as compiled:
        compiled.run({"x0": np.zeros(10, np.float32)})
        assert compiled.wait_for_trials(LONG)
        assert compiled.trials is not None
        samples = compiled.trials._samples
        (before,) = samples.recent()
        compiled.run({"x0": np.zeros(11, np.float32)})
        assert samples.recent() == [before]


def test_measurements_use_the_shapes_of_calls() -> None:
    few = Simulated("few", 1.0, lambda size: 0.0001 * size)
    many = Simulated("many", 2.0, lambda size: 0.004)
    with crosschip.compile(dynamic(), [few, many], wait=False, cache=False) as compiled:
        for size in (3, 4, 5, 6, 7):
            compiled.run({"x0": np.zeros(size, np.float32)})
        assert compiled.wait_for_trials(LONG)
        assert compiled.report.choice is not None
        assert compiled.report.choice.order[0] == "few"
        assert compiled.report.choice.shapes == {"x0": (7,)}
        assert not compiled.report.moves


def test_a_device_may_have_another_precision(tmp_path: Path) -> None:
    path, devices = write_dynamic(tmp_path), ["onnxruntime", "openvino/bfloat16"]
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    for _ in range(2):
        with crosschip.compile(path, devices, wait=False, cache=tmp_path / "cache") as compiled:
            for size in (1, 200):
                y = np.tile(x, (size, 1))
                np.testing.assert_array_equal(compiled(y), np.maximum(y, 0) + y)
                assert compiled.wait_for_trials(LONG)
            choice = compiled.report.choice
            assert choice is not None
            assert sorted(choice.order) == devices
            # A processor without bfloat16 runs nothing in it, and there is nothing to choose from.
            assert sum(trial.whole for trial in choice.trials) == 1 or all(
                trial.milliseconds or trial.reason for trial in choice.trials
            )


def test_the_choice_is_stored(tmp_path: Path) -> None:
    slow, fast = slow_and_fast()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=tmp_path) as compiled:
        moved(compiled)
        choice = compiled.report.choice
    slow, fast = slow_and_fast()
    fast.run_seconds = 0.05  # would lose now
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=tmp_path) as compiled:
        moved(compiled)
        assert compiled.report.choice == choice
        assert outputs(compiled) == answer(2.0)
        (move,) = compiled.report.moves
        assert move.milliseconds_after < 5


def test_statistics_of_the_new_device_do_not_count_trials() -> None:
    slow, fast = slow_and_fast()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        moved(compiled)
        for _ in range(3):
            outputs(compiled)
        (segment,) = compiled.statistics().segments
        assert (segment.device, segment.runs) == ("fast", 3)


def test_calls_are_not_held_up_by_trials() -> None:
    slow, fast = Simulated("slow", 1.0, 0.002), Simulated("fast", 2.0, 0.001)
    delays = []
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        random.seed(3)
        while not compiled.report.moves:
            start = time.perf_counter()
            outputs(compiled)
            delays.append(time.perf_counter() - start)
            time.sleep(random.uniform(0, 0.004))
    assert np.median(delays) < 0.004


def test_turns_of_the_interpreter_are_short_only_while_devices_are_tried() -> None:
    usual = sys.getswitchinterval()
    slow, fast = slow_and_fast()
    fast.compile_gate.clear()
    with crosschip.compile(relus(), [slow, fast], wait=False, cache=False) as compiled:
        outputs(compiled)
        while not fast.compiled:
            time.sleep(0.001)
        assert sys.getswitchinterval() < usual
        fast.compile_gate.set()
        moved(compiled)
        assert sys.getswitchinterval() == usual


ENGINES = ["onnxruntime", "openvino"]


def write_dynamic(folder: Path) -> Path:
    """Write an ONNX file of a model with a dynamic size."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])]
    path = folder / "model.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "net", [x], [y])), path)
    return path


def test_a_plan_is_stored_for_the_chosen_engine(tmp_path: Path) -> None:
    path, cache = write_dynamic(tmp_path), tmp_path / "cache"
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    expected = np.maximum(x, 0) + x
    with crosschip.compile(path, ENGINES, wait=False, cache=cache) as compiled:
        np.testing.assert_array_equal(compiled(x), expected)
        assert compiled.wait_for_trials(LONG)
        choice = compiled.report.choice
        assert choice is not None
        assert choice.on_calls
        assert choice.shapes == {"x": (2, 4)}
        assert sorted(choice.order) == ENGINES
    with crosschip.compile(path, ENGINES, wait=False, cache=cache) as compiled:
        assert compiled.report.cache == "hit"
        assert compiled.report.choice == choice
        assert list(compiled.devices) == choice.order[:1]
        np.testing.assert_array_equal(compiled(x), expected)
        assert compiled.wait_for_trials(0)
        # Sizes that differ much from the measured ones:
        large = np.ones((500, 4), np.float32)
        np.testing.assert_array_equal(compiled(large), 2 * large)
        assert compiled.wait_for_trials(LONG)
        assert compiled.report.choice is not None
        assert compiled.report.choice.shapes == {"x": (500, 4)}
    with crosschip.compile(path, ENGINES, cache=cache) as compiled:
        assert compiled.report.choice is None  # with waiting, the order of the list decides
        assert list(compiled.devices) == ENGINES


def test_a_choice_on_made_up_inputs_is_measured_again_on_calls(tmp_path: Path) -> None:
    path, cache = write_dynamic(tmp_path), tmp_path / "cache"
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    with crosschip.compile(path, cache=cache) as compiled:
        first = compiled.report.choice
        assert first is not None
        assert not first.on_calls
    for _ in range(2):
        with crosschip.compile(path, wait=False, cache=cache) as compiled:
            np.testing.assert_array_equal(compiled(x), np.maximum(x, 0) + x)
            assert compiled.wait_for_trials(LONG)
            choice = compiled.report.choice
            assert choice is not None
            assert choice.on_calls
            assert choice.shapes == {"x": (2, 4)}
            assert sorted(choice.order) == sorted(first.order)
    with crosschip.compile(path, cache=cache) as compiled:
        assert compiled.report.choice == first  # which considers mixtures, too


SCRIPT = """
import os, sys
import numpy as np
import crosschip as cc

path, ending = sys.argv[1:]
x = np.arange(8, dtype=np.float32).reshape(2, 4)
compiled = cc.compile(path, ["onnxruntime", "openvino"], wait=False, cache=False)
first = compiled(x)
if ending == "moved":
    compiled.wait_for_trials()
if ending == "fork":
    process = os.fork()
    if not process:
        assert compiled.wait_for_trials(0)
        sys.exit(0)
    assert os.waitpid(process, 0)[1] == 0
if ending == "raise":
    raise SystemExit(7)
assert np.array_equal(compiled(x), first)
print("done")
"""


@pytest.mark.parametrize(("ending", "status"), [("", 0), ("moved", 0), ("raise", 7), ("fork", 0)])
def test_a_process_ends_at_any_moment(tmp_path: Path, ending: str, status: int) -> None:
    command = [sys.executable, "-c", SCRIPT, str(write_dynamic(tmp_path)), ending]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
    assert (done.returncode, done.stderr) == (status, "")


def test_an_interrupted_process_ends(tmp_path: Path) -> None:
    script = SCRIPT.replace('print("done")', "print('here', flush=True)\nwhile True: compiled(x)")
    command = [sys.executable, "-c", script, str(write_dynamic(tmp_path)), ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONG)
    assert process.returncode in (1, -signal.SIGINT)
    assert errors.rstrip().endswith(b"KeyboardInterrupt")


FORKED = """
import os, sys, time
import numpy as np
import crosschip as cc
from crosschip.hal import Forking
from crosschip.ops.standard.activation import Relu
from tests.modelling import chain
from tests.runtime.test_early_answer import Simulated

Simulated.forking = Forking.IDLE
x = np.ones(2, np.float32)
usual = sys.getswitchinterval()

def check_child(ends_well):
    process = os.fork()
    if not process:
        assert compiled.wait_for_trials()
        assert sys.getswitchinterval() == usual
        assert compiled(x).tolist() == [2.0, 2.0]
        try:
            cc.compile(chain(Relu), [Simulated("other")], cache=False).close()
        except cc.DeviceError as error:
            assert not ends_well
            assert "forked while another thread" in str(error)
        else:
            assert ends_well
        compiled.close()
        more = [Simulated("a", 1.0, 0.01), Simulated("b", 2.0)]
        with cc.compile(chain(Relu), more, wait=False, cache=False) as other:
            other(x)
            assert other.wait_for_trials(60)
            assert other.report.moves
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
"""

FORKED_WHILE_COMPILING = """
first, other = Simulated("first", 1.0), Simulated("other", 2.0)
other.compile_gate.clear()
compiled = cc.compile(chain(Relu), [first, other], wait=False, cache=False)
compiled(x)
while not other.compiled:
    pass
check_child(ends_well=False)
other.compile_gate.set()
assert compiled.wait_for_trials()
compiled.close()
"""

FORKED_WHILE_MEASURING = """
first, other = Simulated("first", 1.0, 0.05), Simulated("other", 1.0, 0.05)
compiled = cc.compile(chain(Relu), [first, other], wait=False, cache=False)
compiled(x)
while not compiled.trials._is_measuring:
    time.sleep(0.001)
for _ in range(5):
    assert compiled.trials._is_measuring
    check_child(ends_well=True)
assert compiled.wait_for_trials()
compiled.close()
"""


@pytest.mark.parametrize("script", [FORKED_WHILE_COMPILING, FORKED_WHILE_MEASURING])
def test_a_forked_process_keeps_away_from_devices_that_were_in_use(script: str) -> None:
    environment = {**os.environ, "PYTHONPATH": python_path()}
    command = [sys.executable, "-c", FORKED + script]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=LONG, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


LATER = """
import sys
import numpy as np
import crosschip as cc

path, cache = sys.argv[1:]
x = np.ones((2, 4), np.float32)
with cc.compile(path, ["onnxruntime", "openvino"], wait=False, cache=cache) as compiled:
    assert compiled(x).tolist() == (2 * x).tolist()
    print(compiled.report.cache, "crosschip.runtime.compile.task" in sys.modules)
    assert compiled.wait_for_trials()
"""


def test_a_later_process_imports_no_compiler(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LATER, str(write_dynamic(tmp_path)), str(tmp_path / "cache")]
    texts = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        texts.append(done.stdout)
    assert texts == ["miss True\n", "hit False\n"]
