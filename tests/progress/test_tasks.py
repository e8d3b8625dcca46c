"""Tasks and their observers: nothing is lost, and no observer disturbs the work."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.modelling import chain, python_path
from tests.progress.recorder import Recorder

import crosschip as cc
from crosschip.bench.timing import interleave
from crosschip.bisect import find_failing_operators
from crosschip.conformance import run_cases
from crosschip.conformance.cases import all_cases
from crosschip.ir import Model
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.progress import Observer, Task, observe, task


def test_tasks_of_many_threads_are_counted() -> None:
    recorder = Recorder()

    def work(index: int) -> None:
        with task(f"part {index}"):
            for _ in range(1000):
                whole.advance()

    with observe(recorder), task("whole", total=8000) as whole, ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert whole.completed == 8000
    recorder.check_ended()
    assert sorted(recorder.names) == [*(f"part {index}" for index in range(8)), "whole"]
    with task("afterwards"):
        assert "afterwards" not in recorder.names


def test_a_failing_observer_does_not_disturb_the_work(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Observer):
        def on_start(self, task: Task) -> None:
            raise ValueError("no display")

    recorder = Recorder()
    with caplog.at_level(logging.ERROR), observe(Failing()), observe(recorder), task("work"):
        pass
    assert "an observer of progress failed" in caplog.text
    recorder.check_ended()


def test_an_interruption_while_a_task_starts_ends_it() -> None:
    class Interrupting(Observer):
        def on_start(self, task: Task) -> None:
            raise KeyboardInterrupt

    recorder = Recorder()
    with (
        observe(recorder),
        observe(Interrupting()),
        pytest.raises(KeyboardInterrupt),
        task("work"),
    ):
        pytest.fail("the work has begun")
    assert recorder.events == [("start", "work"), ("end", "work")]


@pytest.fixture
def model() -> Model:
    return chain(Relu, Sigmoid)


def test_compiling_for_each_device_and_measuring_are_reported(model: Model) -> None:
    recorder = Recorder()
    with observe(recorder), cc.compile(model, cache=False) as compiled:
        choice = compiled.placement.choice
    recorder.check_ended()
    assert choice is not None
    measured = [trial.device for trial in choice.trials if trial.milliseconds is not None]
    for device in measured:
        assert f"compiling net.0 for {device}" in recorder.names
        assert f"opening {device}" in recorder.names
    (measuring,) = (each for each in recorder.tasks if each.measures)
    assert set(recorder.details(measuring.name)) == set(measured)
    (whole,) = (each for each in recorder.tasks if each.name == "compiling net for each device")
    assert whole.completed == whole.total == len(choice.trials)


def test_saving_loading_and_profiling_are_reported(model: Model, tmp_path: Path) -> None:
    recorder, file = Recorder(), tmp_path / "net.chipm"
    with cc.compile(model, "onnxruntime", cache=False) as compiled:
        compiled.save(file)
    with observe(recorder), cc.load_compiled(file) as compiled:
        compiled.profile(runs=3, warm_up=1)
    recorder.check_ended()
    assert f"loading {file}" in recorder.names
    (profiling,) = (each for each in recorder.tasks if each.name == "profiling net")
    assert (profiling.completed, profiling.total, profiling.measures) == (4, 4, True)


def test_timing_bisection_and_conformance_are_reported(model: Model) -> None:
    recorder, cases = Recorder(), list(all_cases("RELU", quick=True))
    with observe(recorder):
        interleave({"a": lambda: None, "b": lambda: None}, 12)
        find_failing_operators(model, "onnxruntime", isolate=False)
        report = run_cases("reference", cases)
    recorder.check_ended()
    by_name = {each.name: each for each in recorder.tasks}
    timing = by_name["timing a, b"]
    assert (timing.completed, timing.total, timing.measures) == (24, 24, True)
    steps = recorder.details("bisecting net on onnxruntime")
    assert steps[0] == "recording what is right on reference"
    assert steps[1] == "run 1: the model"
    testing = by_name["testing reference"]
    assert testing.completed == testing.total == len(cases)
    assert len(report.entries) + len(report.validation) == len(cases)
    assert recorder.details("testing reference")[-1].startswith("RELU (")


FORKED = """
import os, threading, sys, time
from crosschip import progress
from crosschip.progress.display import LogLines

progress.show()
LogLines.delay = LogLines.interval = 0.01

def slow():
    with progress.task("in a thread"):
        time.sleep(1)

with progress.task("whole", 3, measures=True) as whole:
    thread = threading.Thread(target=slow)
    thread.start()
    for _ in range(200):
        child = os.fork()
        if not child:
            whole.advance()
            with progress.task("in the child"):
                whole.describe("child")
            whole.__exit__(None, None, None)
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    thread.join()
print(whole.completed, threading.active_count())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_forked_processes_do_not_wait_for_threads_that_they_lack() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split()[0] == "0"


def test_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    with task("nobody listens"):
        started = set(threading.enumerate()) - before
        assert not [thread for thread in started if thread.name.startswith("crosschip progress")]
