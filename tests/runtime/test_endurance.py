"""Many runs: what they have used is free again, and none is lost while others are disturbed."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import ClassVar

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Capabilities, Options, Program, Sizing
from crosschip.ir import Array, DeadlineError, Model, QueueFullError, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.unary import Exp, Neg
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.requests import Priority, Request

LONG = 60.0
"""Seconds that no test takes."""

CALLS = 1500
X = np.ones((256, 256), np.float32)


def resident() -> int:
    """The bytes that this process has resident."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def runs(compiled: CompiledModel) -> dict[str, Callable[[], object]]:
    inputs = {"x0": X}
    place = np.zeros_like(X)

    def cancelled() -> None:
        # It may have begun.
        compiled.submit(inputs).cancel()

    return {
        "run": lambda: compiled.run(inputs),
        "in place": lambda: compiled.run(inputs, {"y0": place}),
        "submit": lambda: compiled.submit(inputs).result(LONG),
        "deadline": lambda: compiled.submit(inputs, deadline=LONG).result(LONG),
        "cancelled": cancelled,
    }


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux's /proc")
@pytest.mark.parametrize("kind", ["run", "in place", "submit", "deadline", "cancelled"])
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
def test_memory_is_flat(device: str, kind: str) -> None:
    """Had each call kept its output, it would be 390 MB; an object each, thousands of blocks."""
    model = model_of(lambda b, x: b.add(Relu, x), float32(*X.shape))
    with crosschip.compile(model, [device], cache=False, threads=1) as compiled:
        call = runs(compiled)[kind]

        def used() -> tuple[int, int]:
            compiled.run({"x0": X})
            gc.collect()
            return resident(), sys.getallocatedblocks()

        for _ in range(200):
            call()
        before = used()
        for _ in range(CALLS):
            call()
        after = used()
        assert after[0] - before[0] < 64 * 2**20
        assert after[1] - before[1] < CALLS // 2


class Specializing(DelegatingDevice):
    """A device that compiles again for each set of input shapes, and keeps the last two."""

    def capabilities(self) -> Capabilities:
        return Capabilities(sizing=Sizing.FREE)

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        return SpecializingProgram(model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return SpecializingProgram(model)


class SpecializingProgram(ReferenceProgram):
    specializes: ClassVar[bool] = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.kept: list[Sequence[tuple[int, ...]]] = []
        self.dropped = 0

    def prepare(self, shapes: Sequence[tuple[int, ...]]) -> bool:
        if shapes in self.kept:
            return False
        self.kept.append(shapes)
        self.dropped += len(self.kept) > 2
        del self.kept[:-2]
        return True

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self.prepare([array.shape for array in inputs])
        return super().run(inputs)


@contextmanager
def disturbed(work: Callable[[int], object]) -> Iterator[list[int]]:
    """Something done over and over by another thread meanwhile; how often, afterwards."""
    stop = threading.Event()
    done: list[int] = []
    failed: list[BaseException] = []

    def repeat() -> None:
        try:
            while not stop.is_set():
                work(len(done))
                done.append(len(done))
        except BaseException as error:  # it is raised where it is seen
            failed.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield done
    finally:
        stop.set()
        thread.join(LONG)
    if failed:
        raise failed[0]


def ending(value: float, size: int, request: Request) -> str:
    """The ending of a request; what it answered is right."""
    try:
        (found,) = request.result(LONG).values()
    except DeadlineError:
        assert request.deadline is not None
        return "late"
    except CancelledError:
        return "cancelled"
    np.testing.assert_allclose(found, -np.exp(np.full(size, value, np.float32)), rtol=1e-5)
    return "answered"


@pytest.mark.parametrize(
    "devices",
    [["onnxruntime"], ["openvino"], ["test"], ["test", "onnxruntime"]],
    ids=lambda names: "+".join(names),
)
def test_a_thousand_requests_while_others_recompile_and_evict(
    devices: list[str], tmp_path: Path
) -> None:
    """None is lost, none is wrong, no deadline passes in silence.

    Another thread compiles the same model again, with the cache and without, runs shapes that drop
    other shapes' programs, and removes what the cache holds.
    """
    random = Random(0)
    model = model_of(lambda b, x: b.add(Neg, b.add(Exp, x)), float32(symbol("N")))
    theirs = Specializing()
    opened = [theirs if name == "test" else name for name in devices]
    pin = {"NEG": devices[-1]}

    def again(number: int) -> None:
        size = 10 + number % 5
        np.testing.assert_allclose(compiled(np.zeros(size, np.float32)), np.full(size, -1.0))
        compiled.prepare({"x0": (20 + number % 3,)})
        cache = tmp_path if number % 2 else False
        with crosschip.compile(
            model, opened, placement=crosschip.PlacementOptions(pin=pin), cache=cache
        ) as other:
            np.testing.assert_allclose(other(np.zeros(3, np.float32)), np.full(3, -1.0))
        for entry in tmp_path.rglob("*.chip"):
            entry.unlink(missing_ok=True)

    with crosschip.compile(
        model,
        opened,
        configuration=crosschip.Configuration(queue_size=50),
        placement=crosschip.PlacementOptions(pin=pin),
        cache=tmp_path,
    ) as compiled:
        requests: list[tuple[float, int, Request]] = []
        refused = 0
        with disturbed(again) as done:
            for _ in range(1000):
                value, size = random.uniform(-1, 1), random.randint(1, 8)
                deadline = random.choice([None, LONG, 1e-2, 1e-5])
                inputs = {"x0": np.full(size, value, np.float32)}
                try:
                    request = compiled.submit(
                        inputs, priority=random.choice(list(Priority)), deadline=deadline
                    )
                except QueueFullError:
                    assert deadline is not None
                    refused += 1
                    continue
                requests.append((value, size, request))
                if random.random() < 0.1:
                    random.choice(requests)[2].cancel()
            ends = [ending(value, size, request) for value, size, request in requests]
        assert refused + len(ends) == 1000
        assert ends.count("answered") > 100
        assert done


def test_a_high_priority_waits_for_fewer_others_than_a_low_one() -> None:
    """All wait before the first is run, so that the order of their ends is that of priorities."""
    random = Random(0)
    begun, gate = threading.Event(), threading.Event()
    order: list[Priority] = []

    class Held(DelegatingDevice):
        def compile(self, model: Model, options: Options) -> Program:
            return HeldProgram(model)

    class HeldProgram(ReferenceProgram):
        def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
            begun.set()
            assert gate.wait(LONG)
            return super().run(inputs)

    model = model_of(lambda b, x: b.add(Exp, x), float32(2))
    inputs = {"x0": np.zeros(2, np.float32)}
    with crosschip.compile(
        model,
        [Held()],
        configuration=crosschip.Configuration(in_flight=1, queue_size=1000),
        cache=False,
    ) as compiled:
        compiled.submit(inputs, priority=Priority.HIGH)
        assert begun.wait(LONG)
        for _ in range(1000):
            priority = random.choice(list(Priority))
            request = compiled.submit(inputs, priority=priority)
            request.add_done_callback(lambda request: order.append(request.priority))
        gate.set()
    assert len(order) == 1000
    assert order == sorted(order, reverse=True)
