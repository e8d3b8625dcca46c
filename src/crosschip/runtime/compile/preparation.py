"""Preparation of a request: the simplified model, the opened devices, and their options."""

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
from crosschip.runtime.artifact.container import looks_like_shipped_file
from crosschip.runtime.compile.devices import kernel_host, open_devices
from crosschip.runtime.compile.request import CompileRequest
from crosschip.runtime.compile.segments import cost_limit
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.constraints import Constraints, MixedPrecisionModel
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
        devices: the candidate devices, by name.
        options: the options for the devices.
        buckets: the sizes to pad to, by the name of a size.
    """

    request: CompileRequest
    original: Model
    mixed: MixedPrecisionModel
    devices: Mapping[str, GuardedDevice]
    options: Options
    buckets: Buckets

    @property
    def model(self) -> Model:
        """The model after passes."""
        return self.mixed.model

    def apply_placement_options(
        self, devices: Mapping[str, GuardedDevice]
    ) -> tuple[Mapping[str, GuardedDevice], Constraints]:
        """Resolve the placement options for devices.

        Returns:
            The devices, with the float32 variants for mixed precision; and the constraints.

        Raises:
            InputError: as for `PlacementOptions.constraints`.
        """
        kinds: dict[str, Kind] = {name: device.kind for name, device in devices.items()}
        with cost_limit(self.model.name, self.request.budget):
            constraints = self.request.placement.constraints(self.model, self.original, kinds)
            if not self.mixed.in_float32:
                return devices, constraints
            all_devices, exact = with_exact(devices, self.options)
            return all_devices, self.mixed.constraints(constraints, devices, exact)

    def all_devices(self) -> Mapping[str, GuardedDevice]:
        """Return the devices, with the float32 variants for mixed precision."""
        return with_exact(self.devices, self.options)[0] if self.mixed.in_float32 else self.devices


def prepare(source: Model | Any, request: CompileRequest, owned: ExitStack) -> Preparation:
    """Load and simplify the model, and open the devices.

    Args:
        source: the model, or an argument for `crosschip.load`.
        request: the request.
        owned: closes the devices that are opened here.

    Raises:
        Error: as for `crosschip.explain`.
    """
    return prepare_loaded(*load_model(source, request), request, owned)


def prepare_loaded(
    original: Model, model: Model, request: CompileRequest, owned: ExitStack
) -> Preparation:
    """Open the devices for a model that `load_model` returned, before and after passes.

    Raises:
        Error: as for `crosschip.explain`.
    """
    types = {name: operand.type for name, operand in model.inputs.items()}
    shapes = request.shapes
    sizes = sizes_from(types, shapes.ranges, shapes.profiles, shapes.specializations)
    options, buckets = request.settings.options(sizes), buckets_from(shapes.buckets)
    isolate = request.placement.isolate
    devices = open_devices(
        request.devices,
        request.settings.properties,
        request.required_properties,
        owned,
        isolate=isolate,
    )
    devices |= kernel_host(model, devices, owned, isolate=isolate)
    mixed = _mix_precision(model, original, request, devices, options)
    return Preparation(request, original, mixed, devices, options, buckets)


def engine_settings(
    devices: Mapping[str, GuardedDevice], options: Options
) -> dict[str, dict[str, str | None]]:
    """Return the settings of each engine; `performance` is `None` if it lacks the mode."""
    settings: dict[str, dict[str, str | None]] = {}
    for name, device in devices.items():
        settings[name] = {**device.engine_settings(options)}
        mode = options.performance
        if mode is not Performance.NONE and mode not in device.modes():
            settings[name]["performance"] = None
    return settings


def load_model(source: Model | Any, request: CompileRequest) -> tuple[Model, Model]:
    """Load the model and fix the shapes of its inputs; return it before and after passes."""
    model, budget, shapes = source, request.budget, request.shapes
    if not isinstance(model, Model):
        _check_uncompiled(model)
        # Through the public function, since the runtime does not import the importers.
        model = cast(Model, import_module("crosschip").load(model, budget=budget))
    with cost_limit(model.name, budget):
        types = {name: operand.type for name, operand in model.inputs.items()}
        if shapes.shapes is not None:
            model = Specialize(*shapes_and_sizes(types, shapes.shapes))(model)
            types = {name: operand.type for name, operand in model.inputs.items()}
        unnamed = unnamed_sizes(types) if shapes.ranges or shapes.profiles else {}
        if unnamed:
            # Ranges refer to sizes by name, in other processes too.
            model = Specialize({}, unnamed)(model)
        check_sizes(model)
        return model, simplify(model)


def _mix_precision(
    model: Model,
    original: Model,
    request: CompileRequest,
    devices: Mapping[str, GuardedDevice],
    options: Options,
) -> MixedPrecisionModel:
    """Apply the request's mixed-precision configuration."""
    if request.placement.mixed_precision is None:
        return MixedPrecisionModel(model)
    # Imported late: few requests have configurations.
    from crosschip.runtime.placement.mixed_precision import mix_precision

    with cost_limit(model.name, request.budget):
        reduced_devices = reduced(devices, options)
        return mix_precision(request.placement.mixed_precision, model, original, reduced_devices)


def _check_uncompiled(source: object) -> None:
    """Raise InputError if the source is a saved compiled model instead of a model."""
    if isinstance(source, str | os.PathLike | bytes) and looks_like_shipped_file(source):
        location = "the content" if isinstance(source, bytes) else source
        raise InputError(f"{location}: is compiled already; load it with crosschip.load_compiled")
