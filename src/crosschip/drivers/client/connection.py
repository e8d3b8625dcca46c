"""The client's end of a connection: requests from any thread, answers to each."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from time import monotonic
from typing import TypeVar

import msgspec

from crosschip.drivers.client.effort import Effort
from crosschip.drivers.client.timeouts import Timeouts
from crosschip.drivers.protocol import memory, messages
from crosschip.drivers.protocol.board import Board
from crosschip.drivers.protocol.channel import Channel, ProtocolError, close_all, peer
from crosschip.drivers.protocol.messages import Answer, Failure, Request
from crosschip.hal import CompileError
from crosschip.ir import DeviceError
from crosschip.ir.interruption import raise_interruption

T = TypeVar("T", bound=Answer)

_LOOK_SECONDS = 0.25
_BUSY_SECONDS = 60.0
"""An engine at work may keep the service from giving a sign of life for so long."""
_AT_ONCE_SECONDS = 300e-6
"""Answers that usually come so soon are not slept for."""

_SLOW = (messages.Answers, messages.Prepared, messages.Saved)
"""What an engine works for, even if it only waits for a file or another process."""
_LOOK = struct.pack("ll", 0, int(_LOOK_SECONDS * 1e6))


class Died(DeviceError):
    """The driver's process is not there any more, or does not answer.

    Attributes:
        process: which it was.
        hangs: whether it is there and does not answer.
        at_work: whether it was at the request that this was raised for, so that that may be why.
    """

    def __init__(self, message: str, process: int, *, hangs: bool) -> None:
        super().__init__(message)
        self.process = process
        self.hangs = hangs
        self.at_work = False


class _Waiter:
    """A request that waits for its answer.

    Args:
        preparing: whether the driver may be silent for long, as one that compiles may be.
    """

    __slots__ = ("answer", "began", "descriptors", "preparing", "wake")

    def __init__(self, *, preparing: bool) -> None:
        self.preparing = preparing
        self.answer: Answer | None = None
        self.descriptors: list[int] = []
        self.wake = threading.Lock()
        self.wake.acquire()
        self.began = monotonic()


class Connection:
    """A connection to a service. Any thread may ask; one of those that wait reads for all.

    Args:
        path: of the socket.
        name: what the client calls itself.
        patience: how long it is waited for.
        watches: whether it is only to ask how the service is, or to end it.

    Attributes:
        process: the service's process.
        description: what the device is.
        alive: whether the connection can be used.
        hangs: whether the service is there and does not answer.
        why: the reason why it cannot be used.

    Raises:
        OSError: nobody serves there.
        Died: the service does not answer.
        DeviceError: it speaks another version of the messages.
    """

    def __init__(self, path: Path, name: str, timeouts: Timeouts, *, watches: bool = False) -> None:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        # The socket's own limit: Python's would ask whether there is something before each message.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _LOOK)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _LOOK)
        try:
            end.connect(str(path))
            self.process, user = peer(end)
        except OSError:
            end.close()
            raise
        self._channel = Channel(end)
        if user != os.geteuid():
            end.close()
            raise DeviceError(f"{path}: somebody else serves there")
        self._timeouts = timeouts
        self._numbers = count(1)
        self._pending: dict[int, _Waiter] = {}
        self._sending = threading.Lock()
        self._reading = threading.Lock()
        self._heard = monotonic()
        self._pinged_at: float | None = None
        self._effort = Effort(self.process)
        self._next_look = 0.0
        self._usual = 1.0
        """Seconds that runs take of late, from the request to the answer."""
        self.alive = True
        self.hangs = False
        self.why = ""
        self._board: Board | None = None
        try:
            description, (descriptor,) = self.ask_for(
                messages.Description, lambda n: messages.Hello(n, messages.PROTOCOL, name, watches)
            )
        except BaseException as error:
            end.close()
            if isinstance(error, ValueError):
                raise self._gone("did not greet as a service does") from None
            raise
        self.description = description
        try:
            self._board = Board(memory.mapped(descriptor, writable=True))
        finally:
            os.close(descriptor)

    def ask(self, kind: type[T], make: Callable[[int], Request], send: Sequence[int] = ()) -> T:
        """Return the answer to a request, without which no descriptor comes along.

        Args:
            kind: the answer's type.
            make: the request, of its number.
            send: descriptors that go along.

        Raises:
            Died: the service is gone.
            DeviceError: it answers that it failed.
        """
        answer, descriptors = self.ask_for(kind, make, send)
        close_all(descriptors)
        return answer

    def ask_for(
        self, kind: type[T], make: Callable[[int], Request], send: Sequence[int] = ()
    ) -> tuple[T, list[int]]:
        """Return the answer to a request, and the descriptors that come along; the caller closes them.

        Raises:
            Died, DeviceError: as for `ask`.
        """
        number = next(self._numbers)
        waiter = _Waiter(preparing=kind in _SLOW)
        self._pending[number] = waiter
        try:
            self._send(make(number), send)
            self._await(waiter)
        except Died as death:
            death.at_work = self._was_at(number)
            raise
        finally:
            del self._pending[number]
        if kind is messages.Ran:
            self._usual += (monotonic() - waiter.began - self._usual) / 8
        answer = waiter.answer
        if type(answer) is kind:
            return answer, waiter.descriptors
        close_all(waiter.descriptors)
        if isinstance(answer, Failure):
            raise _error(answer)
        raise self._gone(f"answered with {type(answer).__name__} instead of {kind.__name__}")

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._channel.end.fileno()

    def end(self) -> None:
        """The other end has been seen to be gone: whoever waits for an answer gets none."""
        self._gone("is not there any more")

    def close(self) -> None:
        """End the connection; whoever waits for an answer gets none."""
        self._gone("has been let go")

    def forget(self) -> None:
        """Leave the connection to the process that this one has been forked from."""
        self.alive = False
        self.why = "the driver is the parent process's"
        self._channel.close()

    def release(self) -> None:
        """Close the socket, once nobody reads from it any more."""
        with self._reading:
            self._channel.close()

    def _send(self, request: Request, descriptors: Sequence[int]) -> None:
        encoded = messages.encode(request)
        try:
            with self._sending:
                self._channel.send(encoded, descriptors)
        except BlockingIOError:
            raise self._gone("takes no requests any more", kill=True) from None
        except OSError as error:
            raise_interruption(error)
            raise self._gone("is not there any more") from None

    def _await(self, waiter: _Waiter) -> None:
        """Wait for an answer: read, if nobody else does, for all who wait."""
        while waiter.answer is None:
            if not self.alive:
                raise self._death()
            if not self._reading.acquire(blocking=False):
                waiter.wake.acquire(timeout=_LOOK_SECONDS)
                continue
            try:
                if self._usual < _AT_ONCE_SECONDS and len(self._pending) == 1:
                    self._look_out(waiter)
                while waiter.answer is None:
                    self._read()
            finally:
                self._reading.release()
                self._hand_on()

    def _look_out(self, waiter: _Waiter) -> None:
        """Look for an answer that comes at once: to go to sleep and be woken would take longer."""
        end = monotonic() + _AT_ONCE_SECONDS
        while waiter.answer is None and monotonic() < end:
            self._read(wait=False)

    def _hand_on(self) -> None:
        """Have another one of those who wait read from now on."""
        for other in list(self._pending.values()):
            if other.answer is None:
                with suppress(RuntimeError):  # it has been woken already
                    other.wake.release()
                return

    def _read(self, *, wait: bool = True) -> None:
        """Take one message, for whomever it is; if there is none, wait for it or let it be."""
        self._check_work()
        try:
            view, descriptors = self._channel.receive(wait=wait)
        except BlockingIOError:
            if wait:
                self._check_life()
            return
        except (EOFError, OSError) as error:
            raise_interruption(error)  # a signal handler's TimeoutError is an OSError, too
            raise self._gone("is not there any more") from None
        except ProtocolError as error:
            raise self._gone(str(error)) from None
        self._heard = monotonic()
        self._pinged_at = None
        try:
            answer = messages.decode_answer(view)
        except msgspec.MsgspecError as error:
            close_all(descriptors)
            raise self._gone(f"sent what is no message ({error})") from None
        waiter = self._pending.get(answer.number)
        if waiter is None:  # who asked has gone, interrupted; or it is a sign of life
            close_all(descriptors)
            return
        waiter.descriptors = descriptors
        waiter.answer = answer
        with suppress(RuntimeError):  # it has been woken already
            waiter.wake.release()

    def _check_life(self) -> None:
        """Ask for a sign of life; without one, the service counts as dead."""
        now = monotonic()
        if self._pinged_at is None:
            self._pinged_at = now
            self._effort = Effort(self.process)
            self._send(messages.Ping(0), ())
            return
        silence = self._timeouts.silence
        waited = now - max(self._pinged_at, self._heard)
        if waited > silence and self._may_be_busy():
            silence = max(silence, _BUSY_SECONDS)
        if waited > silence:
            raise self._gone(f"has given no sign of life for {silence:g} seconds", kill=True)

    def _may_be_busy(self) -> bool:
        """Return whether it may be silent because its engine is at work and lets nothing else run."""
        return self._effort.busy or any(w.preparing for w in list(self._pending.values()))

    def _check_work(self) -> None:
        """Look for a run or a compilation that hangs, while the service itself lives."""
        timeouts, board, now = self._timeouts, self._board, monotonic()
        if not timeouts.limited or board is None or now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        running = board.running()
        for number, waiter in list(self._pending.items()):
            elapsed = now - waiter.began
            if waiter.preparing and elapsed > timeouts.compile_seconds:
                raise self._hangs(f"has been compiling for {timeouts.compile_seconds:g} seconds")
            if number in running and elapsed > timeouts.run_seconds:
                raise self._hangs(f"has been at a run for {timeouts.run_seconds:g} seconds")

    def _hangs(self, how: str) -> Died:
        return self._gone(how, kill=True)

    def _was_at(self, number: int) -> bool:
        return self._board is not None and number in self._board.running()

    def _gone(self, how: str, *, kill: bool = False) -> Died:
        """Return the error that the service is gone, which all others who wait get, too."""
        if self.alive:
            self.alive = False
            self.why = f"the driver's process {self.process} {how}"
            self.hangs = kill
            self._channel.cut_off()
            for other in list(self._pending.values()):
                with suppress(RuntimeError):  # it has been woken already
                    other.wake.release()
        return self._death()

    def _death(self) -> Died:
        return Died(self.why, self.process, hangs=self.hangs)


def _error(failure: Failure) -> DeviceError:
    if failure.kind == CompileError.__name__:
        error = CompileError(failure.message)
        error.operations = frozenset(failure.operations)
        return error
    if failure.kind == DeviceError.__name__:
        return DeviceError(failure.message)
    first = (failure.message.splitlines() or [""])[0]
    message = f"{failure.kind}: {first}" if first else failure.kind
    return DeviceError(f"failed while at work: {message}")
