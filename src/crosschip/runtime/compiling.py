"""From a model to a compiled model: passes, placement, compilation, cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from functools import cache as cached
from functools import partial
from importlib import import_module
from typing import Any, cast

from crosschip.hal import Kind, Options, Performance
from crosschip.ir import Budget, InputError, Model
from crosschip.ir.binding import shapes_and_sizes, unnamed_sizes
from crosschip.ir.bodies import every_constant
from crosschip.ir.budget import check_sizes
from crosschip.ir.dataclass import dataclass
from crosschip.passes import Specialize, simplify
from crosschip.runtime.artifact.container import is_shipped
from crosschip.runtime.artifact.header import Identity
from crosschip.runtime.automatic import Automatic
from crosschip.runtime.building import (
    Compilation,
    cache_word,
    entries_of,
    limited,
    place_and_build,
    tell_ways,
)
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.cache.key import model_key, request_key
from crosschip.runtime.cache.store import Store
from crosschip.runtime.choice import Choice
from crosschip.runtime.compile_request import CompileRequest
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.details import CompileReport, Details
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.opening import host_of_kernels, instances, open_devices
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.mixed import Mixed
from crosschip.runtime.placement.options import PlacementOptions
from crosschip.runtime.placement.placing import Placement, place
from crosschip.runtime.placement.telling import SLOWEST
from crosschip.runtime.precisions import EXACT, name_in, reduced, with_exact
from crosschip.runtime.shapes.arguments import buckets_from, sizes_from
from crosschip.runtime.shapes.padding import Buckets

logger = logging.getLogger("crosschip")


def compile_model(
    source: Model | Any,
    wishes: CompileRequest,
    store: Store | None,
    token: str | bool = False,
) -> CompiledModel:
    """Place a model on devices, compile each part, and join the parts; see `compiler.compile`.

    Args:
        source: the model, or what `crosschip.load` takes for one.
        wishes: what the caller wants of it.
        store: where programs are kept; `None` for nowhere.
        token: the name under which the whole is kept, as for `compiler.compile`.

    Raises:
        Error: as for `compiler.compile`.
    """
    with ExitStack() as owned:
        task = _task(source, wishes, store, owned, token)
        compiled = (
            task.compile(store) if store is None or not token else task.load_or_compile(store)
        )
        owned.pop_all()
    theirs = instances(wishes.devices)
    compiled.own(device for device in task.devices.values() if device.device not in theirs)
    return compiled


def compile_substitute(
    source: Model | Any, wishes: CompileRequest, store: Store | None, lost: str | None
) -> CompiledModel:
    """The model compiled in the place of one that cannot run it any more.

    Args:
        source: what the model is loaded from.
        wishes: what the caller wants of it.
        store: where programs are kept; `None` for nowhere.
        lost: the device that it has to do without; `None` if it has all, but gives them only what
            they compute right for all inputs.

    Raises:
        Error: as for `compiler.compile`.
    """
    with ExitStack() as owned:
        task = _task(source, wishes, store, owned)
        compiled = (
            task.recompiled_unconditionally() if lost is None else task.recompiled_without(lost)
        )
        owned.pop_all()
    compiled.own(task.devices.values())
    return compiled


def _task(
    source: Model | Any,
    wishes: CompileRequest,
    store: Store | None,
    owned: ExitStack,
    token: str | bool = False,
) -> _Task:
    """The task of compiling a model; devices that are made for it are closed with `owned`."""
    given, model = _prepared(source, wishes)
    fingerprints = Fingerprints()
    options, padded = _options(model, wishes), buckets_from(wishes.shapes.buckets)
    devices = _opened(model, wishes, owned)
    mixed = _mixed(wishes, model, given, devices, options)
    if store is not None:
        fingerprints.begin(every_constant(model))
    return _Task(
        given, mixed, devices, options, padded, wishes.placement,
        token, store, wishes.budget, wishes.settings.in_flight, wishes.settings.queue_size,
        automatic=wishes.devices == "auto", fingerprints=fingerprints,
    )  # fmt: skip


def explain_model(source: Model | Any, wishes: CompileRequest, store: Store | None) -> Placement:
    """Place a model without compiling it; see `compiler.explain`.

    The arguments are those of `compile_model`.

    Raises:
        Error: as for `compiler.explain`.
    """
    given, model = _prepared(source, wishes)
    options, padded = _options(model, wishes), buckets_from(wishes.shapes.buckets)
    with ExitStack() as owned:
        opened = _opened(model, wishes, owned)
        mixed = _mixed(wishes, model, given, opened, options)
        model = mixed.model
        choice: Choice | None = None
        ordered: Mapping[str, GuardedDevice] = opened
        if wishes.devices == "auto" and len(opened) > 1:
            choice = Automatic(model, opened, options, store).remembered()
            ordered = _in_order(opened, choice, partial(_count, model, options, wishes.budget))
        with limited(model.name, wishes.budget):
            constraints = wishes.placement.constraints(model, given, _kinds(ordered))
            every, constraints = _with_exact(ordered, options, mixed, constraints)
            asked = Compilation(every, options, buckets=padded)
            placement = place(
                model, asked.queries(), constraints=constraints, ask_all=True, partial=True
            )
            tell_ways(placement, asked)
        placement.choice = choice
        placement.settings = _given(every, options)
        placement.in_float = mixed.operations
        return placement


def _options(model: Model, wishes: CompileRequest) -> Options:
    types = {name: operand.type for name, operand in model.inputs.items()}
    shapes = wishes.shapes
    sizes = sizes_from(types, shapes.ranges, shapes.profiles, shapes.specializations)
    return wishes.settings.options(sizes)


def _opened(model: Model, wishes: CompileRequest, owned: ExitStack) -> dict[str, GuardedDevice]:
    """The devices that a model may go to, by name; those made here are closed with `owned`."""
    opened = open_devices(
        wishes.devices,
        wishes.settings.properties,
        wishes.demanded,
        owned,
        isolate=wishes.placement.isolate,
    )
    return opened | host_of_kernels(model, opened, owned, isolate=wishes.placement.isolate)


@dataclass(frozen=True, slots=True)
class _Task:
    """The task of one call of `compile`: its arguments, checked and opened.

    Attributes:
        given: the model before passes.
        mixed: the model after them, with what is to compute in float32.
        devices: those that it may go to, by name.
        buckets: the sizes to pad to, by the name of a size.
        automatic: whether the order of the devices is to be found.
        conditions: whether devices may get what they compute right for some inputs only.
        fingerprints: of the model's constants, for all keys.
    """

    given: Model
    mixed: Mixed
    devices: Mapping[str, GuardedDevice]
    options: Options
    buckets: Buckets
    placement_options: PlacementOptions
    token: str | bool
    store: Store | None
    budget: Budget | None
    in_flight: int | None
    queue_size: int
    automatic: bool
    conditions: bool = True
    fingerprints: Fingerprints = field(default_factory=Fingerprints)

    @property
    def model(self) -> Model:
        """The model, after passes."""
        return self.mixed.model

    @property
    def _every_device(self) -> Mapping[str, GuardedDevice]:
        """The devices, with those that are there once more in float32."""
        return _with_exact(self.devices, self.options, self.mixed, Constraints())[0]

    def load_or_compile(self, store: Store) -> CompiledModel:
        """Load the compiled model that a store holds under the token, or compile and store it."""
        # Importing all that loads whole models takes longer than most of what does not need it.
        from crosschip.runtime.artifact.token_store import TokenStore

        every = self._every_device
        kept = TokenStore(store, self._identify(), self.model, every, self.budget)
        compiled, word = kept.load(self.in_flight, self.queue_size), "hit"
        if compiled is None:
            compiled = self.compile(None)
            word = "miss" if kept.save(compiled) else "off"
        compiled.report = replace(compiled.report, _cache=lambda: word)
        return compiled

    def compile(self, store: Store | None) -> CompiledModel:
        """Compile the model; programs that a store holds are loaded."""
        auto = None
        if self.automatic and len(self.devices) > 1:
            auto = Automatic(self.model, self.devices, self.options, store, self.fingerprints)
        devices = self.devices
        moves = self.placement_options.moves or bool(self.mixed.kept)
        if auto is not None and moves:
            count = partial(_count, self.model, self.options, self.budget)
            devices = _in_order(devices, auto.remembered(), count)
        with limited(self.model.name, self.budget):
            constraints = self.placement_options.constraints(
                self.model, self.given, _kinds(devices)
            )
            devices, constraints = _with_exact(devices, self.options, self.mixed, constraints)
        compilation = Compilation(
            devices, self.options, store, constraints, self.budget, self.buckets,
            conditions=self.conditions, fingerprints=self.fingerprints,
        )  # fmt: skip
        try:
            if auto is None or moves:
                return self._compile_for(devices, compilation)
            return _automatic(
                *(self.model, devices, self.options, auto, self.budget),
                lambda some: self._compile_for(some, replace(compilation, devices=some)),
            )
        finally:
            self.fingerprints.release()

    def _compile_for(
        self, devices: Mapping[str, GuardedDevice], compilation: Compilation
    ) -> CompiledModel:
        """Place the model on devices, compile its segments, and assemble the compiled model."""
        placement, built = place_and_build(self.model, compilation)
        tell_ways(placement, compilation)
        placement.settings = _given(devices, self.options)
        placement.in_float = self.mixed.operations
        words = [one.cache for one in built]
        return CompiledModel(
            placement,
            [one.program for one in built],
            devices,
            self.options,
            CompileReport(0.0, lambda: cache_word(word() for word in words)),
            Details(
                lambda: placement,
                self._identify,
                self.recompiled_without if len(self.devices) > 1 else None,
                self.recompiled_unconditionally
                if len(self.devices) > 1 and self.conditions
                else None,
                entries_of(built),
            ),
            self.in_flight,
            self.queue_size,
        )

    def recompiled_without(self, lost: str) -> CompiledModel:
        """The model on all devices but one."""
        left = {n: d for n, d in self.devices.items() if lost not in (n, name_in(EXACT, n))}
        store = None if self.token else self.store
        return replace(self, devices=left, automatic=False).compile(store)

    def recompiled_unconditionally(self) -> CompiledModel:
        """The model without what devices compute right for some inputs only."""
        store = None if self.token else self.store
        return replace(self, conditions=False, automatic=False).compile(store)

    @property
    def _identify(self) -> Callable[[], Identity]:
        """Tells the marks of what the call asks for, and holds nothing else of the task."""
        padded = sorted((name, list(sizes)) for name, sizes in self.buckets.items())
        kept = [operation.name for operation in self.mixed.kept]
        processors = os.cpu_count() if self.automatic else None
        wishes = self.placement_options.words(), padded, processors, kept
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
    choice, compiled = automatic.choose(
        lambda name: build({name: devices[name]}),
        lambda name: _count(model, options, budget, devices[name]),
    )
    if compiled is None:
        compiled = build({name: devices[name] for name in choice.order})
    compiled.placement.choice = choice
    compiled.report = replace(compiled.report, choice=choice)
    return compiled


def _count(model: Model, options: Options, budget: Budget | None, device: GuardedDevice) -> int:
    """The number of a model's operations that a device says it runs."""
    with limited(model.name, budget):
        asks = Compilation({device.name: device}, options).queries()
        placed = place(model, asks, partial=True)
    return len(placed.decisions) - len(placed.unplaced)


