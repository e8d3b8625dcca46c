"""The options of every command that compiles models, or says how it would."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer

import crosschip
from crosschip.cli import _compiled_file, _options
from crosschip.cli._show import doing
from crosschip.ir import Model
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.missing_operators import missing_operators
from crosschip.runtime.placement.missing_operators import MissingOperator
from crosschip.runtime.placement.placement import Placement

_Command = TypeVar("_Command", bound=Callable[..., None])


@dataclass(frozen=True)
class Engines:
    """Options that say how devices are to compile."""

    threads: _options.Threads = None
    precision: _options.Precision = None
    performance: _options.Performance = None
    properties: _options.Properties = None
    config: _options.Config = None

    def configuration(self, devices: Sequence[str] | None = None) -> crosschip.Configuration:
        """All of them in one.

        Args:
            devices: the names that there may be properties for; any if left out.

        Raises:
            InputError: a value is none of those that there are.
        """
        properties = _options.properties(self.properties, devices)
        return crosschip.Configuration.of(self.config).overridden(
            self.precision, self.threads, self.performance, properties
        )


@dataclass(frozen=True)
class Compilation(Engines):
    """Options that say what is compiled, for which devices, and how."""

    devices: _options.Devices = "auto"
    input: _options.Inputs = None
    shape: _options.Shapes = None
    seed: _options.Seed = 0
    partition: _options.Partition = None
    mixed_precision: _options.MixedPrecision = None
    pin: _options.Pins = None
    min_segment: _options.MinSegment = 1
    max_segments: _options.MaxSegments = None
    strict: _options.Strict = False
    isolate: _options.Isolate = False
    use_cache: _options.UseCache = True
    cache_dir: _options.CacheFolder = None
    budget: _options.Limits = None

    def load(self, path: Path) -> Model:
        """The model in a file, once all options have been looked at."""
        self._arguments()
        limits = _options.budget(self.budget)
        with doing(f"importing {path}"):
            return crosschip.load(path, budget=limits)

    def inputs(self, model: Model) -> dict[str, Any]:
        """The inputs that are given, and random ones for the others."""
        return _options.inputs(model, self.input, _options.shapes(self.shape), self.seed)

    def compile(
        self, model: Model, shapes: Mapping[str, Sequence[int]] | None = None, **more: Any
    ) -> CompiledModel:
        """The model, compiled.

        Args:
            model: what to compile.
            shapes: those of the inputs; as the options say if left out.
            more: other arguments of `crosschip.compile`.
        """
        arguments = self._arguments() | more
        if shapes is not None:
            arguments["shapes"] = shapes
        with doing(f"compiling {model.name} for {self.devices}"):
            return crosschip.compile(model, self.devices, **arguments)

    def ready(
        self, path: Path, context: typer.Context, meaningful: Collection[str]
    ) -> tuple[CompiledModel, dict[str, Any]]:
        """The compiled model of a file, which may hold one already, and inputs for it.

        Args:
            path: of the file.
            context: of the command.
            meaningful: the parameters that mean something for what is compiled already.
        """
        if _compiled_file.is_compiled(path):
            limits = _options.budget(self.budget)
            compiled = _compiled_file.load(
                path, context, meaningful, limits, self.threads, self.performance
            )
            return compiled, self.inputs(compiled.placement.model)
        model = self.load(path)
        inputs = self.inputs(model)
        return self.compile(model), inputs

    def explain(self, model: Model) -> Placement:
        """The placement of a model: the device that would run each part."""
        with doing(f"asking {self.devices}"):
            return crosschip.explain(model, self.devices, **self._arguments())

    def missing(self, models: Sequence[Model], device: str) -> list[MissingOperator]:
        """What a device lacks for models, in the order in which to add it."""
        shapes = _options.shapes(self.shape)
        known_shapes = {**_options.input_shapes(self.input), **shapes}
        with doing(f"asking {device}"):
            return missing_operators(models, device, known_shapes, self.configuration())

    def _arguments(self) -> dict[str, Any]:
        shapes = _options.shapes(self.shape)
        return {
            "shapes": {**_options.input_shapes(self.input), **shapes},
            "cache": _options.cache(self.use_cache, self.cache_dir),
            "precision": self.precision,
            "threads": self.threads,
            "properties": _options.properties(self.properties),
            "configuration": crosschip.Configuration.of(self.config).overridden(
                performance=self.performance
            ),
            "placement": crosschip.PlacementOptions(
                pin=_options.pins(self.pin),
                partition=_options.configuration(self.partition),
                mixed_precision=_options.configuration(self.mixed_precision),
                min_segment=self.min_segment,
                max_segments=self.max_segments,
                strict=self.strict,
                isolate=self.isolate,
            ),
            "budget": _options.budget(self.budget),
        }


def takes(*groups: type) -> Callable[[_Command], _Command]:
    """Give a command the options of groups, each of which is the type of one of its parameters."""

    def decorate(command: _Command) -> _Command:
        own = inspect.signature(command)
        hints = get_type_hints(command, include_extras=True)
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in own.parameters.items():
            kind = hints[name]
            entries = _options_of(kind) if kind in groups else [parameter.replace(annotation=kind)]
            for entry in entries:
                parameters[entry.name] = entry.replace(kind=inspect.Parameter.KEYWORD_ONLY)

        def run(**values: Any) -> None:
            arguments: dict[str, Any] = {}
            for name in own.parameters:
                kind = hints[name]
                if kind in groups:
                    arguments[name] = kind(
                        **{each.name: values[each.name] for each in fields(kind)}
                    )
                else:
                    arguments[name] = values[name]
            command(**arguments)

        run.__doc__ = command.__doc__
        run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {name: entry.annotation for name, entry in parameters.items()}
        return run  # type: ignore[return-value]  # what it takes is what Typer fills in

    return decorate


def _options_of(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        entry.replace(annotation=hints[entry.name])
        for entry in inspect.signature(group).parameters.values()
    ]
