"""The client's end of a connection: requests from any thread, and their answers."""

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

from crosschip.drivers.client.policy import Timeouts
from crosschip.drivers.protocol import memory, messages
from crosschip.drivers.protocol.board import Board
from crosschip.drivers.protocol.channel import Channel, ProtocolError, close_all, peer
from crosschip.drivers.protocol.messages import Answer, Failure, Request
from crosschip.hal import CompileError
from crosschip.ir import DeviceError
from crosschip.ir.interruption import raise_interruption

_BUSY_SHARE = 0.1
"""The minimum share of one CPU that a busy process gets on a loaded machine."""

_USER, _SYSTEM = 11, 12
"""The CPU time fields in `/proc/PID/stat`, counted after the name; see proc(5)."""


class _CpuUse:
    """The CPU use of a process from now on, to distinguish a busy one from a hanging one.

    Args:
        process: the process id.
    """

    def __init__(self, process: int) -> None:
        self._process = process
        self._start = monotonic()
        self._start_seconds = _cpu_seconds(process)

    @property
    def busy(self) -> bool:
        """Whether the process has used the CPU since the start; false if unknown."""
        passed = monotonic() - self._start
        return _cpu_seconds(self._process) - self._start_seconds > _BUSY_SHARE * passed


def _cpu_seconds(process: int) -> float:
    """Return a process's CPU seconds; 0 if it does not exist."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")


T = TypeVar("T", bound=Answer)

_POLL_SECONDS = 0.25
_BUSY_SECONDS = 60.0
"""The time for which a busy engine may keep the service from answering a ping."""
_SPIN_SECONDS = 300e-6
"""The time to poll for an answer without sleeping, if runs usually take less."""

_SLOW = (messages.Answers, messages.Prepared, messages.Saved)
"""The answers that need an engine's work, during which it may wait for a file or a process."""
_POLL_TIMEVAL = struct.pack("ll", 0, int(_POLL_SECONDS * 1e6))


class Died(DeviceError):
    """The driver's process has ended, or does not answer.

    Attributes:
        process: the process id.
        hangs: whether the process exists and does not answer.
        was_running: whether it was executing this request, which may be the cause.
    """

    def __init__(self, message: str, process: int, *, hangs: bool) -> None:
        super().__init__(message)
        self.process = process
        self.hangs = hangs
        self.was_running = False


class _Waiter:
    """A request that waits for its answer.

    Args:
        preparing: whether the driver may be silent for long, as when compiling.
    """

    __slots__ = ("answer", "descriptors", "preparing", "start", "wake")

    def __init__(self, *, preparing: bool) -> None:
        self.preparing = preparing
        self.answer: Answer | None = None
        self.descriptors: list[int] = []
        self.wake = threading.Lock()
        self.wake.acquire()
        self.start = monotonic()


