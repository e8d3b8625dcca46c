"""From a model to a compiled model: passes, placement, compilation, cache."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache as cached
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from crosschip.hal import Kind, Options, Performance
from crosschip.ir import Budget, InputError, Model
from crosschip.ir.budget import check_sizes
from crosschip.passes import Specialize, simplify
from crosschip.passes.specialize import shapes_and_sizes
from crosschip.runtime.automatic import SLOWEST, Automatic
from crosschip.runtime.building import (
    Built,
    Compilation,
    cache_word,
    limited,
    place_and_build,
    tell_ways,
)
from crosschip.runtime.cache.container import recognizes
from crosschip.runtime.cache.key import Fingerprints, model_key, request_key
from crosschip.runtime.cache.store import CacheArgument, Store, open_store
from crosschip.runtime.compiled import CompiledModel, CompileReport
from crosschip.runtime.configuration import Configuration, Properties, check_count
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.measuring import Choice
from crosschip.runtime.opening import Devices, host_of_kernels, instances, open_devices
from crosschip.runtime.placement.directives import Directives
from crosschip.runtime.placement.mixed_precision import in_float
from crosschip.runtime.placement.placing import Placement, place
from crosschip.runtime.saving.form import Identity
from crosschip.runtime.saving.kept import Kept
from crosschip.runtime.shapes.arguments import Profiles, Ranges, buckets_from, sizes_from
from crosschip.runtime.shapes.padding import Buckets

logger = logging.getLogger("crosschip")


def compile(
    model: Model | Any,
    devices: Devices = "auto",
    *,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
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
        shapes: fixed shapes for inputs, by name, where the model leaves sizes open; or single
            sizes, by the names that the inputs' types have for them.
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
    settings = Configuration.of(configuration).overridden(
        precision, threads, performance, properties, in_flight
    )
    check_count("specializations", specializations)
    check_count("queue_size", queue_size)
    directives = Directives(partition, pin, min_segment, max_segments, strict)
    directives.check()
    store = open_store(cache, cache_size, token)
    given, model, real = _prepared(model, shapes, mixed_precision, budget)
    types = {name: operand.type for name, operand in model.inputs.items()}
    sizes = sizes_from(types, ranges, profiles, specializations)
    options, padded = settings.options(sizes), buckets_from(buckets)
    with ExitStack() as owned:
        demanded = properties or {}
        opened = open_devices(devices, settings.properties, demanded, owned, isolate=isolate)
        opened |= host_of_kernels(model, opened, owned, isolate=isolate)
        task = _Task(
            model, given, real, opened, options, padded, directives, token, store, budget,
            settings.in_flight, queue_size, automatic=devices == "auto",
        )  # fmt: skip
        compiled = task.kept_or_compiled()
        owned.pop_all()
    theirs = instances(devices)
    compiled.own(device for device in opened.values() if device.device not in theirs)
    taken = (time.perf_counter() - start) * 1e3
    compiled.report = replace(compiled.report, milliseconds=taken)
    _tell(compiled.placement)
    return compiled


@dataclass(frozen=True, slots=True)
class _Task:
    """The task of one call of `compile`: its arguments, checked and opened.

    Attributes:
        model: the model, simplified.
        given: the model before that.
        in_float: what `Placement.in_float` is to say.
        devices: those that it may go to, by name.
        buckets: the sizes to pad to, by the name of a size.
        automatic: whether the order of the devices is to be found.
        conditions: whether devices may get what they compute right for some inputs only.
        fingerprints: of the model's constants, for all keys.
    """

    model: Model
    given: Model
    in_float: Sequence[str]
    devices: Mapping[str, GuardedDevice]
    options: Options
    buckets: Buckets
    directives: Directives
    token: str | bool
    store: Store | None
    budget: Budget | None
    in_flight: int | None
    queue_size: int
    automatic: bool
    conditions: bool = True
    fingerprints: Fingerprints = field(default_factory=Fingerprints)

    def kept_or_compiled(self) -> CompiledModel:
        """The compiled model, as a whole from the store if a token says so and it is there."""
        if not self.token or self.store is None:
            return self._compiled(self.store)
        kept = Kept(self.store, self._identify(), self.model, self.devices, self.budget)
        compiled, word = kept.load(self.in_flight, self.queue_size), "hit"
        if compiled is None:
            compiled = self._compiled(None)
            word = "miss" if kept.save(compiled) else "off"
        compiled.report = CompileReport(0.0, word)
        return compiled

    def _compiled(self, store: Store | None) -> CompiledModel:
        """The compiled model, whose programs come one by one from a store if they are there."""
        auto = None
        if self.automatic and len(self.devices) > 1:
            auto = Automatic(self.model, self.devices, self.options, store, self.fingerprints)
        devices = self.devices
        if auto is not None and self.directives.moves:
            devices = _in_order(devices, auto.remembered())
        with limited(self.model.name, self.budget):
            constraints = self.directives.constraints(self.model, self.given, _kinds(devices))

        def build(devices: Mapping[str, GuardedDevice]) -> CompiledModel:
            compilation = Compilation(
                devices, self.options, store, constraints, self.budget, self.buckets,
                conditions=self.conditions, fingerprints=self.fingerprints,
            )  # fmt: skip
            placement, built = place_and_build(self.model, compilation)
            tell_ways(placement, compilation)
            placement.settings = _given(devices, self.options)
            return self._joined(placement, built, devices)

        if auto is None or self.directives.moves:
            return build(devices)
        return _automatic(self.model, devices, self.options, auto, self.budget, build)

    def _joined(
        self, placement: Placement, built: Sequence[Built], devices: Mapping[str, GuardedDevice]
    ) -> CompiledModel:
        placement.in_float = self.in_float
        return CompiledModel(
            placement,
            [one.program for one in built],
            devices,
            self.options,
            CompileReport(0.0, cache_word(built)),
            self._identify,
            self.in_flight,
            self.queue_size,
            self._elsewhere if len(self.devices) > 1 else None,
            self._for_all_inputs if len(self.devices) > 1 and self.conditions else None,
        )

    def _elsewhere(self, lost: str) -> CompiledModel:
        """The model on all devices but one."""
        left = {name: device for name, device in self.devices.items() if name != lost}
        store = None if self.token else self.store
        return replace(self, devices=left, automatic=False)._compiled(store)

    def _for_all_inputs(self) -> CompiledModel:
        """The model without what devices compute right for some inputs only."""
        store = None if self.token else self.store
        return replace(self, conditions=False, automatic=False)._compiled(store)

    @property
    def _identify(self) -> Callable[[], Identity]:
        """Tells the marks of what the call asks for, and holds nothing else of the task."""
        padded = sorted((name, list(sizes)) for name, sizes in self.buckets.items())
        wishes = self.directives.words(), padded, os.cpu_count() if self.automatic else None
        token = self.token if isinstance(self.token, str) else ""
        devices = list(self.devices.values())
        return cached(
            partial(_identity, self.model, devices, self.options, wishes, token, self.fingerprints)
        )


def _identity(
    model: Model,
    devices: Sequence[GuardedDevice],
    options: Options,
    wishes: object,
    token: str,
    fingerprints: Fingerprints,
) -> Identity:
    """The marks of a compiled model; the token is made of the others unless there is one."""
    key = model_key(model, fingerprints)
    request = request_key(key, devices, options, wishes)
    return Identity(token or request[:_TOKEN_DIGITS], key, request)


_TOKEN_DIGITS = 32


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
        with limited(model.name, budget):
            asks = Compilation({name: devices[name]}, options).asks()
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
    settings = Configuration.of(configuration).overridden(
        precision, threads, performance, properties
    )
    directives = Directives(partition, pin, min_segment, max_segments, strict)
    directives.check()
    given, model, real = _prepared(model, shapes, mixed_precision, budget)
    types = {name: operand.type for name, operand in model.inputs.items()}
    sizes = sizes_from(types, ranges, profiles, specializations)
    options, padded = settings.options(sizes), buckets_from(buckets)
    with ExitStack() as owned:
        demanded = properties or {}
        opened = open_devices(devices, settings.properties, demanded, owned, isolate=isolate)
        opened |= host_of_kernels(model, opened, owned, isolate=isolate)
        choice = None
        if devices == "auto":
            choice = Automatic(model, opened, options, open_store(cache)).remembered()
        ordered = _in_order(opened, choice)
        with limited(model.name, budget):
            constraints = directives.constraints(model, given, _kinds(ordered))
            asked = Compilation(ordered, options, buckets=padded)
            placement = place(
                model, asked.asks(), constraints=constraints, ask_all=True, partial=True
            )
            tell_ways(placement, asked)
        placement.choice = choice
        placement.settings = _given(opened, options)
        placement.in_float = real
        return placement


def _prepared(
    model: Model | Any,
    shapes: Mapping[str, Sequence[int] | int] | None,
    mixed_precision: str | bytes | Path | None,
    budget: Budget | None,
) -> tuple[Model, Model, Sequence[str]]:
    """The model with the shapes fixed; that simplified; and what of it is to be in float32."""
    if not isinstance(model, Model):
        _check_uncompiled(model)
        # Importers are found where users find them: the runtime itself knows none.
        model = cast(Model, import_module("crosschip").load(model, budget=budget))
    with limited(model.name, budget):
        if shapes is not None:
            types = {name: operand.type for name, operand in model.inputs.items()}
            model = Specialize(*shapes_and_sizes(types, shapes))(model)
        check_sizes(model)
        given, model = model, simplify(model)
        if mixed_precision is None:
            return given, model, ()
        return given, *in_float(mixed_precision, model, given)


def _check_uncompiled(source: object) -> None:
    """Refuse a file that holds a compiled model, where a model is wanted."""
    if isinstance(source, str | os.PathLike | bytes) and recognizes(source):
        where = "the content" if isinstance(source, bytes) else source
        raise InputError(f"{where}: is compiled already; load it with crosschip.load_compiled")


def _given(
    devices: Mapping[str, GuardedDevice], options: Options
) -> dict[str, dict[str, str | None]]:
    """The settings of each engine; `performance` is `None` where it offers nothing for the mode."""
    given: dict[str, dict[str, str | None]] = {}
    for name, device in devices.items():
        given[name] = {**device.engine_settings(options)}
        wish = options.performance
        if wish is not Performance.NONE and wish not in device.modes():
            given[name]["performance"] = None
    return given
