"""`crosschip driver` and what `crosschip devices` says of drivers."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Crosschip
from tests.drivers.drivers import (
    Served,
    X,
    install_deadly,
    left_alone,
    runtime_folder,
    served,
    used,
)
from tests.drivers.serving import LONG, until
from tests.modelling import chain, float32

from crosschip.devices.reference import ReferenceDevice
from crosschip.drivers.client.device import RemoteDevice
from crosschip.drivers.client.fatal_runs import FatalRun
from crosschip.hal import Options, Precision, Sizes
from crosschip.ir import Builder, DeviceError, ElementType, InputError, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.runtime.discovery import DeviceReport

COMMAND = [sys.executable, "-m", "crosschip", "driver"]
COLUMNS = "driver state process clients queue runs/s ms 50/90/99 % MB restarts"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The folder of drivers, while one runs in it that ends with the module."""
    with pytest.MonkeyPatch.context() as patch, runtime_folder(patch) as folder:
        yield folder


@pytest.fixture(scope="module")
def lasting_driver(place: Path) -> Iterator[Served]:
    with served(place / "mine.sock") as driver:
        yield driver


@pytest.fixture
def driver(lasting_driver: Served) -> Served:
    """A driver in the module's folder, which nobody uses."""
    return left_alone(lasting_driver)


