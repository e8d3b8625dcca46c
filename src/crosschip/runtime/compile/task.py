"""The task of one call of `compile` or `explain`: place, compile the segments, assemble."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from functools import cache as cached
from functools import partial
from typing import TYPE_CHECKING, Any

from crosschip.hal import Device, Options
from crosschip.ir import Model
from crosschip.ir.bodies import walk_constants
from crosschip.ir.dataclass import dataclass
from crosschip.progress import task
from crosschip.runtime.artifact.header import Identity
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.cache.key import model_key, request_key
from crosschip.runtime.cache.store import Store
from crosschip.runtime.choice import Choice
from crosschip.runtime.compile.assembly import assemble
from crosschip.runtime.compile.devices import caller_devices
from crosschip.runtime.compile.preparation import Preparation, engine_settings, prepare
from crosschip.runtime.compile.programs import cache_entries, cache_word
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.compile.segments import (
    Compilation,
    cost_limit,
    place_and_build,
    record_strategies,
)
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.details import Details
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.log_messages import SLOWEST
from crosschip.runtime.placement.placement import Placement, place
from crosschip.runtime.precisions import EXACT, name_in

if TYPE_CHECKING:
    from crosschip.runtime.compile.mixtures import Mixtures


def compile_model(
    source: Model | Any, request: CompileRequest, store: Store | None, token: str | bool = False
) -> CompiledModel:
    """Compile a model; see `crosschip.compile`.

    Args:
        source: the model, or an argument for `crosschip.load`.
        request: the request.
        store: the store of compiled programs; `None` for none.
        token: the name under which the compiled model is stored, as in `CacheOptions`.

    Raises:
        Error: as for `crosschip.compile`.
    """
    with ExitStack() as owned:
        task = _create_task(source, request, store, owned, token)
        if token and store is not None:
            compiled = task.load_or_compile(store)
        else:
            compiled = task.compile(store)
        owned.pop_all()
    compiled.own(task.opened_devices(caller_devices(request.devices)))
    return compiled


def compile_substitute(
    source: Model | Any, request: CompileRequest, store: Store | None, lost: str | None
) -> CompiledModel:
    """Compile the substitute of a compiled model that cannot run.

    Args:
        source: the model, or an argument for `crosschip.load`.
        request: the request.
        store: the store of compiled programs; `None` for none.
        lost: the device to leave out. If `None`, devices only get operations that they compute
            right for all inputs.

    Raises:
        Error: as for `crosschip.compile`.
    """
    with ExitStack() as owned:
        task = _create_task(source, request, store, owned)
        compiled = task.compile_without_conditions() if lost is None else task.compile_without(lost)
        owned.pop_all()
    compiled.own(task.opened_devices())
    return compiled


def compile_alone(
    prepared: Preparation,
    store: Store | None,
    fingerprints: Fingerprints,
    substitute: Callable[[str | None], CompiledModel],
) -> CompiledModel:
    """Compile a model for the only device of its preparation, which the caller closes.

    Args:
        prepared: the prepared request.
        store: the store of compiled programs; `None` for none.
        fingerprints: the fingerprints of the model's constants, for all keys.
        substitute: compiles the model for other devices without a lost one, or, for `None`, without
            conditions on inputs.

    Raises:
        Error: as for `crosschip.compile`.
    """
    task = _Task(
        prepared, False, store, automatic=False, fingerprints=fingerprints, substitute=substitute
    )
    return task.compile(store)


def explain_model(source: Model | Any, request: CompileRequest, store: Store | None) -> Placement:
    """Place a model without compiling it; see `crosschip.explain`.

    The arguments are those of `compile_model`.

    Raises:
        Error: as for `crosschip.explain`.
    """
    with ExitStack() as owned:
        prepared = prepare(source, request, owned)
        model, devices, options = prepared.model, prepared.devices, prepared.options
        choice: Choice | None = None
        placed_by = request.placement
        if placed_by.measures(request.devices) and len(devices) > 1:
            # Imported late: devices that are named are not measured.
            from crosschip.runtime.compile.automatic import Automatic

            words = placed_by.words()
            choice = Automatic(model, devices, options, store, placement=words).stored_choice()
            devices = _order_devices(prepared, choice)
        devices, constraints = prepared.apply_placement_options(devices)
        compilation = Compilation(devices, options, buckets=prepared.buckets)
        with task(f"placing {model.name}"), cost_limit(model.name, request.budget):
            queries = compilation.queries()
            placement = place(
                model,
                queries,
                constraints=constraints,
                requested=choice.mixture.requested if choice and choice.mixture else (),
                ask_all=True,
                partial=True,
            )
            record_strategies(placement, compilation)
        placement.choice = choice
        placement.settings = engine_settings(devices, compilation.options_for(placement))
        placement.in_float = prepared.mixed.operations
        placement.quirks = {name: device.avoided_quirks() for name, device in devices.items()}
        return placement


def _create_task(
    source: Model | Any,
    request: CompileRequest,
    store: Store | None,
    owned: ExitStack,
    token: str | bool = False,
) -> _Task:
    prepared = prepare(source, request, owned)
    fingerprints = Fingerprints()
    if store is not None:
        fingerprints.begin(walk_constants(prepared.model))
    automatic = request.placement.measures(request.devices)
    return _Task(prepared, token, store, automatic=automatic, fingerprints=fingerprints)


@dataclass(frozen=True, slots=True)
class _Task:
    """The task of one call of `compile`.

    Attributes:
        prepared: the prepared request.
        token: the name under which the compiled model is stored.
        store: the store of compiled programs; `None` for none.
        automatic: whether the placement is chosen by measurement.
        conditions: whether devices may get operations that they compute right for some inputs only.
        fingerprints: the fingerprints of the model's constants, for all keys.
        substitute: compiles the model for devices that the prepared request lacks; see
            `compile_alone`.
    """

    prepared: Preparation
    token: str | bool
    store: Store | None
    automatic: bool
    conditions: bool = True
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    substitute: Callable[[str | None], CompiledModel] | None = None

    def compile(self, store: Store | None) -> CompiledModel:
        """Compile the model; programs that a store holds are loaded."""
        prepared, request = self.prepared, self.prepared.request
        devices = prepared.devices
        several = self.automatic and len(devices) > 1
        measures = several and not prepared.mixed.in_float32
        if several and not measures and prepared.request.devices == "auto":
            devices = _order_devices(prepared, None)
        devices, constraints = prepared.apply_placement_options(devices)
        compilation = Compilation(
            devices, prepared.options, store, constraints, request.budget, prepared.buckets,
            conditions=self.conditions, fingerprints=self.fingerprints,
        )  # fmt: skip
        try:
            if measures:
                return self._compile_fastest(compilation)
            return self._compile_for(compilation)
        finally:
            self.fingerprints.release()

    def load_or_compile(self, store: Store) -> CompiledModel:
        """Load the compiled model under the token from a store, or compile and store it."""
        # Imported late: most calls have no token.
        from crosschip.runtime.artifact.token_store import TokenStore

        prepared = self.prepared
        settings, budget = prepared.request.settings, prepared.request.budget
        devices = prepared.all_devices()
        stored = TokenStore(store, self._identify(), prepared.model, devices, budget)
        compiled, word = stored.load(settings.in_flight, settings.queue_size), "hit"
        if compiled is None:
            compiled = self.compile(None)
            word = "miss" if stored.save(compiled) else "off"
        compiled.report = replace(compiled.report, _cache=lambda: word)
        return compiled

    def compile_without(self, lost: str) -> CompiledModel:
        """Compile the model for all devices but one."""
        devices = self.prepared.devices
        remaining = {n: d for n, d in devices.items() if lost not in (n, name_in(EXACT, n))}
        prepared = replace(self.prepared, devices=remaining)
        store = None if self.token else self.store
        return replace(self, prepared=prepared, automatic=False).compile(store)

    def compile_without_conditions(self) -> CompiledModel:
        """Compile the model without operations that devices compute right for some inputs only."""
        store = None if self.token else self.store
        return replace(self, conditions=False, automatic=False).compile(store)

    def opened_devices(self, callers: Sequence[Device] = ()) -> Iterable[GuardedDevice]:
        """Return the devices that were opened here, not by the caller."""
        return [d for d in self.prepared.devices.values() if d.device not in callers]

    def _compile_fastest(self, compilation: Compilation) -> CompiledModel:
        """Compile for the device that runs the model fastest, or for several."""
        # Imported late: devices that are named are not measured.
        from crosschip.runtime.compile.automatic import Automatic

        prepared, devices = self.prepared, compilation.devices

        def build(names: Sequence[str], requested: Sequence[str | None]) -> CompiledModel:
            some = {name: devices[name] for name in names}
            return self._compile_for(replace(compilation, devices=some, requested=requested))

        options, store = prepared.request.placement, compilation.store

        def mixtures() -> Mixtures:
            # Imported late: a stored choice needs no search.
            from crosschip.runtime.compile.mixtures import Mixtures

            return Mixtures(prepared.model, compilation, store, options, build)

        auto = Automatic(
            prepared.model, devices, prepared.options, store, self.fingerprints,
            options.words(), None if options.strategy == "order" else mixtures,
        )  # fmt: skip
        constraints = compilation.constraints
        choice, compiled = auto.choose(
            build, lambda name: count_supported(prepared, devices[name], constraints)
        )
        if compiled is None:
            compiled = build(choice.order, ())
        compiled.placement.choice = choice
        compiled.report = replace(compiled.report, choice=choice)
        return compiled

    def _compile_for(self, compilation: Compilation) -> CompiledModel:
        """Place the model on devices, compile its segments, and assemble the compiled model."""
        prepared, settings = self.prepared, self.prepared.request.settings
        placement, built = place_and_build(prepared.model, compilation)
        options = compilation.options_for(placement)
        record_strategies(placement, compilation)
        placement.settings = engine_settings(compilation.devices, options)
        placement.in_float = prepared.mixed.operations
        words = [item.cache for item in built]
        without: Callable[[str], CompiledModel] | None = self.substitute
        unconditional: Callable[[], CompiledModel] | None = None
        if self.substitute is not None:
            unconditional = partial(self.substitute, None)
        elif len(prepared.devices) > 1:
            without = self.compile_without
            unconditional = self.compile_without_conditions if self.conditions else None
        details = Details(
            lambda: placement, self._identify, without, unconditional, cache_entries(built)
        )
        return assemble(
            placement,
            [item.program for item in built],
            compilation.devices,
            options,
            details,
            source=lambda: cache_word(word() for word in words),
            in_flight=settings.in_flight,
            queue_size=settings.queue_size,
        )

    @property
    def _identify(self) -> Callable[[], Identity]:
        """Return a function that computes the identity, without a reference to the task."""
        prepared = self.prepared
        padded = sorted((name, list(sizes)) for name, sizes in prepared.buckets.items())
        in_float32 = [operation.name for operation in prepared.mixed.in_float32]
        processors = os.cpu_count() if self.automatic else None
        key_options = prepared.request.placement.words(), padded, processors, in_float32
        token = self.token if isinstance(self.token, str) else ""
        devices = list(prepared.devices.values())
        return cached(
            partial(
                _identity, prepared.model, devices, prepared.options,
                key_options, token, self.fingerprints,
            )
        )  # fmt: skip


_TOKEN_DIGITS = 32


def _identity(
    model: Model,
    devices: Sequence[GuardedDevice],
    options: Options,
    key_options: object,
    token: str,
    fingerprints: Fingerprints,
) -> Identity:
    """Compute the identity of a compiled model; a missing token is derived from the request."""
    key = model_key(model, fingerprints)
    request = request_key(key, devices, options, key_options)
    return Identity(token or request[:_TOKEN_DIGITS], key, request)


def count_supported(
    prepared: Preparation, device: GuardedDevice, constraints: Constraints | None = None
) -> int:
    """Count the operations of the model that a device supports within constraints."""
    model = prepared.model
    with cost_limit(model.name, prepared.request.budget):
        queries = Compilation({device.name: device}, prepared.options).queries()
        placement = place(model, queries, constraints=constraints, partial=True)
    return len(placement.decisions) - len(placement.unplaced)


def _order_devices(prepared: Preparation, choice: Choice | None) -> Mapping[str, GuardedDevice]:
    """Return the devices in the chosen order; without a choice, by supported operations."""
    devices = prepared.devices
    if choice is not None:
        return {name: devices[name] for name in choice.order}
    counts = {name: count_supported(prepared, device) for name, device in devices.items()}
    return dict(sorted(devices.items(), key=lambda item: (item[0] == SLOWEST, -counts[item[0]])))
