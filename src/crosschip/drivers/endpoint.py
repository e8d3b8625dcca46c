"""Locations of drivers: sockets of those that crosschip starts, and the files beside them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosschip.ir import DeviceError, InputError
from crosschip.ir.files import file_end, open_own
from crosschip.ir.version import VERSION

_UNIX = "unix:"
_MAX_PATH = 100
"""The maximum length of a socket's path in bytes, slightly below systems' limits."""

_MAX_DEVICE = 30
_MAX_NAME = _MAX_DEVICE + len("/-0123456789ab.sock")

_MAX_BYTES = 100_000
"""The number of bytes read from the end of the list of deaths."""


@dataclass(frozen=True, slots=True)
class Death:
    """An unexpected end of a driver's process.

    Attributes:
        time: the time, in seconds since 1970.
        process: the process id.
        reason: the reason, as far as known.
    """

    time: float
    process: int
    reason: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The location of a driver.

    Attributes:
        device: the device's name.
        path: the socket's path.
        properties: the device's properties, if crosschip starts the driver.
        started: whether crosschip starts the driver.
    """

    device: str
    path: Path
    properties: tuple[tuple[str, str], ...] = ()
    started: bool = True

    @classmethod
    def of(
        cls, device: str, location: str, properties: Mapping[str, str], code: str = ""
    ) -> Endpoint:
        """Return the endpoint of a device name such as `openvino@driver`.

        Args:
            device: the part before the `@`.
            location: the part after the `@`: `driver`, or `unix:` and a socket's path.
            properties: the device's properties.
            code: the digest of the device's code, for a device that is edited in place.

        Raises:
            InputError: `location` is invalid, or properties are given for a running driver.
        """
        if location.startswith(_UNIX):
            if properties:
                raise InputError(
                    f"{device}@{location} runs already, so it has its properties; give them to "
                    "`crosschip driver serve`"
                )
            return cls(device, Path(location.removeprefix(_UNIX)), started=False)
        if location != "driver":
            raise InputError(
                f"{device}@{location}: there is no place {location!r}; write {device}@driver, or "
                f"{device}@unix:PATH for a driver that runs already"
            )
        sorted_properties = tuple(sorted(properties.items()))
        return cls(
            device, folder() / f"{_stem(device, sorted_properties, code)}.sock", sorted_properties
        )

    @property
    def log(self) -> Path:
        """The file of the process's output."""
        return self.path.with_suffix(".log")

    def deaths(self) -> Sequence[Death]:
        """Return the recent deaths of its processes; see `deaths_at`."""
        return deaths_at(self.path)

    def record_death(self, death: Death) -> None:
        """Record a death."""
        line = json.dumps([death.time, death.process, death.reason]) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with suppress(OSError):  # the folder may have been removed
            descriptor = open_own(self.path.with_suffix(".deaths"), flags)
            with open(descriptor, "ab", buffering=0) as file:
                file.write(line.encode())


def deaths_at(path: Path) -> Sequence[Death]:
    """Return the recent deaths of processes that served a socket, the latest last.

    Every client records a death. The one that started the process knows most about it, so the
    longest reason is kept.
    """
    by_process: dict[int, Death] = {}
    for death in _deaths(path.with_suffix(".deaths")):
        recorded = by_process.get(death.process)
        if recorded is None or len(recorded.reason) < len(death.reason):
            by_process[death.process] = death
    return sorted(by_process.values(), key=lambda death: death.time)


def folder() -> Path:
    """Return the user's private folder for sockets.

    Raises:
        DeviceError: it cannot be created, or belongs to another user.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    shared_name = f"crosschip-{os.geteuid()}"
    if base and Path(base).is_dir():
        path = Path(base, "crosschip")
    else:
        path = Path(tempfile.gettempdir(), shared_name)
    if len(os.fsencode(path)) > _MAX_PATH - _MAX_NAME:
        path = Path("/tmp", shared_name)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = path.lstat()
    except OSError as error:
        raise DeviceError(f"{path}: cannot be made: {error.strerror}") from None
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
        raise DeviceError(
            f"{path}: is not this user's own; set XDG_RUNTIME_DIR to a folder that is"
        )
    if state.st_mode & 0o077:
        path.chmod(0o700)
    return path


def _stem(device: str, properties: Sequence[tuple[str, str]], code: str) -> str:
    """Return the stem of a driver's file names, derived from everything that identifies it."""
    identity = [
        device,
        properties,
        VERSION,
        str(Path(__file__).parent),
        sys.prefix,
        os.environ.get("CROSSCHIP_DEVICE_PATH", ""),
        os.environ.get("PYTHONPATH", ""),
        code,
    ]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:12]
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', device)[:_MAX_DEVICE]}-{digest}"


def _deaths(path: Path) -> Iterator[Death]:
    try:
        lines = file_end(path, _MAX_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, TypeError, OverflowError, RecursionError):
            seconds, process, reason = json.loads(line)
            yield Death(float(seconds), int(process), str(reason))
