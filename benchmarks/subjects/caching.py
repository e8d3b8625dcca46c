"""Compiling a model for the first time, and in a second process from the cache.

For each Paddle 2 model and device, two new processes run one after the other with the same,
initially empty, cache folder. The first times are those that `compile` reports: passes, placement,
importing the engine, and either compiling and writing the entry or reading it.

The other times are from the start of a new process until a model is ready, including imports, the
median of three: with crosschip's cache and with a token's buffer, both of which also read the model
file; with `load_compiled`, which reads nothing else; and with the engine alone, from the file that
it writes itself (ONNX Runtime its optimized model, OpenVINO its exported model).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

from benchmarks import fresh
from benchmarks.engines import engines
from benchmarks.models import ModelFile, model_files
from benchmarks.subject import Column, Row

_RUNS = 3

REQUIREMENT = "the second process compiles nothing (cache `hit`)"


@dataclass(frozen=True)
class Caching(Row):
    """One model on one device."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    first: Annotated[str, Column("first process")]
    first_ms: Annotated[float, Column("ms", ".0f")]
    second: Annotated[str, Column("second process")]
    second_ms: Annotated[float, Column("its ms", ".0f")]
    cache_ms: Annotated[float, Column("ready from the cache, ms", ".0f")]
    token_ms: Annotated[float, Column("from a token's buffer, ms", ".0f")]
    file_ms: Annotated[float, Column("`load_compiled`, ms", ".0f")]
    engine_ms: Annotated[float, Column("the engine's own file, ms", ".0f")]
    file_megabytes: Annotated[float, Column("our file, MB", ".1f")]
    engine_megabytes: Annotated[float, Column("the engine's, MB", ".1f")]

    @property
    def met(self) -> bool:
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
    with TemporaryDirectory() as folder:
        arguments = (file.path, file.directly[device], device, folder, shapes)
        fresh.run("saved_model", "save", *arguments)
        taken: dict[str, list[float]] = {way: [] for way in ("cache", "token", "file", "engine")}
        sizes: dict[str, float] = {}
        for _ in range(_RUNS):
            for way, times in taken.items():
                figures = fresh.run("saved_model", way, *arguments)
                times.append(figures["ms"])
                sizes[way] = figures["bytes"] / 2**20
    ready = {way: median(times) for way, times in taken.items()}
    return Caching(
        device,
        file.network,
        first["cache"],
        first["compile_ms"],
        second["cache"],
        second["compile_ms"],
        ready["cache"],
        ready["token"],
        ready["file"],
        ready["engine"],
        sizes["file"],
        sizes["engine"],
    )