def _in_order(
    devices: Mapping[str, GuardedDevice],
    choice: Choice | None,
    count: Callable[[GuardedDevice], int],
) -> Mapping[str, GuardedDevice]:
    """The devices in the order that has been chosen before; else those first that run most.

    Args:
        devices: all, the most promising first.
        choice: what has been chosen; `None` if nothing has.
        count: how many operations a device runs.
    """
    if choice is not None:
        return {name: devices[name] for name in choice.order}
    counts = {name: count(device) for name, device in devices.items()}
    return dict(sorted(devices.items(), key=lambda one: (one[0] == SLOWEST, -counts[one[0]])))


def _kinds(devices: Mapping[str, GuardedDevice]) -> dict[str, Kind]:
    return {name: device.kind for name, device in devices.items()}


def _prepared(source: Model | Any, wishes: CompileRequest) -> tuple[Model, Model]:
    """The model with the shapes fixed, and that simplified."""
    model, budget, shapes = source, wishes.budget, wishes.shapes.shapes
    if not isinstance(model, Model):
        _check_uncompiled(model)
        # Importers are found where users find them: the runtime itself knows none.
        model = cast(Model, import_module("crosschip").load(model, budget=budget))
    with limited(model.name, budget):
        types = {name: operand.type for name, operand in model.inputs.items()}
        if shapes is not None:
            model = Specialize(*shapes_and_sizes(types, shapes))(model)
            types = {name: operand.type for name, operand in model.inputs.items()}
        unnamed = unnamed_sizes(types) if wishes.shapes.ranges or wishes.shapes.profiles else {}
        if unnamed:
            # Only what has a name can have a range, and be found by it in another process.
            model = Specialize({}, unnamed)(model)
        check_sizes(model)
        return model, simplify(model)


def _mixed(
    wishes: CompileRequest,
    model: Model,
    given: Model,
    devices: Mapping[str, GuardedDevice],
    options: Options,
) -> Mixed:
    """The model with what is to compute in float32."""
    if wishes.placement.mixed_precision is None:
        return Mixed(model)
    # Seldom needed, as is what reads configurations.
    from crosschip.runtime.placement.mixed_precision import mixed

    with limited(model.name, wishes.budget):
        return mixed(wishes.placement.mixed_precision, model, given, reduced(devices, options))


def _with_exact(
    devices: Mapping[str, GuardedDevice], options: Options, mixed: Mixed, constraints: Constraints
) -> tuple[Mapping[str, GuardedDevice], Constraints]:
    """The devices, with those once more in float32 that something is kept for; and constraints."""
    if not mixed.kept:
        return devices, constraints
    every, exact = with_exact(devices, options)
    return every, mixed.constraints(constraints, devices, exact)


def _check_uncompiled(source: object) -> None:
    """Refuse a file that holds a compiled model, where a model is wanted."""
    if isinstance(source, str | os.PathLike | bytes) and is_shipped(source):
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
