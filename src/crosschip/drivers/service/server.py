"""The service: a socket, and threads that take what comes on it."""

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

from crosschip.drivers.ownership import disown, own
from crosschip.drivers.protocol import messages
from crosschip.drivers.protocol.board import size_of
from crosschip.drivers.protocol.channel import Channel, ProtocolError, peer
from crosschip.drivers.service.limits import Accounts, Exceeded, Limits
from crosschip.drivers.service.measures import Measures, resident
from crosschip.drivers.service.queue import Queue
from crosschip.drivers.service.session import Job, Session
from crosschip.drivers.service.sharing import Sharing
from crosschip.hal import Device
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing

logger = logging.getLogger("crosschip")

_LOOK_SECONDS = 0.2
_END_SECONDS = 10.0
_BACKLOG = 64
_ANSWERS_BYTES = 1 << 22
"""So many bytes of answers may wait for a client to read them, if the system lets them."""


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
        # A device need not bear two that ask at once, and one alone is to blame if it dies of it.
        self.asking = threading.Lock()
        self.sharing = Sharing()
        self._linger = linger
        self._ending = threading.Event()
        self._sessions: dict[int, Session] = {}
        self._accounts: WeakValueDictionary[int, Accounts] = WeakValueDictionary()
        self._lock = threading.Lock()
        self._left = monotonic()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self._description = self._described()
        _check_free(path)
        self._owned = own(path, name)
        try:
            self._listener = _listening(path)
        except BaseException:
            disown(path, self._owned)
            raise
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        self._epoll = select.epoll()
        self._epoll.register(self._bell, select.EPOLLIN)
        self._epoll.register(self._listener, select.EPOLLIN | select.EPOLLONESHOT)

    @property
    def threads(self) -> int:
        """How many threads there are that run: when all that may are at it, one yet reads."""
        return self.queue.workers + 1

    def serve(self) -> None:
        """Answer until `stop`, or until nobody has been there for long enough."""
        faulthandler.enable(all_threads=False)
        try:
            for index in range(self.threads):
                worker = threading.Thread(
                    target=self._work, args=(index,), name=f"worker-{index}", daemon=True
                )
                worker.start()
                self._threads.append(worker)
            while not self._ending.wait(_LOOK_SECONDS) and not self._left_alone():
                pass
        finally:  # an interruption ends it, too
            self.close()

    def stop(self) -> None:
        """End, once what is under way has ended."""
        self._ending.set()

    def _left_alone(self) -> bool:
        """Return whether there has been no client for long enough; who only watches is none."""
        if self._linger is None or any(not session.watches for session in self._present()):
            return False
        return monotonic() - self._left > self._linger

    def _present(self) -> list[Session]:
        with self._lock:
            return list(self._sessions.values())

    def _drop(self, number: int, session: Session) -> None:
        """Let a client go, with all that it held; only the thread that reads from it does so."""
        with self._lock:
            self._sessions.pop(number, None)
            if not session.watches:
                self._left = monotonic()
        session.end()

    def run_in_thread(self, work: Callable[[], None]) -> None:
        """Do what takes long in a thread of its own."""
        threading.Thread(target=work, name="preparing", daemon=True).start()

    def description(self, number: int) -> messages.Description:
        """What the device is, as an answer."""
        return msgspec.structs.replace(self._description, number=number)

    def figures(self) -> messages.Figures:
        """Return the service at this moment."""
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
        """Return the processes that are connected, each with all its connections."""
        sessions: dict[int, list[Session]] = {}
        for session in self._present():
            if session.is_client:
                sessions.setdefault(session.process, []).append(session)
        return tuple(
            messages.ClientStatus(
                each[0].name,
                process,
                sum(len(session.programs) for session in each),
                each[0].accounts.memory.used,
                sum(session.runs for session in each),
                each[0].accounts.waiting.used,
            )
            for process, each in sessions.items()
        )

    def _described(self) -> messages.Description:
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

    def _work(self, place: int) -> None:
        """The life of a thread, which notes what it runs at a place on the board."""
        while not self._ending.is_set():
            for number, _ in self._epoll.poll(maxevents=1):
                if number == self._bell:
                    with suppress(BlockingIOError):  # others have heard it
                        os.eventfd_read(self._bell)
                elif number == self._listener.fileno():
                    self._accept()
                else:
                    self._receive(number)
            while (job := self.queue.take()) is not None:
                try:
                    job.session.run(job, place)
                finally:
                    self.queue.end()
                if job.request.alone:  # what came meanwhile has found nobody to run it
                    self._wake(self.queue.workers - 1)

    def _wake(self, threads: int) -> None:
        """Have so many threads look what there is to do."""
        if threads:
            os.eventfd_write(self._bell, threads)

    def _accept(self) -> None:
        try:
            end, _ = self._listener.accept()
        except BlockingIOError:
            end = None
        except OSError as error:  # there are no more descriptors: those who leave make room
            logger.warning("%s: a client cannot be let in: %s", self.name, error)
            time.sleep(_LOOK_SECONDS)
            end = None
        if end is not None:
            self._let_in(end)
        self._epoll.modify(self._listener, select.EPOLLIN | select.EPOLLONESHOT)

    def _let_in(self, end: socket.socket) -> None:
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
        except Exception:  # nothing that comes from one client is to end the thread
            logger.exception("%s: client %s is cut off", self.name, session.process)
            self._drop(number, session)
            return
        self._epoll.modify(number, select.EPOLLIN | select.EPOLLONESHOT)

    def close(self) -> None:
        """Let all clients go, once the runs that are under way have ended."""
        if self._closed:
            return
        self._closed = True
        self._ending.set()
        with suppress(OSError):
            self.path.unlink()  # from now on, whoever comes waits for the next one
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
        os.close(self._bell)
        disown(self.path, self._owned)


def _check_free(path: Path) -> None:
    """Make sure that nothing is lost where a socket will be.

    Raises:
        DeviceError: something is there that is no socket.
    """
    with suppress(OSError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            return
        raise DeviceError(f"{path}: something is there that is no socket")


def _listening(path: Path) -> socket.socket:
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise DeviceError(f"{path}: no socket can be made there: {error}") from None
    finally:
        os.umask(before)
    listener.setblocking(False)
    return listener
