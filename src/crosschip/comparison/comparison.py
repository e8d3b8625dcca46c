"""`crosschip.compare`: times and errors of engines and devices on one model."""

from __future__ import annotations

import math
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.bench.peers import peers_for
from crosschip.bench.timing import Timing, interleave
from crosschip.comparison.competitors import (
    AUTO,
    Competitor,
    Run,
    device_names,
    open_devices,
    open_engines,
)
from crosschip.comparison.oracle import Oracle
from crosschip.comparison.results import Comparison
from crosschip.hal import Sizes
from crosschip.hal.capabilities import processor
from crosschip.importers import load
from crosschip.ir import Array, Budget, InputError, Model
from crosschip.ir.shape_binding import shapes_and_sizes
from crosschip.ir.suggestion import did_you_mean
from crosschip.passes.specialize import Specialize
from crosschip.runtime.arrays import as_array
from crosschip.runtime.cache.store import CacheArgument
from crosschip.runtime.compile.front_door import compile as compile_model
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.configuration import Configuration
from crosschip.runtime.discovery import base_name
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.options import CacheOptions, Shapes
from crosschip.runtime.shapes.shape_search import ShapeSearch

_LEAST_RUNS = 5
"""The minimum number of timed runs of each competitor, however slow they are."""

_USUAL_STEMS = ("model", "inference", "__model__")

_PACKAGES = {"xla": "jax", "paddle": "paddlepaddle"}
"""The packages of engines whose names differ from those of the devices."""


def compare(
    model: Model | Any,
    devices: str | Sequence[str] = AUTO,
    *,
    inputs: Mapping[str, Any] | None = None,
    shapes: Shapes | None = None,
    engines: Sequence[str] | None = None,
    runs: int = 50,
    seconds: float = 30.0,
    seed: int = 0,
    cache: CacheArgument | CacheOptions = True,
    configuration: Configuration | str | Path | None = None,
    budget: Budget | None = None,
) -> Comparison:
    """Time a model with engines that read its file, and with crosschip on devices and mixtures.

    All are opened first, and then run in turns on the same inputs, so that other load affects all
    of them. The outputs of the `reference` device count as exact if it is fast enough by an
    estimate, else those of the first engine, else those of the first device.

    Args:
        model: as for `crosschip.compile`; engines take part if it is a path.
        devices: names of devices, each of which runs the model alone, in mixtures, and in the
            placement of least measured time; `"auto"` for all but `reference`.
        inputs: arrays for inputs, by name; the others are random.
        shapes: shapes of random inputs or single sizes by name; typical ones where left out.
        engines: names of engines; those that are installed and read the file if `None`, an empty
            sequence for none.
        runs: the maximum number of timed runs of each.
        seconds: the time for all timed runs, after which each has run at least five times.
        seed: the seed of random inputs.
        cache: the cache of compiled programs, as for `crosschip.compile`.
        configuration: the options of the devices, as for `crosschip.compile`.
        budget: the largest cost of importing and placing, as for `crosschip.compile`.

    Raises:
        InputError: an argument is invalid, or an input cannot be made up.
        DeviceError: there is no device or engine of a name.
        Error: as for `crosschip.load`.
    """
    if runs < 1 or not seconds > 0:
        raise InputError(f"runs is {runs} and seconds is {seconds}, but both must be above 0")
    names, settings = device_names(devices), Configuration.of(configuration)
    loaded = model if isinstance(model, Model) else load(model, budget=budget)
    arrays = _inputs(loaded, inputs or {}, shapes or {}, seed)
    fixed = {name: np.shape(array) for name, array in arrays.items()}

    def compile(devices: str | Sequence[str], strategy: str | None) -> CompiledModel:
        return compile_model(
            loaded, devices, placement=strategy, shapes=fixed, cache=cache, configuration=settings,
            budget=budget,
        )  # fmt: skip

    with ExitStack() as stack:
        competitors: list[Competitor] = []
        if isinstance(model, str | os.PathLike):
            path = Path(model)
            peers = peers_for(path) if engines is None else engines
            competitors += open_engines(peers, path, loaded, arrays, settings.threads)
        competitors += open_devices(names, arrays, compile, stack, auto=devices == AUTO)
        ready = {measurement.label: run for measurement, run in competitors if run is not None}
        count = _count(ready, runs, seconds)
        times = interleave(ready, count)
        outputs = {label: run() for label, run in ready.items()}
        oracle = Oracle(loaded, arrays, outputs, names)
        measurements = [
            replace(
                measurement,
                timing=Timing.of(times[measurement.label]),
                error=oracle.error(outputs[measurement.label]),
                largest_difference=oracle.largest_difference(outputs[measurement.label]),
            )
            if run is not None
            else measurement
            for measurement, run in competitors
        ]
    measurements.sort(key=lambda each: each.timing.median_ms if each.timing else math.inf)
    return Comparison(
        _title(model, loaded),
        tuple(measurements),
        oracle.name,
        fixed,
        count,
        settings.threads,
        settings.precision,
        _machine([*names, *(each.name for each in measurements if each.engine)]),
    )


def _inputs(model: Model, arrays: Mapping[str, Any], shapes: Shapes, seed: int) -> dict[str, Any]:
    """Return the caller's arrays, and random ones for the other inputs."""
    unknown = [name for name in arrays if name not in model.inputs]
    if unknown:
        near = did_you_mean(unknown[0], model.inputs)
        raise InputError(f"the model has no input {unknown[0]!r}{near}")
    inputs = {name: _array(model, name, value) for name, value in arrays.items()}
    if len(inputs) == len(model.inputs):
        return inputs
    types = {name: operand.type for name, operand in model.inputs.items()}
    known = {**shapes, **{name: array.shape for name, array in inputs.items()}}
    specialized = Specialize(*shapes_and_sizes(types, known))(model)
    typical = ShapeSearch(specialized, Sizes()).first()
    return {**random_inputs(specialized, typical, seed), **inputs}


def _array(model: Model, name: str, value: Any) -> Array:
    try:
        return as_array(value, model.inputs[name].type)
    except InputError as error:
        raise InputError(f"input {name!r} {error}") from error.__cause__


def _count(competitors: Mapping[str, Run], runs: int, seconds: float) -> int:
    """Return how many timed runs of each competitor take at most a time."""
    start = time.perf_counter()
    for run in competitors.values():
        run()
    once = time.perf_counter() - start
    return min(runs, max(_LEAST_RUNS, int(seconds / max(once, 1e-9))))


def _title(source: Any, model: Model) -> str:
    """Return the name of a model's file; that of its folder if the file's name is usual."""
    if not isinstance(source, str | os.PathLike):
        return model.name
    path = Path(source).resolve()
    return path.parent.name if path.stem in _USUAL_STEMS else path.name


def _machine(devices: Sequence[str]) -> dict[str, str]:
    """Return the processor, the number of its cores, and versions, by name."""
    model = re.search(r"^model name\s*: (.+)$", processor(), re.MULTILINE)
    versions = {}
    for package in ("crosschip", *(_PACKAGES.get(n, n) for n in map(base_name, devices))):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "": f"{model[1] if model else platform.machine()}, {os.cpu_count()} processors",
        **versions,
    }
