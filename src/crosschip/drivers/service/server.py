"""The service: a device behind a socket, with worker threads."""

from __future__ import annotations

import faulthandler
import logging
import os
import select
import socket
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from weakref import WeakValueDictionary

import msgspec

from crosschip.drivers.ownership import acquire, release
from crosschip.drivers.protocol import messages
from crosschip.drivers.protocol.board import size_of
from crosschip.drivers.protocol.channel import Channel, ProtocolError, peer
from crosschip.drivers.service.limits import Accounts, Exceeded, Limits
from crosschip.drivers.service.metrics import Measures, resident
from crosschip.drivers.service.program_cache import ProgramCache
from crosschip.drivers.service.queue import Queue
from crosschip.drivers.service.session import Job, Session
from crosschip.hal import Device
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing

logger = logging.getLogger("crosschip")

_POLL_SECONDS = 0.2
_END_SECONDS = 10.0
_BACKLOG = 64
_ANSWERS_BYTES = 1 << 22
"""The socket's send buffer, in which answers wait for the client; systems may limit it."""


class Service(Closing):
    """A device that serves a socket, for processes of the same user only.

    The threads that read requests also execute them: a thread that receives a run executes it
    unless a more urgent one is queued or all workers are busy. Thus the run of a single client
    never changes threads.

    Args:
        device: the device, closed at the end.
        name: the device's name.
        path: the socket's path.
        workers: the maximum number of concurrent runs.
        limits: the limits of one client.
        linger: the seconds without a client after which the service ends; `None` for never.

    Raises:
        DeviceError: another service owns the path, or the socket cannot be created.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        path: Path,
        workers: int,
        limits: Limits | None = None,
        linger: float | None = None,
    ) -> None:
        self.device = device
        self.name = name
        self.path = path
        self.limits = limits or Limits()
        self.queue: Queue[Job] = Queue(workers)
        self.measures = Measures()
        # A device need not support concurrent queries; and a crash is attributed to one request.
        self.device_lock = threading.Lock()
        self.program_cache = ProgramCache()
        self._linger = linger
        self._ending = threading.Event()
        self._sessions: dict[int, Session] = {}
        self._accounts: WeakValueDictionary[int, Accounts] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._last_client_left = monotonic()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._description = self._describe()
        _check_free(path)
        self._lock_descriptor = acquire(path, name)
        try:
            self._listener = _listen(path)
        except BaseException:
            release(path, self._lock_descriptor)
            raise
        self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        self._epoll = select.epoll()
        self._epoll.register(self._wakeup, select.EPOLLIN)
        self._epoll.register(self._listener, select.EPOLLIN | select.EPOLLONESHOT)

    @property
    def threads(self) -> int:
        """The number of worker threads: one more than may execute, so that one always reads."""
        return self.queue.workers + 1

    def serve(self) -> None:
        """Serve until `stop`, or until the linger time without clients has passed."""
        faulthandler.enable(all_threads=False)
        try:
            for index in range(self.threads):
                worker = threading.Thread(
                    target=self._run_worker, args=(index,), name=f"worker-{index}", daemon=True
                )
                worker.start()
                self._threads.append(worker)
            while not self._ending.wait(_POLL_SECONDS) and not self._is_idle():
                pass
        finally:  # also after an interruption
            self.close()

    def stop(self) -> None:
        """End after the runs in progress."""
        self._ending.set()

    def _is_idle(self) -> bool:
        """Return whether the linger time without clients has passed; monitors do not count."""
        if self._linger is None or any(not session.watches for session in self._current_sessions()):
            return False
        return monotonic() - self._last_client_left > self._linger

    def _current_sessions(self) -> list[Session]:
        with self._lock:
            return list(self._sessions.values())

    def _drop(self, number: int, session: Session) -> None:
        """End a client's session; called by the thread that reads from it."""
        with self._lock:
            self._sessions.pop(number, None)
            if not session.watches:
                self._last_client_left = monotonic()
        session.end()

    def run_in_thread(self, function: Callable[[], None]) -> None:
        """Execute long work in its own thread."""
        threading.Thread(target=function, name="preparing", daemon=True).start()

    def description(self, number: int) -> messages.Description:
        """Return the device's description as an answer."""
        return msgspec.structs.replace(self._description, number=number)

    def figures(self) -> messages.Figures:
        """Return the current figures."""
        measures, queue = self.measures, self.queue
        return messages.Figures(
            self.name,
            self.device.version,
            os.getpid(),
            "busy" if queue.running >= queue.workers else "available",
            monotonic() - measures.begin,
            self._clients(),
            queue.waiting,
            queue.running,
            queue.workers,
            measures.runs,
            measures.failures,
            measures.copied,
            measures.rate(),
            measures.latency(),
            resident(),
        )

    def _clients(self) -> tuple[messages.ClientStatus, ...]:
        """Return the connected client processes, each with all its connections."""
        sessions: dict[int, list[Session]] = {}
        for session in self._current_sessions():
            if session.is_client:
                sessions.setdefault(session.process, []).append(session)
        return tuple(
            messages.ClientStatus(
                group[0].name,
                process,
                sum(len(session.programs) for session in group),
                group[0].accounts.memory.used,
                sum(session.runs for session in group),
                group[0].accounts.waiting.used,
            )
            for process, group in sessions.items()
        )

    def _describe(self) -> messages.Description:
        device = self.device
        return messages.Description(
            0,
            messages.PROTOCOL,
            device.vendor,
            device.kind,
            device.version,
            device.code,
            dict(device.compile_properties),
            device.capabilities(),
            tuple(type(device).probe()),
            tuple(device.operators()),
            {mode: dict(description) for mode, description in device.modes().items()},
            size_of(self.threads),
        )

    def _run_worker(self, slot: int) -> None:
        """Process requests and jobs, as the worker thread of a slot of the board."""
        while not self._ending.is_set():
            for number, _ in self._epoll.poll(maxevents=1):
                if number == self._wakeup:
                    with suppress(BlockingIOError):  # another thread has read it
                        os.eventfd_read(self._wakeup)
                elif number == self._listener.fileno():
                    self._accept()
                else:
                    self._receive(number)
            while (job := self.queue.take()) is not None:
                try:
                    job.session.run(job, slot)
                finally:
                    self.queue.end()
                if job.request.alone:  # jobs that were queued during this run wait for a thread
                    self._wake(self.queue.workers - 1)

    def _wake(self, threads: int) -> None:
        """Wake this many threads."""
        if threads:
            os.eventfd_write(self._wakeup, threads)

    def _accept(self) -> None:
        try:
            end, _ = self._listener.accept()
        except BlockingIOError:
            end = None
        except OSError as error:  # out of descriptors: wait for clients to leave
            logger.warning("%s: a client cannot be let in: %s", self.name, error)
            time.sleep(_POLL_SECONDS)
            end = None
        if end is not None:
            self._admit(end)
        self._epoll.modify(self._listener, select.EPOLLIN | select.EPOLLONESHOT)

    def _admit(self, end: socket.socket) -> None:
        process, user = peer(end)
        if user != os.geteuid():
            end.close()
            return
        accounts = self._accounts.setdefault(process, Accounts(self.limits))
        try:
            accounts.connections.take()
        except Exceeded as error:
            logger.warning("%s: client %s is turned away: %s", self.name, process, error)
            end.close()
            return
        end.setblocking(False)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ANSWERS_BYTES)
        session = Session(self, Channel(end), process, accounts)
        with self._lock:
            self._sessions[end.fileno()] = session
        self._epoll.register(end, select.EPOLLIN | select.EPOLLONESHOT)

    def _receive(self, number: int) -> None:
        session = self._sessions.get(number)
        if session is None:
            return
        try:
            job = session.receive()
            if job is not None:
                self.queue.put(job, job.request.priority, alone=job.request.alone)
        except BlockingIOError:
            pass
        except (EOFError, OSError):
            self._drop(number, session)
            return
        except ProtocolError as error:
            logger.warning("%s: client %s is cut off: %s", self.name, session.process, error)
            self._drop(number, session)
            return
        except Exception:  # a client's request must not end the thread
            logger.exception("%s: client %s is cut off", self.name, session.process)
            self._drop(number, session)
            return
        self._epoll.modify(number, select.EPOLLIN | select.EPOLLONESHOT)

    def close(self) -> None:
        """End all sessions after the runs in progress."""
        if self._closed:
            return
        self._closed = True
        self._ending.set()
        with suppress(OSError):
            self.path.unlink()  # new clients wait for the next service
        self._wake(2 * self.threads)
        end = monotonic() + _END_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, end - monotonic()))
        self._listener.close()
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            session.end()
        if not any(thread.is_alive() for thread in self._threads):
            self.device.close()
        self._epoll.close()
        os.close(self._wakeup)
        release(self.path, self._lock_descriptor)


def _check_free(path: Path) -> None:
    """Check that the path is free or a socket.

    Raises:
        DeviceError: another kind of file exists there.
    """
    with suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            return
        raise DeviceError(f"{path}: something is there that is no socket")


def _listen(path: Path) -> socket.socket:
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    umask = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise DeviceError(f"{path}: no socket can be made there: {error}") from None
    finally:
        os.umask(umask)
    listener.setblocking(False)
    return listener
