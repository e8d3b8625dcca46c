"""Requests of all priorities, while another thread compiles, changes shapes and evicts.

A thousand requests with random priorities, a third of them with deadlines, are submitted to one
compiled model with a queue that holds 200, two in flight; the submitting thread waits while it is
full. Meanwhile another thread compiles the same model again, with and without the cache, runs it
with other shapes and removes what the cache holds. *Lost* are requests that never end, *wrong*
those with another answer than the formula gives, *late in silence* those that were answered more
than 50 ms after their deadline. What is timed is from submission to the end, of those without a
deadline; the more urgent wait less.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np

import crosschip
from benchmarks.engines import engines
from benchmarks.subject import Column, Row
from crosschip.ir import Builder, DeadlineError, ElementType, Model, QueueFullError, TensorType
from crosschip.ir import symbol as open_size
from crosschip.ops.standard.activation import Tanh
from crosschip.ops.standard.matrix import MatMul
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.requests import Priority, Request

REQUIREMENT = (
    "no request is lost, wrong, or late without an error; each priority waits less than the next "
    "lower one"
)

_COUNT, _QUICK_COUNT, _WIDTH, _LAYERS = 1000, 200, 256, 8
_WAIT_SECONDS, _TOLERATED_SECONDS = 60.0, 0.05
_WEIGHTS = np.random.default_rng(0).standard_normal((_WIDTH, _WIDTH), np.float32) / 16


@dataclass(frozen=True)
class Waiting(Row):
    """The requests of one priority on one device."""

    device: Annotated[str, Column("device")]
    priority: Annotated[str, Column("priority")]
    requests: Annotated[int, Column("requests")]
    failed_late: Annotated[int, Column("failed by deadline")]
    lost: Annotated[int, Column("lost")]
    wrong: Annotated[int, Column("wrong")]
    silent: Annotated[int, Column("late in silence")]
    median_ms: Annotated[float, Column("median ms", ".1f")]
    worst_ms: Annotated[float, Column("p99 ms", ".1f")]
    less: Annotated[bool, Column("less than below")]

    @property
    def met(self) -> bool:
        return self.less and not (self.lost or self.wrong or self.silent)


@dataclass
class _Sent:
    """A request, with what is known of it."""

    request: Request
    value: float
    rows: int
    begun: float
    ended: float = float("nan")

    def finished(self, _: Request) -> None:
        self.ended = time.monotonic()


def measure(*, quick: bool) -> Iterator[Waiting]:
    """Each device with an engine."""
    for device in engines():
        with TemporaryDirectory() as cache:
            sent = _send(device, Path(cache), _QUICK_COUNT if quick else _COUNT)
        below = float("inf")
        for priority in sorted(Priority):
            row = _row(device, priority, [s for s in sent if s.request.priority is priority], below)
            yield row
            below = row.median_ms


def _send(device: str, cache: Path, count: int) -> list[_Sent]:
    random = Random(0)
    stop = threading.Event()
    model = _model()
    sent: list[_Sent] = []
    with crosschip.compile(
        model, [device], configuration=crosschip.Configuration(queue_size=200), cache=cache
    ) as compiled:
        other = threading.Thread(target=_disturb, args=(model, device, cache, compiled, stop))
        other.start()
        try:
            while len(sent) < count:
                value, rows = random.uniform(-1, 1), random.randint(1, 8)
                x = np.full((rows, _WIDTH), value, np.float32)
                priority = random.choice(list(Priority))
                deadline = random.choice([None, None, random.uniform(0.001, 0.3)])
                begun = time.monotonic()
                try:
                    request = compiled.submit({"x": x}, priority=priority, deadline=deadline)
                except QueueFullError:
                    continue  # refused, and said so: its deadline passed while the queue was full
                sent.append(one := _Sent(request, value, rows, begun))
                request.add_done_callback(one.finished)
            end = time.monotonic() + _WAIT_SECONDS
            while time.monotonic() < end and not all(one.request.done() for one in sent):
                time.sleep(0.01)
        finally:
            stop.set()
            other.join()
    return sent


def _disturb(
    model: Model, device: str, cache: Path, compiled: CompiledModel, stop: threading.Event
) -> None:
    number = 0
    while not stop.is_set():
        number += 1
        compiled.run({"x": np.zeros((10 + number % 7, _WIDTH), np.float32)})
        crosschip.compile(model, [device], cache=cache if number % 2 else False).close()
        for entry in cache.rglob("*.chip"):
            entry.unlink(missing_ok=True)


def _model() -> Model:
    b = Builder("layers")
    x = b.input("x", TensorType(ElementType.FLOAT32, (open_size("N"), _WIDTH)))
    weights = b.constant(_WEIGHTS)
    for _ in range(_LAYERS):
        x = b.add(Tanh, b.add(MatMul, x, weights))
    b.output("y", x)
    return b.build()


def _right(one: _Sent) -> bool:
    x = np.full((one.rows, _WIDTH), one.value, np.float64)
    for _ in range(_LAYERS):
        x = np.tanh(x @ _WEIGHTS)
    (found,) = one.request.result().values()
    return found.shape == x.shape and bool(np.abs(found - x).max() < 1e-3)


def _row(device: str, priority: Priority, sent: list[_Sent], below: float) -> Waiting:
    done = [one for one in sent if one.request.done()]
    late = [one for one in done if isinstance(one.request.exception(), DeadlineError)]
    answered = [one for one in done if one.request.exception() is None]
    silent = [
        one
        for one in answered
        if one.request.deadline is not None
        and one.ended > one.request.deadline + _TOLERATED_SECONDS
    ]
    # Of those with a deadline, only the quick ones have an answer: they would flatter the urgent
    # less than the others.
    waited = sorted((o.ended - o.begun) * 1e3 for o in answered if o.request.deadline is None)
    median = statistics.median(waited)
    return Waiting(
        device,
        priority.name.lower(),
        len(sent),
        len(late),
        len(sent) - len(done),
        sum(not _right(one) for one in answered),
        len(silent),
        median,
        waited[int(0.99 * (len(waited) - 1))],
        median < below,
    )