@pytest.fixture
def own_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of drivers in which there is none yet."""
    with runtime_folder(monkeypatch) as folder:
        yield folder


def test_drivers_are_listed(driver: Served, crosschip: Crosschip) -> None:
    with used(driver.path, 3):
        listed, document = crosschip("driver", "list"), crosschip("driver", "list", "--json")
    title, head, row, *rest = listed.out.splitlines()
    assert (title, " ".join(head.split()), rest) == ("Drivers", COLUMNS, [""])
    assert row.split()[:5] == ["reference", "available", str(driver.popen.pid), "1", "0"]
    assert row.split()[6].count("/") == 2
    (report,) = document.document
    assert (report["device"], report["socket"]) == ("reference", str(driver.path))
    assert report["clients"][0]["runs"] == 3
    assert list(report["latency"]) == ["50", "90", "99"]


def test_without_drivers_there_is_a_sentence(own_place: Path, crosschip: Crosschip) -> None:
    for command in ("list", "stop --all"):
        outcome = crosschip("driver", *command.split())
        assert outcome.status == 0
        assert outcome.out.startswith("no driver runs")
        assert crosschip("driver", *command.split(), "--json").document == []


def test_a_driver_elsewhere_is_looked_at_by_its_socket(
    own_place: Path, tmp_path: Path, crosschip: Crosschip
) -> None:
    path = own_place.parent / "elsewhere.sock"
    with served(path) as driver:
        assert crosschip("driver", "list", "--json").document == []
        (report,) = crosschip("driver", "list", "--socket", path, "--json").document
        assert (report["process"], report["state"]) == (driver.popen.pid, "available")
        driver.kill()
        outcome = crosschip("driver", "list", "--socket", path)
    assert "reference  offline" in outcome.out
    what = f"the driver's process {driver.popen.pid} is not there any more"
    assert f"\nLately\ndriver     when  what\nreference  now   {what}\n" in outcome.out
    nobody = crosschip("driver", "list", "--socket", tmp_path / "nobody")
    assert f"{tmp_path / 'nobody'}  offline" in nobody.out
    assert "no driver serves there" in nobody.out


def test_a_driver_is_watched_in_lines(driver: Served, crosschip: Crosschip) -> None:
    with used(driver.path, 1):
        lines = crosschip("driver", "top", "--count", 2, "--interval", 0.1).out.splitlines()
    looks = [lines[:5], lines[5:]]
    for look in looks:
        clock, head, row, client, end = look
        assert (clock.count(":"), " ".join(head.split()), end) == (2, COLUMNS, "")
        assert row.split()[:2] == ["reference", "available"]
        assert client.startswith("  ")
        assert f" 1 program {os.getpid()} " in " ".join(client.split())
    assert looks[1][3].split()[-2:] == ["0.0", "0"], "the second look knows how fast it was"
    (report,) = crosschip("driver", "top", "--json").document
    assert report["process"] == driver.popen.pid


def test_watching_ends_with_an_interruption(driver: Served) -> None:
    command = [*COMMAND, "top", "--interval", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as top:
        assert top.stdout is not None
        while b"reference" not in top.stdout.readline():
            pass
        top.send_signal(signal.SIGINT)
        _, said = top.communicate(timeout=LONG)
    assert (top.returncode, said) == (130, b"")


def test_all_numbers_are_on_the_terminal(driver: Served) -> None:
    with used(driver.path, 1):
        seen = on_a_terminal(80, "top", "--count", "1")
    assert seen.startswith("\x1b[?1049h"), "the terminal's own lines come back in the end"
    assert seen.rstrip().endswith("\x1b[?1049l")
    for word in ("restarts", "ms 50/90/99 %", "reference", str(driver.popen.pid), "1 program"):
        assert word in seen


def on_a_terminal(columns: int, *arguments: str) -> str:
    """What a command writes to a terminal of so many columns."""
    own, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    with subprocess.Popen(
        [*COMMAND, *arguments], stdin=its, stdout=its, stderr=its, env=environment
    ) as process:
        os.close(its)
        written = b""
        try:
            while part := os.read(own, 65536):
                written += part
        except OSError:  # so a terminal ends
            pass
        os.close(own)
    assert process.returncode == 0, written
    return written.decode()


def test_drivers_are_stopped_by_device_and_by_path(own_place: Path, crosschip: Crosschip) -> None:
    with served(own_place / "a.sock") as first, served(own_place / "b.sock") as second:
        refused = crosschip("driver", "stop", "reference", "openvino")
        assert (refused.status, refused.out) == (1, "")
        assert refused.err.startswith("error: no driver of 'openvino' runs; there are some of: ref")
        (stopped,) = crosschip("driver", "stop", first.path, "--json").document
        assert stopped == {
            "device": "reference",
            "socket": str(first.path),
            "process": first.popen.pid,
            "killed": False,
        }
        assert first.ended() == 0
        second.popen.send_signal(signal.SIGSTOP)
        os.waitpid(second.popen.pid, os.WUNTRACED)  # it may answer until it has stopped
        outcome = crosschip("driver", "stop", "reference")
        how = "killed, because it did not end in time"
        assert outcome.out == f"reference, process {second.popen.pid}: {how}\n"
        assert second.ended() == -signal.SIGKILL
    assert list(own_place.iterdir()) == []


@pytest.mark.parametrize("arguments", [[], ["reference", "--all"]])
def test_what_is_stopped_must_be_said(crosschip: Crosschip, arguments: list[str]) -> None:
    outcome = crosschip("driver", "stop", *arguments)
    assert outcome.status == 2
    assert "name drivers, or give --all" in outcome.err


def test_a_driver_serves_where_its_name_leads(own_place: Path, crosschip: Crosschip) -> None:
    with subprocess.Popen([*COMMAND, "serve", "reference"]) as process:
        try:
            until(lambda: any(own_place.glob("reference-*.sock")), "the driver's socket")
            with RemoteDevice("reference", "driver", code=ReferenceDevice().code) as client:
                assert client.driver.link().connection.process == process.pid
            assert crosschip("driver", "stop", "reference@driver").status == 0
            assert process.wait(LONG) == 0
        finally:
            process.kill()


def test_metrics_need_a_library(
    own_place: Path, crosschip: Crosschip, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    outcome = crosschip("driver", "serve", "reference", "--metrics-port", 0)
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err == (
        'error: metrics need Prometheus\' client library; run: pip install "crosschip[metrics]"\n'
    )
    assert list(own_place.iterdir()) == []


def test_devices_tell_of_their_drivers(
    own_place: Path, crosschip: Crosschip, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [DeviceReport("openvino"), DeviceReport("reference", "us", "cpu", "1", available=True)]
    monkeypatch.setattr("crosschip.list_devices", lambda: found, raising=False)

    def drivers() -> Any:
        none, some = crosschip("devices", "--json").document
        assert none["drivers"] == []
        return some["drivers"]

    path = own_place / "it.sock"
    death = [0, 1, "the driver's process 1 died of SIGKILL; its last words: many"]
    with served(path) as driver:
        path.with_suffix(".deaths").write_text(json.dumps(death) + "\n")
        (report,) = drivers()
        assert (report["state"], report["restarts"]) == ("available", 1)
        assert report["deaths"] == [dict(zip(("time", "process", "reason"), death, strict=True))]
        _, _, _, device, told, _ = crosschip("devices").out.splitlines()
        assert device.split() == ["reference", "us", "cpu", "1", "yes"]
        state = f"available, process {driver.popen.pid}, 0 clients, 1 restart, "
        start, _, age = " ".join(told.split()).partition(state)
        assert start.startswith("reference@driver driver ")
        assert age.endswith(" d ago the driver's process 1 died of SIGKILL")
    path.with_suffix(".deaths").unlink()
    (report,) = drivers()
    assert (report["state"], report["process"]) == ("offline", None)
    path.with_suffix(".lock").unlink()
    assert drivers() == []


# Runs that have killed their driver.


@pytest.fixture(scope="module")
def deadly(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The device `deadly`, for drivers."""
    with pytest.MonkeyPatch.context() as patch:
        install_deadly(tmp_path_factory.mktemp("deadly"), patch)
        yield


