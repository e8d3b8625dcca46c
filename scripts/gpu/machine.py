"""The machine.

Its processor, its accelerators, and the versions of what is installed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

from benchmarks.subject import Column, Row
from gpu.settings import Settings

from benchmarks import machine

REQUIREMENT = ""
SHARE = 0.03
PER_DEVICE = False

GPUS = "NVIDIA's GPUs"
PROCESSOR = "processor"

_PACKAGES = ("jaxlib", "jax-cuda13-plugin", "torch", "triton", "onnx", "onnxscript")
_QUERY = ("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")


@dataclass(frozen=True)
class Fact(Row):
    """A property of the machine, or a device that crosschip lists."""

    name: Annotated[str, Column("what")]
    value: Annotated[str, Column("value")]

    @property
    def met(self) -> bool | None:
        return None


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Yield the machine's properties, then all devices that crosschip lists."""
    import crosschip

    for name, value in machine.describe().items():
        yield Fact(name, value)
    for package in _PACKAGES:
        try:
            yield Fact(package, version(package))
        except PackageNotFoundError:
            yield Fact(package, "not installed")
    try:
        done = subprocess.run(_QUERY, capture_output=True, text=True, check=True, timeout=60)
        yield Fact(GPUS, "; ".join(done.stdout.strip().splitlines()))
    except (OSError, subprocess.SubprocessError) as error:
        yield f"nvidia-smi lists no GPU: {error}"
    for listed in crosschip.list_devices():
        yield Fact(f"`{listed.name}`", listed.reason or f"{listed.description} {listed.version}")
