"""The competitors of a comparison: engines that read the file, and crosschip on devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from crosschip.bench.peers import open_peer
from crosschip.comparison.results import Measurement
from crosschip.ir import Array, DeviceError, InputError, Model, UnsupportedError
from crosschip.progress import task
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.discovery import automatic, base_name, open_device, origins
from crosschip.runtime.guard.calls import first_line
from crosschip.runtime.placement.log_messages import SLOWEST

AUTO, MEASURED = "auto", "measured"

Run = Callable[[], Mapping[str, Any]]
"""Computes the outputs, by name."""

Compile = Callable[[str | Sequence[str], str | None], CompiledModel]
"""Compiles the model of the comparison for devices, with a strategy of placement."""


class Competitor(NamedTuple):
    """An engine or a compiled model that is ready to run, or the reason why it is not.

    Attributes:
        measurement: what it is, without times; with the reason if it cannot run.
        run: computes the outputs, by name; `None` if it cannot.
    """

    measurement: Measurement
    run: Run | None = None


def open_engines(
    names: Sequence[str],
    path: Path,
    model: Model,
    inputs: Mapping[str, Array],
    threads: int | None,
) -> Iterator[Competitor]:
    """Open a model's file with engines.

    Args:
        names: the names of the engines.
        path: the file.
        model: the model in the file, whose outputs have names.
        inputs: the inputs of all runs.
        threads: the maximum number of threads; `None` leaves it to the engines.

    Raises:
        DeviceError: there is no engine of a name.
    """
    for name in names:
        open_model = open_peer(name)
        try:
            with task(f"compiling with {name} directly"):
                run = open_model(path, inputs, threads)
                run()
        except Exception as error:  # the engines' own exceptions have no common base
            reason = str(error) if isinstance(error, DeviceError) else first_line(error)
            yield Competitor(Measurement(name, True, reason=reason.replace(f"{path}: ", "")))
        else:
            yield Competitor(Measurement(name, True), partial(_named_outputs, model, run))


def _named_outputs(model: Model, run: Callable[[], Sequence[Array]]) -> Mapping[str, Array]:
    return dict(zip(model.outputs, run(), strict=True))


def open_devices(
    names: Sequence[str],
    inputs: Mapping[str, Any],
    compile: Compile,
    stack: ExitStack,
    *,
    auto: bool,
) -> Iterator[Competitor]:
    """Compile the model for each device alone, by measurement, and for mixtures of the devices.

    By measurement, the placement may be on one device or on several. A mixture begins with one of
    the devices, and the others follow in their order. It takes part if several devices run
    operations.

    Args:
        names: the names of the devices.
        inputs: the inputs of all runs.
        compile: compiles the model for devices.
        stack: closes the compiled models.
        auto: whether devices that are not named may be measured, too.
    """
    for name in names:
        yield _compiled(name, [name], inputs, compile, stack)
    if auto:
        yield _compiled(AUTO, AUTO, inputs, compile, stack)
    if len(names) < 2:
        return
    if not auto:
        yield _compiled(MEASURED, names, inputs, compile, stack, MEASURED)
    mixtures = set()
    for first in names:
        order = [first, *(name for name in names if name != first)]
        competitor = _mixed(order, inputs, compile, stack)
        if competitor is not None and competitor.measurement.name not in mixtures:
            mixtures.add(competitor.measurement.name)
            yield competitor


def _compiled(
    name: str,
    devices: str | Sequence[str],
    inputs: Mapping[str, Any],
    compile: Compile,
    stack: ExitStack,
    strategy: str | None = None,
) -> Competitor:
    """Compile for devices and run once."""
    try:
        compiled = stack.enter_context(compile(devices, strategy))
    except (DeviceError, UnsupportedError) as error:
        return Competitor(Measurement(name, False, reason=str(error)))
    return _run_once(name, compiled, inputs)


def _mixed(
    devices: Sequence[str], inputs: Mapping[str, Any], compile: Compile, stack: ExitStack
) -> Competitor | None:
    """Compile for a list of devices and run once; `None` if fewer than two run operations."""
    try:
        compiled = compile(devices, "order")
    except (DeviceError, UnsupportedError):  # which the devices alone say
        return None
    used = _devices_of(compiled)
    if len(used) < 2:
        compiled.close()
        return None
    stack.enter_context(compiled)
    return _run_once(" + ".join(device for device in devices if device in used), compiled, inputs)


def _run_once(name: str, compiled: CompiledModel, inputs: Mapping[str, Any]) -> Competitor:
    measurement = Measurement(name, False, _devices_of(compiled))
    try:
        compiled.run(inputs)
    except DeviceError as error:
        return Competitor(replace(measurement, reason=str(error)))
    return Competitor(measurement, partial(compiled.run, inputs))


def _devices_of(compiled: CompiledModel) -> tuple[str, ...]:
    devices = dict.fromkeys(segment.device for segment in compiled.placement.segments)
    return tuple(device for device in devices if device != RUNTIME)


def device_names(devices: str | Sequence[str]) -> list[str]:
    """Return the names of the devices to compare; for `auto` all but the reference.

    Raises:
        InputError: a device is no name.
        DeviceError: there is no such device.
    """
    if devices == AUTO:
        return [name for name in automatic() if name != SLOWEST]
    names = devices.split(",") if isinstance(devices, str) else list(devices)
    if not all(isinstance(name, str) for name in names):
        raise InputError("compare opens each device by itself; give their names")
    names = list(dict.fromkeys(name.strip() for name in names))
    for name in names:
        if base_name(name).partition(":")[0] not in origins():
            open_device(name).close()  # raises the error that names devices alike
    return names
