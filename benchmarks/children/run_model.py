"""Load, compile and run a model with crosschip."""

import json
import sys
import time
from pathlib import Path
from typing import Literal

import numpy as np

import crosschip
from benchmarks.children.peak import peak_bytes

_RUNS = 3


def main(path: str, device: str, cache: str, shapes: str) -> None:
    """Print what loading and compiling took, the cache's word and the peak of memory.

    Args:
        path: of the model.
        device: to run it on.
        cache: a folder, or `off`.
        shapes: of the inputs by name, as JSON.
    """
    sizes = {name: tuple(shape) for name, shape in json.loads(shapes).items()}
    folder: Path | Literal[False] = False if cache == "off" else Path(cache)
    start = time.perf_counter()
    model = crosschip.load(path)
    loaded = time.perf_counter() - start
    with crosschip.compile(model, [device], shapes=sizes, cache=folder) as compiled:
        inputs = {name: np.zeros(shape, np.float32) for name, shape in sizes.items()}
        for _ in range(_RUNS):
            compiled.run(inputs)
        report = compiled.report
        figures = {
            "load_ms": loaded * 1e3,
            "compile_ms": report.milliseconds,
            "cache": report.cache,
            "peak_bytes": peak_bytes(),
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
