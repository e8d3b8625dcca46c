"""What is kept is written behind the caller's back: whole, or not at all, and by nobody missed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.modelling import python_path

from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.background_writer import BackgroundWriter
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.compile.front_door import compile

SIZE = 1_200_000
"""So many float32 numbers that an entry is hashed by several threads."""

X = np.zeros((1, SIZE), np.float32)

RUN = """
import sys
import numpy as np
import crosschip as cc
BEFORE
compiled = cc.compile(sys.argv[1], ["reference"], cache=sys.argv[2])
(y,) = compiled.run({"x": np.zeros((1, SIZE), np.float32)}).values()
print(compiled.report.cache, type(compiled.executable.outline).__name__, y[0, 0], flush=True)
AFTER
""".replace("SIZE", str(SIZE))

ONCE_THE_CALLER_IS_DONE = """
import threading
from crosschip.runtime.cache.folder import Cache
write_artifact = Cache.write_artifact
def late(*given):
    threading.main_thread().join()
    write_artifact(*given)
Cache.write_artifact = late
"""


class Held(Cache):
    """A folder that nothing is written to until an event says so."""

    def __init__(self, folder: Path, go: threading.Event) -> None:
        super().__init__(folder)
        background_writer.put("", go.wait)


def write(path: Path, term: float) -> Path:
    """An ONNX file that computes `x + term`."""
    terms = numpy_helper.from_array(np.full((1, SIZE), term, np.float32), "terms")
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, SIZE]) for name in ("x", "y")
    ]
    node = helper.make_node("Add", ["x", "terms"], ["y"])
    graph = helper.make_graph([node], "shifted", ends[:1], ends[1:], [terms])
    opset = helper.make_opsetid("", 17)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[opset]), path)
    return path


def run(path: Path, cache: Path, before: str = "", after: str = "") -> tuple[str, str, int]:
    """What a process prints that compiles and runs, its warnings, and its exit status."""
    program = RUN.replace("BEFORE", before).replace("AFTER", after)
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(cache)],
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return done.stdout.strip(), done.stderr, done.returncode


def entries(cache: Path) -> list[str]:
    """The devices of the entries, each checked whole."""
    found = Cache(cache).listing()
    assert [listed.problem for listed in found] == [""] * len(found)
    return sorted(listed.entry.device for listed in found if listed.entry is not None)


def test_a_process_that_ends_with_its_answer_loses_nothing(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "model.onnx", 3), tmp_path / "cache"
    assert run(path, cache, ONCE_THE_CALLER_IS_DONE) == ("miss Placement 3.0", "", 0)
    assert entries(cache) == ["plan", "reference"]
    assert max(file.stat().st_size for file in cache.glob("*.chip")) > 4 * SIZE
    assert run(path, cache) == ("hit StoredOutline 3.0", "", 0)


def test_what_a_process_that_is_killed_had_yet_to_write_is_not_there(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "model.onnx", 3), tmp_path / "cache"
    killed = "import os; os.kill(os.getpid(), 9)"
    said, warned, status = run(path, cache, ONCE_THE_CALLER_IS_DONE, killed)
    assert (said, warned, status) == ("miss Placement 3.0", "", -9)
    assert entries(cache) == []
    assert run(path, cache) == ("miss Placement 3.0", "", 0)
    assert run(path, cache) == ("hit StoredOutline 3.0", "", 0)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="files have no limit on this system")
def test_where_there_is_no_room_a_warning_says_so(tmp_path: Path) -> None:
    path, cache = write(tmp_path / "model.onnx", 3), tmp_path / "cache"
    full = (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))\n"
    )
    said, warned, status = run(path, cache, full)
    assert (said, status) == ("miss Placement 3.0", 0)
    assert "could not be written (File too large)" in warned
    assert "reference" not in entries(cache)
    assert list((cache / ".unfinished").iterdir()) == []
    assert run(path, cache)[0] == "miss Placement 3.0"
    assert run(path, cache) == ("hit StoredOutline 3.0", "", 0)


def test_a_file_that_changes_before_its_plan_is_written_has_none(tmp_path: Path) -> None:
    path, cache, go = write(tmp_path / "model.onnx", 3), tmp_path / "cache", threading.Event()
    compiled = compile(path, ["reference"], cache=Held(cache, go))
    assert compiled.run({"x": X})["y"][0, 0] == 3
    write(path, 5)
    go.set()
    compiled.close()
    assert entries(cache) == ["reference"]
    with compile(path, ["reference"], cache=cache) as again:
        assert again.run({"x": X})["y"][0, 0] == 5


def test_tasks_are_done_in_their_order_and_waited_for_by_key() -> None:
    done: list[str] = []
    tasks, go = BackgroundWriter(), threading.Event()
    tasks.put("a", lambda: done.append("a"))
    tasks.wait("a")
    assert done == ["a"]
    tasks.put("b", go.wait)
    tasks.put("c", lambda: done.append("c"))
    tasks.wait("a")
    assert done == ["a"]
    go.set()
    tasks.wait("c")
    assert done == ["a", "c"]
    tasks.wait()


def test_a_task_that_fails_is_a_warning_and_the_next_is_done(
    warnings: Callable[[], list[str]],
) -> None:
    done: list[str] = []
    tasks = BackgroundWriter()
    tasks.put("a", lambda: 1 // 0)
    tasks.put("b", lambda: done.append("b"))
    tasks.wait()
    assert done == ["b"]
    assert warnings() == [
        "cache entry a: could not be written (integer division or modulo by zero)"
    ]


def test_so_many_tasks_wait_and_no_more() -> None:
    tasks, go, taken = BackgroundWriter(), threading.Event(), threading.Event()
    for _ in range(background_writer._MAX_TASKS):
        tasks.put("a", go.wait)

    def put() -> None:
        tasks.put("b", go.wait)
        taken.set()

    another = threading.Thread(target=put)
    another.start()
    assert not taken.is_set()
    go.set()
    another.join()
    tasks.wait()
    assert taken.is_set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked on this system")
def test_a_forked_process_has_nothing_to_wait_for() -> None:
    program = (
        "import os, threading\n"
        "from crosschip.runtime.cache import background_writer\n"
        "go, done = threading.Event(), []\n"
        "background_writer.put('a', go.wait)\n"
        "child = os.fork()\n"
        "background_writer.wait() if not child else None\n"
        "background_writer.put('b', lambda: done.append(os.getpid())) if not child else go.set()\n"
        "background_writer.wait()\n"
        "if not child:\n"
        "    os._exit(0 if done == [os.getpid()] else 3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), done)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("0 []\n", "")


@pytest.mark.skipif(sys.platform != "linux", reason="only there do threads have priorities")
def test_tasks_leave_the_processor_to_the_model() -> None:
    found: list[int] = []
    own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def look() -> None:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        helper = threading.Thread(
            target=lambda: found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        )
        helper.start()
        helper.join()

    background_writer.put("one", look)
    background_writer.wait()
    assert found[0] == found[1] == min(own + 10, 19)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == own


def test_who_does_a_task_himself_keeps_his_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """As he must where there can be no more threads."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    done: list[str] = []
    before = os.nice(0) if hasattr(os, "nice") else 0
    BackgroundWriter().put("one", lambda: done.append("one"))
    assert done == ["one"]
    assert (os.nice(0) if hasattr(os, "nice") else 0) == before