class Connection:
    """A connection to a service. Thread-safe; one waiting thread reads for all.

    Args:
        path: the socket's path.
        name: the client's name.
        timeouts: the timeouts.
        watches: whether the connection only monitors or stops the service.

    Attributes:
        process: the service's process id.
        description: the device's description.
        alive: whether the connection is usable.
        hangs: whether the service exists and does not answer.
        reason: why the connection is unusable.

    Raises:
        OSError: no process serves the socket.
        Died: the service does not answer.
        DeviceError: the service has another protocol version.
    """

    def __init__(self, path: Path, name: str, timeouts: Timeouts, *, watches: bool = False) -> None:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        # The socket's own timeout: Python's would add a poll before each message.
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _POLL_TIMEVAL)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _POLL_TIMEVAL)
        try:
            end.connect(str(path))
            self.process, user = peer(end)
        except OSError:
            end.close()
            raise
        self._channel = Channel(end)
        if user != os.geteuid():
            end.close()
            raise DeviceError(f"{path}: a process of another user serves this socket")
        self._timeouts = timeouts
        self._numbers = count(1)
        self._pending: dict[int, _Waiter] = {}
        self._sending = threading.Lock()
        self._reading = threading.Lock()
        self._last_message = monotonic()
        self._pinged_at: float | None = None
        self._cpu_use = _CpuUse(self.process)
        self._next_check = 0.0
        self._run_seconds = 1.0
        """The moving average of seconds from a run's request to its answer."""
        self.alive = True
        self.hangs = False
        self.reason = ""
        self._board: Board | None = None
        try:
            description, (descriptor,) = self.ask_for(
                messages.Description, lambda n: messages.Hello(n, messages.PROTOCOL, name, watches)
            )
        except BaseException as error:
            end.close()
            if isinstance(error, ValueError):
                raise self._fail("did not greet as a service does") from None
            raise
        self.description = description
        try:
            self._board = Board(memory.map_shared(descriptor, writable=True))
        finally:
            os.close(descriptor)

    def ask(self, kind: type[T], make: Callable[[int], Request], send: Sequence[int] = ()) -> T:
        """Send a request and return its answer, which has no descriptors.

        Args:
            kind: the answer's type.
            make: returns the request, given its number.
            send: descriptors to send.

        Raises:
            Died: the service has died.
            DeviceError: the service answers with a failure.
        """
        answer, descriptors = self.ask_for(kind, make, send)
        close_all(descriptors)
        return answer

    def ask_for(
        self, kind: type[T], make: Callable[[int], Request], send: Sequence[int] = ()
    ) -> tuple[T, list[int]]:
        """Send a request; return its answer and descriptors, which the caller closes.

        Raises:
            Died, DeviceError: as for `ask`.
        """
        number = next(self._numbers)
        waiter = _Waiter(preparing=kind in _SLOW)
        self._pending[number] = waiter
        try:
            self._send(make(number), send)
            self._wait_for(waiter)
        except Died as death:
            death.was_running = self._board is not None and number in self._board.running()
            raise
        finally:
            del self._pending[number]
        if kind is messages.Ran:
            self._run_seconds += (monotonic() - waiter.start - self._run_seconds) / 8
        answer = waiter.answer
        if type(answer) is kind:
            return answer, waiter.descriptors
        close_all(waiter.descriptors)
        if isinstance(answer, Failure):
            raise _error(answer)
        raise self._fail(f"answered with {type(answer).__name__} instead of {kind.__name__}")

    def fileno(self) -> int:
        """Return the socket's file descriptor."""
        return self._channel.end.fileno()

    def end(self) -> None:
        """Fail all waiting requests: the other end is closed."""
        self._fail("is not there any more")

    def close(self) -> None:
        """Disconnect; waiting requests fail."""
        self._fail("has been let go")

    def forget(self) -> None:
        """Close the socket in a forked process, without ending the parent's connection."""
        self.alive = False
        self.reason = "the driver is the parent process's"
        self._channel.close()

    def release(self) -> None:
        """Close the socket when no thread reads from it."""
        with self._reading:
            self._channel.close()

    def _send(self, request: Request, descriptors: Sequence[int]) -> None:
        encoded = messages.encode(request)
        try:
            with self._sending:
                self._channel.send(encoded, descriptors)
        except BlockingIOError:
            raise self._fail("takes no requests any more", kill=True) from None
        except OSError as error:
            raise_interruption(error)
            raise self._fail("is not there any more") from None

    def _wait_for(self, waiter: _Waiter) -> None:
        """Wait for an answer; read for all waiting threads if no other thread does."""
        while waiter.answer is None:
            if not self.alive:
                raise self._death()
            if not self._reading.acquire(blocking=False):
                waiter.wake.acquire(timeout=_POLL_SECONDS)
                continue
            try:
                if self._run_seconds < _SPIN_SECONDS and len(self._pending) == 1:
                    self._spin(waiter)
                while waiter.answer is None:
                    self._read()
            finally:
                self._reading.release()
                self._wake_next_reader()

    def _spin(self, waiter: _Waiter) -> None:
        """Poll for an answer without sleeping, which is faster for short runs."""
        end = monotonic() + _SPIN_SECONDS
        while waiter.answer is None and monotonic() < end:
            self._read(wait=False)

    def _wake_next_reader(self) -> None:
        """Wake another waiting thread, which continues to read."""
        for other in list(self._pending.values()):
            if other.answer is None:
                with suppress(RuntimeError):  # it is already awake
                    other.wake.release()
                return

    def _read(self, *, wait: bool = True) -> None:
        """Read one message for any waiting request; without one, wait or return."""
        self._check_limits()
        try:
            view, descriptors = self._channel.receive(wait=wait)
        except BlockingIOError:
            if wait:
                self._check_liveness()
            return
        except (EOFError, OSError) as error:
            raise_interruption(error)  # a signal handler's TimeoutError is an OSError, too
            raise self._fail("is not there any more") from None
        except ProtocolError as error:
            raise self._fail(str(error)) from None
        self._last_message = monotonic()
        self._pinged_at = None
        try:
            answer = messages.decode_answer(view)
        except msgspec.MsgspecError as error:
            close_all(descriptors)
            raise self._fail(f"sent an invalid message ({error})") from None
        waiter = self._pending.get(answer.number)
        if waiter is None:  # an interrupted request's, or a pong
            close_all(descriptors)
            return
        waiter.descriptors = descriptors
        waiter.answer = answer
        with suppress(RuntimeError):  # it is already awake
            waiter.wake.release()

    def _check_liveness(self) -> None:
        """Send a ping; if it is not answered in time, consider the service dead."""
        now = monotonic()
        if self._pinged_at is None:
            self._pinged_at = now
            self._cpu_use = _CpuUse(self.process)
            self._send(messages.Ping(0), ())
            return
        silence = self._timeouts.silence
        waited = now - max(self._pinged_at, self._last_message)
        if waited > silence and (
            self._cpu_use.busy or any(w.preparing for w in list(self._pending.values()))
        ):
            silence = max(silence, _BUSY_SECONDS)
        if waited > silence:
            raise self._fail(f"has not responded for {silence:g} seconds", kill=True)

    def _check_limits(self) -> None:
        """Detect a run or a compilation that exceeds its time limit."""
        timeouts, board, now = self._timeouts, self._board, monotonic()
        if not timeouts.limited or board is None or now < self._next_check:
            return
        self._next_check = now + _POLL_SECONDS
        running = board.running()
        for number, waiter in list(self._pending.items()):
            elapsed = now - waiter.start
            if waiter.preparing and elapsed > timeouts.compile_seconds:
                raise self._hangs(f"has been compiling for {timeouts.compile_seconds:g} seconds")
            if number in running and elapsed > timeouts.run_seconds:
                raise self._hangs(f"has been at a run for {timeouts.run_seconds:g} seconds")

    def _hangs(self, problem: str) -> Died:
        return self._fail(problem, kill=True)

    def _fail(self, problem: str, *, kill: bool = False) -> Died:
        """Mark the connection unusable, wake all waiting threads, and return their error."""
        if self.alive:
            self.alive = False
            self.reason = f"the driver's process {self.process} {problem}"
            self.hangs = kill
            self._channel.shut_down()
            for other in list(self._pending.values()):
                with suppress(RuntimeError):  # it is already awake
                    other.wake.release()
        return self._death()

    def _death(self) -> Died:
        return Died(self.reason, self.process, hangs=self.hangs)


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
