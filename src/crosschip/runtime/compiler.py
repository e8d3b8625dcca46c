"""From a model to a compiled model: passes, placement, compilation, cache."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast

from crosschip.hal import Device, Kind, Options, Precision, Rule, Sizes, Support
from crosschip.ir import (
    Budget,
    BudgetError,
    DeviceError,
    InputError,
    Model,
    UnsupportedError,
)
from crosschip.ir.budget import check_sizes, spending
from crosschip.passes import Specialize, simplify
from crosschip.passes.specialize import shapes_and_sizes
from crosschip.runtime.automatic import SLOWEST, Automatic
from crosschip.runtime.blaming import culprits
from crosschip.runtime.building import Built, Failed, build_all, cache_word
from crosschip.runtime.cache.folder import Cache, CacheArgument, open_cache
from crosschip.runtime.compiled import CompiledModel, CompileReport
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.discovery import open_automatic, open_device
from crosschip.runtime.guard import GuardedDevice
from crosschip.runtime.measuring import Choice
from crosschip.runtime.placement.asking import Ask, asking
from crosschip.runtime.placement.choosing import Refusals
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.directives import Directives
from crosschip.runtime.placement.mixed_precision import in_float
from crosschip.runtime.placement.placing import Placement, place

Devices = Literal["auto"] | str | Sequence[str | Device]

_AT_ONCE = 2
"""How many requests run at once if the caller does not say."""

logger = logging.getLogger("crosschip")


def compile(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    cache: CacheArgument = True,
    cache_size: int | None = None,
    precision: str = "float32",
    threads: int | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
    profiles: Sequence[Mapping[str, int]] = (),
    specializations: int = 16,
    partition: str | bytes | Path | None = None,
    mixed_precision: str | bytes | Path | None = None,
    pin: Mapping[str, str] | None = None,
    min_segment: int = 1,
    max_segments: int | None = None,
    strict: bool = False,
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
        shapes: fixed shapes for inputs, by name, where the model leaves sizes open; or single
            sizes, by the names that the inputs' types have for them.
        cache: `True` for the default folder, a folder, or `False` for none.
        cache_size: how many bytes the cache folder may take; `None` for `CROSSCHIP_CACHE_SIZE`,
            or 2 GiB.
        precision: the arithmetic for float32 operations: `float32`, `bfloat16` or `float16`.
        threads: how many processor threads a run may use; `None` leaves it to the devices.
        properties: settings for devices, by device name.
        ranges: the least and the greatest value of open sizes, by the size's name; some devices
            need them, and inputs outside of them are refused.
        profiles: values of open sizes, by name, to compile for at once.
        specializations: for how many sets of input shapes a device that compiles again for each
            keeps programs.
        partition: operators that are kept off the first device and go to processors behind it: the
            path of a configuration of NNAdapter's form, or its content as text or bytes.
        mixed_precision: operators of a quantized model that compute in float32, in a configuration
            of the same form: their quantized inputs are what the integers stand for, and what they
            make is rounded only for those that read it quantized.
        pin: the device that alone may run what a pattern names, by pattern: `type:inputs:outputs`
            as in a configuration, or the name of an operation; the type may have wildcards. Of
            several that fit, the last holds; a pin holds before a configuration.
        min_segment: the fewest operations that are worth a segment of their own; smaller segments
            join another device's that takes them, where there are fewer segments then.
        max_segments: how many segments there may be at most; they are joined until it is so.
        strict: whether it is an error if a device declines or fails to compile an operation that
            it would have been the first to run.
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
    options = _options(
        precision, threads, _sizes(ranges or {}, profiles, specializations), in_flight
    )
    _check_count("queue_size", queue_size)
    directives = Directives(partition, pin, min_segment, max_segments, strict)
    directives.check()
    store = open_cache(cache, cache_size)
    given, model = _prepared(model, shapes, budget)
    real: tuple[str, ...] = ()
    if mixed_precision is not None:
        with _limited(model, budget):
            model, real = in_float(mixed_precision, model, given)
    constraints = Constraints()

    def build(devices: Mapping[str, GuardedDevice]) -> CompiledModel:
        placement, built = _place_and_build(model, devices, options, constraints, store, budget)
        report = CompileReport((time.perf_counter() - start) * 1e3, cache_word(built))
        programs = [one.program for one in built]
        return CompiledModel(
            placement, programs, devices, options.sizes, report, in_flight or _AT_ONCE, queue_size
        )

    with ExitStack() as owned:
        opened = _open(devices, {} if properties is None else properties, owned)
        automatic = None
        if devices == "auto" and len(opened) > 1:
            automatic = Automatic(model, opened, options, store)
        ordered: Mapping[str, GuardedDevice] = opened
        if automatic is not None and directives.moves:
            ordered = _in_order(opened, automatic.remembered())
        with _limited(model, budget):
            constraints = directives.constraints(model, given, _kinds(ordered))
        if automatic is None or directives.moves:
            compiled = build(ordered)
        else:
            compiled = _automatic(model, opened, options, automatic, budget, build)
        owned.pop_all()
    theirs = _instances(devices)
    compiled.placement.in_float = real
    compiled.own(device for device in opened.values() if device.device not in theirs)
    taken = (time.perf_counter() - start) * 1e3
    compiled.report = replace(compiled.report, milliseconds=taken)
    _tell(compiled.placement)
    return compiled


def _automatic(
    model: Model,
    devices: Mapping[str, GuardedDevice],
    options: Options,
    automatic: Automatic,
    budget: Budget | None,
    build: Callable[[Mapping[str, GuardedDevice]], CompiledModel],
) -> CompiledModel:
    """The model on the device that runs it fastest; on several if none runs all of it."""

    def count(name: str) -> int:
        with _limited(model, budget):
            asks = _asks({name: devices[name]}, options)
            placed = place(model, asks, partial=True)
        return len(placed.decisions) - len(placed.unplaced)

    choice, compiled = automatic.choose(lambda name: build({name: devices[name]}), count)
    if compiled is None:
        compiled = build({name: devices[name] for name in choice.order})
    compiled.placement.choice = choice
    return compiled


def _in_order(
    devices: Mapping[str, GuardedDevice], choice: Choice | None
) -> Mapping[str, GuardedDevice]:
    """The devices in the order that has been chosen before, if one has."""
    return devices if choice is None else {name: devices[name] for name in choice.order}


def _kinds(devices: Mapping[str, GuardedDevice]) -> dict[str, Kind]:
    return {name: device.kind for name, device in devices.items()}


def _tell(placement: Placement) -> None:
    """Say in one line what went where and why; warn of what fell back, and of slow ways."""
    fallbacks = placement.fallbacks
    level = logging.WARNING if fallbacks else logging.INFO
    name = placement.model.name
    if logger.isEnabledFor(level):
        logger.log(level, "%s: %s", name, placement.summary())
    slow = [decision for decision in fallbacks if decision.device == SLOWEST]
    if slow:
        logger.warning(
            "%s: %d operations run on `reference`, which is slow, the first of them %s (%s)",
            name,
            len(slow),
            slow[0].name,
            "; ".join(support.reason for support in slow[0].refusals),
        )


def explain(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    precision: str = "float32",
    threads: int | None = None,
    properties: Mapping[str, Mapping[str, str]] | None = None,
    ranges: Mapping[str, tuple[int, int]] | None = None,
    partition: str | bytes | Path | None = None,
    mixed_precision: str | bytes | Path | None = None,
    pin: Mapping[str, str] | None = None,
    min_segment: int = 1,
    max_segments: int | None = None,
    strict: bool = False,
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
    options = _options(precision, threads, _sizes(ranges or {}, ()))
    directives = Directives(partition, pin, min_segment, max_segments, strict)
    directives.check()
    given, model = _prepared(model, shapes, budget)
    real: tuple[str, ...] = ()
    if mixed_precision is not None:
        with _limited(model, budget):
            model, real = in_float(mixed_precision, model, given)
    with ExitStack() as owned:
        opened = _open(devices, {} if properties is None else properties, owned)
        choice = None
        if devices == "auto":
            choice = Automatic(model, opened, options, open_cache(cache)).remembered()
        ordered = _in_order(opened, choice)
        with _limited(model, budget):
            constraints = directives.constraints(model, given, _kinds(ordered))
            asks = _asks(ordered, options)
            placement = place(model, asks, constraints=constraints, ask_all=True, partial=True)
        placement.choice = choice
        placement.in_float = real
        return placement


def _prepared(
    model: Model | Any, shapes: Mapping[str, Sequence[int] | int] | None, budget: Budget | None
) -> tuple[Model, Model]:
    """The model, loaded if it is not yet, with the shapes fixed; and that simplified."""
    if not isinstance(model, Model):
        # Importers are found where users find them: the runtime itself knows none.
        model = cast(Model, import_module("crosschip").load(model, budget=budget))
    with _limited(model, budget):
        if shapes is not None:
            types = {name: operand.type for name, operand in model.inputs.items()}
            model = Specialize(*shapes_and_sizes(types, shapes))(model)
        check_sizes(model)
        return model, simplify(model)


@contextmanager
def _limited(model: Model, budget: Budget | None) -> Iterator[None]:
    """Spend from a budget; name the model if it costs more."""
    try:
        with spending(budget):
            yield
    except BudgetError as error:
        raise BudgetError(f"{model.name}: {error}") from None


def _place_and_build(
    model: Model,
    devices: Mapping[str, GuardedDevice],
    options: Options,
    constraints: Constraints,
    cache: Cache | None,
    budget: Budget | None,
) -> tuple[Placement, list[Built]]:
    """Place and compile; what a device said yes to but fails to compile is placed anew."""
    refusals: Refusals = {}
    asks = _asks(devices, options)
    while True:
        try:
            with _limited(model, budget):
                placement = place(model, asks, refusals, constraints=constraints)
        except UnsupportedError as error:
            if not refusals:
                raise
            raise DeviceError(str(error)) from error
        try:
            return placement, build_all(placement, devices, options, cache)
        except Failed as failed:
            if len(devices) == 1 or constraints.strict:
                raise failed.error from failed.error.__cause__
            count = _refuse(failed, placement, refusals, devices, options)
            logger.warning("%s; placing %d operations elsewhere", failed, count)


def _refuse(
    failed: Failed,
    placement: Placement,
    refusals: Refusals,
    devices: Mapping[str, GuardedDevice],
    options: Options,
) -> int:
    """Keep the operations that a device failed to compile from it; how many there are."""
    device = failed.segment.device
    guilty = culprits(failed, devices[device], options)
    answers = refusals.setdefault(device, {})
    detail = str(failed).removeprefix(f"{device}: ")
    before = len(answers)
    for decision in placement.every_decision():
        if decision.device == device and not guilty.isdisjoint(decision.parts):
            no = Support(False, decision.type, "", Rule.FAILURE, detail)
            answers[decision.name] = no
    return len(answers) - before


def _asks(devices: Mapping[str, GuardedDevice], options: Options) -> dict[str, Ask]:
    return {name: asking(device, options) for name, device in devices.items()}


def _open(
    devices: Devices, properties: Mapping[str, Mapping[str, str]], owned: ExitStack
) -> dict[str, GuardedDevice]:
    """The devices by name, in order; those made here are closed when `owned` is left."""
    _check_properties(properties)
    opened: dict[str, GuardedDevice] = {}
    if devices == "auto":
        for device in open_automatic(properties):
            opened[device.name] = owned.enter_context(device)
        devices = ()
    elif isinstance(devices, str):
        devices = [name.strip() for name in devices.split(",")]
    if not isinstance(devices, Sequence) or not all(isinstance(d, str | Device) for d in devices):
        raise InputError(
            f"devices is {devices!r}, but must be names of devices or instances, or 'auto'"
        )
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
        if device.name == RUNTIME:
            raise InputError(f"no device can be called {RUNTIME!r}: that runs control flow itself")
        opened[device.name] = device
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
            f'like {{"mychip": {{"cores": "2"}}}}'
        )


def _is_texts(settings: object) -> bool:
    return isinstance(settings, Mapping) and all(
        isinstance(text, str) for pair in settings.items() for text in pair
    )


def _instances(devices: Devices) -> list[Device]:
    return [] if isinstance(devices, str) else [d for d in devices if isinstance(d, Device)]


def _options(
    precision: str, threads: int | None, sizes: Sizes, in_flight: int | None = None
) -> Options:
    for name, count in (("threads", threads), ("in_flight", in_flight)):
        if count is not None:
            _check_count(name, count)
    try:
        return Options(Precision(precision), threads, in_flight or 1, sizes)
    except ValueError:
        known = ", ".join(precision.value for precision in Precision)
        raise InputError(f"there is no precision {precision!r}; there are {known}") from None


def _check_count(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {value!r}, but must be at least 1")


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _sizes(
    ranges: Mapping[str, tuple[int, int]],
    profiles: Sequence[Mapping[str, int]],
    specializations: int = 16,
) -> Sizes:
    for name, bounds in ranges.items():
        fits = isinstance(bounds, Sequence) and len(bounds) == 2
        if not fits or not all(map(_is_size, bounds)) or bounds[0] > bounds[1]:
            raise InputError(f"the range of size {name!r} is {bounds!r}; give it like (1, 8)")
    for profile in profiles:
        if not isinstance(profile, Mapping) or not all(map(_is_size, profile.values())):
            raise InputError(f"profiles has {profile!r}; give sizes by name, like {{'N': 8}}")
    _check_count("specializations", specializations)
    return Sizes.of(ranges, profiles, specializations)
