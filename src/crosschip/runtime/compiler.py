"""From a model to a compiled model: passes, placement, compilation, cache."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast

from crosschip.hal import Device, Options, Precision, Program, Support
from crosschip.ir import (
    Budget,
    BudgetError,
    DeviceError,
    InputError,
    Model,
    ModelFileError,
    Operation,
    UnsupportedError,
)
from crosschip.ir.budget import check_sizes, spending
from crosschip.passes import Specialize, simplify
from crosschip.passes.specialize import shapes_and_sizes
from crosschip.runtime.cache import Cache, Entry, default_folder
from crosschip.runtime.compiled import CompiledModel, CompileReport
from crosschip.runtime.discovery import automatic, first_line, open_device
from crosschip.runtime.key import cache_key
from crosschip.runtime.placement import Placement, Supports, place
from crosschip.runtime.segments import Segment

Devices = Literal["auto"] | str | Sequence[str | Device]
CacheArgument = bool | str | os.PathLike[str]

logger = logging.getLogger("crosschip")


def compile(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    cache: CacheArgument = True,
    precision: str = "float32",
    threads: int | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
    budget: Budget | None = None,
) -> CompiledModel:
    """Place a model on devices, compile each part, and join the parts to one that runs.

    Args:
        model: what to compile, which is not changed; or what `crosschip.load` takes for one.
        devices: names, or instances that stay the caller's to close, in the order of preference;
            `"auto"` takes all that are available, accelerators first, `reference` last.
        shapes: fixed shapes for inputs, by name, where the model leaves sizes open; or single
            sizes, by the names that the inputs' types have for them.
        cache: `True` for the default folder, a folder, or `False` for none.
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: how many processor threads a run may use; `None` leaves it to the devices.
        properties: settings for devices, by device name.
        budget: what compiling may cost besides the devices' own work; `None` for the default.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: an argument does not fit.
        ModelError: an operation of the model can never run, as its constants show.
        ModelFileError: a file of the model has changed since it was loaded.
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
        DeviceError: a device is unknown, fails to load, or fails to compile what no other can run.
        CacheError: the cache folder cannot be written to.
    """
    start = time.perf_counter()
    options = _options(precision, threads)
    store = _cache(cache)
    model = _prepared(model, shapes, budget)
    with ExitStack() as owned:
        opened = _open(devices, properties or {}, owned)
        placement, built = _place_and_build(model, opened, options, store, budget)
        owned.pop_all()
    if any(segment.device != next(iter(opened)) for segment in placement.segments):
        logger.warning("%s: %s", model.name, placement.summary())
    report = CompileReport((time.perf_counter() - start) * 1e3, _cache_word(built))
    ours = [device for device in opened.values() if device not in _instances(devices)]
    return CompiledModel(placement, [one.program for one in built], ours, report)


def explain(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
    budget: Budget | None = None,
) -> Placement:
    """Place a model without compiling it, asking every device about every operation.

    The arguments are those of `compile`.

    Raises:
        BudgetError: the model costs more than the budget allows.
        InputError: an argument does not fit.
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
        DeviceError: a device is unknown or fails to load.
    """
    model = _prepared(model, shapes, budget)
    with ExitStack() as owned:
        opened = _open(devices, properties or {}, owned)
        with _limited(model, budget):
            return place(model, _questions(opened), ask_all=True)


def _prepared(
    model: Model | Any, shapes: Mapping[str, Sequence[int] | int] | None, budget: Budget | None
) -> Model:
    """The model, loaded if it is not yet, with the shapes fixed, simplified."""
    if not isinstance(model, Model):
        # Importers are found where users find them: the runtime itself knows none.
        model = cast(Model, import_module("crosschip").load(model, budget=budget))
    with _limited(model, budget):
        if shapes is not None:
            types = {name: operand.type for name, operand in model.inputs.items()}
            model = Specialize(*shapes_and_sizes(types, shapes))(model)
        check_sizes(model)
        return simplify(model)


@contextmanager
def _limited(model: Model, budget: Budget | None) -> Iterator[None]:
    """Spend from a budget; name the model if it costs more."""
    try:
        with spending(budget):
            yield
    except BudgetError as error:
        raise BudgetError(f"{model.name}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Built:
    program: Program
    cache: Literal["hit", "miss", "off"]


class _CompileFailed(Exception):
    def __init__(self, segment: Segment, reason: str) -> None:
        super().__init__(reason)
        self.segment = segment


def _place_and_build(
    model: Model,
    devices: Mapping[str, Device],
    options: Options,
    cache: Cache | None,
    budget: Budget | None,
) -> tuple[Placement, list[_Built]]:
    """Place and compile; what a device said yes to but fails to compile is placed anew."""
    refusals: dict[tuple[str, str], str] = {}
    asked = _questions(devices)
    while True:
        try:
            with _limited(model, budget):
                placement = place(model, asked, refusals)
        except UnsupportedError as error:
            if not refusals:
                raise
            raise DeviceError(str(error)) from error
        try:
            return placement, _build_all(placement.segments, devices, options, cache)
        except _CompileFailed as failure:
            if len(devices) == 1:
                raise DeviceError(str(failure)) from failure.__cause__
            failed = set(failure.segment.model.operations)
            refused = {
                (decision.device, decision.name): str(failure)
                for decision in placement.decisions
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
    segments: Sequence[Segment],
    devices: Mapping[str, Device],
    options: Options,
    cache: Cache | None,
) -> list[_Built]:
    """Compile every segment, in parallel; they do not depend on each other until they run."""

    def build(segment: Segment) -> _Built:
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
    except ModelFileError:
        raise  # weights that cannot be read any more are no device's failure
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
    if not isinstance(devices, Sequence) or not all(isinstance(d, str | Device) for d in devices):
        raise InputError(
            f"devices is {devices!r}, but must be names of devices or instances, or 'auto'"
        )
    _check_properties(properties)
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
        opened[name] = device
    if not opened:
        raise InputError("no devices were given; name at least one (see `crosschip devices`)")
    for name in properties:
        if name not in opened:
            raise InputError(f"there are properties for {name!r}, which is not among the devices")
    return opened


def _check_properties(properties: object) -> None:
    sound = isinstance(properties, Mapping) and all(
        isinstance(device, str) and _is_texts(settings) for device, settings in properties.items()
    )
    if not sound:
        raise InputError(
            f"properties is {properties!r}, but must be texts by name, by device: "
            f'like {{"openvino": {{"device": "GPU"}}}}'
        )


def _is_texts(settings: object) -> bool:
    return isinstance(settings, Mapping) and all(
        isinstance(text, str) for pair in settings.items() for text in pair
    )


def _instances(devices: Devices) -> list[Device]:
    return [] if isinstance(devices, str) else [d for d in devices if isinstance(d, Device)]


def _options(precision: str, threads: int | None) -> Options:
    if threads is not None and (
        not isinstance(threads, int) or isinstance(threads, bool) or threads < 1
    ):
        raise InputError(f"threads is {threads!r}, but must be at least 1, or None")
    try:
        return Options(Precision(precision), threads)
    except ValueError:
        known = ", ".join(precision.value for precision in Precision)
        raise InputError(f"there is no precision {precision!r}; there are {known}") from None


def _cache(argument: CacheArgument) -> Cache | None:
    if argument is False:
        return None
    return Cache(default_folder() if argument is True else Path(argument))


def _cache_word(built: Sequence[_Built]) -> str:
    words = {one.cache for one in built} - {"off"}
    if not words:
        return "off"
    return "miss" if "miss" in words else "hit"
