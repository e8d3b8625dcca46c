"""Compiled models at forks and at the end of the process: nothing hangs, and nothing aborts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.modelling import chain

from crosschip.ops.definition.serialization import to_bytes
from crosschip.ops.standard.activation import Sigmoid

LONG = 100.0
"""Seconds after which a process counts as hanging."""

BEGIN = """
import multiprocessing, os, sys, threading
import numpy as np
import crosschip as cc

device, path = sys.argv[1:]
model = cc.load(path)
x = np.zeros(2, np.float32)
compiled = cc.compile(model, [device], cache=False)
expected = compiled(x)

def run_for_ever(begun):
    while True:
        compiled(x)
        begun.release()

def keep_running(threads):
    begun = threading.Semaphore(0)
    for _ in range(threads):
        threading.Thread(target=run_for_ever, args=(begun,), daemon=True).start()
    for _ in range(50 * threads):
        begun.acquire()

def told(work):
    try:
        result = work()
    except cc.Error as error:
        return f"{type(error).__name__}: {error}"
    return "ran" if np.array_equal(result, expected) else "WRONG"

def anew():
    with cc.compile(model, [device], cache=False) as other:
        return other(x)
"""

FORK = """
if fork_while_running:
    keep_running(3)
    compiled._running.append(None)  # and one that lasts, whenever the others end
read, write = os.pipe()
process = os.fork()
if process == 0:
    os.close(read)
    answers = [told(lambda: compiled(x)), told(anew)]
    answers.append(told(lambda: compiled.submit({next(iter(compiled.inputs)): x}).result()["y0"]))
    with os.fdopen(write, "w") as pipe:
        print(*answers, sep="\\n", file=pipe)
    compiled.close()
    del compiled
    sys.exit(0)
if fork_while_running:
    compiled._running.pop()
os.close(write)
with os.fdopen(read) as pipe:
    print(pipe.read(), end="")
print(os.waitpid(process, 0)[1], told(lambda: compiled(x)))
"""


def answers(script: str, device: str, folder: Path) -> list[str]:
    """The lines that a process prints, which ends as it should."""
    path = folder / "model.chipm"
    path.write_bytes(to_bytes(chain(Sigmoid)))
    ended = subprocess.run(
        [sys.executable, "-c", BEGIN + script, device, str(path)],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout.splitlines()


REFUSED = "the model net was compiled in the process that this one has been forked from"


@pytest.mark.slow  # each starts an engine in two processes
@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino", "reference@driver"])
def test_a_child_runs_what_it_can_and_refuses_the_rest(device: str, tmp_path: Path) -> None:
    script = f"fork_while_running = False\n{FORK}"
    old, new, submitted, parent = answers(script, device, tmp_path)
    if device == "openvino":
        assert old.startswith(f"DeviceError: openvino: {REFUSED}")
        assert "'spawn' or 'forkserver'" in old
        assert "isolate=True" in old
        assert submitted == old
    else:
        assert (old, submitted) == ("ran", "ran")
    assert new == "ran"
    assert parent == "0 ran"


@pytest.mark.slow  # each starts an engine in two processes
@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino", "reference@driver"])
def test_a_child_of_a_process_with_runs_under_way_never_hangs(device: str, tmp_path: Path) -> None:
    script = f"fork_while_running = True\n{FORK}"
    old, new, submitted, parent = answers(script, device, tmp_path)
    for answer in (old, new, submitted):
        if device == "reference@driver":
            assert answer == "ran"
        else:
            assert f"Error: {device}: this process was forked while another thread ran" in answer
    assert parent == "0 ran"


@pytest.mark.slow
def test_requests_and_processes_of_multiprocessing(tmp_path: Path) -> None:
    script = """
name = next(iter(compiled.inputs))
requests = [compiled.submit({name: x}) for _ in range(4)]
queue = compiled._requests._queue
waiting = type(requests[0])(queue, lambda _: {}, 2, None)  # one that no thread has answered yet

def child():
    print(told(waiting.result), flush=True)

process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
for request in requests:
    request.result()
print(process.exitcode)
"""
    printed = answers(script, "reference", tmp_path)
    assert printed[0].startswith("DeviceError: this request was taken on in the process that this")
    assert printed[1:] == ["0"]


@pytest.mark.slow
@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "reference"])
@pytest.mark.parametrize("how", ["keep_running(4)", "keep_running(4); sys.exit(3)"])
def test_the_end_of_the_process_waits_for_runs_of_daemon_threads(
    device: str, how: str, tmp_path: Path
) -> None:
    script = f"""
import atexit
atexit.register(lambda: print(told(lambda: compiled(x))))
try:
    {how}
except SystemExit:
    pass
"""
    assert answers(script, device, tmp_path) == ["ran"], "the thread that ends may yet run"
