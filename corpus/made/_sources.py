"""The float models that other tools start from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corpus.entry import Input
from corpus.made import hugging_face, torch_networks


def write(name: str, path: Path, exporter: str = "torchscript") -> None:
    """Export a network, by the older exporter if not told, which these tools know best."""
    write = torch_networks.write if name in torch_networks.NETWORKS else hugging_face.write
    write(name, exporter, path)


def arrays(name: str) -> Mapping[str, Any]:
    """Inputs of a network."""
    known = name in torch_networks.NETWORKS
    return torch_networks.arrays(name) if known else hugging_face.arrays(name)


def described(name: str) -> Mapping[str, Any]:
    """What an entry says of a network: its family, whether it has attention, its inputs."""
    small = torch_networks.NETWORKS.get(name)
    if small is not None:
        inputs = {key: given.rule for key, given in small.inputs.items()}
        return {"family": small.family, "transformer": False, "inputs": inputs}
    network = hugging_face.NETWORKS[name]
    rules: Mapping[str, Input] = {key: given.rule for key, given in network.inputs.items()}
    return {"family": network.model, "transformer": network.transformer, "inputs": rules}
