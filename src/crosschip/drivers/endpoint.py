"""Where drivers are: the sockets of those that crosschip starts, and what is kept beside them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crosschip.ir import DeviceError, InputError
from crosschip.ir.files import file_end, open_own
from crosschip.ir.version import VERSION

_UNIX = "unix:"
_LONGEST = 100
"""The most bytes of a socket's path; systems allow some more."""

_LONGEST_DEVICE = 30
_LONGEST_NAME = _LONGEST_DEVICE + len("/-0123456789ab.sock")

_REMEMBERED = 100_000
"""So many bytes of the list of deaths are looked at, from its end."""


@dataclass(frozen=True, slots=True)
class Death:
    """The end of a driver's process that nobody asked for.

    Attributes:
        time: when, in seconds since 1970.
        process: which.
        reason: why, as far as it is known.
    """

    time: float
    process: int
    reason: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The place of a driver.

    Attributes:
        device: the device's name.
        path: of the socket.
        properties: of the device, where crosschip starts the driver.
        started: whether it does.
    """

    device: str
    path: Path
    properties: tuple[tuple[str, str], ...] = ()
    started: bool = True

    @classmethod
    def of(cls, device: str, where: str, properties: Mapping[str, str], code: str = "") -> Endpoint:
        """Return the endpoint that a device's name tells, as in `openvino@driver`.

        Args:
            device: what stands before the `@`.
            where: what stands behind it: `driver`, or `unix:` and the path of a socket.
            properties: the device's.
            code: the digest of the device's code, where it may be edited in place.

        Raises:
            InputError: it is neither, or there are properties for a driver that runs already.
        """
        if where.startswith(_UNIX):
            if properties:
                raise InputError(
                    f"{device}@{where} runs already, so it has its properties; give them to "
                    "`crosschip driver serve`"
                )
            return cls(device, Path(where.removeprefix(_UNIX)), started=False)
        if where != "driver":
            raise InputError(
                f"{device}@{where}: there is no place {where!r}; write {device}@driver, or "
                f"{device}@unix:PATH for a driver that runs already"
            )
        own = tuple(sorted(properties.items()))
        return cls(device, folder() / f"{_stem(device, own, code)}.sock", own)

    @property
    def words(self) -> Path:
        """What the process last wrote."""
        return self.path.with_suffix(".log")

    def deaths(self) -> Sequence[Death]:
        """How its processes have come to their ends of late; see `deaths_at`."""
        return deaths_at(self.path)

    def remember(self, death: Death) -> None:
        """Note a death for whoever wants to know."""
        line = json.dumps([death.time, death.process, death.reason]) + "\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with suppress(OSError):  # the folder may have been removed under us: nothing depends on it
            descriptor = open_own(self.path.with_suffix(".deaths"), flags)
            with open(descriptor, "ab", buffering=0) as file:
                file.write(line.encode())


def death_of(process: int, reason: str) -> Death:
    """Return a death that has just been noticed."""
    return Death(time.time(), process, reason)


def deaths_at(path: Path) -> Sequence[Death]:
    """How processes that served at a socket have come to their ends of late, the latest last.

    Each client notes a death. Who has started the process knows the most of it, and says the most.
    """
    by_process: dict[int, Death] = {}
    for death in _deaths(path.with_suffix(".deaths")):
        known = by_process.get(death.process)
        if known is None or len(known.reason) < len(death.reason):
            by_process[death.process] = death
    return sorted(by_process.values(), key=lambda death: death.time)


def folder() -> Path:
    """Return the user's folder for sockets, closed to all others.

    Raises:
        DeviceError: it cannot be made, or is somebody else's.
    """
    base = os.environ.get("XDG_RUNTIME_DIR")
    everybodys = f"crosschip-{os.geteuid()}"
    if base and Path(base).is_dir():
        path = Path(base, "crosschip")
    else:
        path = Path(tempfile.gettempdir(), everybodys)
    if len(os.fsencode(path)) > _LONGEST - _LONGEST_NAME:
        path = Path("/tmp", everybodys)
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
    """Return the name of a driver's files: the same for all who would start the same driver."""
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
    return f"{re.sub(r'[^A-Za-z0-9_.-]', '_', device)[:_LONGEST_DEVICE]}-{digest}"


def _deaths(path: Path) -> Iterator[Death]:
    try:
        lines = file_end(path, _REMEMBERED).decode(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, TypeError, OverflowError, RecursionError):
            moment, process, reason = json.loads(line)
            yield Death(float(moment), int(process), str(reason))
