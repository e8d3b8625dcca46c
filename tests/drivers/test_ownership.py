"""Which process is a driver's, and what may lie in the place of its files."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.drivers.drivers import served
from tests.drivers.serving import short_folder

from crosschip.drivers.client import connection
from crosschip.drivers.client.monitor import look
from crosschip.drivers.client.policy import Timeouts
from crosschip.drivers.client.process import Process, connect, stop
from crosschip.drivers.endpoint import Death, Endpoint, deaths_at
from crosschip.drivers.ownership import acquire, is_owned, kill_owner, read_owner, release
from crosschip.drivers.protocol import channel
from crosschip.ir import DeviceError


def intercept(patch: pytest.MonkeyPatch) -> list[object]:
    """The signals that would be sent to other processes from now on; none is."""
    sent: list[object] = []
    for module, name in ((os, "kill"), (os, "killpg"), (signal, "pidfd_send_signal")):
        patch.setattr(module, name, lambda *sending: sent.append(sending))
    return sent


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    return intercept(monkeypatch)


@contextmanager
def listening_to_nobody(path: Path) -> Iterator[None]:
    """A socket whose queue is full: whoever connects would have to wait."""
    ends = []
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(str(path))
            listener.listen(0)
            with suppress(BlockingIOError):
                while True:
                    ends.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                    ends[-1].setblocking(False)
                    ends[-1].connect(str(path))
            yield
    finally:
        for end in ends:
            end.close()


NUMBERS = [-1, 0, 1, True, 2**22 + 1, 99999999999999999999, 1.5, "2", None, [2]]


PROCESSES = [-os.getpgrp(), os.getpid(), os.getppid()]


@pytest.mark.parametrize(
    "number", [*NUMBERS, *PROCESSES], ids=[*map(str, NUMBERS), "own group", "own", "parent"]
)
def test_a_number_in_a_lock_file_is_no_process(number: object, signals: list[object]) -> None:
    with short_folder() as folder:
        path = folder / "x.sock"
        path.with_suffix(".lock").write_text(json.dumps(["reference", number]))
        with listening_to_nobody(path):
            with pytest.raises(DeviceError):
                stop(path, 0.1)
            for process in NUMBERS:
                assert not kill_owner(path, process)  # type: ignore[arg-type]
    assert signals == []


def test_who_does_not_hold_the_lock_is_not_killed(signals: list[object]) -> None:
    with short_folder() as folder:
        path = folder / "x.sock"
        descriptor = acquire(path, "reference")
        other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        try:
            assert not kill_owner(path, other.pid), "it has nothing to do with the socket"
            with path.with_suffix(".lock").open() as lock:
                reader = subprocess.Popen(
                    [sys.executable, "-c", "input()"],
                    stdin=subprocess.PIPE,
                    pass_fds=[lock.fileno()],
                )
            assert not kill_owner(path, reader.pid), "it has opened the file, not locked it"
        finally:
            for process in (other, reader):
                process.communicate(b"\n")
            release(path, descriptor)
    assert signals == []


def test_who_holds_the_lock_is_killed() -> None:
    holder_code = (
        "import sys; from pathlib import Path; from crosschip.drivers.ownership import acquire\n"
        "acquire(Path(sys.argv[1]), 'reference'); print(flush=True); input()"
    )
    with short_folder() as folder:
        path = folder / "x.sock"
        holder = subprocess.Popen(
            [sys.executable, "-c", holder_code, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holder.stdout is not None
        holder.stdout.readline()
        assert kill_owner(path, holder.pid)
        holder.communicate()
        assert holder.returncode == -signal.SIGKILL
        assert not kill_owner(path, holder.pid)


def test_a_driver_of_another_namespace_is_lost_and_nothing_is_killed() -> None:
    """The system gives 0 for the process at the other end, where that is in another namespace."""
    with short_folder() as folder, served(folder / "x.sock") as driver:
        driver.popen.send_signal(signal.SIGSTOP)
        os.waitpid(driver.popen.pid, os.WUNTRACED)  # it may answer until it has stopped
        with pytest.MonkeyPatch.context() as patch:
            sent = intercept(patch)
            numbers = iter([0, os.getppid()])
            patch.setattr(connection, "peer", lambda end: (next(numbers), channel.peer(end)[1]))
            endpoint = Endpoint("reference", driver.path)
            with pytest.raises(DeviceError, match=r"not respond.*another container.*end it"):
                connect(endpoint, "test", Timeouts(silence=0.1))
            with pytest.raises(DeviceError, match=r"x\.sock: .*so no process was killed"):
                stop(driver.path, 0.1)
            assert sent == []
        assert driver.popen.poll() is None


PLANTED: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda place, other: place.symlink_to(other),
    "a link to nothing": lambda place, other: place.symlink_to(other.with_name("nothing")),
    "a second name": lambda place, other: place.hardlink_to(other),
    "a pipe": lambda place, _: os.mkfifo(place),
    "a folder": lambda place, _: place.mkdir(),
    "a link to a device": lambda place, _: place.symlink_to("/dev/full"),
    "a device": lambda place, _: os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 5)),
    "a socket": lambda place, _: os.mknod(place, 0o600 | stat.S_IFSOCK),
}


@pytest.fixture
def planted(request: pytest.FixtureRequest) -> Iterator[tuple[Path, Path]]:
    """A socket's path, and a file that is not to be changed."""
    with short_folder() as folder:
        other = folder / "other"
        other.write_text("precious")
        yield folder / "x.sock", other
        assert other.read_text() == "precious"
        assert not (folder / "nothing").exists()


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.parametrize("suffix", [".lock", ".deaths", ".log"])
def test_what_lies_in_the_place_of_a_drivers_file_is_left_alone(
    kind: str, suffix: str, planted: tuple[Path, Path]
) -> None:
    path, other = planted
    try:
        PLANTED[kind](path.with_suffix(suffix), other)
    except PermissionError:
        pytest.skip("only the administrator makes devices")
    endpoint = Endpoint("reference", path)
    match suffix:
        case ".lock":
            assert not is_owned(path)
            assert read_owner(path) is None
            assert look([path])[0].problem == "no driver serves there"
            with pytest.raises(DeviceError, match=r"x\.lock: cannot be written: "):
                acquire(path, "reference")
        case ".deaths":
            endpoint.record_death(Death(time.time(), 2, "why"))
            assert deaths_at(path) == []
        case ".log":
            with pytest.raises(OSError, match=r"(?i)not a regular file|second name|directory"):
                Process(["--version"], endpoint)
