"""Real services for tests, and what their processes hold."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.modelling import python_path

LONG = 60.0
"""Seconds after which something that must happen counts as not happening."""


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder with a short name, as sockets need."""
    folder = Path(tempfile.mkdtemp(prefix="cc", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def until(true: Callable[[], bool], what: str, state: Callable[[], object] = str) -> None:
    """Wait until something is true that is going to be.

    Args:
        true: tells whether it is.
        what: the thing, in words.
        state: tells what there is instead.
    """
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, f"never came: {what}; there is {state()}"
        time.sleep(0.01)


class Held(NamedTuple):
    """What a process holds: descriptors, pieces of shared memory, threads, and bytes."""

    descriptors: int
    mappings: int
    threads: int
    resident: int


def held_by(process: int) -> Held:
    """What a process holds at the moment."""
    about = Path("/proc", str(process))
    status = dict(line.split(":", 1) for line in (about / "status").read_text().splitlines())
    return Held(
        len(list((about / "fd").iterdir())),
        (about / "maps").read_text().count("memfd:crosschip"),
        int(status["Threads"]),
        int(status["VmRSS"].split()[0]) * 1024,
    )


class Serving:
    """A service in a process of its own.

    Args:
        device: the device.
        folder: where its socket is.
        options: of `crosschip driver serve`.
        environment: of the process.
        most_bytes: the most address space that it may take.

    Attributes:
        device: its device.
        path: of the socket.
        process: the process.
    """

    def __init__(
        self,
        device: str,
        folder: Path,
        *options: str,
        environment: Mapping[str, str] | None = None,
        most_bytes: int | None = None,
    ) -> None:
        self.device = device
        self.path = folder / "it.sock"
        self._log = folder / "log"
        command = [sys.executable, "-m", "crosschip", "driver", "serve", device]
        with self._log.open("w") as log:
            self._popen = subprocess.Popen(
                [*command, "--socket", str(self.path), *options],
                env={**os.environ, "PYTHONPATH": python_path(), **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.process = self._popen.pid
        if most_bytes is not None:
            resource.prlimit(self.process, resource.RLIMIT_AS, (most_bytes, most_bytes))
        until(self._answers, f"a service at {self.path}: {self._log.read_text()}")

    def held(self) -> Held:
        """What its process holds."""
        return held_by(self.process)

    def read_log(self) -> str:
        """What it wrote."""
        return self._log.read_text()

    def end(self) -> int:
        """End it as a system does; its exit status."""
        self._popen.send_signal(signal.SIGTERM)
        return self._popen.wait(LONG)

    def kill(self) -> None:
        """Make sure that it is not there any more."""
        self._popen.kill()
        self._popen.wait(LONG)

    def _answers(self) -> bool:
        assert self._popen.poll() is None, self._log.read_text()
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            return end.connect_ex(str(self.path)) == 0


@contextmanager
def serving(device: str = "reference", *options: str, **more: object) -> Iterator[Serving]:
    """A service that ends by itself when it is told to."""
    with short_folder() as folder:
        service = Serving(device, folder, *options, **more)  # type: ignore[arg-type]
        try:
            yield service
            assert service.end() == 0, service.read_log()
            assert not service.path.exists()
        finally:
            service.kill()
