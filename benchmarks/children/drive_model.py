"""Run a model over and over for a parent, as often as each line that comes in says."""

from __future__ import annotations

import sys

import crosschip
from benchmarks.models import model_file


def main(network: str, device: str, at_once: str) -> None:
    """Print a line once a network is compiled, and one after each lot of runs.

    Args:
        network: its name.
        device: what runs it.
        at_once: how many runs there are altogether at once, of all who do the same.
    """
    file = model_file(network, ".onnx")
    oracle = file.oracle(1)
    with crosschip.compile(
        file.path,
        [device],
        shapes=oracle.shapes,
        configuration=crosschip.Configuration(in_flight=int(at_once)),
        cache=False,
    ) as compiled:
        compiled.run(oracle.inputs)
        print("ready", flush=True)
        for line in sys.stdin:
            for _ in range(int(line)):
                compiled.run(oracle.inputs)
            print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
