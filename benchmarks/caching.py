"""Compiling a model for the first time, and in a second process from the cache.

For each Paddle 2 model and device, two fresh processes with the same empty folder as their cache,
one after the other. The times are what `compile` reports: passes, placement, importing the engine,
and either compiling and writing the entry or reading it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Annotated

from benchmarks import fresh
from benchmarks.engines import engines
from benchmarks.models import ModelFile, model_files
from benchmarks.subject import Column, Row

BAR = "the second process compiles nothing (`hit`)"


@dataclass(frozen=True)
class Caching(Row):
    """One model on one device."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    first: Annotated[str, Column("first process")]
    first_ms: Annotated[float, Column("ms", ".0f")]
    second: Annotated[str, Column("second process")]
    second_ms: Annotated[float, Column("its ms", ".0f")]

    @property
    def held(self) -> bool:
        return (self.first, self.second) == ("miss", "hit")


def measure(*, quick: bool) -> Iterator[Caching]:
    """Each Paddle 2 model on each device with an engine."""
    files = [file for file in model_files(quick=quick) if file.format == ".pdmodel"]
    for device in engines():
        for file in files:
            yield _measure(file, device)


def _measure(file: ModelFile, device: str) -> Caching:
    shapes = json.dumps(file.oracle(1).shapes)
    with TemporaryDirectory() as folder:
        first, second = (
            fresh.run("run_model", file.path, device, folder, shapes) for _ in range(2)
        )
    return Caching(
        device,
        file.network,
        first["cache"],
        first["compile_ms"],
        second["cache"],
        second["compile_ms"],
    )
