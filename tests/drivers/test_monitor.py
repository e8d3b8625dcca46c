"""Drivers seen from outside: who serves, how it is, what became of others, and its metrics."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from tests.drivers.drivers import Served, left_alone, runtime_folder, served, used
from tests.drivers.serving import LONG, until

from crosschip.drivers.client.connection import Connection, Died
from crosschip.drivers.client.device import RemoteDevice
from crosschip.drivers.client.monitor import DriverReport, Monitor, look, running
from crosschip.drivers.client.policy import Timeouts
from crosschip.drivers.client.process import stop
from crosschip.drivers.endpoint import deaths_at
from crosschip.drivers.ownership import acquire, clean_up, is_owned, read_owner, release
from crosschip.drivers.protocol import messages
from crosschip.drivers.service import metrics
from crosschip.drivers.service.metrics import BOUNDS, Measures
from crosschip.ir import DeviceError, InputError

DAY = 24 * 60 * 60


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """The folder of drivers, while one runs in it that ends with the module."""
    with pytest.MonkeyPatch.context() as patch, runtime_folder(patch) as folder:
        yield folder


@pytest.fixture(scope="module")
def lasting_driver(place: Path) -> Iterator[Served]:
    with served(place / "mine.sock", "--metrics-port=0", "--workers=2") as driver:
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


def only() -> DriverReport:
    (report,) = look()
    return report


def files(place: Path) -> set[str]:
    return {path.name for path in place.iterdir()}


def test_a_driver_tells_of_itself_and_of_its_clients(driver: Served) -> None:
    before = only().figures
    assert before is not None
    assert before.clients == (), "who watches is no client"
    with used(driver.path, 7), used(driver.path, 2, "also"):
        report = only()
        assert (report.device, report.path, report.state) == ("reference", driver.path, "available")
        assert (report.process, report.problem, report.restarts) == (driver.popen.pid, "", 0)
        assert report.figures is not None
        figures = report.figures
        (client,) = figures.clients
        assert (client.process, client.runs, client.programs, client.waiting) == (
            *(os.getpid(), 9, 2, 0),
        )
        assert client.memory > 0
        assert figures.runs - before.runs == 9
        assert (figures.failures, figures.waiting, figures.running, figures.workers) == (0, 0, 0, 2)
        assert figures.copied >= 9
        assert list(figures.latency) == ["50", "90", "99"]
        assert sorted(figures.latency.values()) == list(figures.latency.values())
        assert figures.memory > 1 << 20
    document = json.loads(json.dumps(report.document()))
    assert document["socket"] == str(driver.path)
    assert document["clients"][0]["process"] == os.getpid()


def test_a_watcher_looks_again_through_the_same_connection(driver: Served) -> None:
    with Monitor([driver.path]) as watcher:
        first, again = watcher.look()[0].figures, watcher.look()[0].figures
    assert first is not None
    assert again is not None
    assert again.seconds > first.seconds


@pytest.mark.parametrize(
    "request_",
    [messages.Allocate(2, 4096), messages.Discard(2, 1), messages.Save(2, 1)],
    ids=lambda request: type(request).__name__,
)
def test_who_watches_may_nothing_else(driver: Served, request_: messages.AnyRequest) -> None:
    connection = Connection(driver.path, "watcher", Timeouts(), watches=True)
    with pytest.raises(Died):
        connection.ask(messages.Done, lambda _: request_)
    connection.release()
    assert only().state == "available"


def test_a_driver_does_not_stay_for_who_watches(own_place: Path) -> None:
    with Monitor() as watcher:
        with RemoteDevice("reference", "driver"):
            assert watcher.look()[0].state == "available"
        until(lambda: watcher.look() == [], "the end of the driver")
    assert {Path(name).suffix for name in files(own_place)} <= {".log"}


def test_an_interruption_ends_a_driver_as_it_should(own_place: Path) -> None:
    with served(own_place / "it.sock") as driver:
        assert only().state == "available"
        driver.popen.send_signal(signal.SIGINT)
        assert driver.ended() == 130
    assert files(own_place) == set()


def test_one_that_was_killed_is_offline_and_its_socket_is_removed(own_place: Path) -> None:
    with served(own_place / "it.sock") as driver:
        process = driver.popen.pid
        driver.kill()
        report = only()
        assert (report.device, report.state, report.process) == ("reference", "offline", None)
        assert report.problem == f"the driver's process {process} is not there any more"
        assert not driver.path.exists()
    with served(own_place / "it.sock"):
        assert (only().state, only().restarts) == ("available", 0), "nobody was there to replace it"


def test_restarts_and_the_last_reason_are_told(own_place: Path) -> None:
    with RemoteDevice("reference", "driver") as client:
        told = threading.Event()
        client.on_death(lambda _: told.set())
        first = only().process
        assert first is not None
        os.kill(first, signal.SIGKILL)
        assert told.wait(LONG)
        client.driver.link()
        report = only()
        assert report.process not in (None, first)
        assert report.restarts == 1
        assert report.deaths[-1].process == first
        assert "SIGKILL" in report.deaths[-1].reason
        assert abs(report.deaths[-1].time - time.time()) < LONG


def test_a_frozen_driver_is_offline_and_is_killed_when_it_is_to_stop(own_place: Path) -> None:
    with served(own_place / "it.sock") as driver, ExitStack() as waiting:
        driver.popen.send_signal(signal.SIGSTOP)
        os.waitpid(driver.popen.pid, os.WUNTRACED)  # it may answer until it has stopped
        report = only()
        assert (report.device, report.state, report.process) == (
            *("reference", "offline", driver.popen.pid),
        )
        assert "not responded" in report.problem
        with suppress(BlockingIOError):
            while True:
                end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                waiting.enter_context(end).setblocking(False)
                end.connect(str(driver.path))
        assert (only().state, only().problem) == ("offline", "it lets nobody in any more")
        assert running(["reference"]).keys() == {driver.path}
        assert not stop(driver.path, LONG)
        assert driver.ended() == -signal.SIGKILL
        assert running([]) == {}


def test_one_that_is_stopped_leaves_nothing(own_place: Path) -> None:
    with served(own_place / "it.sock") as driver:
        assert stop(driver.path, LONG)
        assert driver.ended() == 0
    assert files(own_place) == set()
    with pytest.raises(DeviceError, match="no driver serves there"):
        stop(driver.path, LONG)


def test_drivers_are_chosen_by_device_and_by_path(driver: Served, tmp_path: Path) -> None:
    for name in ("reference", "reference@driver", str(driver.path), f"unix:{driver.path}"):
        assert running([name]).keys() == {driver.path}
    with pytest.raises(InputError, match=r"of 'refrence' runs \(did you mean 'reference'"):
        running(["refrence"])
    with pytest.raises(InputError, match=r"no driver of .*nothing.sock' runs"):
        running([str(tmp_path / "nothing.sock")])


def test_a_path_where_nobody_ever_served(tmp_path: Path) -> None:
    (report,) = look([tmp_path / "nothing.sock"])
    assert (report.device, report.state, report.process) == ("", "offline", None)
    assert report.problem == "no driver serves there"
    assert list(tmp_path.iterdir()) == [], "to ask leaves nothing"


def test_a_file_that_is_no_socket_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "it.sock").write_text("a file")
    assert look([tmp_path / "it.sock"])[0].problem == "no driver serves there"
    assert (tmp_path / "it.sock").read_text() == "a file"


# Who serves, and what is left of those that are gone.


def test_one_process_serves_at_a_path(tmp_path: Path) -> None:
    path = tmp_path / "it.sock"
    assert not is_owned(path)
    assert read_owner(path) is None
    held = acquire(path, "npu:1")
    with pytest.raises(DeviceError, match="a driver serves there already"):
        acquire(path, "npu:1")
    assert is_owned(path)
    known = read_owner(path)
    assert known is not None
    assert (known.device, known.process, known.alive) == ("npu:1", os.getpid(), True)
    release(path, held)
    assert not is_owned(path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DeviceError, match=r"nowhere/it.lock: cannot be written: No such file"):
        acquire(tmp_path / "nowhere" / "it.sock", "npu")


def test_nobody_serves_where_another_does_whoever_tidies_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "it.sock"
    alone = threading.Lock()
    clashes: list[str] = []
    done = threading.Event()

    def serve() -> None:
        served = 0
        while served < 40:
            try:
                held = acquire(path, "npu")
            except DeviceError:  # others were faster for long
                continue
            if alone.acquire(blocking=False):
                time.sleep(0.0005)  # for another one to come, if it could
                alone.release()
            else:
                clashes.append("two serve")
            release(path, held)
            served += 1

    def clean() -> None:
        while not done.is_set():
            clean_up(path, time.time() + DAY)
            is_owned(path)

    servers = [threading.Thread(target=serve) for _ in range(3)]
    cleaner = threading.Thread(target=clean)
    for thread in (*servers, cleaner):
        thread.start()
    for thread in servers:
        thread.join(LONG)
    done.set()
    cleaner.join(LONG)
    assert clashes == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("written", "since", "left"),
    [
        ({".sock": 0}, 0, set()),
        ({".sock": 0, ".lock": 1, ".log": 1}, -DAY, {".lock", ".log"}),
        ({".sock": 0, ".lock": 1, ".log": 1}, DAY, {".log"}),  # whoever starts is writing to it
        ({".lock": -2 * DAY, ".log": -2 * DAY}, -DAY, set()),
        ({".lock": -2 * DAY, ".log": -2 * DAY, ".deaths": 0}, -DAY, {".lock", ".log", ".deaths"}),
        ({".lock": -2 * DAY, ".log": -2 * DAY, ".deaths": -2 * DAY}, -DAY, set()),
    ],
)
def test_what_dead_drivers_leave(
    tmp_path: Path, written: dict[str, int], since: int, left: set[str]
) -> None:
    now = time.time()
    for suffix, age in written.items():
        file = tmp_path / f"it{suffix}"
        file.write_text("about it")
        os.utime(file, (now + age, now + age))
    clean_up(tmp_path / "it.sock", now + since)
    assert {path.suffix for path in tmp_path.iterdir()} == left


def test_files_of_others_in_the_folder_are_left_alone(own_place: Path) -> None:
    (own_place / "notes.txt").write_text("mine")
    assert look() == []
    assert files(own_place) == {"notes.txt"}


def test_of_several_reports_of_a_death_the_fullest_counts(tmp_path: Path) -> None:
    lines = [
        [20.0, 8, "is not there any more"],
        [10.0, 7, "is not there any more"],
        [10.1, 7, "died of SIGKILL; its last words: out of memory"],
        [10.2, 7, "is not there any more"],
    ]
    broken = ["", "[1", "[1, 2]", '["x", 1, "y"]', "null", "\0"]
    text = "\n".join([*broken, *map(json.dumps, lines)])
    (tmp_path / "it.deaths").write_text(text)
    told = [(death.process, death.reason) for death in deaths_at(tmp_path / "it.sock")]
    assert told == [(7, lines[2][2]), (8, lines[0][2])]


# What is counted.


@given(st.lists(st.tuples(st.floats(0, 20), st.booleans()), max_size=30))
def test_the_histogram_counts_each_run_once(runs: list[tuple[float, bool]]) -> None:
    counted = Measures()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "monotonic", lambda: 100.0)
        for seconds, failed in runs:
            counted.add(100.0 - seconds, failed=failed, copied=1)
    taken = [100.0 - (100.0 - seconds) for seconds, _ in runs]
    counts, together = counted.histogram()
    assert counts == [sum(s <= bound for s in taken) for bound in (*BOUNDS, float("inf"))]
    assert together == pytest.approx(sum(taken))
    assert (counted.runs, counted.copied) == (len(runs), len(runs))
    assert counted.failures == sum(failed for _, failed in runs)


def test_the_rate_is_right_for_many_runs_and_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(metrics, "monotonic", lambda: now)
    counted = Measures()
    for _ in range(20_000):  # two thousand a second, for ten seconds
        now += 0.0005
        counted.add(now, failed=False, copied=0)
    assert counted.rate() == pytest.approx(2000, rel=0.01)
    now += 60.0
    assert counted.rate() == 0
    counted.add(now, failed=False, copied=0)
    assert counted.rate() == pytest.approx(1 / 5)


def test_metrics_are_what_prometheus_reads(driver: Served, place: Path) -> None:
    address = driver.line().removeprefix("metrics: ").strip()
    with used(driver.path, 5):
        report = only()
        assert report.figures is not None
        with urllib.request.urlopen(address, timeout=LONG) as answer:
            text = answer.read().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    own_ones = {
        name.removeprefix("crosschip_driver"): family
        for name, family in families.items()
        if name.startswith("crosschip_driver")
    }
    assert {name: family.type for name, family in own_ones.items()} == {
        "_info": "gauge",
        "_runs": "counter",
        "_failures": "counter",
        "_copied_outputs": "counter",
        "_restarts": "counter",
        "_clients": "gauge",
        "_programs": "gauge",
        "_shared_memory_bytes": "gauge",
        "_waiting_runs": "gauge",
        "_running_runs": "gauge",
        "_workers": "gauge",
        "_run_duration_seconds": "histogram",
    }
    samples = [sample for family in own_ones.values() for sample in family.samples]
    assert all(sample.labels["device"] == "reference" for sample in samples)
    values = {s.name.removeprefix("crosschip_driver_"): s.value for s in samples}
    figures = report.figures
    assert values["runs_total"] == values["run_duration_seconds_count"] == figures.runs
    assert values["copied_outputs_total"] == figures.copied
    assert (values["failures_total"], values["restarts_total"]) == (0, 0)
    assert (values["clients"], values["programs"], values["workers"]) == (1, 1, 2)
    assert values["shared_memory_bytes"] == figures.clients[0].memory
    buckets = [s.value for s in samples if s.name.endswith("_bucket")]
    assert len(buckets) == len(BOUNDS) + 1
    assert buckets == sorted(buckets)
    assert buckets[-1] == figures.runs
    assert families["process_resident_memory_bytes"].samples[0].value > 1 << 20
    assert all(family.documentation for family in families.values())
    assert listening(int(address.rpartition(":")[2].partition("/")[0])) == {"0100007F"}


def listening(port: int) -> set[str]:
    """The addresses that anything listens on at a port, as the system writes them."""
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            address, number = line.split()[1].split(":")
            if int(number, 16) == port and line.split()[3] == "0A":
                found.add(address)
    return found


def test_metrics_count_restarts_and_end_with_the_driver(own_place: Path) -> None:
    path = own_place / "it.sock"
    path.with_suffix(".deaths").write_text(json.dumps([time.time(), 1, "died"]) + "\n")
    with served(path, "--metrics-port=0") as driver:
        address = driver.line().removeprefix("metrics: ").strip()
        with urllib.request.urlopen(address, timeout=LONG) as answer:
            assert b'crosschip_driver_restarts_total{device="reference"} 1.0' in answer.read()
        assert stop(driver.path, LONG)
        assert driver.ended() == 0
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(address, timeout=LONG)


def test_metrics_need_a_free_port(own_place: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = ["driver", "serve", "reference", "--metrics-port", f"{port}"]
        done = subprocess.run(
            [sys.executable, "-m", "crosschip", *command], capture_output=True, text=True
        )
    assert done.returncode == 1
    assert done.stderr == f"error: 127.0.0.1:{port}: cannot be used: Address already in use\n"
    assert files(own_place) == set(), "nothing is left of it"


def test_a_driver_that_starts_is_not_taken_for_a_dead_one(own_place: Path) -> None:
    held = acquire(own_place / "it.sock", "npu")
    try:
        assert (only().device, only().state, only().process) == ("npu", "offline", os.getpid())
        assert only().problem == "it starts, or is about to end"
    finally:
        release(own_place / "it.sock", held)
    until(lambda: look() == [], "an empty folder")
