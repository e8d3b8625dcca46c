"""Preparation of a request: the model after passes, the opened devices, the options for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from typing import Any, cast

from crosschip.hal import Kind, Options, Performance
from crosschip.ir import InputError, Model
from crosschip.ir.budget import check_sizes
from crosschip.ir.dataclass import dataclass
from crosschip.ir.shape_binding import shapes_and_sizes, unnamed_sizes
from crosschip.passes import Specialize, simplify
from crosschip.runtime.artifact.container import is_shipped
from crosschip.runtime.compile.devices import host_of_kernels, open_devices
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.compile.segments import limited
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.mixed import Mixed
from crosschip.runtime.precisions import reduced, with_exact
from crosschip.runtime.shapes.arguments import buckets_from, sizes_from
from crosschip.runtime.shapes.padding import Buckets


@dataclass(frozen=True, slots=True)
class Preparation:
    """A request whose model has been loaded and whose devices have been opened.

    Attributes:
        request: the request.
        original: the model before passes.
        mixed: the model after passes, with the operations that compute in float32.
        devices: the devices that it may go to, by name.
        options: the options for the devices.
        buckets: the sizes to pad to, by the name of a size.
    """

    request: CompileRequest
    original: Model
    mixed: Mixed
    devices: Mapping[str, GuardedDevice]
    options: Options
    buckets: Buckets

    @property
    def model(self) -> Model:
        """The model after passes."""
        return self.mixed.model

    def constrained(
        self, devices: Mapping[str, GuardedDevice]
    ) -> tuple[Mapping[str, GuardedDevice], Constraints]:
        """Resolve the placement options for devices.

        Returns:
            The devices, with those that compute in float32 for mixed precision, and the
            constraints.

        Raises:
            InputError: as for `PlacementOptions.constraints`.
        """
        kinds: dict[str, Kind] = {name: device.kind for name, device in devices.items()}
        with limited(self.model.name, self.request.budget):
            constraints = self.request.placement.constraints(self.model, self.original, kinds)
            if not self.mixed.in_float32:
                return devices, constraints
            all_devices, exact = with_exact(devices, self.options)
            return all_devices, self.mixed.constraints(constraints, devices, exact)

    def all_devices(self) -> Mapping[str, GuardedDevice]:
        """Return the devices, with those that compute in float32 for mixed precision."""
        return with_exact(self.devices, self.options)[0] if self.mixed.in_float32 else self.devices


def prepare(source: Model | Any, request: CompileRequest, owned: ExitStack) -> Preparation:
    """Load and simplify the model, and open the devices, which `owned` closes.

    Args:
        source: the model, or what `crosschip.load` takes for one.
        request: the request.
        owned: closes the devices that are opened here.

    Raises:
        Error: as for `crosschip.explain`.
    """
    original, model = _load(source, request)
    types = {name: operand.type for name, operand in model.inputs.items()}
    shapes = request.shapes
    sizes = sizes_from(types, shapes.ranges, shapes.profiles, shapes.specializations)
    options, buckets = request.settings.options(sizes), buckets_from(shapes.buckets)
    isolate = request.placement.isolate
    devices = open_devices(
        request.devices, request.settings.properties, request.demanded, owned, isolate=isolate
    )
    devices |= host_of_kernels(model, devices, owned, isolate=isolate)
    mixed = _mix_precision(model, original, request, devices, options)
    return Preparation(request, original, mixed, devices, options, buckets)


def engine_settings(
    devices: Mapping[str, GuardedDevice], options: Options
) -> dict[str, dict[str, str | None]]:
    """Return the settings of each engine.

    `performance` is `None` where a device offers nothing for the mode.
    """
    settings: dict[str, dict[str, str | None]] = {}
    for name, device in devices.items():
        settings[name] = {**device.engine_settings(options)}
        mode = options.performance
        if mode is not Performance.NONE and mode not in device.modes():
            settings[name]["performance"] = None
    return settings


def _load(source: Model | Any, request: CompileRequest) -> tuple[Model, Model]:
    """Load the model and fix the shapes of its inputs; return it, and it simplified."""
    model, budget, shapes = source, request.budget, request.shapes
    if not isinstance(model, Model):
        _check_uncompiled(model)
        # Importers are found where users find them: the runtime itself knows none.
        model = cast(Model, import_module("crosschip").load(model, budget=budget))
    with limited(model.name, budget):
        types = {name: operand.type for name, operand in model.inputs.items()}
        if shapes.shapes is not None:
            model = Specialize(*shapes_and_sizes(types, shapes.shapes))(model)
            types = {name: operand.type for name, operand in model.inputs.items()}
        unnamed = unnamed_sizes(types) if shapes.ranges or shapes.profiles else {}
        if unnamed:
            # Only what has a name can have a range, and be found by it in another process.
            model = Specialize({}, unnamed)(model)
        check_sizes(model)
        return model, simplify(model)


def _mix_precision(
    model: Model,
    original: Model,
    request: CompileRequest,
    devices: Mapping[str, GuardedDevice],
    options: Options,
) -> Mixed:
    """Have the operations compute in float32 that the request lists."""
    if request.placement.mixed_precision is None:
        return Mixed(model)
    # Imported late: few requests need it, as what reads configurations.
    from crosschip.runtime.placement.mixed_precision import mixed

    with limited(model.name, request.budget):
        reduced_devices = reduced(devices, options)
        return mixed(request.placement.mixed_precision, model, original, reduced_devices)


def _check_uncompiled(source: object) -> None:
    """Refuse a file that holds a compiled model, where a model is wanted."""
    if isinstance(source, str | os.PathLike | bytes) and is_shipped(source):
        location = "the content" if isinstance(source, bytes) else source
        raise InputError(f"{location}: is compiled already; load it with crosschip.load_compiled")
