"""A driver as one process uses it: its process, and those that replace it when it dies."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar
from weakref import WeakSet, WeakValueDictionary

from crosschip.drivers.client.connection import Died
from crosschip.drivers.client.link import Link
from crosschip.drivers.client.policy import Policy, Record
from crosschip.drivers.client.program import RemoteProgram
from crosschip.drivers.client.quarantine import Quarantine
from crosschip.drivers.client.starting import Process, connected, last_words
from crosschip.drivers.client.timeouts import Timeouts
from crosschip.drivers.endpoint import Endpoint, death_of
from crosschip.drivers.ownership import kill_owner
from crosschip.hal import CompileError, DeviceLost, urgency
from crosschip.ir import Array, DeviceError

T = TypeVar("T")

_FATAL = 2
"""A request that was under way at so many deaths is to blame for them."""

_FATE_SECONDS = 0.5


class Driver:
    """A driver, however often its process is replaced. Any thread may use it.

    Args:
        endpoint: where it is.
        name: what messages call it.
        policy: when it is started again.
        patience: how long it is waited for.

    Attributes:
        programs: those that are prepared again after a death.
        quarantine: the runs that it is not asked for any more.
        restarts: how many processes have replaced another.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        policy: Policy,
        timeouts: Timeouts,
    ) -> None:
        self.endpoint = endpoint
        self.name = name
        self.programs: WeakSet[RemoteProgram] = WeakSet()
        self.quarantine = Quarantine(endpoint)
        self.restarts = 0
        self.record = Record(policy)
        self._timeouts = timeouts
        self._lock = threading.RLock()
        self._link: Link | None = None
        self._process: Process | None = None
        self._known = False
        self._users = 0
        self._callbacks: list[Callable[[str], None]] = []

    def link(self) -> Link:
        """Return the link to a process that lives, which is started if it has to be.

        Raises:
            DeviceLost: it has died too often of late.
            DeviceError: it does not start.
        """
        link = self._link
        if link is not None and link.connection.alive:
            return link
        with self._lock:
            link = self._link
            if link is not None:
                if link.connection.alive:
                    return link
                self._died(link)
            if self.record.pause:
                raise self._lost()
            return self._connected_again() if self._known else self._connect()

    def run(
        self, program: RemoteProgram, inputs: Sequence[Array], places: Sequence[Array | None]
    ) -> Sequence[Array]:
        """Return the outputs of a program; if the process dies, from the one that replaces it.

        Raises:
            DeviceLost: it has died too often.
            DeviceError: the device failed, or the process died of this very run, twice.
        """
        if self.quarantine:
            self.quarantine.check(program, inputs)
        strikes = 0
        while True:
            try:
                link = self.link()
                outputs = program.run_on(link, inputs, places, urgency.get(), alone=strikes > 0)
            except Died as death:
                strikes += death.at_work
                if strikes >= _FATAL:
                    raise self.quarantine.add(program, inputs, self._explained()) from None
            else:
                self.record.succeeded()
                return outputs

    def attempt(self, doing: str, work: Callable[[Link], T]) -> T:
        """What is asked of a process; if it dies of it, of the one that replaces it.

        Raises:
            CompileError: it died twice.
            DeviceLost: it has died too often before.
        """
        for _ in range(_FATAL):
            with suppress(Died):
                result = work(self.link())
                self.record.succeeded()
                return result
        raise CompileError(f"the driver died {_FATAL} times while {doing}: {self._explained()}")

    def on_death(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Have a function called after each death, with its reason; what is returned ends that."""
        self._callbacks.append(callback)

        def end() -> None:
            with suppress(ValueError):  # it has been ended already
                self._callbacks.remove(callback)

        return end

    def open(self) -> None:
        """One more uses it."""
        with self._lock:
            self._users += 1

    def close(self) -> None:
        """One less uses it; after the last, the process may end."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._link is not None:
                link, self._link = self._link, None
                link.connection.close()
                _DRIVERS.pop((self.endpoint, self.name, self._timeouts), None)

    def forget(self) -> None:
        """Leave the process to those that it was started for, and start or find another."""
        self._lock = threading.RLock()  # a thread that is not here may have held it
        link, self._link = self._link, None
        if link is not None:
            link.connection.forget()

    def _explained(self) -> str:
        """Return the reason of the last death, which was a request's doing and not the driver's own."""
        with suppress(DeviceError):
            self.link()  # which takes note of the death, if nobody has
        self.record.explained()
        return self.record.reason

    def _connected_again(self) -> Link:
        """Return a link to the process that takes the place of one that was there.

        Raises:
            DeviceLost: there is none, or it gives no answer.
        """
        try:
            return self._connect()
        except DeviceError as error:
            self.record.died(str(error))
            raise DeviceLost(str(error), self.record.pause) from error

    def _connect(self) -> Link:
        client = f"{os.getpid()}"
        connection, process = connected(self.endpoint, client, self._timeouts)
        self._process = process
        self._link = link = Link(connection)
        self._known = True
        threading.Thread(target=self._watch, args=(link,), name=self.name, daemon=True).start()
        return link

    def _watch(self, link: Link) -> None:
        """Wait for the end of a process, whoever else notices it, and see to the next one."""
        poller = select.poll()
        poller.register(link.connection.fileno(), select.POLLRDHUP | select.POLLHUP)
        poller.poll()
        link.connection.end()
        link.connection.release()
        with self._lock:
            if self._link is not link:
                return
            self._died(link)
        with suppress(DeviceError):  # who runs something next is told
            self._prepare_all(self.link())

    def _prepare_all(self, link: Link) -> None:
        """Prepare all programs in a new process, those that are used first do so themselves."""
        for program in list(self.programs):
            program.prepare(link)

    def _died(self, link: Link) -> None:
        """Take note of a death. The lock is held."""
        self._link = None
        connection = link.connection
        if connection.hangs and self.endpoint.started:
            kill_owner(self.endpoint.path, connection.process)
        reason = self._reason(link)
        self.record.died(reason)
        self.restarts += 1
        self.endpoint.remember(death_of(connection.process, reason))
        for callback in list(self._callbacks):
            threading.Thread(target=callback, args=(reason,), daemon=True).start()

    def _reason(self, link: Link) -> str:
        """Why a process died, as far as that can be known."""
        why, process = link.connection.why, self._process
        if link.connection.hangs or process is None or process.number != link.connection.process:
            return why
        fate = process.fate(_FATE_SECONDS)
        sentence = f"the driver's process {process.number} {fate}" if fate else why
        return sentence + last_words(self.endpoint)

    def _lost(self) -> DeviceLost:
        record = self.record
        return DeviceLost(
            f"the driver has died {record.in_a_row} times in a row, and is tried again in "
            f"{record.pause:.1f} seconds; last: {record.reason}",
            record.pause,
        )


def _forget_all() -> None:
    """In a process that has been forked: the connections are the other one's."""
    for driver in list(_DRIVERS.values()):
        driver.forget()


os.register_at_fork(after_in_child=_forget_all)

_DRIVERS: WeakValueDictionary[tuple[Endpoint, str, Timeouts], Driver] = WeakValueDictionary()
_LOCK = threading.Lock()


def driver_at(endpoint: Endpoint, name: str, policy: Policy, timeouts: Timeouts) -> Driver:
    """Return the driver at an endpoint, one for all who use it in this process."""
    key = endpoint, name, timeouts
    with _LOCK:
        driver = _DRIVERS.get(key)
        if driver is None:
            driver = Driver(endpoint, name, policy, timeouts)
            _DRIVERS[key] = driver
        driver.open()
        return driver
