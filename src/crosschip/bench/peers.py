"""Engines called directly, for comparison: the model's own file, and nothing of crosschip between.

A peer is a module of this package with a function `open_model` that opens a model file with an
engine, float32, tuned as somebody who knows the engine well would do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from crosschip.ir import Array, DeviceError
from crosschip.ir.suggestion import did_you_mean

PEERS = ("onnxruntime", "openvino")
"""The names of the engines, which are those of the modules."""

PeerRun = Callable[[], Sequence[Array]]
"""One run on inputs that have been set before; the outputs are the caller's own."""


class Peer(Protocol):
    """Opens a model with an engine and prepares a run."""

    def __call__(self, path: Path, inputs: Mapping[str, Array], threads: int | None) -> PeerRun:
        """Compile the model in a file for inputs of just these shapes.

        Raises:
            DeviceError: the engine is not installed, or cannot read or run the file.
        """


def open_peer(name: str) -> Peer:
    """The peer called `name`.

    Raises:
        DeviceError: there is none.
    """
    if name not in PEERS:
        known = ", ".join(PEERS)
        near = did_you_mean(name, PEERS)
        raise DeviceError(f"there is no engine {name!r} to compare with{near}; there are {known}")
    return cast(Peer, import_module(f"crosschip.bench.{name}").open_model)
