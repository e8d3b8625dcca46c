"""Requests: order, limits, deadlines and ends, on engines and on a device that waits when told."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, wait
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, chain, float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options, Program
from crosschip.ir import (
    Array,
    DeadlineError,
    DeviceError,
    InputError,
    Model,
    QueueFullError,
    symbol,
)
from crosschip.ops.standard.unary import Exp, Neg
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.programs import Awaited
from crosschip.runtime.requests import Priority, Request, RequestQueue

LONG = 30.0
"""Seconds that no test takes."""


class Gated(DelegatingDevice):
    """A device whose runs begin when its gate is open; it notes what it runs on."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.seen: list[float] = []

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        return GatedProgram(self, model)


class GatedProgram(ReferenceProgram):
    def __init__(self, device: Gated, model: Model) -> None:
        super().__init__(model)
        self.device = device

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self.device.entered.release()
        assert self.device.gate.wait(LONG)
        self.device.seen.append(float(inputs[0].ravel()[0]))
        if self.device.seen[-1] < 0:
            raise DeviceError("negative")
        return super().run(inputs)


def given(value: float) -> dict[str, Array]:
    return {"x0": np.full(2, value, np.float32)}


@pytest.fixture
def gated() -> Gated:
    return Gated()


@pytest.fixture
def compiled(gated: Gated) -> Iterator[CompiledModel]:
    model = chain(Exp)
    with crosschip.compile(
        model,
        [gated],
        configuration=crosschip.Configuration(in_flight=1, queue_size=4),
        cache=False,
    ) as compiled:
        yield compiled
        gated.gate.set()


@pytest.fixture
def busy(gated: Gated, compiled: CompiledModel) -> CompiledModel:
    """The model, with a run under way that is held up."""
    compiled.submit(given(0))
    assert gated.entered.acquire(timeout=LONG)
    return compiled


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_requests_are_answered_as_runs_are(device: str) -> None:
    with crosschip.compile(chain(Exp), [device], cache=False) as compiled:
        values = np.linspace(-1, 1, 100)
        requests = [compiled.submit(given(value)) for value in values]
        for value, request in zip(values, requests, strict=True):
            (found,) = request.result(LONG).values()
            np.testing.assert_allclose(found, np.exp(np.full(2, value, np.float32)), rtol=1e-6)


@pytest.mark.parametrize("deadline", [None, LONG])
@pytest.mark.parametrize("started", [0, 1])
def test_what_no_thread_can_be_started_for_is_not_taken_on(
    monkeypatch: pytest.MonkeyPatch, started: int, deadline: float | None
) -> None:
    """And what comes after it, when there are threads again, is answered."""
    if deadline is None and started:
        pytest.skip("a request without a deadline takes one thread")
    start, left = threading.Thread.start, [started]

    def scarce(thread: threading.Thread) -> None:
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    with crosschip.compile(chain(Exp), ["reference"], cache=False) as compiled:
        monkeypatch.setattr(threading.Thread, "start", scarce)
        with pytest.raises(RuntimeError, match="start new thread"):
            compiled.submit(given(1), deadline=deadline)
        monkeypatch.undo()
        (found,) = compiled.submit(given(0), deadline=deadline).result(LONG).values()
    np.testing.assert_array_equal(found, [1, 1])


def test_the_urgent_go_first_and_the_first_among_equals(gated: Gated, busy: CompiledModel) -> None:
    order = [Priority.LOW, Priority.HIGH, Priority.NONE, Priority.HIGH]
    requests = [
        busy.submit(given(number), priority=priority) for number, priority in enumerate(order, 1)
    ]
    gated.gate.set()
    wait(requests, LONG)
    assert gated.seen == [0, 2, 4, 1, 3]


