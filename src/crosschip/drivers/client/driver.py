"""A driver as its client sees it: one device, although processes may replace each other."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar
from weakref import WeakSet, WeakValueDictionary

from crosschip.drivers.client.connection import Died
from crosschip.drivers.client.fatal_runs import Quarantine
from crosschip.drivers.client.link import Link
from crosschip.drivers.client.policy import Policy, Record, Timeouts
from crosschip.drivers.client.process import Process, connect, last_words
from crosschip.drivers.client.program import RemoteProgram
from crosschip.drivers.endpoint import Death, Endpoint
from crosschip.drivers.ownership import kill_owner
from crosschip.hal import CompileError, DeviceLost, urgency
from crosschip.ir import Array, DeviceError

T = TypeVar("T")

_MAX_DEATHS = 2
"""The number of deaths during one request after which it is considered their cause."""

_EXIT_SECONDS = 0.5


class Driver:
    """A driver, across replacements of its process. Thread-safe.

    Args:
        endpoint: the driver's location.
        name: the name in messages.
        policy: the restart policy.
        timeouts: the timeouts.

    Attributes:
        programs: the programs to prepare again after a death.
        quarantine: the runs that are refused.
        restarts: the number of replaced processes.
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
        self._was_connected = False
        self._users = 0
        self._callbacks: list[Callable[[str], None]] = []

    def link(self) -> Link:
        """Return the link to a live process, started if needed.

        Raises:
            DeviceLost: it has died too often recently.
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
                self._record_death(link)
            if self.record.pause:
                raise self._lost()
            return self._reconnect() if self._was_connected else self._connect()

    def run(
        self, program: RemoteProgram, inputs: Sequence[Array], targets: Sequence[Array | None]
    ) -> Sequence[Array]:
        """Run a program; if the process dies, run it again in the replacement.

        Raises:
            DeviceLost: processes have died too often.
            DeviceError: the device failed, or the process died twice during this run.
        """
        if self.quarantine:
            self.quarantine.check(program, inputs)
        deaths = 0
        while True:
            try:
                link = self.link()
                outputs = program.run_on(link, inputs, targets, urgency.get(), alone=deaths > 0)
            except Died as death:
                deaths += death.was_running
                if deaths >= _MAX_DEATHS:
                    raise self.quarantine.add(program, inputs, self._blame_request()) from None
            else:
                self.record.record_success()
                return outputs

    def attempt(self, activity: str, function: Callable[[Link], T]) -> T:
        """Call a function of the link; if the process dies, once more with its replacement.

        Raises:
            CompileError: the process died twice.
            DeviceLost: processes have died too often before.
        """
        for _ in range(_MAX_DEATHS):
            with suppress(Died):
                result = function(self.link())
                self.record.record_success()
                return result
        raise CompileError(
            f"the driver died {_MAX_DEATHS} times while {activity}: {self._blame_request()}"
        )

    def on_death(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Register a callback for deaths, called with the reason; return its deregistration."""
        self._callbacks.append(callback)

        def deregister() -> None:
            with suppress(ValueError):  # it is already deregistered
                self._callbacks.remove(callback)

        return deregister

    def open(self) -> None:
        """Increment the number of users."""
        with self._lock:
            self._users += 1

    def close(self) -> None:
        """Decrement the number of users; disconnect at 0."""
        with self._lock:
            self._users -= 1
            if self._users <= 0 and self._link is not None:
                link, self._link = self._link, None
                link.connection.close()
                _DRIVERS.pop((self.endpoint, self.name, self._timeouts), None)

    def forget(self) -> None:
        """Give up the parent process's connection after a fork."""
        self._lock = threading.RLock()  # a thread of the parent may have held it
        link, self._link = self._link, None
        if link is not None:
            link.connection.forget()

    def _blame_request(self) -> str:
        """Record that a request caused the last deaths; return the last reason."""
        with suppress(DeviceError):
            self.link()  # records the death if no other thread has
        self.record.record_blame()
        return self.record.reason

    def _reconnect(self) -> Link:
        """Return a link to a replacement process.

        Raises:
            DeviceLost: it does not start, or does not answer.
        """
        try:
            return self._connect()
        except DeviceError as error:
            self.record.record_death(str(error))
            raise DeviceLost(str(error), self.record.pause) from error

    def _connect(self) -> Link:
        client = f"{os.getpid()}"
        connection, process = connect(self.endpoint, client, self._timeouts)
        self._process = process
        self._link = link = Link(connection)
        self._was_connected = True
        threading.Thread(target=self._watch, args=(link,), name=self.name, daemon=True).start()
        return link

    def _watch(self, link: Link) -> None:
        """Wait for the end of a process, then start and prepare its replacement."""
        poller = select.poll()
        poller.register(link.connection.fileno(), select.POLLRDHUP | select.POLLHUP)
        poller.poll()
        link.connection.end()
        link.connection.release()
        with self._lock:
            if self._link is not link:
                return
            self._record_death(link)
        with suppress(DeviceError):  # the next run reports it
            new_link = self.link()
            for program in list(self.programs):  # a run prepares its own if it is earlier
                program.prepare(new_link)

    def _record_death(self, link: Link) -> None:
        """Record a death. The caller holds the lock."""
        self._link = None
        connection = link.connection
        if connection.hangs and self.endpoint.started:
            kill_owner(self.endpoint.path, connection.process)
        reason = self._reason(link)
        self.record.record_death(reason)
        self.restarts += 1
        self.endpoint.record_death(Death(time.time(), connection.process, reason))
        for callback in list(self._callbacks):
            threading.Thread(target=callback, args=(reason,), daemon=True).start()

    def _reason(self, link: Link) -> str:
        """Return the reason of a process's death, as far as known."""
        reason, process = link.connection.reason, self._process
        if link.connection.hangs or process is None or process.number != link.connection.process:
            return reason
        exit_reason = process.exit_reason(_EXIT_SECONDS)
        sentence = f"the driver's process {process.number} {exit_reason}" if exit_reason else reason
        return sentence + last_words(self.endpoint)

    def _lost(self) -> DeviceLost:
        record = self.record
        return DeviceLost(
            f"the driver has died {record.in_a_row} times in a row, and is tried again in "
            f"{record.pause:.1f} seconds; last: {record.reason}",
            record.pause,
        )


def _forget_all() -> None:
    """Give up the parent process's connections after a fork."""
    for driver in list(_DRIVERS.values()):
        driver.forget()


os.register_at_fork(after_in_child=_forget_all)

_DRIVERS: WeakValueDictionary[tuple[Endpoint, str, Timeouts], Driver] = WeakValueDictionary()
_LOCK = threading.Lock()


def driver_at(endpoint: Endpoint, name: str, policy: Policy, timeouts: Timeouts) -> Driver:
    """Return the driver at an endpoint, shared by all its users in this process."""
    key = endpoint, name, timeouts
    with _LOCK:
        driver = _DRIVERS.get(key)
        if driver is None:
            driver = Driver(endpoint, name, policy, timeouts)
            _DRIVERS[key] = driver
        driver.open()
        return driver
