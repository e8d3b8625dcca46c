"""Compiling and explaining models, as callers ask for it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crosschip.ir import Budget, Model
from crosschip.runtime.cache.store import CacheArgument, Store, open_store
from crosschip.runtime.compile_request import CompileRequest
from crosschip.runtime.configuration import Configuration, Properties, check_count
from crosschip.runtime.placement.directives import Directives
from crosschip.runtime.placement.telling import messages, tell
from crosschip.runtime.plans.plans import Plans

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.opening import Devices
    from crosschip.runtime.placement.placing import Placement
    from crosschip.runtime.shapes.arguments import Profiles, Ranges


def compile(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int | None] | int] | None = None,
    cache: CacheArgument = True,
    cache_size: int | None = None,
    token: str | bool = False,
    precision: str | None = None,
    threads: int | None = None,
    performance: str | None = None,
    properties: Properties | None = None,
    configuration: Configuration | str | Path | None = None,
    ranges: Ranges | None = None,
    profiles: Profiles = (),
    buckets: Mapping[str, Sequence[int]] | None = None,
    specializations: int = 16,
    partition: str | bytes | Path | None = None,
    mixed_precision: str | bytes | Path | None = None,
    pin: Mapping[str, str] | None = None,
    min_segment: int = 1,
    max_segments: int | None = None,
    strict: bool = False,
    isolate: bool = False,
    in_flight: int | None = None,
    queue_size: int = 64,
    budget: Budget | None = None,
) -> CompiledModel:
    """Place a model on devices, compile each part, and join the parts to one that runs.

    Args:
        model: what to compile, which is not changed; or what `crosschip.load` takes for one.
        devices: names, or instances that stay the caller's to close, in the order of preference;
            `"auto"` takes the one that runs the model fastest, which is measured once on made-up
            inputs and remembered in the cache; where none runs all of it, the one that runs most
            comes first. Nothing is measured if operations are sent elsewhere or segments limited,
            as below. A name is `openvino`, or `openvino:GPU` for one of several chips.
        shapes: fixed shapes for inputs, by name, where the model leaves sizes open, with `None` for
            a size that stays open; or single sizes, by the names that the inputs' types have for
            them.
        cache: where compiled programs are kept, each found again by the content of what it
            computes: `True` for the default folder, a folder, a `crosschip.Memory`, or `False` for
            nowhere. With a token, also a buffer with what `CompiledModel.to_bytes` returned.
        cache_size: how many bytes the cache folder may take; `None` for `CROSSCHIP_CACHE_SIZE`,
            or 2 GiB.
        token: a name under which the compiled model is kept as a whole, as `<token>.nnc` in a
            folder, instead of its programs one by one; `True` for one made from the content of the
            model (`CompiledModel.token`). What is kept under it but of another model, or compiled
            for other devices or with other options, is not used: a warning says so, and the model
            is compiled.
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: how many processor threads a run may use; otherwise that is left to the devices.
        performance: the balance between speed and power, NNRt's performance modes: `none`, `low`,
            `medium`, `high` or `extreme`; devices keep it as far as they can.
        properties: settings for devices, by device name.
        configuration: what holds where the four above are left out; or the path of a file of it.
        ranges: the least and the greatest value of open sizes, by the size's name, with the usual
            one between them if you like; or two or three such shapes by the name of an input. Some
            devices compile once for a range; inputs outside of it are refused.
        profiles: values of open sizes, by name, to compile for at once; or shapes by the name of an
            input, or for each input the list of its shapes.
        buckets: sizes to pad to, by the size's name, where a device compiles for each set of shapes
            and the operators of its segment compute each row by itself.
        specializations: for how many sets of input shapes a device that compiles for each keeps
            programs; the least recently used goes first.
        partition: operators that are kept off the first device and go to processors behind it: the
            path of a configuration of NNAdapter's form, or its content as text or bytes.
        mixed_precision: operators that compute in float32, in a configuration of the same form:
            those of a quantized model on reals, and those that devices would compute in bfloat16 or
            float16 on the same devices once more. The rest stays as it is.
        pin: the device that alone may run what a pattern names, by pattern: `type:inputs:outputs`
            as in a configuration, or the name of an operation; the type may have wildcards. Of
            several that fit, the last holds; a pin holds before a configuration.
        min_segment: the fewest operations that are worth a segment of their own; smaller segments
            join another device's that takes them, where there are fewer segments then.
        max_segments: how many segments there may be at most; they are joined until it is so.
        strict: whether it is an error if a device declines or fails to compile an operation that
            it would have been the first to run.
        isolate: whether each device runs in a process of its own, whose death takes nothing along:
            `openvino` then stands for `openvino@driver`. Runs that were under way are run again in
            the process that replaces it or, once it has died too often, on the next device.
        in_flight: how many runs there will be at once, from threads of the caller's or through
            `CompiledModel.submit`. Devices on the processor divide its cores among them, for the
            highest throughput. With `None`, each run may have all cores, for the lowest latency,
            and `submit` runs two at once.
        queue_size: how many of them wait besides.
        budget: what compiling may cost besides the devices' own work; `None` for the default.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: an argument does not fit.
        ModelError: an operation of the model can never run, as its constants show.
        ModelFileError: a file of the model has changed since it was loaded.
        UnsupportedError: no device runs some operation, or placement cannot be as it must be by
            `pin`, `partition`, `max_segments` or `strict`; the message lists all operations
            concerned, with reasons.
        DeviceError: a device is unknown, fails to load, or fails to compile what no other can run.
        CacheError: the cache folder cannot be made, or the user's secret for it not be used.
    """
    start = time.perf_counter()
    wishes = CompileRequest(
        devices=devices,
        shapes=shapes,
        settings=Configuration.of(configuration).overridden(
            precision, threads, performance, properties, in_flight
        ),
        demanded=properties or {},
        ranges=ranges,
        profiles=profiles,
        buckets=buckets,
        specializations=specializations,
        directives=Directives(partition, pin, min_segment, max_segments, strict),
        mixed_precision=mixed_precision,
        isolate=isolate,
        budget=budget,
    )
    check_count("queue_size", queue_size)
    store = open_store(cache, cache_size, token)
    compiled = _compiled(model, wishes, store, token, queue_size)
    taken = (time.perf_counter() - start) * 1e3
    compiled.report = replace(compiled.report, milliseconds=taken)
    return compiled


def _compiled(
    model: Model | Any,
    wishes: CompileRequest,
    store: Store | None,
    token: str | bool,
    queue_size: int,
) -> CompiledModel:
    """The compiled model: as it was planned before, if it was, else compiled anew."""
    plans = None if store is None or token else Plans.of(model, wishes, store)
    planned = None if plans is None else plans.find(queue_size)
    if planned is not None:
        return planned
    # Importing all that compiles takes longer than to find a model that has been.
    from crosschip.runtime.compiling import compiled_anew

    if plans is None:
        compiled = compiled_anew(model, wishes, store, token, queue_size)
    else:
        with plans.noting():
            compiled = compiled_anew(model, wishes, store, token, queue_size)
        plans.keep(compiled)
    tell(messages(compiled.placement))
    return compiled


def explain(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int | None] | int] | None = None,
    precision: str | None = None,
    threads: int | None = None,
    performance: str | None = None,
    properties: Properties | None = None,
    configuration: Configuration | str | Path | None = None,
    ranges: Ranges | None = None,
    profiles: Profiles = (),
    buckets: Mapping[str, Sequence[int]] | None = None,
    specializations: int = 16,
    partition: str | bytes | Path | None = None,
    mixed_precision: str | bytes | Path | None = None,
    pin: Mapping[str, str] | None = None,
    min_segment: int = 1,
    max_segments: int | None = None,
    strict: bool = False,
    isolate: bool = False,
    cache: CacheArgument = True,
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
    wishes = CompileRequest(
        devices=devices,
        shapes=shapes,
        settings=Configuration.of(configuration).overridden(
            precision, threads, performance, properties
        ),
        demanded=properties or {},
        ranges=ranges,
        profiles=profiles,
        buckets=buckets,
        specializations=specializations,
        directives=Directives(partition, pin, min_segment, max_segments, strict),
        mixed_precision=mixed_precision,
        isolate=isolate,
        budget=budget,
    )
    # Importing all that places takes longer than most of what does not need it.
    from crosschip.runtime.compiling import explained

    return explained(model, wishes, open_store(cache) if devices == "auto" else None)
