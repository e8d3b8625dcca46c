"""The devices that may run a model alone, opened and compiled for one at a time."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from crosschip.hal import Device
from crosschip.ir import Error, Model, UnsupportedError
from crosschip.ir.bodies import walk_constants
from crosschip.ir.closing import Closing
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.cache.store import Store
from crosschip.runtime.choice import Choice, ShapeKey, Trial
from crosschip.runtime.compile.automatic import Automatic, partial_trial
from crosschip.runtime.compile.preparation import Preparation, load_model, prepare_loaded
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.compile.task import compile_alone, compile_substitute, count_supported
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.configuration import Properties
from crosschip.runtime.discovery import (
    automatic,
    base_name,
    driver_name,
    origins,
    precision_of,
    startup_seconds,
)
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.placement.log_messages import SLOWEST
from crosschip.runtime.plans.plans import Plans
from crosschip.runtime.shapes.shape_search import ShapeSearch


class Candidates(Closing):
    """The devices that may run a model alone.

    Args:
        source: the model, or an argument for `crosschip.load`.
        request: the request.
        devices: the devices by name: a name or the caller's instance, in the order of the request.
        store: the store of programs and choices; `None` for none.
        plans: stores the plan; `None` if the model can have none.

    Attributes:
        names: the names of the devices that are tried, those first that are expected to be ready
            first.
        slow_names: the names of devices that are not tried, as they are slower than any engine.
    """

    def __init__(
        self,
        source: Model | Any,
        request: CompileRequest,
        devices: Mapping[str, str | Device],
        store: Store | None,
        plans: Plans | None,
    ) -> None:
        self._source = source
        self._request = request
        self._arguments = dict(devices)
        self._store = store
        self._plans = plans
        self._models: tuple[Model, Model] | None = None
        self._fingerprints = Fingerprints()
        self._prepared: dict[str, Preparation] = {}
        self._owned = ExitStack()
        self._lock = threading.Lock()
        fast = [name for name in devices if base_name(name) != SLOWEST]
        self.slow_names = [name for name in devices if base_name(name) == SLOWEST]
        self.names = sorted(fast, key=lambda name: _startup_seconds(devices[name]))

    @classmethod
    def of(
        cls,
        source: Model | Any,
        request: CompileRequest,
        store: Store | None,
        plans: Plans | None,
    ) -> Candidates | None:
        """Return the candidates of a request; `None` if there is nothing to choose from.

        That is so for less than two devices, for placement options that move operations, and for
        arguments that `compile_model` refuses.

        Raises:
            InputError: there is no such precision.
        """
        placement = request.placement
        devices = _by_name(request.devices, isolate=placement.isolate)
        if placement.moves or placement.mixed_precision is not None or devices is None:
            return None
        names = {*devices, *map(base_name, devices)}
        instances = {name for name, device in devices.items() if isinstance(device, Device)}
        if not names - instances >= set(request.required_properties):
            return None
        candidates = cls(source, request, devices, store, plans)
        return candidates if len(candidates.names) > 1 else None

    def recording(self) -> Any:
        """Return a context that records the files that are read, for the plan."""
        return nullcontext() if self._plans is None else self._plans.recording()

    def load(self) -> None:
        """Load the model.

        Raises:
            Error: as for `crosschip.load`.
        """
        with self._lock:
            if self._models is None:
                self._models = load_model(self._source, self._request)
                if self._store is not None:
                    self._fingerprints.begin(walk_constants(self._models[1]))

    @property
    def model(self) -> Model:
        """The loaded model, after passes.

        Raises:
            Error: as for `crosschip.load`.
        """
        return self._loaded()[1]

    def build(self, name: str) -> CompiledModel:
        """Open a device, and compile the whole model for it.

        Raises:
            Error: the device cannot be opened, does not run all operations, or fails.
        """
        prepared = self._open(name)
        substitute = partial(compile_substitute, self._source, self._request, self._store)
        return compile_alone(prepared, self._store, self._fingerprints, substitute)

    def adopt(self, devices: Mapping[str, GuardedDevice]) -> None:
        """Use devices that have been opened, and that the caller closes.

        Those with a precision of their own are opened again.
        """
        opened = {n: d.device for n, d in devices.items() if d.precision is None}
        self._arguments = {**self._arguments, **opened}

    def trial_of(self, name: str, error: Exception) -> Trial:
        """Return the trial of a device for which the model was not compiled."""
        prepared = self._prepared.get(name)
        if isinstance(error, UnsupportedError) and prepared is not None:
            (device,) = prepared.devices.values()
            count = count_supported(prepared, device)
            return partial_trial(name, count, len(prepared.model.operations))
        return Trial(name, reason=str(error))

    def automatic(self) -> Automatic:
        """Open all devices that can be opened; return what stores and ranks the choice."""
        opened: dict[str, GuardedDevice] = {}
        for name in self._arguments:
            try:
                opened.update(self._open(name).devices)
            except Error:  # reported by `build`
                continue
        options = next(iter(self._prepared.values())).options
        return Automatic(self.model, opened, options, self._store, self._fingerprints)

    def random_inputs(self, shapes: ShapeKey | None) -> list[Any]:
        """Return random inputs of the model, in order.

        Args:
            shapes: the shape of each input, in order; `None` for usual ones.

        Raises:
            InputError: inputs cannot be generated.
        """
        if shapes is None:
            options = next(iter(self._prepared.values())).options
            by_name = ShapeSearch(self.model, options.sizes).first()
        else:
            by_name = dict(zip(self.model.inputs, shapes, strict=True))
        inputs = random_inputs(self.model, by_name)
        return [inputs[name] for name in self.model.inputs]

    def save_plan(self, compiled: CompiledModel, choice: Choice) -> None:
        """Store a plan, with which later compilations begin with the chosen device."""
        if self._plans is None:
            return
        if compiled.details.programs is None:  # it was loaded by a plan
            with self.build(choice.order[0]) as again:
                again.placement.choice = choice
                self._plans.save(again)
        else:
            self._plans.save(compiled)

    def close(self) -> None:
        """Close the devices that were opened here."""
        self._owned.close()

    def _loaded(self) -> tuple[Model, Model]:
        if self._models is None:  # in the background, for a model that a plan has loaded
            with self.recording():
                self.load()
        assert self._models is not None
        return self._models

    def _open(self, name: str) -> Preparation:
        if name not in self._prepared:
            self._prepared[name] = self._prepare(self._arguments[name])
        return self._prepared[name]

    def _prepare(self, argument: str | Device) -> Preparation:
        """Open a device for the model."""
        required: Properties = {}
        if isinstance(argument, str):
            names = argument, base_name(argument)
            properties = self._request.required_properties
            required = {name: properties[name] for name in names if name in properties}
        request = replace(self._request, devices=[argument], required_properties=required)
        with ExitStack() as opening:
            prepared = prepare_loaded(*self._loaded(), request, opening)
            self._owned.push(opening.pop_all())
        name = next(iter(prepared.devices))  # and not the host of custom operators
        return replace(prepared, devices={name: prepared.devices[name]})


def _startup_seconds(device: str | Device) -> float:
    return startup_seconds(device) if isinstance(device, str) else device.startup_seconds


def _by_name(devices: Any, *, isolate: bool) -> dict[str, str | Device] | None:
    """Return the arguments for devices by name; `None` if `compile_model` refuses them.

    Raises:
        InputError: there is no such precision.
    """
    if devices == "auto":
        devices = automatic()
    elif isinstance(devices, str):
        devices = [name.strip() for name in devices.split(",")]
    if not isinstance(devices, Sequence) or not all(isinstance(d, str | Device) for d in devices):
        return None
    if isolate:
        devices = [driver_name(d) if isinstance(d, str) else d for d in devices]
    by_name = {d if isinstance(d, str) else d.name: d for d in devices}
    known = origins()
    names = [device for device in devices if isinstance(device, str)]
    for name in names:
        precision_of(name)
    is_known = all("@" in name or base_name(name).partition(":")[0] in known for name in names)
    return by_name if is_known and len(by_name) == len(devices) else None
