"""What a signal handler or another thread raises during a run is no failure of a device."""

from __future__ import annotations

import ctypes
import gc
import random
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest
from tests.modelling import chain

import crosschip as cc
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Program
from crosschip.ir import DeviceError
from crosschip.ir.interruption import raise_interruption
from crosschip.ops.standard.activation import Relu, Sigmoid

X = np.linspace(-1, 1, 2, dtype=np.float32)


class Limit(Exception):
    """A time limit, as a server for tasks sets it."""


class LateError(TimeoutError):
    """A time limit that is an `OSError`, too."""


@pytest.fixture(params=[Limit, LateError, SystemExit])
def raised(request: pytest.FixtureRequest) -> Iterator[list[BaseException]]:
    """The errors that the handler of SIGUSR1 has raised."""
    errors: list[BaseException] = []

    def handle(*_: object) -> None:
        errors.append(request.param("too late"))
        raise errors[-1]

    gc.collect()
    gc.disable()  # nobody hears of what is raised while Python collects garbage
    before = signal.signal(signal.SIGUSR1, handle)
    yield errors
    signal.signal(signal.SIGUSR1, before)
    gc.enable()


def functions_called(run: Any, interrupt_at: int = -1) -> int:
    """Run with SIGUSR1 at the beginning of the n-th function of ours; how many were called."""
    count = 0

    def trace(frame: FrameType, *_: object) -> None:
        nonlocal count
        if "/crosschip/" in frame.f_code.co_filename:
            count += 1
            if count == interrupt_at:
                sys.settrace(None)
                signal.raise_signal(signal.SIGUSR1)

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("devices", [["reference"], ["onnxruntime"], ["openvino"]])
def test_wherever_it_comes_it_goes_through_and_the_model_can_be_used(
    devices: list[str], raised: list[BaseException]
) -> None:
    compiled = cc.compile(chain(Relu, Sigmoid), devices, cache=False)
    expected = compiled(X)
    places = range(1, functions_called(lambda: compiled(X)) + 1)
    for place in random.Random(26).sample(places, min(20, len(places))):
        with pytest.raises(BaseException) as caught:  # noqa: PT011  # the very object is compared
            functions_called(lambda: compiled(X), place)
        assert caught.value is raised[-1], f"at {place}"
        assert np.array_equal(compiled(X), expected)
    ended = threading.Thread(target=compiled.close, daemon=True)
    ended.start()
    ended.join(60)
    assert not ended.is_alive(), "a run counts as under way for ever"


def test_a_timer_interrupts_a_run_at_any_moment(raised: list[BaseException]) -> None:
    compiled = cc.compile(chain(Relu, Sigmoid), ["onnxruntime", "reference"], cache=False)
    timer = signal.signal(signal.SIGALRM, signal.getsignal(signal.SIGUSR1))
    try:
        for number in range(50):
            with pytest.raises(BaseException) as caught:  # noqa: PT011, PT012
                signal.setitimer(signal.ITIMER_REAL, 1e-4 + 1e-5 * number, 0.05)
                while True:
                    compiled(X)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert caught.value in raised
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, timer)
    compiled.close()


class Slow(ReferenceDevice):
    """A device that runs until somebody interrupts it, and tells when it has begun."""

    begun = threading.Event()

    def compile(self, model: Any, options: Any) -> Program:
        program = super().compile(model, options)

        def run(inputs: Any) -> Any:
            self.begun.set()
            try:
                while True:
                    pass
            except Limit as error:
                if inputs[0][0] > 0:
                    raise RuntimeError("the engine was interrupted") from error
                raise

        program.run = run  # type: ignore[method-assign]
        return program


@pytest.mark.parametrize("sign", [1, -1])
def test_what_another_thread_raises_goes_through(sign: int) -> None:
    caught: list[BaseException] = []
    compiled = cc.compile(chain(Relu), [Slow()], cache=False)
    Slow.begun.clear()

    def work() -> None:
        try:
            compiled(sign * np.ones(2, np.float32))
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert Slow.begun.wait(60)
    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    assert set_error(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Limit)) == 1
    thread.join(60)
    assert [type(error) for error in caught] == [Limit]
    compiled.close()


def fails_by_itself() -> None:
    raise Limit("of the device's own")


def fails_in_c() -> None:
    int("no number")


@pytest.mark.parametrize("fault", [fails_by_itself, fails_in_c, sys.exit])
def test_a_devices_own_errors_are_its_failures(fault: Any) -> None:
    class Faulty(ReferenceDevice):
        def compile(self, model: Any, options: Any) -> Program:
            program = super().compile(model, options)
            program.run = lambda inputs: fault()  # type: ignore[method-assign]
            return program

    with (
        cc.compile(chain(Relu), [Faulty()], cache=False) as compiled,
        pytest.raises(DeviceError, match="failed while running"),
    ):
        compiled(X)


def test_errors_that_are_handled_while_another_was_are_looked_at_once() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first
    raise_interruption(first)
