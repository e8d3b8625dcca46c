"""Compiling and explaining models, as callers ask for it."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crosschip.ir import Budget, Model
from crosschip.runtime.cache.store import CacheArgument, open_store
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.configuration import Configuration, Properties
from crosschip.runtime.options import CacheOptions, ShapeOptions, Shapes
from crosschip.runtime.placement.options import PlacementOptions
from crosschip.runtime.placement.telling import messages, tell
from crosschip.runtime.plans.plans import Plans

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.runtime.compile.devices import Devices
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.placement.placing import Placement


def compile(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Shapes | ShapeOptions | None = None,
    precision: str | None = None,
    threads: int | None = None,
    properties: Properties | None = None,
    configuration: Configuration | str | Path | None = None,
    placement: PlacementOptions | None = None,
    cache: CacheArgument | CacheOptions = True,
    budget: Budget | None = None,
) -> CompiledModel:
    """Place a model on devices, compile each part, and join the parts to one that runs.

    Args:
        model: the model, which is not changed; or what `crosschip.load` takes for one.
        devices: names, or instances that stay the caller's to close, in the order of preference;
            `"auto"` takes the one that runs the model fastest, which is measured once on made-up
            inputs and remembered in the cache; where none runs all of it, the one that runs most
            comes first. Nothing is measured if `placement` moves operations or limits segments.
            A name is `openvino`, or `openvino:GPU` for one of several chips.
        shapes: fixed shapes for inputs, by name, where the model leaves sizes open, with `None` for
            a size that stays open; or single sizes, by the names that the inputs' types have for
            them. Ranges, profiles, and buckets of sizes are in `ShapeOptions`.
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: how many processor threads a run may use; otherwise that is left to the devices.
        properties: settings for devices, by device name.
        configuration: the settings that the three above leave open, and others; or the path of a
            file of them.
        placement: the caller's constraints on which device runs what.
        cache: where compiled programs are kept, each found again by the content of what it
            computes: `True` for the default folder, a folder, a `crosschip.Memory`, or `False` for
            nowhere. Its size, and tokens for whole compiled models, are in `CacheOptions`.
        budget: what compiling may cost besides the devices' own work; `None` for the default.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: an argument does not fit.
        ModelError: an operation of the model can never run, as its constants show.
        ModelFileError: a file of the model has changed since it was loaded.
        UnsupportedError: no device runs some operation, or placement cannot be as `placement`
            demands; the message lists all operations concerned, with reasons.
        DeviceError: a device is unknown, fails to load, or fails to compile what no other can run.
        CacheError: the cache folder cannot be made, or the user's secret for it not be used.
    """
    start = time.perf_counter()
    request = _request(
        devices, shapes, precision, threads, properties, configuration, placement, budget
    )
    options = CacheOptions.of(cache)
    store = open_store(options.location, options.size, options.token)
    plans = None if store is None or options.token else Plans.of(model, request, store)
    compiled = None if plans is None else plans.find()
    if compiled is None:
        # Importing all that compiles takes longer than finding a plan.
        from crosschip.runtime.compile.task import compile_model

        with nullcontext() if plans is None else plans.noting():
            compiled = compile_model(model, request, store, options.token)
        if plans is not None:
            plans.keep(compiled)
        tell(messages(compiled.placement))
    milliseconds = (time.perf_counter() - start) * 1e3
    compiled.report = replace(compiled.report, milliseconds=milliseconds)
    return compiled


def explain(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Shapes | ShapeOptions | None = None,
    precision: str | None = None,
    threads: int | None = None,
    properties: Properties | None = None,
    configuration: Configuration | str | Path | None = None,
    placement: PlacementOptions | None = None,
    cache: CacheArgument | CacheOptions = True,
    budget: Budget | None = None,
) -> Placement:
    """Place a model without compiling it, asking every device about every operation.

    The arguments are those of `compile`. For `"auto"`, the order of the devices is the one that
    compiling has led to; it is `Placement.choice`, and comes from the cache. What no device runs
    is in `Placement.unplaced`, and `Placement.check` raises the error with which `compile` would
    refuse it.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: an argument does not fit.
        DeviceError: a device is unknown or fails to load.
    """
    request = _request(
        devices, shapes, precision, threads, properties, configuration, placement, budget
    )
    options = CacheOptions.of(cache)
    # Importing all that places takes longer than most of what does not need it.
    from crosschip.runtime.compile.task import explain_model

    store = open_store(options.location, options.size) if devices == "auto" else None
    return explain_model(model, request, store)


def _request(
    devices: Devices,
    shapes: Shapes | ShapeOptions | None,
    precision: str | None,
    threads: int | None,
    properties: Properties | None,
    configuration: Configuration | str | Path | None,
    placement: PlacementOptions | None,
    budget: Budget | None,
) -> CompileRequest:
    settings = Configuration.of(configuration)
    return CompileRequest(
        devices=devices,
        shapes=ShapeOptions.of(shapes),
        settings=settings.overridden(precision, threads, properties=properties),
        demanded=properties or {},
        placement=placement or PlacementOptions(),
        budget=budget,
    )
