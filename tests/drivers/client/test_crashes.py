"""Drivers and clients that die or freeze at random moments: nobody gets a wrong answer, or none.

`CROSSCHIP_KILLS=100` and `CROSSCHIP_FREEZES=20` have it happen so often.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np
import pytest
from tests.drivers.models import RELUS
from tests.drivers.peer import Peer
from tests.drivers.serving import held_by, serving, until
from tests.modelling import ROOT, python_path

import crosschip
from crosschip.drivers.client.device import RemoteDevice
from crosschip.drivers.client.driver import Driver
from crosschip.runtime.compiled import CompiledModel

KILLS = int(os.environ.get("CROSSCHIP_KILLS", "2"))
FREEZES = int(os.environ.get("CROSSCHIP_FREEZES", "1"))
CLIENTS = int(os.environ.get("CROSSCHIP_CLIENTS", "2"))
THREADS = 8


class Load:
    """Threads that run a model over and over, and see whether the outputs are right.

    Attributes:
        runs: how many have ended.
        wrong: how many outputs were wrong.
        errors: those that were raised.
    """

    def __init__(self, compiled: CompiledModel, threads: int = THREADS, rows: int = 2000) -> None:
        self.runs = 0
        self.wrong = 0
        self.errors: list[Exception] = []
        self._compiled = compiled
        self._rows = rows
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._call, args=(seed,)) for seed in range(threads)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def more(self, runs: int) -> None:
        """Wait until so many more runs have ended."""
        goal = self.runs + runs
        until(lambda: self.runs >= goal or bool(self.errors), f"run {goal}", lambda: self.runs)

    def _call(self, seed: int) -> None:
        chance = np.random.default_rng(seed)
        while not self._stop.is_set():
            x = chance.standard_normal((int(chance.integers(1, self._rows + 1)), 8), np.float32)
            try:
                made = self._compiled.run({"x0": x})
            except Exception as error:
                self.errors.append(error)
                return
            right = np.array_equal(made["y0"], np.maximum(x, 0))
            right = right and np.array_equal(made["y1"], x + x)
            with self._lock:
                self.runs += 1
                self.wrong += not right


def driver_of(compiled: CompiledModel) -> Driver:
    (device,) = compiled.devices.values()
    assert isinstance(device.device, RemoteDevice)
    return device.device.driver


@contextmanager
def nothing_left(runtime: Path) -> Iterator[None]:
    """See to it that nothing of drivers is there in the end that was not there before."""
    before = held_by(os.getpid())
    yield
    until(lambda: not processes(runtime), "no driver runs", lambda: processes(runtime))
    until(lambda: not zombies(), "no process waits to be reaped", zombies)
    assert not list(runtime.rglob("*.sock"))

    def back() -> bool:
        now = held_by(os.getpid())
        return now[:3] <= before[:3]

    until(back, f"all that is held is back at {before}", lambda: held_by(os.getpid()))


def processes(runtime: Path) -> list[str]:
    """The processes that serve in a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            log = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(runtime) in log:
            found.append(f"{path.parent.name} {log!r}")
    return found


def zombies() -> list[str]:
    """This process's children that have ended and are not reaped."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = path.read_text().partition(" ")
        except OSError:
            continue
        state, parent = rest.rpartition(")")[2].split()[:2]
        if state == "Z" and int(parent) == os.getpid():
            found.append(number)
    return found


@pytest.mark.parametrize(
    ("number", "times"), [(signal.SIGKILL, KILLS), (signal.SIGSTOP, FREEZES)], ids=str
)
def test_a_driver_that_dies_or_freezes_under_load(
    runtime: Path, number: signal.Signals, times: int
) -> None:
    chance = random.Random(times)
    taken = []
    patience = {"reference": {"driver_silence": "0.5"}}
    with (
        nothing_left(runtime),
        crosschip.compile(RELUS, "reference@driver", cache=False, properties=patience) as compiled,
    ):
        driver = driver_of(compiled)
        with Load(compiled) as load:
            for restarts in range(times):
                load.more(chance.randrange(1, 100))
                begin = time.monotonic()
                os.kill(driver.link().connection.process, number)
                until(lambda: driver.restarts > restarts, "a new process")  # noqa: B023
                load.more(THREADS + 1)  # more than were in flight
                taken.append(time.monotonic() - begin)
        assert not load.errors
        assert not load.wrong
        assert driver.restarts == times
    print(f"{times} times {number.name}: {load.runs} runs, recovery {median(taken):.2f} s median")


def test_clients_that_die_leave_nothing() -> None:
    chance = random.Random(CLIENTS)
    with (
        serving("reference", "--workers=2") as service,
        crosschip.compile(RELUS, f"reference@unix:{service.path}", cache=False) as compiled,
        Peer(service.path) as watcher,
    ):
        watcher.greet(watches=True)
        with Load(compiled, threads=1, rows=1) as load:
            run_and_kill(service.path, chance.randrange(50))
            until(lambda: len(watcher.figures().clients) == 1, "the first client is let go")
            load.more(10)
            before, (ours,) = service.held(), watcher.figures().clients
            for _ in range(CLIENTS):
                run_and_kill(service.path, chance.randrange(50))
            until(lambda: len(watcher.figures().clients) == 1, "all clients are let go")
            load.more(10)

            def back() -> bool:
                return all(n <= m for n, m in zip(service.held()[:3], before[:3], strict=True))

            until(back, f"all that the service holds is back at {before}", service.held)
        assert [client.memory for client in watcher.figures().clients] == [ours.memory]
        assert driver_of(compiled).restarts == 0
        assert not load.errors
        assert not load.wrong


def run_and_kill(path: Path, runs: int) -> None:
    """A client that is killed in the middle of its runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.drivers.client.dying", str(path)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": python_path()},
        text=True,
    ) as client:
        assert client.stdout is not None
        for _ in range(runs):
            assert client.stdout.readline() == "right\n"
        client.kill()
