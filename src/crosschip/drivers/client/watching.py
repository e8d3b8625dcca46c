"""Looking at drivers from outside: which there are, how they are, and what became of others."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from crosschip.drivers.client.connection import Connection
from crosschip.drivers.client.timeouts import Timeouts
from crosschip.drivers.endpoint import Death, deaths_at, folder
from crosschip.drivers.ownership import SUFFIXES, Owner, owner, tidy
from crosschip.drivers.protocol import messages
from crosschip.drivers.protocol.messages import Figures
from crosschip.ir import DeviceError, InputError
from crosschip.ir.closing import Closing
from crosschip.ir.suggestion import did_you_mean

OFFLINE = "offline"

_LATELY_SECONDS = 24 * 60 * 60
"""For so long a driver that is not there any more is told of."""

_PATIENCE = Timeouts(silence=1.0)
_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class DriverReport:
    """A driver at a moment.

    Attributes:
        device: what it runs; empty if nothing is known of it.
        path: of its socket.
        state: `available`, `busy` if as much runs as may, or `offline` if it does not answer.
        problem: why it is offline; empty if it is not.
        process: its process; `None` if it has none.
        figures: what it says of itself; `None` if it is offline.
        restarts: how many processes have replaced another that died.
        deaths: of processes, of late; the latest last.
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
        """Return all of it, for JSON; figures are there only of a driver that is not offline."""
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


class Watcher(Closing):
    """A look at drivers, as often as wanted. The drivers do not stay for it, nor count it.

    Args:
        paths: of sockets; those of all drivers that crosschip has started if left out.
    """

    def __init__(self, paths: Sequence[Path] | None = None) -> None:
        self._paths = paths
        self._connections: dict[Path, Connection] = {}

    def look(self) -> Sequence[DriverReport]:
        """Return the drivers at this moment, by device; also those that have died of late.

        Raises:
            DeviceError: there can be no folder for drivers.
        """
        paths = _known() if self._paths is None else self._paths
        if not paths:
            return []
        with ThreadPoolExecutor(min(len(paths), _AT_ONCE)) as threads:
            reports = threads.map(self._report, paths)
            return sorted(reports, key=lambda report: (report.device, report.path))

    def close(self) -> None:
        while self._connections:
            _, connection = self._connections.popitem()
            connection.close()
            connection.release()

    def _report(self, path: Path) -> DriverReport:
        known, deaths = owner(path), deaths_at(path)
        process = known.process if known else None
        device = known.device if known else ""
        state, problem, figures = OFFLINE, "", None
        try:
            figures = self._figures(path)
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
            problem = _fate(known, deaths)
        except BlockingIOError:
            problem = "it lets nobody in any more"
        except OSError as error:
            problem = error.strerror or str(error)
        except DeviceError as error:
            problem = str(error)
        else:
            device, state, process = figures.device, figures.state, figures.process
        restarts = sum(death.process != process for death in deaths)
        if figures is None and not (known and known.alive):
            process = None
        return DriverReport(device, path, state, problem, process, figures, restarts, deaths)

    def _figures(self, path: Path) -> Figures:
        """What a driver says of itself.

        Raises:
            OSError, DeviceError: it does not.
        """
        connection = self._connections.pop(path, None)
        if connection is not None and not connection.alive:
            connection.release()
            connection = None
        if connection is None:
            connection = Connection(path, "watcher", _PATIENCE, watches=True)
        try:
            return connection.ask(messages.Status, messages.Watch).figures
        finally:
            self._connections[path] = connection


def look(paths: Sequence[Path] | None = None) -> Sequence[DriverReport]:
    """One look, as `Watcher.look` has it."""
    with Watcher(paths) as watcher:
        return watcher.look()


def running(names: Sequence[str]) -> Mapping[Path, Owner]:
    """Return the drivers that run, by socket.

    Args:
        names: devices, whose drivers in the user's folder are meant, and paths of sockets; all in
            the folder if there are none.

    Raises:
        InputError: a name is of none that runs.
    """
    alive = {
        path: lock_owner for path in _known() if (lock_owner := owner(path)) and lock_owner.alive
    }
    if not names:
        return alive
    chosen: dict[Path, Owner] = {}
    for name in names:
        device = name.removesuffix("@driver")
        here = {path: each for path, each in alive.items() if each.device == device}
        path = Path(name.removeprefix("unix:"))
        if not here and (lock_owner := owner(path)) and lock_owner.alive:
            here = {path: lock_owner}
        if not here:
            devices = {each.device for each in alive.values()}
            raise InputError(
                f"no driver of {name!r} runs{did_you_mean(name, devices)}; "
                + (f"there are some of: {', '.join(sorted(devices))}" if devices else "none does")
            )
        chosen |= here
    return chosen


def _known() -> Sequence[Path]:
    """Return the sockets of drivers that crosschip has started, now and of late; others are forgotten."""
    place = folder()
    since = time.time() - _LATELY_SECONDS
    for path in {f.with_suffix(".sock") for f in place.iterdir() if f.suffix in SUFFIXES}:
        tidy(path, since)
    return sorted(file.with_suffix(".sock") for file in place.glob("*.lock"))


def _fate(known: Owner | None, deaths: Sequence[Death]) -> str:
    """Why nobody answers at a socket."""
    if known is None:
        return "no driver serves there"
    if known.alive:
        return "it starts, or is about to end"
    if known.process is None:
        return "it has ended"
    if deaths and deaths[-1].process == known.process:
        return deaths[-1].reason
    return f"the driver's process {known.process} is not there any more"