def test_a_full_queue_refuses_or_waits(gated: Gated, busy: CompiledModel) -> None:
    waiting = [busy.submit(given(1)) for _ in range(4)]
    with pytest.raises(QueueFullError, match=r"4 requests wait already.*queue_size=4"):
        busy.submit(given(2), wait=False)
    with pytest.raises(QueueFullError):
        busy.submit(given(2), deadline=0.01)
    late = threading.Thread(target=lambda: waiting.append(busy.submit(given(3))))
    late.start()
    gated.gate.set()
    late.join(LONG)
    assert not wait(waiting, LONG).not_done
    assert gated.seen == [0, 1, 1, 1, 1, 3]


def test_what_is_cancelled_makes_room_and_is_not_run(gated: Gated, busy: CompiledModel) -> None:
    requests = [busy.submit(given(1)) for _ in range(4)]
    assert requests[0].cancel()
    with pytest.raises(CancelledError):
        requests[0].result()
    requests.append(busy.submit(given(2), wait=False))
    gated.gate.set()
    wait(requests[1:], LONG)
    assert gated.seen == [0, 1, 1, 1, 2]
    assert not requests[1].cancel()


def test_a_deadline_passes_for_those_that_wait_and_those_that_run(
    gated: Gated, compiled: CompiledModel
) -> None:
    running = compiled.submit(given(1), deadline=1)
    assert gated.entered.acquire(timeout=LONG)
    waiting = compiled.submit(given(2), deadline=0.05)
    with pytest.raises(DeadlineError, match="its run ends with the segment that it is in"):
        running.result(LONG)
    with pytest.raises(DeadlineError, match="it was still waiting"):
        waiting.result(LONG)
    with pytest.raises(DeadlineError):
        compiled.run(given(3), timeout=0.01)
    gated.gate.set()
    np.testing.assert_allclose(compiled(given(0)["x0"]), 1)
    compiled.close()
    assert sorted(gated.seen) == [0, 1]


