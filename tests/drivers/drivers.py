"""Drivers in processes of their own, for tests that look at them from outside."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.drivers.serving import LONG, short_folder, until
from tests.modelling import chain

from crosschip.drivers import endpoint
from crosschip.drivers.client.device import RemoteDevice
from crosschip.drivers.client.monitor import look
from crosschip.hal import Options
from crosschip.ops.standard.activation import Relu

X = np.array([-1, 2], np.float32)

_DEADLY = '''
import signal
from crosschip.devices.reference import ReferenceDevice

class Deadly(ReferenceDevice):
    """The reference device, which dies of numbers below zero."""

    def known_properties(self):
        return {**super().known_properties(), "signal": "what it dies of"}

    def compile(self, model, options):
        program = super().compile(model, options)
        run = program.run

        def deadly(inputs):
            if inputs[0].min() < 0:
                signal.raise_signal(int(self.properties.get("signal", signal.SIGABRT)))
            return run(inputs)

        program.run = deadly
        return program
'''


@contextmanager
def runtime_folder(patch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that drivers of the user are in, empty."""
    with short_folder() as folder:
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield endpoint.folder()


class Served:
    """A driver that was started by hand.

    Args:
        arguments: of `crosschip driver serve`, the device first.

    Attributes:
        popen: its process.
        path: of its socket.
    """

    def __init__(self, path: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "crosschip", "driver", "serve", *arguments]
        self.path = path
        self.popen = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        until(self._answers, "the driver's socket")

    def ended(self) -> int:
        """Wait for its end; its exit status."""
        return self.popen.wait(LONG)

    def kill(self) -> None:
        """Make sure that it is not there any more."""
        self.popen.send_signal(signal.SIGCONT)
        self.popen.kill()
        self.popen.communicate(timeout=LONG)

    def line(self) -> str:
        """The next line that it writes."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline()

    def _answers(self) -> bool:
        if self.popen.poll() is not None:
            raise AssertionError(self.popen.communicate()[0])
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
            return end.connect_ex(str(self.path)) == 0


@contextmanager
def served(path: Path, *options: str, device: str = "reference") -> Iterator[Served]:
    """A driver at a socket, as long as the `with` block runs."""
    driver = Served(path, device, f"--socket={path}", *options)
    try:
        yield driver
    finally:
        driver.kill()


def left_alone(driver: Served) -> Served:
    """A driver, once those have gone that used it before."""

    def clients() -> object:
        (report,) = look([driver.path])
        return report.figures and report.figures.clients

    until(lambda: clients() == (), "the end of its clients")
    return driver


@contextmanager
def used(path: Path, runs: int, device: str = "reference") -> Iterator[RemoteDevice]:
    """A client of a driver, which has had so many runs."""
    with RemoteDevice(device, f"unix:{path}") as client:
        program = client.compile(chain(Relu), Options())
        for _ in range(runs):
            (y,) = program.run([X])
            assert y.tolist() == [0, 2]
        yield client
        program.close()


def install_deadly(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Install the device `deadly` for the processes that are started from now on."""
    about = folder / "deadly-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: deadly\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[crosschip.devices]\ndeadly = deadly:Deadly\n")
    (folder / "deadly.py").write_text(_DEADLY)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    patch.setenv("PYTHONPATH", path)
