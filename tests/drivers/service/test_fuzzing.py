"""A service among clients that lie: it serves the one that does not.

`CROSSCHIP_MESSAGES=100000` has so many wrong messages sent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable

import numpy as np
from tests.drivers.models import RELUS
from tests.drivers.peer import Peer
from tests.drivers.serving import Held, Serving, serving, until
from tests.modelling import ROOT, python_path

import crosschip
from crosschip.drivers.client.device import RemoteDevice

MESSAGES = int(os.environ.get("CROSSCHIP_MESSAGES", "1500"))
SEED = int(os.environ.get("CROSSCHIP_SEED", "1"))
MEMORY, PROGRAMS = 4_000_000, 8
ROUNDS = 9
"""How often an attack goes on of which too few messages failed: which do depends on their order."""
MOST_BYTES_MORE = 48 * 2**20
"""What a process may take more after an attack; what it holds is counted besides."""


def test_a_client_is_served_among_others_that_lie() -> None:
    limits = f"--memory={MEMORY}", f"--programs={PROGRAMS}"
    with serving("reference", "--workers=2", *limits, most_bytes=16 * 2**30) as service:
        attack(service, 200)  # what is made once is there from now on
        before = settled(service)
        with crosschip.compile(RELUS, f"reference@unix:{service.path}", cache=False) as compiled:
            stop = threading.Event()
            runs: list[bool] = []
            calls = threading.Thread(target=lambda: call(compiled.run, stop, runs))
            calls.start()
            seen = attack(service, MESSAGES)
            for _ in range(ROUNDS):
                if seen["failed"] > MESSAGES / 1000:
                    break
                seen += attack(service, MESSAGES)
            stop.set()
            calls.join()
            (device,) = compiled.devices.values()
            assert isinstance(device.device, RemoteDevice)
            assert device.device.driver.restarts == 0, service.read_log()
        after = settled(service, before)
        log = service.read_log()
    assert all(runs)
    assert len(runs) > 10
    assert min(seen["answered"], seen["cut off"]) > MESSAGES / 100, seen
    assert seen["failed"] > MESSAGES / 1000, seen
    assert "Traceback" not in log
    assert after.resident - before.resident < MOST_BYTES_MORE


def attack(service: Serving, messages: int) -> Counter[str]:
    """What came of an attack, during which no client had more than it may."""
    command = [sys.executable, "-m", "tests.drivers.service.fuzzing", str(service.path)]
    process = subprocess.Popen(
        [*command, str(messages), str(SEED)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": python_path()},
        text=True,
    )
    with Peer(service.path) as watcher, process:
        watcher.greet(watches=True)
        while process.poll() is None:
            for client in watcher.figures().clients:
                assert client.memory <= MEMORY
                assert client.programs <= PROGRAMS
        assert process.stdout is not None
        seen = Counter[str](json.loads(process.stdout.read()))
    assert process.returncode == 0
    return seen


def settled(service: Serving, before: Held | None = None) -> Held:
    """What a service holds once all have gone, and no more than before."""
    with Peer(service.path) as watcher:
        watcher.greet(watches=True)
        until(lambda: not watcher.figures().clients, "all clients are gone")
        until(lambda: not watcher.figures().waiting, "no run waits")
    if before is not None:
        counts = before[:3]

        def back() -> bool:
            return all(now <= then for now, then in zip(service.held(), counts, strict=False))

        until(back, f"all that is held is back at {before}", service.held)
    return service.held()


def call(
    run: Callable[..., dict[str, np.ndarray]], stop: threading.Event, runs: list[bool]
) -> None:
    """Run a model over and over, and note whether the outputs are right."""
    chance = np.random.default_rng(0)
    while not stop.is_set():
        x = chance.standard_normal((int(chance.integers(1, 9)), 8), np.float32)
        made = run({"x0": x})
        right = np.array_equal(made["y0"], np.maximum(x, 0)) and np.array_equal(made["y1"], x + x)
        runs.append(right)
