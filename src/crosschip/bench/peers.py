"""Engines that run a model's file directly, for comparison with crosschip.

A peer is a module of this package with a function `open_model`, which opens a model file with an
engine in float32 and with the settings of an experienced user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, cast

from crosschip.ir import Array, DeviceError
from crosschip.ir.suggestion import did_you_mean

PEERS = ("onnxruntime", "openvino", "paddle")
"""The names of the engines and of their modules."""

_ONNX, _PADDLE = (".onnx",), (".pdmodel", ".json")
_SUFFIXES = {"onnxruntime": _ONNX, "openvino": (*_ONNX, ".pdmodel"), "paddle": _PADDLE}
"""The suffixes of the models' files that an engine reads."""

PeerRun = Callable[[], Sequence[Array]]
"""Runs once on inputs that have been set before; the caller owns the outputs."""


class Peer(Protocol):
    """A function that opens a model with an engine and prepares a run."""

    def __call__(self, path: Path, inputs: Mapping[str, Array], threads: int | None) -> PeerRun:
        """Compile the model in a file for the shapes of the inputs.

        Raises:
            DeviceError: the engine is not installed, or cannot read or run the file.
        """


def peers_for(path: Path) -> list[str]:
    """Return the names of the installed engines that read a file, or one in a folder."""
    suffixes = {each.suffix for each in (path.iterdir() if path.is_dir() else [path])}
    return [
        name
        for name in PEERS
        if suffixes.intersection(_SUFFIXES[name]) and find_spec(name) is not None
    ]


def open_peer(name: str) -> Peer:
    """Return the peer called `name`; raise DeviceError if there is none."""
    if name not in PEERS:
        names = ", ".join(PEERS)
        near = did_you_mean(name, PEERS)
        raise DeviceError(f"there is no engine {name!r} to compare with{near}; there are {names}")
    return cast(Peer, import_module(f"crosschip.bench.{name}").open_model)