def test_no_deadline_passes_in_silence_while_the_watch_sleeps(
    gated: Gated, busy: CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer that comes too late is none, and what is late before it has begun is not run."""
    monkeypatch.setattr(RequestQueue, "_watch_deadline", lambda *_: None)
    late = [busy.submit(given(number), deadline=0.001) for number in (1, 2)]
    while not late[-1].is_late:
        time.sleep(0.001)
    gated.gate.set()
    for request in late:
        with pytest.raises(DeadlineError, match="it was still waiting"):
            request.result(LONG)
    gated.gate.clear()
    running = busy.submit(given(3), deadline=LONG)
    assert gated.entered.acquire(timeout=LONG)
    running.deadline = 0.0
    gated.gate.set()
    with pytest.raises(DeadlineError, match="its run ends with the segment that it is in"):
        running.result(LONG)
    assert gated.seen == [0, 3]


def test_a_run_within_its_time_is_a_run(compiled: CompiledModel, gated: Gated) -> None:
    gated.gate.set()
    assert list(compiled.run(given(0), timeout=LONG)) == list(compiled.outputs)


def test_failures_come_out_of_the_request(gated: Gated, compiled: CompiledModel) -> None:
    gated.gate.set()
    with pytest.raises(DeviceError, match="negative"):
        compiled.submit(given(-1)).result(LONG)
    with pytest.raises(InputError, match="input 'x0' is missing"):
        compiled.submit({})
    with pytest.raises(InputError, match="no output 'z'"):
        compiled.submit(given(1), keep=["z"])


def test_outputs_are_written_where_the_caller_wants_them(compiled: CompiledModel) -> None:
    (name,) = compiled.outputs
    place = np.empty(2, np.float32)
    compiled.devices["test"].device.gate.set()  # type: ignore[attr-defined]
    assert compiled.submit(given(0), {name: place}).result(LONG)[name] is place
    np.testing.assert_array_equal(place, 1)


def test_a_request_can_be_awaited_and_called_back(gated: Gated, compiled: CompiledModel) -> None:
    gated.gate.set()
    called: list[object] = []

    async def gather() -> list[dict[str, Any]]:
        requests = [compiled.submit(given(value)) for value in range(3)]
        requests[0].add_done_callback(called.append)
        return [await request for request in requests]

    found = [next(iter(outputs.values()))[0] for outputs in asyncio.run(gather())]
    np.testing.assert_allclose(found, np.exp(np.arange(3)), rtol=1e-6)
    assert len(called) == 1


def test_callbacks_that_fail_harm_nobody(
    gated: Gated, busy: CompiledModel, caplog: pytest.LogCaptureFixture
) -> None:
    """They are called once however the request ends, and each of them is."""
    ends: list[str] = []

    def failing(request: Request) -> None:
        ends.append("cancelled" if request.cancelled() else type(request.exception()).__name__)
        raise SystemExit("no way to leave")

    cancelled, failed, late, answered = requests = [
        busy.submit(given(1)),
        busy.submit(given(-1)),
        busy.submit(given(1), deadline=0.01),
        busy.submit(given(2)),
    ]
    for request in requests:
        request.add_done_callback(failing)
        request.add_done_callback(lambda _: ends.append("again"))
    cancelled.cancel()
    with pytest.raises(DeadlineError):
        late.result(LONG)
    gated.gate.set()
    np.testing.assert_allclose(next(iter(answered.result(LONG).values())), np.exp([2, 2]), 1e-6)
    with pytest.raises(DeviceError):
        failed.result(LONG)
    busy.submit(given(0)).result(LONG)
    answered.add_done_callback(failing)
    expected = ["cancelled", "DeadlineError", "DeviceError", "NoneType", "NoneType"]
    assert sorted(end for end in ends if end != "again") == sorted(expected)
    assert ends.count("again") == 4
    assert [record.message for record in caplog.records] == ["a callback of a request failed"] * 5


def test_a_callback_may_submit_and_is_refused_where_it_would_wait_for_itself(
    gated: Gated, compiled: CompiledModel
) -> None:
    followed: list[Request] = []
    refused = threading.Event()

    def follow(request: Request) -> None:
        with pytest.raises(QueueFullError, match="submit less in callbacks"):  # noqa: PT012
            while True:
                followed.append(compiled.submit(given(1)))
        refused.set()

    first = compiled.submit(given(0))
    first.add_done_callback(follow)
    gated.gate.set()
    assert refused.wait(LONG)
    assert not wait(followed, LONG).not_done
    assert len(followed) == 4


def test_a_callback_may_close_the_model(gated: Gated, compiled: CompiledModel) -> None:
    closed = threading.Event()

    def close(_: Request) -> None:
        compiled.close()
        closed.set()

    compiled.submit(given(0)).add_done_callback(close)
    gated.gate.set()
    assert closed.wait(LONG)


def test_cancellation_at_every_stage(gated: Gated, busy: CompiledModel) -> None:
    """A request may wait, run, have ended in any way, or be awaited by somebody."""
    waiting, awaited, running = (busy.submit(given(n)) for n in (1, 2, 3))
    assert waiting.cancel()
    assert waiting.cancel()
    assert waiting.cancelled()

    async def give_up() -> None:
        task = asyncio.ensure_future(_awaiting(awaited))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert awaited.cancelled()
    gated.gate.set()
    running.result(LONG)
    assert not running.cancel()
    assert not running.cancelled()
    failed = busy.submit(given(-1))
    assert isinstance(failed.exception(LONG), DeviceError)
    assert not failed.cancel()
    gated.gate.clear()
    begun = busy.submit(given(4))
    for _ in range(4):
        assert gated.entered.acquire(timeout=LONG)
        if begun.running():
            break
    assert begun.cancel()
    assert begun.cancel()
    assert (begun.cancelled(), begun.running()) == (True, False)
    for outcome in (begun.result, begun.exception):
        with pytest.raises(CancelledError):
            outcome(LONG)
    gated.gate.set()
    busy.close()
    assert gated.seen == [0, 3, -1, 4]


async def _awaiting(request: Request) -> None:
    await request


@pytest.mark.parametrize("in_flight", [1, 2])
def test_segments_on_different_devices_overlap(in_flight: int) -> None:
    """One request is in the second segment while the next is in the first, if two may run."""
    first, second = Gated(), Gated()
    first.name, second.name = "first", "second"
    first.gate.set()
    with crosschip.compile(
        chain(Exp, Neg),
        [first, second],
        configuration=crosschip.Configuration(in_flight=in_flight),
        placement=crosschip.PlacementOptions(pin={"NEG": "second"}),
        cache=False,
    ) as compiled:
        one, two = compiled.submit(given(0)), compiled.submit(given(1))
        assert first.entered.acquire(timeout=LONG)
        assert second.entered.acquire(timeout=LONG)
        # From here on, the first request stays in its second segment.
        overlapped = first.entered.acquire(timeout=LONG if in_flight > 1 else 0.05)
        assert overlapped == (in_flight > 1)
        assert not one.done()
        second.gate.set()
        for value, request in enumerate((one, two)):
            (found,) = request.result(LONG).values()
            np.testing.assert_allclose(found, -np.exp([value, value]), rtol=1e-6)


def test_closing_answers_what_was_taken_on(gated: Gated, busy: CompiledModel) -> None:
    requests = [busy.submit(given(1)) for _ in range(4)]
    closing = threading.Thread(target=busy.close)
    closing.start()
    gated.gate.set()
    closing.join(LONG)
    assert all(request.done() for request in requests)
    assert gated.seen == [0, 1, 1, 1, 1]
    with pytest.raises(InputError, match="has been closed"):
        busy.submit(given(1))


class Unserved(RequestQueue):
    """A queue whose workers are never there."""

    def _start_worker(self) -> None:
        pass


def test_who_waits_runs_what_is_next() -> None:
    queue = Unserved("queue", workers=1, capacity=4)
    ran: list[tuple[str, int]] = []

    def put(name: str, priority: Priority, deadline: float | None = None) -> Request:
        def work(_: Awaited) -> dict[str, Any]:
            ran.append((name, threading.get_ident()))
            return {"name": name}

        return queue.put(work, priority, deadline, wait=False)

    low, high, late = (
        put("low", Priority.LOW),
        put("high", Priority.HIGH),
        put("late", Priority.HIGH, 0.001),
    )
    with pytest.raises(TimeoutError):
        low.result(0.01)
    assert isinstance(late.exception(), DeadlineError)
    assert ran == []
    assert high.exception() is None
    assert low.result() == {"name": "low"}
    assert ran == [("high", threading.get_ident()), ("low", threading.get_ident())]
    queue.close()


def test_who_waits_helps_within_the_limit_and_is_waited_for() -> None:
    """Two help, a third has to wait for one of them; `close` waits for all but the own thread."""
    queue = Unserved("queue", workers=2, capacity=4)
    gate, entered = threading.Event(), threading.Semaphore(0)

    def work(_: Awaited) -> dict[str, Any]:
        entered.release()
        assert gate.wait(LONG)
        return {}

    requests = [queue.put(work, Priority.NONE, None, wait=False) for _ in range(3)]
    requests[0].add_done_callback(lambda _: queue.close(0))
    helpers = [threading.Thread(target=request.result) for request in requests[:2]]
    for helper in helpers:
        helper.start()
        assert entered.acquire(timeout=LONG)
    third = threading.Thread(target=requests[2].result)
    third.start()
    closing = threading.Thread(target=queue.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    assert not entered.acquire(blocking=False)
    RequestQueue._start_worker(queue)
    gate.set()
    for thread in (*helpers, third, closing):
        thread.join(LONG)
        assert not thread.is_alive()
    assert all(request.result() == {} for request in requests)


def test_a_model_that_nobody_closed_leaves_no_threads(gated: Gated) -> None:
    gated.gate.set()
    compiled = crosschip.compile(chain(Exp), [gated], cache=False)
    compiled.submit(given(0)).result(LONG)
    threads = compiled._requests._open_queue()._threads
    del compiled
    gc.collect()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def test_a_deadline_that_no_system_can_wait_for_is_none(busy: CompiledModel, gated: Gated) -> None:
    endless = [busy.submit(given(1), deadline=seconds) for seconds in (float("inf"), 1e300)]
    late = busy.submit(given(2), deadline=0.01)
    with pytest.raises(DeadlineError):
        late.result(LONG)
    gated.gate.set()
    for request in endless:
        request.result(LONG)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"deadline": "1"}, "a deadline is '1', but must be a number of seconds, or None"),
        ({"deadline": float("nan")}, "a deadline is nan"),
        ({"deadline": True}, "a deadline is True"),
        ({"priority": 99}, "there is no priority 99; there are NONE, LOW, MEDIUM, HIGH"),
        ({"priority": "HIGH"}, "there is no priority 'HIGH'"),
        ({"outputs": 3}, "outputs is 3, but must be arrays or buffers by name"),
        ({"outputs": np.zeros(2)}, "outputs is .*, but must be arrays or buffers by name"),
        ({"keep": 3}, "keep is 3, but must be a list of names of outputs"),
        ({"keep": "y0"}, "keep is 'y0', but must be a list"),
    ],
    ids=str,
)
def test_wishes_that_are_none_are_refused(
    compiled: CompiledModel, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        compiled.submit(given(0), **arguments)
    if "priority" not in arguments:
        renamed = {"timeout" if name == "deadline" else name: v for name, v in arguments.items()}
        with pytest.raises(InputError, match=message):
            compiled.run(given(0), **renamed)


@pytest.mark.parametrize("device", ["openvino"])
def test_the_end_of_the_process_waits_for_runs(device: str) -> None:
    program = f"""
import crosschip, numpy as np
from tests.modelling import chain
from crosschip.ops.standard.unary import Exp
compiled = crosschip.compile(chain(*[Exp] * 50), ["{device}"], cache=False)
for value in range(50):
    compiled.submit({{"x0": np.zeros(2, np.float32)}})
print("submitted")
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=2 * LONG
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "submitted\n", "")


