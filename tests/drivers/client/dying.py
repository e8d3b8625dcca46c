"""A client that runs until it is killed: `python -m tests.drivers.client.dying SOCKET`."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
from tests.drivers.models import RELUS

import crosschip


def main() -> None:
    """Run a model in four threads, and print how each run came out."""
    compiled = crosschip.compile(RELUS, f"reference@unix:{sys.argv[1]}", cache=False)

    def call(seed: int) -> None:
        chance = np.random.default_rng(seed)
        while True:
            x = chance.standard_normal((int(chance.integers(1, 9)), 8), np.float32)
            right = np.array_equal(compiled.run({"x0": x})["y0"], np.maximum(x, 0))
            os.write(1, b"right\n" if right else b"wrong\n")

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()


if __name__ == "__main__":
    main()
