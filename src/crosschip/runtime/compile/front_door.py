"""The functions `compile` and `explain`."""

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
from crosschip.runtime.placement.log_messages import log, messages
from crosschip.runtime.placement.options import PlacementOptions
from crosschip.runtime.plans.plans import Plans

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.runtime.compile.devices import Devices
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.placement.placement import Placement


def compile(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Shapes | ShapeOptions | None = None,
    precision: str | None = None,
    threads: int | None = None,
    properties: Properties | None = None,
    configuration: Configuration | str | Path | None = None,
    placement: PlacementOptions | str | None = None,
    cache: CacheArgument | CacheOptions = True,
    budget: Budget | None = None,
    wait: bool = True,
) -> CompiledModel:
    """Place a model on devices, compile each part, and return a model that can be run.

    Args:
        model: the model, which is not changed; or an argument for `crosschip.load`.
        devices: device names, or instances that the caller closes, in the order of preference. A
            name is `openvino`, or `openvino:GPU` for one of several chips. `"auto"` selects the
            fastest placement on all devices here, on one or on several of them, which is measured
            once on random inputs and stored in the cache. If no device runs the whole model, the
            devices are ordered by the number of operations that they run.
        shapes: fixed shapes for inputs with dynamic dimensions, by name, with `None` for a
            dimension that stays dynamic; or sizes of dynamic dimensions, by their names. Ranges,
            profiles, and buckets of sizes are in `ShapeOptions`.
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: the maximum number of CPU threads of a run; `None` leaves it to the devices.
        properties: settings for devices, by device name.
        configuration: further settings, which the three above override; or the path of a file with
            them.
        placement: how the devices of operations are chosen: by `order`, as is usual for a list of
            devices, by `measured` costs, as is usual for `"auto"`, or `PlacementOptions` with
            constraints.
        cache: the cache of compiled programs, whose keys are digests of the compiled operations:
            `True` for the default folder, a folder, a `crosschip.Memory`, or `False` for none.
            `CacheOptions` has its size, and tokens for whole compiled models.
        budget: the largest cost of compiling without the devices' work; `None` for the default.
        wait: whether to wait until the devices have been compiled for and measured. If not, the
            model runs on the device that is ready first; the others are tried in the background,
            and the model moves to the fastest between two runs. A list then names the devices to
            choose from. It waits if no device runs the whole model, and if `placement` moves
            operations.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: an argument is invalid.
        ModelError: an operation of the model can never run with its constants.
        ModelFileError: a file of the model has changed since it was loaded.
        UnsupportedError: no device runs some operation, or `placement` cannot be met; the message
            lists those operations, with reasons.
        DeviceError: a device is unknown, fails to load, or fails to compile operations that no
            other device runs.
        CacheError: the cache folder cannot be created, or the user's secret for it cannot be used.
    """
    start = time.perf_counter()
    request = _request(
        devices, shapes, precision, threads, properties, configuration, placement, budget
    )
    options = CacheOptions.of(cache)
    store = open_store(options.location, options.size, options.token)
    waits = wait or bool(options.token)
    kind = "" if waits else "the fastest device"
    plans = None if store is None or options.token else Plans.of(model, request, store, kind)
    compiled = None if plans is None else plans.find()
    if not waits and compiled is not None:
        from crosschip.runtime.compile.call_watch import watch_calls

        watch_calls(compiled, model, request, store, plans)
    elif not waits:
        # Imported late: importing the compiler takes longer than finding a plan.
        from crosschip.runtime.compile.early_answer import compile_first

        compiled = compile_first(model, request, store, plans)
    if compiled is None:
        # Imported late: importing the compiler takes longer than finding a plan.
        from crosschip.runtime.compile.task import compile_model

        with nullcontext() if plans is None else plans.recording():
            compiled = compile_model(model, request, store, options.token)
        if plans is not None:
            plans.save(compiled)
        log(messages(compiled.placement))
    milliseconds = (time.perf_counter() - start) * 1e3
    compiled.report = replace(compiled.report, milliseconds=milliseconds)
    if compiled.trials is not None:
        compiled.trials.start()
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
    placement: PlacementOptions | str | None = None,
    cache: CacheArgument | CacheOptions = True,
    budget: Budget | None = None,
) -> Placement:
    """Place a model without compiling it; query every device about every operation.

    The arguments are those of `compile`. If devices are chosen by measurement, the placement is the
    one that `compile` measured and stored in the cache, `Placement.choice`, with its costs.
    `Placement.unplaced` has the operations that no device runs; `Placement.check` raises the error
    that `compile` would raise.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: an argument is invalid.
        DeviceError: a device is unknown or fails to load.
    """
    request = _request(
        devices, shapes, precision, threads, properties, configuration, placement, budget
    )
    options = CacheOptions.of(cache)
    # Imported late: importing the compiler takes long.
    from crosschip.runtime.compile.task import explain_model

    reads_choice = request.placement.measures(devices)
    store = open_store(options.location, options.size) if reads_choice else None
    return explain_model(model, request, store)


def _request(
    devices: Devices,
    shapes: Shapes | ShapeOptions | None,
    precision: str | None,
    threads: int | None,
    properties: Properties | None,
    configuration: Configuration | str | Path | None,
    placement: PlacementOptions | str | None,
    budget: Budget | None,
) -> CompileRequest:
    settings = Configuration.of(configuration)
    return CompileRequest(
        devices=devices,
        shapes=ShapeOptions.of(shapes),
        settings=settings.overridden(precision, threads, properties=properties),
        required_properties=properties or {},
        placement=PlacementOptions.of(placement),
        budget=budget,
    )
