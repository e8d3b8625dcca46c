"""Workers: calls, errors, crashes and time limits."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from crosschip.devices.kits.worker import Died, Refused, Worker
from crosschip.ir import Array, DeviceError

TOOL = Path(__file__).with_name("broken_tool.py")


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker("chip", TOOL) as worker:
        yield worker


def test_results_come_back_and_what_is_printed_does_not_disturb_them(worker: Worker) -> None:
    reply = worker.call("describe")
    assert reply.result == {"version": "0.1"}
    assert reply.printed == "Welcome to BrokenTool!\nand welcome from its library\n"
    assert worker.call("echo", ["ä", None, 1.5]).result == ["ä", None, 1.5]


def test_arrays_go_and_come_back_bit_by_bit(worker: Worker) -> None:
    arrays: list[Array] = [
        np.array([[1, -2], [3, 4]], np.int64).T,
        np.array(np.nan, np.float32),
        np.zeros((2, 0, 3), np.float16),
        np.arange(200_000, dtype=np.uint8),
        np.array([], np.bool_),
    ]
    made = worker.call("run", arrays=arrays).arrays
    for array, back in zip(arrays, reversed(made), strict=True):
        assert back.dtype == array.dtype
        assert back.flags.writeable
        np.testing.assert_array_equal(back, array)
    assert worker.call("run").arrays == []


def test_what_a_function_raises_is_told_with_what_it_printed(worker: Worker) -> None:
    with pytest.raises(Refused, match="chip: ValueError: no such thing") as caught:
        worker.call("refuse", "no such thing")
    assert "details on standard output" in caught.value.output
    assert "details on standard error" in caught.value.output
    assert worker.call("echo", 1).result == 1


@pytest.mark.parametrize(
    ("function", "arguments", "told"),
    [
        ("abort", (), r"died of SIGABRT while in abort\(\); its last words: Assertion `tiles > 0'"),
        ("leave", (3,), "ended with status 3"),
        ("cut", (), "ended with status 0"),
    ],
)
def test_a_process_that_ends_is_an_error(
    worker: Worker, function: str, arguments: tuple[int, ...], told: str
) -> None:
    with pytest.raises(Died, match=f"chip: the process {told}"):
        worker.call(function, *arguments)
    assert not worker.alive
    with pytest.raises(Died, match="before it was asked"):
        worker.call("describe")


def test_a_call_that_takes_too_long_ends_the_process(worker: Worker) -> None:
    with pytest.raises(Died, match=r"took more than 0.2 seconds while in hang\(\)"):
        worker.call("hang", seconds=0.2)
    assert not worker.alive


def test_it_runs_in_a_folder_of_its_own_or_a_given_one(worker: Worker, tmp_path: Path) -> None:
    own = worker.call("where").result
    assert Path(own).is_dir()
    assert own != str(Path.cwd())
    with Worker("chip", TOOL, folder=str(tmp_path)) as other:
        assert other.call("where").result == str(tmp_path.resolve())
    worker.close()
    assert not Path(own).exists()


def test_calls_of_several_threads_come_one_by_one(worker: Worker) -> None:
    right: list[bool] = []

    def ask(number: int) -> None:
        for step in range(20):
            right.append(worker.call("echo", [number, step]).result == [number, step])  # noqa: PERF401

    threads = [threading.Thread(target=ask, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 80


def test_what_does_not_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"chip: /no/python does not start \(No such file"):
        Worker("chip", TOOL, python="/no/python")
    script = tmp_path / "tool.py"
    script.write_text("import there_is_no_such_sdk\n")
    with pytest.raises(Refused, match=r"chip: ModuleNotFoundError: .*there_is_no_such_sdk"):
        Worker("chip", script)
    script.write_text("import os\nos.write(2, b'no licence')\nos._exit(2)\n")
    with pytest.raises(Died, match="ended with status 2 while starting; its last words: no lic"):
        Worker("chip", script)


def test_the_other_side_needs_numpy_and_nothing_of_ours() -> None:
    folder = Path(sys.modules["crosschip.devices.kits.worker"].__file__ or "").parent
    for name in ("child.py", "wire.py"):
        assert "crosschip." not in (folder / name).read_text()


def test_a_worker_ends_with_the_process_that_started_it() -> None:
    """The worker may be in an endless call and read no requests."""
    script = (
        "import sys; from pathlib import Path; from crosschip.devices.kits.worker import Worker\n"
        "worker = Worker('chip', Path(sys.argv[1]))\n"
        "print(worker.call('number').result, flush=True)\n"
        "worker.call('hang')\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(TOOL)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        number = int(parent.stdout.readline())
        parent.kill()
    assert ends(number)


def ends(process: int) -> bool:
    """Wait until a process has ended."""
    about = Path(f"/proc/{process}/stat")
    for _ in range(600):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if about.exists() and ") Z " in about.read_text():  # nobody has asked how it ended
            return True
        time.sleep(0.1)
    return False