def ending(value: float, size: int, request: Request) -> str:
    """The ending of a request; what it answered is right."""
    try:
        (found,) = request.result(LONG).values()
    except DeadlineError:
        assert request.deadline is not None
        return "late"
    except CancelledError:
        return "cancelled"
    np.testing.assert_allclose(found, np.exp(np.full(size, value, np.float32)), rtol=1e-5)
    return "answered"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_a_thousand_requests_of_any_kind(device: str, seed: int) -> None:
    """None is lost, none is wrong, no deadline passes in silence."""
    random = Random(seed)
    model = model_of(lambda b, x: b.add(Exp, x), float32(symbol("N")))
    with crosschip.compile(
        model,
        [device],
        configuration=crosschip.Configuration(in_flight=2, queue_size=50),
        cache=False,
    ) as compiled:
        requests = []
        refused = 0
        for _ in range(1000):
            value, size = random.uniform(-1, 1), random.randint(1, 8)
            deadline = random.choice([None, LONG, 1e-2, 1e-5])
            priority = random.choice(list(Priority))
            inputs = {"x0": np.full(size, value, np.float32)}
            try:
                request = compiled.submit(inputs, priority=priority, deadline=deadline)
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


def test_a_closed_model_takes_nothing_on_though_nobody_had_asked_before() -> None:
    compiled = crosschip.compile(chain(Exp), ["reference"], cache=False)
    compiled.close()
    for _ in range(2):
        with pytest.raises(InputError, match="has been closed"):
            compiled.submit(given(0))


def test_threads_that_ask_at_once_share_a_queue() -> None:
    with crosschip.compile(
        chain(Exp), ["reference"], configuration=crosschip.Configuration(in_flight=1), cache=False
    ) as compiled:
        together = threading.Barrier(8)
        made: list[RequestQueue] = []

        def ask(number: int) -> None:
            together.wait(LONG)
            compiled.submit(given(number)).result(LONG)
            made.append(compiled._requests._open_queue())

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LONG)
        assert len(made) == 8
        assert len(set(map(id, made))) == 1