@pytest.fixture(scope="module")
def kept(deadly: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a run that has killed its driver twice, and is refused from then on."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch, runtime_folder(patch):
        patch.setenv("XDG_CACHE_HOME", str(cache))
        with RemoteDevice("deadly", "driver", {"signal": "8"}) as client:
            program = client.compile(chain(Relu), Options(threads=1))
            assert program.run([-X - 3 * X[::-1] + 10])[0].min() >= 0
            with pytest.raises(DeviceError, match=r"killed the driver twice, .* is kept in"):
                program.run([X])
            (first, second) = client.driver.endpoint.deaths()
            with pytest.raises(DeviceError, match=r"killed the driver twice, .* is kept in"):
                program.run([X])
    (path,) = (cache / "crosschip" / "quarantine").iterdir()
    assert FatalRun.read(path).reason == second.reason != first.reason
    return path


def test_a_run_is_kept_with_all_that_it_takes(kept: Path) -> None:
    run = FatalRun.read(kept)
    assert (run.device, run.properties, run.options) == (
        *("deadly", {"signal": "8"}, Options(threads=1)),
    )
    assert "SIGFPE" in run.reason
    assert str(run.model) == str(chain(Relu))
    assert [value.tolist() for value in run.inputs] == [X.tolist()]


def test_a_run_that_kills_its_driver_again(
    kept: Path, own_place: Path, crosschip: Crosschip
) -> None:
    outcome = crosschip("driver", "replay", kept, "--json")
    assert outcome.status == 1
    document = outcome.document
    assert (document["device"], document["outcome"], document["outputs"]) == ("deadly", "died", [])
    assert "died of SIGFPE" in document["problem"]
    assert "in deadly" in document["problem"], "what it was at"
    assert "SIGFPE" in document["kept_for"]
    assert list(own_place.iterdir()) == []


def test_a_run_that_hangs_is_ended(kept: Path, own_place: Path, crosschip: Crosschip) -> None:
    stopping = ("--property", f"deadly.signal={int(signal.SIGSTOP)}", "--timeout", 1)
    outcome = crosschip("driver", "replay", kept, *stopping)
    assert outcome.status == 1
    assert "deadly died of it: the driver's process" in outcome.out


def test_a_run_that_another_device_survives(
    kept: Path, own_place: Path, crosschip: Crosschip
) -> None:
    outcome = crosschip("driver", "replay", kept, "--device", "reference")
    assert outcome.status == 0
    first, second, title, head, row, end = outcome.out.splitlines()
    assert first.startswith("kept for: the driver's process ")
    assert second.startswith("reference ran it in ")
    assert (title, end) == ("Outputs", "")
    assert head.split() == ["name", "shape", "element", "type", "least", "greatest", "NaN"]
    assert row.split() == ["y0", "[2]", "float32", "0", "2", "0"]
    unknown = crosschip("driver", "replay", kept, "--device", "nosuch")
    assert unknown.status == 1
    assert "there is no device 'nosuch'" in unknown.err


def test_runs_with_texts_are_kept(tmp_path: Path) -> None:
    b = Builder("texts")
    b.input("text", TensorType(ElementType.STRING, (2, 2)))
    b.output("y", b.add(Relu, b.input("x", float32(2))))
    texts = np.array([["a", "ü"], ["", "\0"]], object)
    options = Options(precision=Precision.FLOAT16, sizes=Sizes.of({"N": (1, 8)}, [{"N": 4}]))
    FatalRun("npu:1", {"cores": "2"}, "why", options, b.build(), [texts, X]).write(
        tmp_path / "run.zip"
    )
    run = FatalRun.read(tmp_path / "run.zip")
    assert (run.device, run.properties, run.reason, run.options) == (
        *("npu:1", {"cores": "2"}, "why", options),
    )
    assert [value.tolist() for value in run.inputs] == [texts.tolist(), X.tolist()]


def rewritten(kept: Path, path: Path, **changes: bytes | None) -> Path:
    """The file of a run with some of its parts changed, or left out."""
    with zipfile.ZipFile(kept) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = changes.get(name.partition(".")[0], old.read(name))
            if content is not None:
                new.writestr(name, content)
        if value := changes.get("value"):
            new.writestr("input0.value", value)
    return path


def _cut(kept: Path, path: Path) -> None:
    path.write_bytes(kept.read_bytes()[:-30])


def _compressed(kept: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("about.json", b" " * 1000)


DAMAGES: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "nothing": (lambda kept, path: None, "cannot be read: No such file"),
    "text": (lambda kept, path: path.write_text("text"), "holds no run of a driver, or is damaged"),
    "cut": (_cut, "holds no run of a driver, or is damaged"),
    "compressed": (_compressed, "or is damaged: it is compressed"),
    "no model": (lambda k, p: rewritten(k, p, model=None), "There is no item named 'model.chipm'"),
    "no input": (lambda k, p: rewritten(k, p, input0=None), "There is no item named 'input0.npy'"),
    "model": (lambda k, p: rewritten(k, p, model=b"model"), "the model: is cut off"),
    "value": (
        lambda k, p: rewritten(k, p, input0=None, value=b"\xc1"),
        "a value is not laid out as one",
    ),
    "about": (lambda k, p: rewritten(k, p, about=b'{"device": 1}'), "Expected `str`, got `int`"),
    "pickle": (
        lambda k, p: rewritten(k, p, input0=b"\x80\x04N."),
        "holds no run of a driver, or is damaged",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_an_error(kept: Path, tmp_path: Path, damage: str) -> None:
    make, message = DAMAGES[damage]
    make(kept, tmp_path / "run.zip")
    with pytest.raises(InputError) as error:
        FatalRun.read(tmp_path / "run.zip")
    assert message in str(error.value)
    assert str(tmp_path / "run.zip") in str(error.value)
