"""A process that has others killed while they compile, save, export and clear, and looks after.

Run by `test_kills.py` as a process of its own, since it forks. Prints how many of the killed left
something behind.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
from tests.modelling import float32, model_of

import crosschip
from crosschip.ir import Builder, Model, Operand
from crosschip.ops.standard.arithmetic import Add
from crosschip.runtime.cache.archive import export_entries
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.secret import secret_file

SIZE = 2**16
MODELS = 4
ROUNDS_A_FOLDER = 10
LONGEST_SECONDS = 0.02
MOST_OPERATIONS = 100
X = np.zeros(SIZE, np.float32)


def adding(number: int) -> Model:
    """The model that adds a number, with a quarter of a megabyte of weights."""

    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, x, b.constant(np.full(SIZE, number, np.float32)))

    return model_of(make, float32(SIZE))


def work(folder: Path, seed: int) -> None:
    """Compile, save, export and clear for ever."""
    chance = random.Random(seed)
    cache = folder / "cache"
    while True:
        number = chance.randrange(MODELS)
        token = f"model{number}" if chance.random() < 0.3 else False
        with crosschip.compile(
            adding(number), "reference", cache=crosschip.CacheOptions(location=cache, token=token)
        ) as compiled:
            if chance.random() < 0.3:
                compiled.save(folder / "saved.chips")
        if chance.random() < 0.1:
            export_entries(Cache(cache), folder / "exported")
        if chance.random() < 0.2:
            Cache(cache).prune(0)


def die_at_a_file_operation(count: int) -> None:
    """Kill the process before it opens, renames, locks, or removes so many files."""
    left = count

    def look(event: str, _: object) -> None:
        nonlocal left
        if event == "open" or event.startswith(("os.", "fcntl.")):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)


def check(folder: Path, number: int, *, whole: bool) -> None:
    """All that is kept is good, a model runs right, and nothing else is there."""
    token = whole and f"model{number}"
    cache = Cache(folder / "cache")
    assert not list((folder / "cache").glob(".unfinished/*"))
    assert [listed.problem for listed in cache.listing() if listed.problem] == []
    saved = folder / "saved.chips"
    if saved.exists():
        crosschip.load_compiled(saved).close()
    with crosschip.compile(
        adding(number),
        "reference",
        cache=crosschip.CacheOptions(location=cache.folder, token=token),
    ) as model:
        assert (model(X) == number).all()
        model.save(saved)
    export_entries(cache, folder / "exported")
    expected = {"cache", "saved.chips", "exported", "data"}
    assert set(os.listdir(folder)) <= expected, os.listdir(folder)
    assert os.listdir(folder / "data") == ["cache.secret"]


def litter(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def main(home: Path, seed: int, kills: int) -> None:
    """Kill so many processes, one after the other, each at a random moment.

    Every other one is killed by time, wherever it is, and the others at a file operation.
    """
    chance = random.Random(seed)
    left_behind = 0
    for number in range(kills):
        folder = home / str(number // ROUNDS_A_FOLDER)
        folder.mkdir(exist_ok=True)
        os.environ["CROSSCHIP_CACHE_SECRET"] = str(folder / "data" / "cache.secret")
        child_seed, delay = chance.randrange(2**32), chance.uniform(0, LONGEST_SECONDS)
        operations = chance.randrange(1, MOST_OPERATIONS) if number % 2 else 0
        child = os.fork()
        if child == 0:
            try:
                if operations:
                    die_at_a_file_operation(operations)
                work(folder, child_seed)
            finally:
                os._exit(1)
        if not operations:
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the child failed before it was killed"
        left_behind += bool(litter(folder))
        check(folder, chance.randrange(MODELS), whole=chance.random() < 0.5)
        assert os.stat(secret_file()).st_size == 32
    print(left_behind)


if __name__ == "__main__":
    # What is imported here is imported in each child.
    crosschip.compile(adding(0), "reference", cache=False).close()
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
