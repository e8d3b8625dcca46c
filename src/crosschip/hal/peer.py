"""Engines called directly, for comparison: the model's own file, and nothing of crosschip between.

A peer is an entry point of the group `crosschip.peers`: a function that opens a model file with an
engine, float32, tuned as somebody who knows the engine well would do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

from crosschip.ir import Array, DeviceError

GROUP = "crosschip.peers"

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
        DeviceError: there is none, or it fails to load.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        raise DeviceError(f"there is no engine {name!r} to compare with; there are {list(found)}")
    try:
        return cast(Peer, found[name].load())
    except ImportError as error:
        raise DeviceError(f"engine {name!r} failed to load: {error}") from error
