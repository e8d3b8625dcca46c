"""Monitoring of drivers: figures of running ones, reasons of ended ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from crosschip.drivers.client.connection import Connection
from crosschip.drivers.client.policy import Timeouts
from crosschip.drivers.endpoint import Death, deaths_at, folder
from crosschip.drivers.ownership import SUFFIXES, Owner, clean_up, read_owner
from crosschip.drivers.protocol import messages
from crosschip.drivers.protocol.messages import Figures
from crosschip.ir import DeviceError, InputError
from crosschip.ir.closing import Closing
from crosschip.ir.suggestion import did_you_mean

OFFLINE = "offline"

_RECENT_SECONDS = 24 * 60 * 60
"""The time for which an ended driver is reported."""

_TIMEOUTS = Timeouts(silence=1.0)
_MAX_THREADS = 16


@dataclass(frozen=True, slots=True)
class DriverReport:
    """A report on a driver.

    Attributes:
        device: the device's name; empty if unknown.
        path: the socket's path.
        state: `available`, `busy` if all workers execute runs, or `offline` if it does not
            answer.
        problem: why it is offline, else empty.
        process: the process id; `None` if there is none.
        figures: the service's figures; `None` if it is offline.
        restarts: the number of replaced processes.
        deaths: the recent deaths of processes, the latest last.
    """

    device: str
    path: Path
    state: str
    problem: str
    process: int | None
    figures: Figures | None
    restarts: int
    deaths: Sequence[Death]

    def document(self) -> Mapping[str, Any]:
        """Return the report for JSON; an offline driver has no figures."""
        figures = msgspec.to_builtins(self.figures) if self.figures else {}
        return {
            **figures,
            "device": self.device,
            "socket": str(self.path),
            "state": self.state,
            "problem": self.problem,
            "process": self.process,
            "restarts": self.restarts,
            "deaths": list(map(asdict, self.deaths)),
        }


class Monitor(Closing):
    """A monitor of drivers, which they do not count as a client.

    Args:
        paths: the sockets' paths; by default all that crosschip has started.
    """

    def __init__(self, paths: Sequence[Path] | None = None) -> None:
        self._paths = paths
        self._connections: dict[Path, Connection] = {}

    def look(self) -> Sequence[DriverReport]:
        """Return reports on the drivers, by device, with those that ended recently.

        Raises:
            DeviceError: the folder of drivers cannot be created.
        """
        paths = _sockets() if self._paths is None else self._paths
        if not paths:
            return []
        with ThreadPoolExecutor(min(len(paths), _MAX_THREADS)) as threads:
            reports = threads.map(self._report, paths)
            return sorted(reports, key=lambda report: (report.device, report.path))

    def close(self) -> None:
        while self._connections:
            _, connection = self._connections.popitem()
            connection.close()
            connection.release()

    def _report(self, path: Path) -> DriverReport:
        last_owner, deaths = read_owner(path), deaths_at(path)
        process = last_owner.process if last_owner else None
        device = last_owner.device if last_owner else ""
        state, problem, figures = OFFLINE, "", None
        try:
            figures = self._figures(path)
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
            problem = _offline_reason(last_owner, deaths)
        except BlockingIOError:
            problem = "it lets nobody in any more"
        except OSError as error:
            problem = error.strerror or str(error)
        except DeviceError as error:
            problem = str(error)
        else:
            device, state, process = figures.device, figures.state, figures.process
        restarts = sum(death.process != process for death in deaths)
        if figures is None and not (last_owner and last_owner.alive):
            process = None
        return DriverReport(device, path, state, problem, process, figures, restarts, deaths)

    def _figures(self, path: Path) -> Figures:
        """Return a driver's figures; raise `OSError` or `DeviceError` if it does not answer."""
        connection = self._connections.pop(path, None)
        if connection is not None and not connection.alive:
            connection.release()
            connection = None
        if connection is None:
            connection = Connection(path, "watcher", _TIMEOUTS, watches=True)
        try:
            return connection.ask(messages.Status, messages.Watch).figures
        finally:
            self._connections[path] = connection


def look(paths: Sequence[Path] | None = None) -> Sequence[DriverReport]:
    """Return reports once; see `Monitor.look`."""
    with Monitor(paths) as watcher:
        return watcher.look()


def running(names: Sequence[str]) -> Mapping[Path, Owner]:
    """Return the running drivers, by socket.

    Args:
        names: devices, whose drivers in the user's folder are selected, and sockets' paths; if
            empty, all drivers in the folder are.

    Raises:
        InputError: no driver of a name runs.
    """
    alive = {
        path: lock_owner
        for path in _sockets()
        if (lock_owner := read_owner(path)) and lock_owner.alive
    }
    if not names:
        return alive
    selected: dict[Path, Owner] = {}
    for name in names:
        device = name.removesuffix("@driver")
        matches = {
            path: candidate for path, candidate in alive.items() if candidate.device == device
        }
        path = Path(name.removeprefix("unix:"))
        if not matches and (lock_owner := read_owner(path)) and lock_owner.alive:
            matches = {path: lock_owner}
        if not matches:
            devices = {candidate.device for candidate in alive.values()}
            raise InputError(
                f"no driver of {name!r} runs{did_you_mean(name, devices)}; "
                + (f"there are some of: {', '.join(sorted(devices))}" if devices else "none does")
            )
        selected |= matches
    return selected


def _sockets() -> Sequence[Path]:
    """Return the sockets of running and recently ended drivers; clean up older ones."""
    directory = folder()
    since = time.time() - _RECENT_SECONDS
    for path in {f.with_suffix(".sock") for f in directory.iterdir() if f.suffix in SUFFIXES}:
        clean_up(path, since)
    return sorted(file.with_suffix(".sock") for file in directory.glob("*.lock"))


def _offline_reason(last_owner: Owner | None, deaths: Sequence[Death]) -> str:
    """Return why a socket does not answer."""
    if last_owner is None:
        return "no driver serves there"
    if last_owner.alive:
        return "it starts, or is about to end"
    if last_owner.process is None:
        return "it has ended"
    if deaths and deaths[-1].process == last_owner.process:
        return deaths[-1].reason
    return f"the driver's process {last_owner.process} is not there any more"
