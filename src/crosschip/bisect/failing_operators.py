"""The function that searches for the operators that a device computes wrong."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import crosschip
from crosschip.bisect.investigation import Investigation
from crosschip.bisect.recording import Recording
from crosschip.bisect.report import Report
from crosschip.bisect.trials import Trials
from crosschip.hal import Device, Sizes
from crosschip.ir import Budget, InputError, Model
from crosschip.progress import task
from crosschip.runtime.configuration import Properties
from crosschip.runtime.discovery import base_name, driver_name, precision_of
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.placement.decision import Decision
from crosschip.runtime.precisions import EXACT, name_in


def find_failing_operators(
    model: Model | Any,
    device: str | Device,
    *,
    against: str | Device = "reference",
    inputs: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Sequence[int | None] | int] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
    isolate: bool | None = None,
    thorough: bool = False,
    timeout: float = 60.0,
    compile_timeout: float = 600.0,
    seconds: float | None = None,
    runs: int | None = None,
    precision: str | None = None,
    threads: int | None = None,
    performance: str | None = None,
    properties: Properties | None = None,
    configuration: crosschip.Configuration | str | Path | None = None,
    mixed_precision: str | bytes | Path | None = None,
    budget: Budget | None = None,
) -> Report:
    """Find the operations of a model that a device computes wrong.

    The model's dynamic sizes are those of the inputs.

    Args:
        model: a model, or an argument for `crosschip.load`.
        device: the tested device: a name, or an instance, which the caller closes.
        against: the trusted device.
        inputs: as for `CompiledModel.run`; missing ones are random, as in `crosschip run`.
        shapes: the shapes of random inputs, as for `crosschip.compile`.
        seed: the seed of random inputs.
        tolerance: the allowed difference of an element relative to the output's largest element; if
            left out, it follows from rounding (docs/bisect.md).
        isolate: whether the device runs in a driver process, which may crash and hang; by default
            so unless it is an instance.
        thorough: whether each operation is tested separately even if the device shows so few
            results at once that this takes more than about 4 · log2(operations) + 20 runs.
        timeout: seconds after which a run in a driver process counts as hanging.
        compile_timeout: seconds after which a compilation there counts as hanging.
        seconds: the time limit of the search; the report is incomplete if it is reached.
        runs: the maximum number of runs on the device; the report is incomplete if it is reached.
        precision: as for `crosschip.compile`, of the device alone; so are the next ones.
        threads: see above.
        performance: see above.
        properties: see above.
        configuration: see above.
        mixed_precision: see above.
        budget: see above.

    Raises:
        InputError: an argument is invalid.
        DeviceError: a device is unknown or cannot be opened, or the trusted one fails.
        UnsupportedError: no device runs some operation.
    """
    _check(tolerance, {"timeout": timeout, "compile_timeout": compile_timeout})
    if not isinstance(model, Model):
        model = crosschip.load(model, budget=budget)
    all_inputs, notes = _inputs(model, inputs or {}, shapes or {}, seed)
    isolated = isinstance(device, str) and isolate is not False
    chosen: str | Device = driver_name(device) if isolated and isinstance(device, str) else device
    if isolate and not isolated:
        raise InputError(f"device {_name(device)!r} is in this process; isolate needs its name")
    if _name(chosen) == _name(against):
        raise InputError(f"{_name(against)!r} cannot be looked at against itself; name another one")
    settings = crosschip.Configuration.of(configuration).overridden(
        precision,
        threads,
        performance,
        _with_time_limits(properties or {}, chosen, timeout, compile_timeout),
    )
    options: dict[str, Any] = {"configuration": settings, "budget": budget}
    trusted = against
    if (
        isinstance(against, str)
        and settings.precision != EXACT.value
        and precision_of(against) is None
    ):
        trusted = name_in(EXACT, against)
    placement = crosschip.explain(
        model,
        [chosen, trusted],
        shapes={name: np.shape(value) for name, value in all_inputs.items() if _is_tensor(value)},
        placement=crosschip.PlacementOptions(mixed_precision=mixed_precision),
        cache=False,
        **options,
    )
    placement.check()
    name = placement.devices[0]
    variants = {name, name_in(EXACT, name)}
    suspects = [d.operation for d in placement.decisions if _runs_on(d, variants)]
    report = Report(placement.original, name, _name(against), suspects, notes=notes)
    report.options = _options(settings, base_name(name))
    arithmetic = precision_of(name) or settings.options(Sizes()).precision
    whole_model = len(suspects) == len(placement.original.operations)
    in_float32 = frozenset(placement.in_float if arithmetic is not EXACT else ())
    with task(f"bisecting {model.name} on {name}") as progress:
        progress.describe(f"recording what is right on {_name(against)}")
        recording = Recording.of(placement.original, all_inputs, against, arithmetic, tolerance)
        trials = Trials(
            chosen, trusted, options, whole_model, seconds, runs, in_float32, progress=progress
        )
        Investigation(recording, trials, suspects, report, thorough=thorough).find()
    return report


def _check(tolerance: float | None, limits: Mapping[str, float]) -> None:
    if tolerance is not None and not 0 <= tolerance < math.inf:
        raise InputError(f"tolerance is {tolerance!r}, but must be a part of the largest element")
    for name, seconds in limits.items():
        if not 0 < seconds < math.inf:
            raise InputError(f"{name} is {seconds!r}, but must be a number of seconds")


def _name(device: str | Device) -> str:
    return device if isinstance(device, str) else device.name


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, dict) and value is not None


def _inputs(
    model: Model,
    inputs: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int | None] | int],
    seed: int,
) -> tuple[dict[str, Any], list[str]]:
    """Return the inputs of a run, and a note about random ones."""
    random_names = [name for name in model.inputs if name not in inputs]
    all_shapes = {**shapes, **{n: np.shape(v) for n, v in inputs.items() if n in model.inputs}}
    if not random_names:
        return dict(inputs), []
    names = ", ".join(random_names)
    note = f"made-up inputs (seed {seed}): {names}; give real ones, which show what those may not"
    return {**random_inputs(model, all_shapes, seed), **inputs}, [note]


def _with_time_limits(
    properties: Properties, device: str | Device, run: float, compile: float
) -> Properties:
    """Return the properties with the timeouts of a device in a driver process."""
    if not isinstance(device, str) or "@" not in device:
        return properties
    limits = {"driver_run_seconds": f"{run:g}", "driver_compile_seconds": f"{compile:g}"}
    return {**properties, device: {**limits, **properties.get(device, {})}}


def _options(settings: crosschip.Configuration, device: str) -> list[str]:
    """Return the command-line options that reproduce a device's settings."""
    values = {"precision": settings.precision, "threads": settings.threads}
    default = crosschip.Configuration()
    words = [
        word
        for name, value in values.items()
        if value != getattr(default, name)
        for word in (f"--{name}", str(value))
    ]
    properties = settings.properties.get(device, {}).items()
    return [*words, *(w for n, v in properties for w in ("--property", f"{device}.{n}={v}"))]


def _runs_on(decision: Decision, devices: Collection[str]) -> bool:
    """Return whether one of the devices runs an operation, or an operation in its bodies."""
    inside = (each for body in decision.bodies for each in body.all_decisions())
    return decision.device in devices or any(each.device in devices for each in inside)
