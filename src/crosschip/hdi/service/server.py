"""The service: a socket, and threads that take what comes on it."""

from __future__ import annotations

import faulthandler
import logging
import os
import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

from crosschip.hal import Device
from crosschip.hdi.ownership import disown, own
from crosschip.hdi.service.limits import Limits
from crosschip.hdi.service.measures import Measures, resident
from crosschip.hdi.service.queue import Queue
from crosschip.hdi.service.session import Job, Session
from crosschip.hdi.wire import messages
from crosschip.hdi.wire.channel import Broken, Channel
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing

logger = logging.getLogger("crosschip")

_CREDENTIALS = struct.Struct("iII")
_LOOK_SECONDS = 0.2
_BACKLOG = 64


class Service(Closing):
    """A device that answers on a socket. Only processes of the same user are let in.

    The threads that read are those that run: who takes a run from the socket runs it, if no more
    urgent one waits and less is under way than may be. So a lone client's run changes no thread.

    Args:
        device: what does the work; closed at the end.
        name: what it is called.
        path: of the socket.
        workers: how many runs are under way at once.
        limits: what one client may take.
        linger: after how many seconds without a client it ends by itself; `None` for never.

    Raises:
        DeviceError: there is another service at the path, or no socket can be made there.
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
        self._linger = linger
        self._ending = threading.Event()
        self._sessions: dict[int, Session] = {}
        self._lock = threading.Lock()
        self._left = monotonic()
        self._closed = False
        self._owned = own(path, name)
        try:
            self._listener = _listening(path)
        except BaseException:
            disown(path, self._owned)
            raise
        self._epoll = select.epoll()
        self._epoll.register(self._listener, select.EPOLLIN | select.EPOLLONESHOT)

    def serve(self) -> None:
        """Answer until `stop`, or until nobody has been there for long enough."""
        faulthandler.enable()
        threads = [
            threading.Thread(target=self._work, name=f"worker-{index}", daemon=True)
            for index in range(self.queue.workers + 1)
        ]
        for thread in threads:
            thread.start()
        try:
            while not self._ending.wait(_LOOK_SECONDS) and not self._left_alone():
                pass
        finally:  # an interruption ends it, too
            self.close()

    def stop(self) -> None:
        """End, once what is under way has ended."""
        self._ending.set()

    def _left_alone(self) -> bool:
        """Tell whether there has been no client for long enough; who only looks is none."""
        if self._linger is None or any(not each.watches for each in self._clients()):
            return False
        return monotonic() - self._left > self._linger

    def _clients(self) -> list[Session]:
        with self._lock:
            return list(self._sessions.values())

    def _drop(self, number: int, session: Session) -> None:
        """Let a client go, with all that it held; only the thread that reads from it does so."""
        with self._lock:
            self._sessions.pop(number, None)
            if not session.watches:
                self._left = monotonic()
        session.end()

    def apart(self, work: Callable[[], None]) -> None:
        """Do what takes long in a thread of its own."""
        threading.Thread(target=work, name="preparing", daemon=True).start()

    def description(self, number: int, board: int) -> messages.Description:
        """What the device is, as an answer."""
        device = self.device
        return messages.Description(
            number,
            messages.PROTOCOL,
            device.vendor,
            device.kind,
            device.version,
            device.capabilities(),
            tuple(type(device).probe()),
            tuple(device.operators()),
            {mode: dict(told) for mode, told in device.modes().items()},
            board,
        )

    def figures(self) -> messages.Figures:
        """The service at this moment."""
        measures, queue = self.measures, self.queue
        return messages.Figures(
            self.name,
            self.device.version,
            os.getpid(),
            "busy" if queue.running >= queue.workers else "available",
            monotonic() - measures.begin,
            tuple(each.figures() for each in self._clients() if each.is_client),
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

    def _work(self) -> None:
        """The life of a thread."""
        while not self._ending.is_set():
            for number, _ in self._epoll.poll(maxevents=1):
                if number == self._listener.fileno():
                    self._accept()
                else:
                    self._receive(number)
            while (job := self.queue.take()) is not None:
                try:
                    job.session.run(job)
                finally:
                    self.queue.end()

    def _accept(self) -> None:
        try:
            end, _ = self._listener.accept()
        except OSError:
            end = None
        self._epoll.modify(self._listener, select.EPOLLIN | select.EPOLLONESHOT)
        if end is None:
            return
        process, user = _peer(end)
        if user != os.geteuid():
            end.close()
            return
        end.setblocking(False)
        session = Session(self, Channel(end), process)
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
        except Broken as error:
            logger.warning("%s: client %s is cut off: %s", self.name, session.process, error)
            self._drop(number, session)
            return
        self._epoll.modify(number, select.EPOLLIN | select.EPOLLONESHOT)

    def close(self) -> None:
        """End at once: let all clients go, and leave nothing at the path."""
        if self._closed:
            return
        self._closed = True
        self._ending.set()
        with suppress(OSError):
            self.path.unlink()  # from now on, whoever comes waits for the next one
        self._listener.close()
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            session.end()
        self.device.close()
        disown(self.path, self._owned)


def _listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    with suppress(OSError):
        path.unlink()
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise DeviceError(f"{path}: no socket can be made there: {error.strerror}") from None
    finally:
        os.umask(before)
    listener.setblocking(False)
    return listener


def _peer(end: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end."""
    told = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(told)
    return process, user
