"""Processes that are killed while they work with the cache: it stays valid, and nothing is left."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import ROOT, python_path
from tests.runtime.kills import adding

import crosschip
from crosschip.runtime.cache.folder import Cache


@pytest.mark.slow
def test_two_hundred_kills_at_random_moments(tmp_path: Path) -> None:
    """After each, all entries are good, a model runs right, and nothing else is in the folders."""
    command = [sys.executable, "-m", "tests.runtime.kills", str(tmp_path), "0", "200"]
    environment = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 0, "no process was killed while it wrote: nothing has been tried"


COMPILING = """
import sys
from pathlib import Path
import crosschip
from tests.runtime.kills import adding

print("ready", flush=True)
while True:
    with crosschip.compile(adding(3), sys.argv[2], cache=Path(sys.argv[1])) as compiled:
        compiled.save(Path(sys.argv[1]).with_name("saved.chips"))
    for path in Path(sys.argv[1]).glob("*.chip"):
        path.unlink()
"""


@pytest.mark.slow
@pytest.mark.parametrize("device", ["onnxruntime"])
def test_an_engine_that_is_killed(tmp_path: Path, device: str) -> None:
    chance, folder = random.Random(0), tmp_path / "cache"
    for _ in range(4):
        writer = subprocess.Popen(
            [sys.executable, "-c", COMPILING, str(folder), device],
            env={**os.environ, "PYTHONPATH": python_path()},
            stdout=subprocess.PIPE,
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"ready\n"
        time.sleep(chance.uniform(0, 0.5))
        writer.kill()
        writer.communicate()
        assert [listed.problem for listed in Cache(folder).listing() if listed.problem] == []
        assert not list(folder.glob(".unfinished/*"))
        with crosschip.compile(adding(3), device, cache=folder) as compiled:
            x = np.linspace(-1, 1, 2**16, dtype=np.float32)
            np.testing.assert_array_equal(compiled(x), x + 3)
            compiled.save(tmp_path / "saved.chips")
        assert sorted(os.listdir(tmp_path)) == ["cache", "saved.chips"]
