"""From a file of a compiled model to one that runs: nothing is asked, placed or compiled."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from crosschip.hal import Device, Options, Sizes, Sizing
from crosschip.ir import Budget, CacheError, DeviceError, InputError, ModelError, ModelFileError
from crosschip.ir.budget import check_sizes
from crosschip.ir.dataclass import dataclass
from crosschip.ir.text import legible
from crosschip.runtime.artifact.compiled_model import (
    check_devices,
    device_segments,
    restore_placement,
)
from crosschip.runtime.artifact.container import Artifact, is_authenticated
from crosschip.runtime.artifact.header import (
    MODELS,
    PLACEMENT,
    DeviceRequirements,
    Header,
    ShapePrograms,
    StoredSegment,
    read_header,
)
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.cache.secret import secret
from crosschip.runtime.cache.store import check_token
from crosschip.runtime.compile.assembly import assemble
from crosschip.runtime.compile.programs import Built
from crosschip.runtime.compile.segments import (
    Compilation,
    build_segments,
    cost_limit,
    load_shape_programs,
    place_and_build,
)
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.configuration import Configuration
from crosschip.runtime.details import Details
from crosschip.runtime.discovery import open_device
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.precisions import EXACT, InPrecision, name_in
from crosschip.runtime.shapes.policy import strategy_for
from crosschip.runtime.shapes.strategy import DynamicShapeStrategy


def load_compiled(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    token: str | None = None,
    digest: str | None = None,
    devices: Sequence[Device] = (),
    threads: int | None = None,
    performance: str | None = None,
    in_flight: int | None = None,
    queue_size: int = 64,
    budget: Budget | None = None,
) -> CompiledModel:
    """Load a compiled model that `CompiledModel.save` wrote; nothing is compiled.

    Where a device compiles a program for each set of input shapes, those are there that had been
    compiled; for other shapes it does so when they come.

    The devices are opened that it was compiled by, and must be the same in version, settings and,
    where it matters, machine. A file holds programs, which vendors' code runs with the rights of
    the user, and crosschip cannot tell good ones from bad: load a file only if you trust whom it is
    from, and if others could have changed it on its strategy, only with its `digest`.

    Args:
        source: the path of the file, its content, or the file, open for reading bytes. With a
            token, also the cache folder that holds it under the token, or the content of the file
            in there.
        token: the token that the compiled model must have; any if `None`.
        digest: the digest that the file must have, as `crosschip compile` prints it; any if `None`.
        devices: instances to use in place of those that would be opened by the same names, and of
            others that may run the model on inputs beyond the range of those; they stay the
            caller's to close.
        threads: how many processor threads a run may use, in the place of what it was compiled
            with; an error that names the device if its programs have that fixed.
        performance: the balance between speed and power, likewise.
        in_flight: how many requests of `CompiledModel.submit` run at once; if `None`, as many as
            the model was compiled for, and at least two. Devices that can divide the processor's
            cores among them.
        queue_size: as for `compile`.
        budget: what it may cost to make models of what the file says: seconds, and the bytes of a
            tensor; `None` for the default.

    Raises:
        BudgetError: it costs more than the budget allows.
        InputError: an argument does not fit, or is fixed in the file.
        ModelFileError: it is no such file, is damaged, or has another digest.
        CacheError: the folder holds none under the token, or its token is another.
        DeviceError: a device is not there, is another than the one that compiled a program, or does
            not load it.
    """
    start = time.perf_counter()
    arguments = {"threads": threads, "performance": performance, "in_flight": in_flight}
    checked = Configuration().overridden(None, threads, performance, None, in_flight)
    options = checked.options(Sizes())
    overrides = {
        name: getattr(options, name) for name, value in arguments.items() if value is not None
    }
    if token is not None:
        check_token(token)
    callers = {device.name: GuardedDevice(device, device.name) for device in devices}
    with _open(source, digest, token) as file, ExitStack() as owned:
        header = read_header(file)
        if token is not None and header.identity.token != token:
            raise CacheError(f"{file.location}: has the token {header.identity.token}, not {token}")
        opened = dict(callers)
        for required in header.devices:
            if required.name not in callers:
                opened[required.name] = owned.enter_context(_open_device(file, required, callers))
        header = replace(header, options=_options(file, header, opened, overrides))
        compiled = load_file(file, header, opened, in_flight, queue_size, budget)
        owned.pop_all()
    compiled.own(device for name, device in opened.items() if name not in callers)
    milliseconds = (time.perf_counter() - start) * 1e3
    compiled.report = replace(compiled.report, milliseconds=milliseconds)
    return compiled


def _options(
    file: Artifact,
    header: Header,
    devices: Mapping[str, GuardedDevice],
    overrides: Mapping[str, Any],
) -> Options:
    """Return the options of a file, with the overrides that its programs do not have fixed.

    Where a device has the number of runs at once fixed, that is for the queue of requests alone.

    Raises:
        InputError: something is fixed.
    """
    changes: dict[str, Any] = {}
    for name, value in overrides.items():
        compiled_with = getattr(header.options, name)
        if value == compiled_with:
            continue
        fixed = _fixed_by(header, devices, name)
        if fixed is None:
            changes[name] = value
        elif name != "in_flight":
            can_be_set = name != "threads" or fixed.capabilities.threads
            remedy = f"compile the model again with {name}={value}"
            raise InputError(
                f"{file.location}: {name} cannot be {value}: the programs of {fixed.name} were "
                f"compiled with {name}={compiled_with}, which is part of them; "
                f"{remedy if can_be_set else 'the device has no such setting'}"
            )
    return replace(header.options, **changes)


def _fixed_by(
    header: Header, devices: Mapping[str, GuardedDevice], name: str
) -> GuardedDevice | None:
    """Return the first device whose programs have an option fixed; `None` if none has.

    Programs for sets of shapes are found by the options that they were compiled with.
    """
    for needs in header.devices:
        device = devices[needs.name]
        settable = device.capabilities.settable_at_load
        if name not in settable or device.capabilities.sizing is not Sizing.FREE:
            return device
    return None


def load_file(
    file: Artifact,
    header: Header,
    devices: Mapping[str, GuardedDevice],
    in_flight: int | None = None,
    queue_size: int = 64,
    budget: Budget | None = None,
) -> CompiledModel:
    """Load the compiled model of a file whose header has been read.

    Raises:
        BudgetError: it costs more than the budget allows.
        ModelFileError: the file is damaged, or not laid out as it should be.
        DeviceError: the devices are others than those that compiled it, or do not load it.
    """
    check_devices(file, header, devices)
    models, described = bytes(file.part(MODELS)), bytes(file.part(PLACEMENT))
    with cost_limit(file.location, budget):
        placement = restore_placement(models, described, header, file.location)
        check_sizes(placement.model)
    stored = zip(header.segments, header.part_numbers(), strict=True)
    loading = _Loading(
        file,
        {required.name: devices[required.name] for required in header.devices},
        header.options,
        dict(zip(device_segments(placement), stored, strict=True)),
    )
    programs = [one.program for one in build_segments(placement, loading)]
    details = Details(
        lambda: placement,
        lambda: header.identity,
        recompiled_unconditionally=lambda: _recompiled_unconditionally(placement, header, devices),
    )
    return assemble(
        placement,
        programs,
        {name: devices[name] for name in placement.devices if name in devices},
        header.options,
        details,
        source=lambda: "file",
        choice=placement.choice,
        in_flight=in_flight,
        queue_size=queue_size,
    )


def _recompiled_unconditionally(
    placement: Placement, header: Header, devices: Mapping[str, GuardedDevice]
) -> CompiledModel:
    """Compile the model of a file for additional devices, for inputs beyond others' ranges.

    Raises:
        UnsupportedError: none of them runs it.
        ModelFileError: the file lacks weights that they need.
        DeviceError: one fails to compile it.
    """
    own = {needs.name: devices[needs.name] for needs in header.devices}
    devices = {**own, **devices}
    compilation = Compilation(devices, header.options, conditions=False)
    recompiled, built = place_and_build(placement.model, compilation)
    programs = [one.program for one in built]
    details = Details(lambda: recompiled, lambda: header.identity)
    return assemble(recompiled, programs, devices, header.options, details, source=lambda: "off")


_MISMATCHES = (InputError, ModelError, ModelFileError)


@dataclass(frozen=True, slots=True)
class _Loading:
    """Makes programs by loading them from a file."""

    file: Artifact
    devices: Mapping[str, GuardedDevice]
    options: Options
    stored: Mapping[Segment, tuple[StoredSegment, range]]

    def __call__(self, segment: Segment, placement: Placement) -> Built:
        device = self.devices.get(segment.device)
        if device is None:
            raise self.file.error(f"has a program for {segment.device}, but does not say so")
        stored, numbers = self.stored[segment]
        saved = [self.file.part(number) for number in numbers]
        strategy = strategy_for(
            device.capabilities, placement.original, segment.model, self.options.sizes
        )
        by_shape = strategy is DynamicShapeStrategy.PROGRAM_PER_SHAPE
        if by_shape != (stored.shapes is not None):
            raise self.file.error(f"has programs of {segment.name} for shapes that do not fit it")
        if stored.shapes is not None:
            return self._load_shape_programs(segment, stored.shapes, saved)
        try:
            return Built.once(device.load(saved[0], segment.model, self.options), "hit")
        except DeviceError as error:
            raise DeviceError(f"{self.file.location}: {error}") from error

    def _load_shape_programs(
        self, segment: Segment, shapes: ShapePrograms, saved: Sequence[bytes | memoryview]
    ) -> Built:
        compilation = Compilation(self.devices, self.options)
        try:
            return load_shape_programs(segment, shapes, saved, compilation)
        except DeviceError as error:
            raise DeviceError(f"{self.file.location}: {error}") from error
        except (*_MISMATCHES, LookupError, TypeError, ValueError, ArithmeticError) as error:
            raise self.file.error(
                f"has programs of {segment.name} for shapes that do not fit it: {error}"
            ) from error


def _open_device(
    file: Artifact, required: DeviceRequirements, callers: Mapping[str, GuardedDevice]
) -> GuardedDevice:
    """Open a device that a file requires; one of the caller's may be needed in float32, too."""
    same = [one for one in callers.values() if name_in(EXACT, one.name) == required.name]
    if same:
        return InPrecision(same[0], EXACT)
    try:
        return open_device(required.name, required.properties or None)
    except (DeviceError, InputError) as error:
        raise DeviceError(
            f"{file.location}: needs the device {required.name!r}: {error}"
        ) from error


def _open(
    source: str | os.PathLike[str] | bytes | BinaryIO, digest: str | None, token: str | None
) -> Artifact:
    """Open a file, its content, or what a cache folder holds under a token.

    Raises:
        CacheError: the folder holds nothing under the token.
        ModelFileError: it is damaged, or has another digest.
    """
    if token is None:
        return Artifact(source, digest)
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        entry = Entry(token, "", "", "", 0, whole=True)
        cache = Cache(source)
        artifact = cache.open(entry)
        if artifact is None:
            raise CacheError(
                f"{legible(cache.path(entry))}: there is no compiled model under the token; "
                f"compile the model with cache=CacheOptions(…, token=…) first"
            )
        return artifact
    if isinstance(source, bytes) and is_authenticated(source):
        return Artifact(source, digest, secret=secret())
    return Artifact(source, digest)
