"""The options of commands that compile, explain or load models."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer

import crosschip
from crosschip.cli import _options
from crosschip.cli._pictures import Pictures
from crosschip.ir import Budget, Model
from crosschip.preprocessing import is_picture
from crosschip.progress import task
from crosschip.runtime.artifact.container import Artifact, looks_like_shipped_file
from crosschip.runtime.cache.key import model_key
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.missing_operators import missing_operators
from crosschip.runtime.placement.missing_operators import MissingOperator
from crosschip.runtime.placement.placement import Placement

_Command = TypeVar("_Command", bound=Callable[..., None])

_SETTINGS = ("threads", "performance")
"""The options of all commands that apply to a compiled model."""


@dataclass(frozen=True)
class Engines:
    """The compile options of devices."""

    threads: _options.Threads = None
    precision: _options.Precision = None
    performance: _options.Performance = None
    properties: _options.Properties = None
    config: _options.Config = None

    def configuration(self, devices: Sequence[str] | None = None) -> crosschip.Configuration:
        """Return the configuration of all options.

        Args:
            devices: the names of devices that may have properties; any if `None`.

        Raises:
            InputError: an option is invalid.
        """
        properties = _options.properties(self.properties, devices)
        return crosschip.Configuration.of(self.config).overridden(
            self.precision, self.threads, self.performance, properties
        )


@dataclass(frozen=True)
class Compilation(Pictures, Engines):
    """The options for pictures, devices, shapes, placement and cache."""

    devices: _options.Devices = "auto"
    signature: _options.Signature = None
    input: _options.Inputs = None
    shape: _options.Shapes = None
    seed: _options.Seed = 0
    placement: _options.Strategy = None
    tuning_seconds: _options.TuningSeconds = 10.0
    memory: _options.Memory = None
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
        """Check the options and load the model in a file; it takes pictures if they say so."""
        return self.attach(self._load(path), _options.files(self.input))

    def _load(self, path: Path) -> Model:
        self._arguments()
        limits = _options.budget(self.budget)
        return crosschip.load(path, signature=self.signature, budget=limits)

    def inputs(self, model: Model) -> dict[str, Any]:
        """Return the inputs of the options, and random ones for the others."""
        return _options.inputs(model, self.input, _options.shapes(self.shape), self.seed)

    @property
    def takes_pictures(self) -> bool:
        """Return whether the options make an input of the model take pictures."""
        return self.preprocess() is not None or any(
            map(is_picture, _options.files(self.input).values())
        )

    def compile(
        self, model: Model, shapes: Mapping[str, Sequence[int]] | None = None, **more: Any
    ) -> CompiledModel:
        """Compile a model.

        Args:
            model: the model.
            shapes: the shapes of the inputs; those of the options if `None`.
            more: other arguments of `crosschip.compile`.
        """
        arguments = self._arguments() | more
        if shapes is not None:
            arguments["shapes"] = shapes
        return crosschip.compile(model, self.devices, **arguments)

    def load_or_compile(
        self, path: Path, context: typer.Context, meaningful: Collection[str]
    ) -> tuple[CompiledModel, dict[str, Any]]:
        """Load or compile the model in a file, which may be a compiled one; return inputs too.

        Args:
            path: the path of the file.
            context: the context of the command.
            meaningful: the parameters that apply to a compiled model.
        """
        if looks_like_shipped_file(path):
            limits = _options.budget(self.budget)
            compiled = load_compiled_file(
                path, context, meaningful, limits, self.threads, self.performance
            )
            return compiled, self.inputs(compiled.placement.model)
        model = self.load(path)
        inputs = self.inputs(model)
        return self.compile(model), inputs

    def load_or_compile_plain(
        self, path: Path, context: typer.Context, meaningful: Collection[str], *, wait: bool
    ) -> tuple[CompiledModel, str]:
        """Load or compile the model in a file without preprocessing of pictures.

        Args:
            path: as for `load_or_compile`.
            context: as for `load_or_compile`.
            meaningful: as for `load_or_compile`.
            wait: as for `crosschip.compile`.

        Returns:
            The compiled model, and a digest of the file if that holds a compiled model, else of the
            model.
        """
        if looks_like_shipped_file(path):
            limits = _options.budget(self.budget)
            compiled = load_compiled_file(
                path, context, meaningful, limits, self.threads, self.performance
            )
            with Artifact(path) as file:
                return compiled, file.digest
        model = self._load(path)
        return self.compile(model, wait=wait), model_key(model)

    def explain(self, model: Model) -> Placement:
        """Return the placement of a model."""
        return crosschip.explain(model, self.devices, **self._arguments())

    def missing(self, models: Sequence[Model], device: str) -> list[MissingOperator]:
        """Return the operators that a device lacks for models, ranked by benefit."""
        shapes = _options.shapes(self.shape)
        known_shapes = {**_options.input_shapes(self.input), **shapes}
        with task(f"asking {device}"):
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
                strategy=self.placement,  # type: ignore[arg-type]  # checked there
                tuning_seconds=self.tuning_seconds,
                memory=_options.memory(self.memory),
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


def with_options(*groups: type) -> Callable[[_Command], _Command]:
    """Expand a command's parameters whose types are groups of options to these options."""

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


def load_compiled_file(
    path: Path,
    context: typer.Context,
    meaningful: Collection[str],
    budget: Budget,
    threads: int | None = None,
    performance: str | None = None,
) -> CompiledModel:
    """Load the compiled model in a file.

    Args:
        path: the path of the file.
        context: the context of the command.
        meaningful: the parameters of the command that apply to a compiled model.
        budget: the largest cost of loading.
        threads: as for `crosschip.load_compiled`.
        performance: likewise.

    Raises:
        typer.BadParameter: another parameter was passed.
    """
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name not in (*meaningful, *_SETTINGS):
            raise typer.BadParameter(
                f"{path} holds a compiled model, for which this means nothing",
                param_hint=parameter.opts[0],
            )
    return crosschip.load_compiled(path, threads=threads, performance=performance, budget=budget)
