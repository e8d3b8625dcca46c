"""The devices that are there, and their engines called directly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import crosschip
from crosschip.bench.peers import PEERS, PeerRun, open_peer
from crosschip.bench.timing import Run
from crosschip.ir import Array
from crosschip.runtime.compiled import CompiledModel

REFERENCE = "reference"


def available() -> list[str]:
    """The devices that can be used, the reference first."""
    names = [device.name for device in crosschip.list_devices() if device.available]
    return sorted(names, key=lambda name: (name != REFERENCE, name))


def engines() -> list[str]:
    """The devices with an engine behind them that can be called directly."""
    return [name for name in available() if name in PEERS]


def run_of_ours(path: Path, device: str, inputs: Mapping[str, Array], threads: int) -> Run:
    """A run of a model that crosschip has compiled for these inputs' shapes."""
    return partial(compiled_by_us(path, device, inputs, threads).run, inputs)


def compiled_by_us(
    path: Path, device: str, inputs: Mapping[str, Array], threads: int
) -> CompiledModel:
    """A model that crosschip has compiled for these inputs' shapes."""
    shapes = {name: array.shape for name, array in inputs.items()}
    return crosschip.compile(
        crosschip.load(path), [device], shapes=shapes, cache=False, threads=threads
    )


def run_of_engine(path: Path, engine: str, inputs: Mapping[str, Array], threads: int) -> PeerRun:
    """A run of a model that the engine has read and compiled itself."""
    return open_peer(engine)(path, inputs, threads)


def difference(computed: Sequence[Array], expected: Sequence[Array]) -> float:
    """The largest difference, as a share of the largest absolute value that is expected.

    Not a number if an element is not.
    """
    scale = max(np.abs(array).max() for array in expected)
    largest = [
        np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        for a, b in zip(computed, expected, strict=True)
    ]
    return float(np.max(largest) / scale)
