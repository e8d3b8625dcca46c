"""From a model to a compiled model: passes, placement, compilation, cache."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from crosschip.hal import Device, Options, Precision, Program, Support
from crosschip.ir import (
    ControlFlow,
    DeviceError,
    InputError,
    Model,
    Operation,
    UnsupportedError,
)
from crosschip.passes import Specialize, simplify
from crosschip.runtime.cache import Cache, Entry, default_folder
from crosschip.runtime.compiled import CompiledModel, CompileReport, Execute, plan
from crosschip.runtime.control import RUNTIME, program_for
from crosschip.runtime.discovery import automatic, first_line, open_device
from crosschip.runtime.key import cache_key
from crosschip.runtime.placement import Placement, Supports, place
from crosschip.runtime.segments import Segment

Devices = Literal["auto"] | str | Sequence[str | Device]
CacheArgument = bool | str | os.PathLike[str]

logger = logging.getLogger("crosschip")


def compile(
    model: Model,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    cache: CacheArgument = True,
    precision: str = "float32",
    threads: int | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
) -> CompiledModel:
    """Place a model on devices, compile each part, and join the parts to one that runs.

    Args:
        model: what to compile; not changed.
        devices: names, or instances that stay the caller's to close, in the order of preference;
            `"auto"` takes all that are available, accelerators first, `reference` last.
        shapes: fixed shapes for inputs, by name, where the model leaves sizes open.
        cache: `True` for the default folder, a folder, or `False` for none.
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: how many processor threads a run may use; `None` leaves it to the devices.
        properties: settings for devices, by device name.

    Raises:
        InputError: an argument does not fit.
        ModelError: an operation of the model can never run, as its constants show.
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
        DeviceError: a device is unknown, fails to load, or fails to compile what no other can run.
        CacheError: the cache folder cannot be written to.
    """
    start = time.perf_counter()
    options = _options(precision, threads)
    store = _cache(cache)
    if shapes:
        model = Specialize(shapes)(model)
    model = simplify(model)
    with ExitStack() as owned:
        opened = _open(devices, properties or {}, owned)
        placement, built = _place_and_build(model, opened, options, store)
        owned.pop_all()
    if any(d.device not in (next(iter(opened)), RUNTIME) for d in placement.every_decision()):
        logger.warning("%s: %s", model.name, placement.summary())
    report = CompileReport((time.perf_counter() - start) * 1e3, _cache_word(built))
    ours = [device for device in opened.values() if device not in _instances(devices)]
    return CompiledModel(placement, [one.program for one in built], ours, report)


def explain(
    model: Model,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
) -> Placement:
    """Place a model without compiling it, asking every device about every operation.

    Raises:
        InputError: an argument does not fit.
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
        DeviceError: a device is unknown or fails to load.
    """
    if shapes:
        model = Specialize(shapes)(model)
    with ExitStack() as owned:
        opened = _open(devices, properties or {}, owned)
        return place(simplify(model), _questions(opened), ask_all=True)


@dataclass(frozen=True, slots=True)
class _Built:
    program: Program
    cache: Literal["hit", "miss", "off"]


class _CompileFailed(Exception):
    def __init__(self, segment: Segment, reason: str) -> None:
        super().__init__(reason)
        self.segment = segment


def _place_and_build(
    model: Model, devices: Mapping[str, Device], options: Options, cache: Cache | None
) -> tuple[Placement, list[_Built]]:
    """Place and compile; what a device said yes to but fails to compile is placed anew."""
    refusals: dict[tuple[str, str], str] = {}
    asked = _questions(devices)
    while True:
        try:
            placement = place(model, asked, refusals)
        except UnsupportedError as error:
            if not refusals:
                raise
            raise DeviceError(str(error)) from error
        try:
            return placement, _build_all(placement, devices, options, cache)
        except _CompileFailed as failure:
            if len(devices) == 1:
                raise DeviceError(str(failure)) from failure.__cause__
            failed = set(failure.segment.model.operations)
            refused = {
                (decision.device, decision.name): str(failure)
                for decision in placement.every_decision()
                if not failed.isdisjoint(decision.parts)
            }
            refusals.update(refused)
            logger.warning("%s; placing its %d operations elsewhere", failure, len(refused))


def _questions(devices: Mapping[str, Device]) -> dict[str, Supports]:
    """How to ask each device; one that fails to answer declines."""

    def ask(device: Device, operation: Operation) -> Support:
        try:
            return device.supports(operation)
        except Exception as error:  # a device is foreign code: whatever it raises is its failure
            return Support.no(f"{operation.type}: the device failed to answer: {first_line(error)}")

    return {name: partial(ask, device) for name, device in devices.items()}


def _build_all(
    placement: Placement,
    devices: Mapping[str, Device],
    options: Options,
    cache: Cache | None,
) -> list[_Built]:
    """Compile every segment, in parallel; they do not depend on each other until they run."""
    segments = placement.segments

    def build(segment: Segment) -> _Built:
        if segment.device == RUNTIME:
            return _build_control(segment, placement, devices, options, cache)
        return _build(segment, devices[segment.device], options, cache)

    if len(segments) < 2:
        return [build(segment) for segment in segments]
    with ThreadPoolExecutor(min(len(segments), os.cpu_count() or 1)) as pool:
        futures = [pool.submit(build, segment) for segment in segments]
    built = [future.result() for future in futures if future.exception() is None]
    for future in futures:
        error = future.exception()
        if error is not None:
            for one in built:
                one.program.close()
            raise error
    return built


def _build_control(
    segment: Segment,
    placement: Placement,
    devices: Mapping[str, Device],
    options: Options,
    cache: Cache | None,
) -> _Built:
    """Compile the bodies of control flow that the runtime runs."""
    (operation,) = segment.model.operations
    assert isinstance(operation, ControlFlow), "nothing else goes to the runtime"
    built: list[_Built] = []
    bodies: list[Execute] = []
    with ExitStack() as failing:
        for body in placement.bodies(operation):
            parts = _build_all(body, devices, options, cache)
            for part in parts:
                failing.callback(part.program.close)
            built += parts
            bodies.append(plan(body, [part.program for part in parts], own=False))
        failing.pop_all()
    program = program_for(
        operation, segment.inputs, segment.outputs, bodies, [part.program for part in built]
    )
    return _Built(program, _cache_word(built))


def _build(segment: Segment, device: Device, options: Options, cache: Cache | None) -> _Built:
    if cache is None:
        return _Built(_compile(segment, device, options), "off")
    entry = Entry(
        cache_key(segment.model, segment.device, device, options),
        segment.device,
        device.version,
        segment.model.name,
        len(segment.model.operations),
    )
    saved = cache.read(entry)
    if saved is not None:
        try:
            return _Built(device.load(saved, segment.model, options), "hit")
        except Exception as error:  # a device is foreign code: whatever it raises is its failure
            cache.discard(entry, first_line(error))
    program = _compile(segment, device, options)
    try:
        made = program.save()
    except Exception as error:  # as above; the program that it compiled may still run
        logger.warning("%s failed to save its program: %s", segment.device, first_line(error))
        made = None
    if made is None:
        return _Built(program, "off")
    cache.write(entry, made)
    return _Built(program, "miss")


def _compile(segment: Segment, device: Device, options: Options) -> Program:
    try:
        return device.compile(segment.model, options)
    except Exception as error:  # a device is foreign code: whatever it raises is its failure
        text = str(error).strip().splitlines() or [type(error).__name__]
        told = text[0] if segment.device in text[0] else f"{segment.device}: {text[0]}"
        raise _CompileFailed(segment, told) from error


def _open(
    devices: Devices, properties: Mapping[str, Mapping[str, str]], owned: ExitStack
) -> dict[str, Device]:
    """The devices by name, in order; those made here are closed when `owned` is left."""
    if devices == "auto":
        devices = automatic()
    elif isinstance(devices, str):
        devices = [name.strip() for name in devices.split(",")]
    opened: dict[str, Device] = {}
    for device in devices:
        if isinstance(device, Device):
            name = device.name
            if name in properties:
                raise InputError(f"device {name!r} was made with its properties; there are others")
        else:
            name = device
            device = owned.enter_context(open_device(name, properties.get(name)))
        if name in opened:
            raise InputError(f"device {name!r} is given twice")
        if name == RUNTIME:
            raise InputError(f"no device can be called {name!r}: that is who runs control flow")
        opened[name] = device
    if not opened:
        raise InputError("no devices were given; name at least one (see `crosschip devices`)")
    for name in properties:
        if name not in opened:
            raise InputError(f"there are properties for {name!r}, which is not among the devices")
    return opened


def _instances(devices: Devices) -> list[Device]:
    return [] if isinstance(devices, str) else [d for d in devices if isinstance(d, Device)]


def _options(precision: str, threads: int | None) -> Options:
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}, but must be at least 1, or None")
    try:
        return Options(Precision(precision), threads)
    except ValueError:
        known = ", ".join(precision.value for precision in Precision)
        raise InputError(f"there is no precision {precision!r}; there are {known}") from None


def _cache(argument: CacheArgument) -> Cache | None:
    if argument is False:
        return None
    return Cache(default_folder() if argument is True else Path(argument))


def _cache_word(built: Sequence[_Built]) -> Literal["hit", "miss", "off"]:
    words = {one.cache for one in built} - {"off"}
    if not words:
        return "off"
    return "miss" if "miss" in words else "hit"
