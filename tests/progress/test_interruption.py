"""Ctrl-C while a task runs: status 130, and no file, process, thread or broken cache is left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tests.lanes import NIGHTLY
from tests.modelling import python_path

from crosschip.runtime.cache.folder import Cache

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc"
    ),
]

SCRIPT = """
import sys
from crosschip import cli
from crosschip.progress import Observer, observe

class Ready(Observer):
    def on_start(self, task):
        if task.name.startswith({prefix!r}):
            print("ready", flush=True)

sys.argv = ["crosschip", *{arguments!r}]
with observe(Ready()):
    cli.main()
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of some layers, so that each task takes a while."""
    generator = np.random.default_rng(0)
    nodes, weights, before = [], [], "x"
    for index in range(12):
        weight = generator.standard_normal((32, 32, 3, 3)).astype(np.float32) / 17
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        nodes += [
            helper.make_node("Conv", [before, f"w{index}"], [f"c{index}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"c{index}"], [f"r{index}"]),
        ]
        before = f"r{index}"
    shape = [1, 32, 64, 64]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(before, TensorProto.FLOAT, shape)],
        weights,
    )
    path = tmp_path_factory.mktemp("model") / "layers.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


COMMANDS: Mapping[str, list[str]] = {
    "loading": ["run", "MODEL", "--devices", "onnxruntime"],
    "opening openvino": ["explain", "MODEL", "--devices", "openvino"],
    "compiling layers.0 for openvino": ["run", "MODEL", "--devices", "openvino"],
    "compiling layers for each device": ["compile", "MODEL", "-o", "out.chipm"],
    "measuring": ["run", "MODEL"],
    "timing": ["bench", "MODEL", "--devices", "onnxruntime", "--runs", "1000"],
    "profiling": ["profile", "MODEL", "--devices", "onnxruntime", "--runs", "1000"],
    "tuning": ["tune", "MODEL", "--accuracy", "1e-2", "--only", "bfloat16", "--svg", "out.svg"],
    "bisecting": ["bisect", "MODEL", "--device", "openvino", "--save", "found"],
    "testing": ["conformance", "openvino", "--operator", "CONV_2D", "--jobs", "2"],
}
"""A command that reports a task, by the beginning of the task's name."""


def processes_with(variable: str) -> list[str]:
    """The commands of processes in whose environment a variable is."""
    commands = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (folder / "environ").read_bytes().split(b"\0"):
                commands.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has ended, or is another user's
            continue
    return commands


@pytest.mark.parametrize("prefix", COMMANDS)
def test_an_interruption_leaves_nothing(
    prefix: str, model: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """At once, and soon after the task has begun; nightly, also a while later."""
    generator = random.Random(prefix)
    temporary, folder = tmp_path / "temporary", tmp_path / "folder"
    arguments = [str(model) if word == "MODEL" else word for word in COMMANDS[prefix]]
    environment = {
        **os.environ,
        "PYTHONPATH": python_path(),
        "TMPDIR": str(temporary),
    }
    temporary.mkdir()
    folder.mkdir()
    waits = (0.0, generator.uniform(0.0, 0.05), generator.uniform(0.05, 0.5))
    for wait in waits if pytestconfig.getoption(NIGHTLY) else waits[:2]:
        cache = tmp_path / f"cache-{wait}"  # a new one, in which nothing is compiled
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT.format(prefix=prefix, arguments=arguments)],
            cwd=folder,
            env={**environment, "CROSSCHIP_CACHE_DIR": str(cache)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line == b"ready\n", process.communicate()
        time.sleep(wait)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=120)
        assert b"Traceback" not in err, err.decode()
        # It may have been done before: then Python ends as it does when nothing is left to do.
        ended = wait > 0 and process.returncode in (0, -signal.SIGINT)
        assert process.returncode == 130 or ended, (process.returncode, err.decode())
        assert not list(temporary.iterdir())
        # Files are written at the end, at once; an interruption after that leaves them whole.
        results = {word for word in arguments if word.startswith("out")} if wait else set()
        assert {path.name for path in folder.iterdir()} <= results
        for left in folder.iterdir():
            left.unlink()
        end = time.monotonic() + 20
        while (left_over := processes_with(f"TMPDIR={temporary}")) and time.monotonic() < end:
            time.sleep(0.1)
        assert not left_over
        if cache.exists():
            kept = Cache(cache)
            assert not [entry.problem for entry in kept.listing() if entry.problem]
            assert not kept.unfinished_nbytes()
