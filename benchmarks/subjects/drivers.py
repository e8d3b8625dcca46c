"""Devices in processes of their own, against the same devices in-process.

*A call* compares the median time of `compiled.run` on `DEVICE@driver` and on `DEVICE`, with one
thread and the same inputs, in turn: on a model of one operation and few elements, where only the
way there and back counts, and on PP-OCRv4 det at 640×640, where copies would show. *Four clients*
are four processes with a connection each to one driver that works on as many runs at once as there
are cores, against one process that uses the engine itself, without crosschip, with as many runs at
once; each run has its share of the cores. *High instead of low priority* are runs in turn, while
eight threads keep the driver busy with runs of low priority. *Recovery* is from the moment in
which a driver is killed to the end of the next run, on another driver whose program comes from what
was saved.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np

import crosschip
from benchmarks.comparison import Comparison, Estimate, Open, compare
from benchmarks.engines import engines
from benchmarks.models import ROOT, model_file
from benchmarks.subject import Column, Row
from benchmarks.subjects.throughput import opened_directly
from crosschip.bench.timing import Run
from crosschip.drivers.client.device import RemoteDevice
from crosschip.hal import urgency
from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.runtime.requests import Priority

ADDED_US, ADDED_SHARE, LEAST_SHARE, RECOVERY_SECONDS = 150.0, 0.03, 0.9, 1.0
REQUIREMENT = (
    f"a call takes at most {ADDED_US:g} µs more on few elements, and {ADDED_SHARE:.0%} more on "
    f"PP-OCRv4 det; four clients get at least {LEAST_SHARE:g} of the engine's own throughput; "
    "a high priority waits less than a low one; "
    f"recovery takes less than {RECOVERY_SECONDS:g} s (median)"
)

_SHARED, _CLIENTS, _RUNS, _FLOOD = "MobileNetV3-small", 4, 64, 8
_DETECTOR = {"x": (1, 3, 640, 640)}


@dataclass(frozen=True)
class Driven(Row):
    """One thing that was measured on one device."""

    device: Annotated[str, Column("device")]
    what: Annotated[str, Column("measured")]
    unit: Annotated[str, Column("unit")]
    here: Annotated[float | None, Column("in-process", ".4g")]
    there: Annotated[float, Column("driver", ".4g")]
    cost: Annotated[Estimate | None, Column("cost or share", ".3f")]
    within: Annotated[bool, Column("within the limit")]

    @property
    def met(self) -> bool:
        return self.within


def measure(*, quick: bool) -> Iterator[Driven]:
    """Each measurement on each device with an engine."""
    with _drivers_of_its_own() as folder:
        for device in engines():
            yield _small(device, quick=quick)
            yield _detector(device, quick=quick)
            yield _clients(device, quick=quick)
            yield _urgent(device, quick=quick)
            yield _recovery(folder, device, quick=quick)


def _small(device: str, *, quick: bool) -> Driven:
    builder = Builder("one")
    builder.output(
        "y", builder.add(Relu, builder.input("x", TensorType(ElementType.FLOAT32, (8,))))
    )
    inputs = {"x": np.linspace(-1, 1, 8, dtype=np.float32)}
    seconds = 0.1 if quick else 0.3
    found = _called(builder.build(), device, inputs, seconds=seconds, quick=quick)
    here, there = found.direct_ms * 1e3, found.ours_ms * 1e3
    within = found.added_us.value <= ADDED_US
    return Driven(device, "a call, RELU [8]", "µs", here, there, found.added_us, within)


def _detector(device: str, *, quick: bool) -> Driven:
    inputs = {
        name: np.random.default_rng(0).standard_normal(shape, np.float32)
        for name, shape in _DETECTOR.items()
    }
    model = crosschip.load(model_file("PP-OCRv4 det", ".onnx").path)
    found = _called(model, device, inputs, seconds=1 if quick else 4, quick=quick)
    shares = [block.ours_ms / block.direct_ms - 1 for block in found.blocks]
    added = Estimate.of(shares)
    what = "a call, PP-OCRv4 det 640×640"
    within = added.value <= ADDED_SHARE
    return Driven(device, what, "ms", found.direct_ms, found.ours_ms, added, within)


def _called(
    model: Model, device: str, inputs: Mapping[str, Array], *, seconds: float, quick: bool
) -> Comparison:
    shapes = {name: array.shape for name, array in inputs.items()}

    def opened(name: str) -> Open:
        def open_() -> Run:
            compiled = crosschip.compile(model, [name], shapes=shapes, cache=False, threads=1)
            return partial(compiled.run, inputs)

        return open_

    ours, direct = opened(f"{device}@driver"), opened(device)
    blocks, patience = (2, 0) if quick else (5, 30)
    return compare(ours, direct, seconds=seconds, blocks=blocks, patience=patience)


def _clients(device: str, *, quick: bool) -> Driven:
    at_once = max(2, os.cpu_count() or 1)
    file = model_file(_SHARED, ".onnx")
    with _four(device, at_once) as clients:

        def all_of_them() -> None:
            for client in clients:
                _tell(client, _RUNS // _CLIENTS)
            for client in clients:
                _hear(client, "done")

        found = compare(
            lambda: all_of_them,
            partial(opened_directly, device, file, at_once, _RUNS),
            seconds=1 if quick else 4,
            blocks=2 if quick else 5,
            patience=0 if quick else 30,
        )
    here, there = (_RUNS * 1e3 / ms for ms in (found.direct_ms, found.ours_ms))
    what = f"{_CLIENTS} clients, {_SHARED}"
    within = found.ratio.value >= LEAST_SHARE
    return Driven(device, what, "runs/s", here, there, found.ratio, within)


@contextmanager
def _four(device: str, at_once: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Clients that are ready to run, and know that so many runs are in flight altogether."""
    command = [sys.executable, "-m", "benchmarks.children.drive_model", _SHARED]
    clients = [
        subprocess.Popen(
            [*command, f"{device}@driver", str(at_once)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        )
        for _ in range(_CLIENTS)
    ]
    try:
        for client in clients:
            _hear(client, "ready")
        yield clients
    finally:
        for client in clients:
            client.communicate()


def _tell(client: subprocess.Popen[str], runs: int) -> None:
    assert client.stdin is not None
    client.stdin.write(f"{runs}\n")
    client.stdin.flush()


def _hear(client: subprocess.Popen[str], word: str) -> None:
    assert client.stdout is not None
    heard = client.stdout.readline().strip()
    if heard != word:
        raise RuntimeError(f"a client said {heard!r} instead of {word!r}")


def _urgent(device: str, *, quick: bool) -> Driven:
    """Runs of high and low priority in turn, while eight threads keep the driver busy with low."""
    file = model_file(_SHARED, ".onnx")
    oracle = file.oracle(1)
    ended = threading.Event()
    with crosschip.compile(
        file.path, f"{device}@driver", shapes=oracle.shapes, cache=False, threads=1
    ) as compiled:

        def flood() -> None:
            urgency.set(Priority.LOW)
            while not ended.is_set():
                compiled.run(oracle.inputs)

        threads = [threading.Thread(target=flood) for _ in range(_FLOOD)]
        for thread in threads:
            thread.start()
        taken: dict[Priority, list[float]] = {Priority.LOW: [], Priority.HIGH: []}
        for _ in range(5 if quick else 50):
            for priority, seconds in taken.items():
                urgency.set(priority)
                start = time.perf_counter()
                compiled.run(oracle.inputs)
                seconds.append(time.perf_counter() - start)
        ended.set()
        for thread in threads:
            thread.join()
    low, high = (statistics.median(seconds) * 1e3 for seconds in taken.values())
    what = f"high instead of low priority, {_SHARED}"
    share = Estimate.of([mine / other for other, mine in zip(*taken.values(), strict=True)])
    return Driven(device, what, "ms", low, high, share, high < low)


def _recovery(folder: Path, device: str, *, quick: bool) -> Driven:
    file = model_file(_SHARED, ".onnx")
    oracle = file.oracle(1)
    remote = RemoteDevice(device, "driver")
    taken = []
    with crosschip.compile(
        file.path, [remote], shapes=oracle.shapes, cache=folder / "cache"
    ) as compiled:
        for _ in range(3 if quick else 20):
            compiled.run(oracle.inputs)
            process = remote.driver.link().connection.process
            start = time.perf_counter()
            os.kill(process, signal.SIGKILL)
            compiled.run(oracle.inputs)
            taken.append(time.perf_counter() - start)
    remote.close()
    found = Estimate.of(taken)
    what = f"recovery, {_SHARED}"
    return Driven(device, what, "s", None, found.value, found, found.value < RECOVERY_SECONDS)


@contextmanager
def _drivers_of_its_own() -> Iterator[Path]:
    """A folder for sockets, whose drivers are nobody else's."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    with TemporaryDirectory(prefix="cc", dir="/tmp", ignore_cleanup_errors=True) as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        try:
            yield Path(folder)
        finally:
            with suppress(KeyError):
                del os.environ["XDG_RUNTIME_DIR"]
            if before is not None:
                os.environ["XDG_RUNTIME_DIR"] = before
