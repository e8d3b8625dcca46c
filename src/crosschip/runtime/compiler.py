"""From a model to a compiled model: passes, placement, compilation, cache."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from crosschip.hal import CompileError, Device, Options, Precision, Rule, Sizes, Support
from crosschip.ir import DeviceError, InputError, Model, UnsupportedError
from crosschip.passes import Specialize, simplify
from crosschip.runtime.asking import Ask, asking
from crosschip.runtime.cache import Cache, Entry, default_folder
from crosschip.runtime.compiled import CompiledModel, CompileReport
from crosschip.runtime.discovery import open_automatic, open_device
from crosschip.runtime.guard import GuardedDevice, GuardedProgram
from crosschip.runtime.key import cache_key
from crosschip.runtime.placement import Placement, Refusals, place
from crosschip.runtime.profiles import shapes_for
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
    ranges: Mapping[str, tuple[int, int]] | None = None,
    profiles: Sequence[Mapping[str, int]] = (),
    specializations: int = 16,
) -> CompiledModel:
    """Place a model on devices, compile each part, and join the parts to one that runs.

    Args:
        model: what to compile; not changed.
        devices: names, or instances that stay the caller's to close, in the order of preference;
            `"auto"` takes all that are available, accelerators first, `reference` last. A name is
            `openvino`, or `openvino:GPU` for one of several chips.
        shapes: fixed shapes for inputs, by name, where the model leaves sizes open.
        cache: `True` for the default folder, a folder, or `False` for none.
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: how many processor threads a run may use; `None` leaves it to the devices.
        properties: settings for devices, by device name.
        ranges: the least and the greatest value of open sizes, by the size's name; some devices
            need them, and inputs outside of them are refused.
        profiles: values of open sizes, by name, to compile for at once.
        specializations: for how many sets of input shapes a device that compiles again for each
            keeps programs.

    Raises:
        InputError: an argument does not fit.
        ModelError: an operation of the model can never run, as its constants show.
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
        DeviceError: a device is unknown, fails to load, or fails to compile what no other can run.
        CacheError: the cache folder cannot be written to.
    """
    start = time.perf_counter()
    options = _options(precision, threads, _sizes(ranges or {}, profiles, specializations))
    store = _cache(cache)
    if shapes:
        model = Specialize(shapes)(model)
    model = simplify(model)
    with ExitStack() as owned:
        opened = _open(devices, properties or {}, owned)
        placement, built = _place_and_build(model, opened, options, store)
        owned.pop_all()
    if any(segment.device != next(iter(opened)) for segment in placement.segments):
        logger.warning("%s: %s", model.name, placement.summary())
    report = CompileReport((time.perf_counter() - start) * 1e3, _cache_word(built))
    theirs = _instances(devices)
    ours = [device for device in opened.values() if device.device not in theirs]
    programs = [one.program for one in built]
    return CompiledModel(placement, programs, opened, ours, options.sizes, report)


def explain(
    model: Model,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    precision: str = "float32",
    threads: int | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
) -> Placement:
    """Place a model without compiling it, asking every device about every operation.

    Raises:
        InputError: an argument does not fit.
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
        DeviceError: a device is unknown or fails to load.
    """
    options = _options(precision, threads, _sizes(ranges or {}, ()))
    if shapes:
        model = Specialize(shapes)(model)
    with ExitStack() as owned:
        opened = _open(devices, properties or {}, owned)
        return place(simplify(model), _asks(opened, options), ask_all=True)


@dataclass(frozen=True, slots=True)
class _Built:
    program: GuardedProgram
    cache: Literal["hit", "miss", "off"]


class _Failed(Exception):
    """A device failed to compile a segment."""

    def __init__(self, segment: Segment, error: CompileError) -> None:
        super().__init__(str(error))
        self.segment = segment
        self.error = error


def _place_and_build(
    model: Model, devices: Mapping[str, GuardedDevice], options: Options, cache: Cache | None
) -> tuple[Placement, list[_Built]]:
    """Place and compile; what a device said yes to but fails to compile is placed anew."""
    refusals: Refusals = {}
    asks = _asks(devices, options)
    while True:
        try:
            placement = place(model, asks, refusals)
        except UnsupportedError as error:
            if not refusals:
                raise
            raise DeviceError(str(error)) from error
        try:
            return placement, _build_all(placement.segments, devices, options, cache)
        except _Failed as failed:
            if len(devices) == 1:
                raise failed.error from failed.error.__cause__
            count = _refuse(failed, placement, refusals)
            logger.warning("%s; placing %d operations elsewhere", failed, count)


def _refuse(failed: _Failed, placement: Placement, refusals: Refusals) -> int:
    """Keep the operations that a device failed to compile from it; how many there are."""
    device, parts = failed.segment.device, failed.segment.model.operations
    named = failed.error.operations
    guilty = {part for part in parts if part.name in named} or set(parts)
    answers = refusals.setdefault(device, {})
    detail = str(failed).removeprefix(f"{device}: ")
    before = len(answers)
    for decision in placement.decisions:
        if decision.device == device and not guilty.isdisjoint(decision.parts):
            no = Support(False, decision.type, "", Rule.FAILURE, detail)
            answers[decision.name] = no
    return len(answers) - before


def _asks(devices: Mapping[str, GuardedDevice], options: Options) -> dict[str, Ask]:
    return {name: asking(device, options) for name, device in devices.items()}


def _build_all(
    segments: Sequence[Segment],
    devices: Mapping[str, GuardedDevice],
    options: Options,
    cache: Cache | None,
) -> list[_Built]:
    """Compile every segment, in parallel; they do not depend on each other until they run."""

    def build(segment: Segment) -> _Built:
        try:
            return _build(segment, devices[segment.device], options, cache)
        except CompileError as error:
            raise _Failed(segment, error) from error

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


def _build(
    segment: Segment, device: GuardedDevice, options: Options, cache: Cache | None
) -> _Built:
    if cache is None:
        return _Built(_prepared(device.compile(segment.model, options), segment, options), "off")
    entry = Entry(
        cache_key(segment.model, device, options),
        segment.device,
        device.version,
        segment.model.name,
        len(segment.model.operations),
    )
    saved = cache.read(entry)
    program = None
    if saved is not None:
        try:
            program = device.load(saved, segment.model, options)
        except DeviceError as error:
            cache.discard(entry, str(error))
    if program is not None:
        program.changed = lambda: _save(program, entry, cache)
        return _Built(_prepared(program, segment, options), "hit")
    program = _prepared(device.compile(segment.model, options), segment, options)
    kept = _save(program, entry, cache)
    program.changed = lambda: _save(program, entry, cache)
    return _Built(program, "miss" if kept else "off")


def _prepared(program: GuardedProgram, segment: Segment, options: Options) -> GuardedProgram:
    """The program, compiled for the profiles that the caller gave."""
    try:
        for shapes in shapes_for(segment.model, options.sizes):
            program.prepare(shapes)
    except CompileError:
        program.close()
        raise
    return program


def _save(program: GuardedProgram, entry: Entry, cache: Cache) -> bool:
    """Keep what a program saves, if it does; a device that fails to loses nothing but that."""
    try:
        saved = program.save()
    except DeviceError as error:
        logger.warning("%s", error)
        saved = None
    if saved is None:
        return False
    cache.write(entry, bytes(saved))
    return True


def _open(
    devices: Devices, properties: Mapping[str, Mapping[str, str]], owned: ExitStack
) -> dict[str, GuardedDevice]:
    """The devices by name, in order; those made here are closed when `owned` is left."""
    opened: dict[str, GuardedDevice] = {}
    if devices == "auto":
        for device in open_automatic(properties):
            opened[device.name] = owned.enter_context(device)
        devices = ()
    elif isinstance(devices, str):
        devices = [name.strip() for name in devices.split(",")]
    for given in devices:
        if isinstance(given, Device):
            device = GuardedDevice(given, given.name)
            if device.name in properties:
                raise InputError(
                    f"device {device.name!r} was made with its properties; there are others"
                )
        else:
            device = owned.enter_context(open_device(given, properties.get(given)))
        if device.name in opened:
            raise InputError(f"device {device.name!r} is given twice")
        opened[device.name] = device
    if not opened:
        raise InputError("no devices were given; name at least one (see `crosschip devices`)")
    for name in properties:
        if name not in opened:
            raise InputError(f"there are properties for {name!r}, which is not among the devices")
    return opened


def _instances(devices: Devices) -> list[Device]:
    return [] if isinstance(devices, str) else [d for d in devices if isinstance(d, Device)]


def _options(precision: str, threads: int | None, sizes: Sizes) -> Options:
    if threads is not None and threads < 1:
        raise InputError(f"threads is {threads}, but must be at least 1, or None")
    try:
        return Options(Precision(precision), threads, sizes)
    except ValueError:
        known = ", ".join(precision.value for precision in Precision)
        raise InputError(f"there is no precision {precision!r}; there are {known}") from None


def _sizes(
    ranges: Mapping[str, tuple[int, int]],
    profiles: Sequence[Mapping[str, int]],
    specializations: int = 16,
) -> Sizes:
    for name, bounds in ranges.items():
        least, most = bounds
        if not 0 <= least <= most:
            raise InputError(f"the range of size {name!r} is {bounds}; give it like (1, 8)")
    if specializations < 1:
        raise InputError(f"specializations is {specializations}, but must be at least 1")
    return Sizes.of(ranges, profiles, specializations)


def _cache(argument: CacheArgument) -> Cache | None:
    if argument is False:
        return None
    return Cache(default_folder() if argument is True else Path(argument))


def _cache_word(built: Sequence[_Built]) -> str:
    words = {one.cache for one in built} - {"off"}
    if not words:
        return "off"
    return "miss" if "miss" in words else "hit"
