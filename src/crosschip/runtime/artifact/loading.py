"""Loading of compiled models from files, without queries, placement or compilation."""

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
from crosschip.progress import task
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

    If a device compiles a program for each set of input shapes, the file has the programs that had
    been compiled; the device compiles others when their shapes occur.

    The devices that compiled the model are opened. They must have the same version and settings
    and, for some devices, be on the same type of machine. A file contains programs that vendors'
    code runs with the user's rights, and crosschip cannot check them: load files from trusted
    sources only, and with their `digest` if others could have changed them on the way.

    Args:
        source: the path of the file, its content, or the file, open for reading bytes. With a
            token, also a cache folder that has an entry under the token, or the content of the
            entry's file.
        token: the required token; any if `None`.
        digest: the required digest, as `crosschip compile` prints it; any if `None`.
        devices: instances, which the caller closes, to use instead of opening the devices of the
            same names; further ones may run the model on inputs that the first do not support.
        threads: the most processor threads of a run, instead of the compiled number.
        performance: the balance between speed and power, instead of the compiled one.
        in_flight: the requests of `CompiledModel.submit` that run at once; if `None`, the compiled
            number, and at least two. Devices divide the processor's cores among them if they can.
        queue_size: as for `compile`.
        budget: the largest cost of decoding the models: seconds, and bytes of a tensor; `None` for
            the default.

    Raises:
        BudgetError: loading costs more than the budget allows.
        InputError: an argument is invalid, or a setting is fixed in the file's programs.
        ModelFileError: the file is no compiled model, is damaged, or has another digest.
        CacheError: the folder has no entry under the token, or the file has another token.
        DeviceError: a device is missing, differs from the one that compiled a program, or cannot
            load it.
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
    with (
        _open(source, digest, token) as file,
        task(f"loading {file.location}"),
        ExitStack() as owned,
    ):
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
    """Return the options of a file with overrides.

    If the number of runs at once is fixed in a program, its override applies to the queue alone.

    Raises:
        InputError: another overridden option is fixed in a program.
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
    """Return the first device in whose programs an option is fixed; `None` if there is none.

    Options are part of the keys of programs for sets of shapes, so they are fixed in those.
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
        BudgetError: loading costs more than the budget allows.
        ModelFileError: the file is damaged or malformed.
        DeviceError: the devices differ from those that compiled it, or cannot load it.
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
    programs = [built.program for built in build_segments(placement, loading)]
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
    """Compile the model of a file for all inputs, on the file's and additional devices.

    Raises:
        UnsupportedError: no device runs some operation.
        ModelFileError: the file lacks weights that a device needs.
        DeviceError: a device fails to compile operations that no other device runs.
    """
    devices = {**{needs.name: devices[needs.name] for needs in header.devices}, **devices}
    compilation = Compilation(devices, header.options, conditions=False)
    recompiled, built = place_and_build(placement.model, compilation)
    programs = [item.program for item in built]
    details = Details(lambda: recompiled, lambda: header.identity)
    return assemble(recompiled, programs, devices, header.options, details, source=lambda: "off")


_MISMATCHES = (InputError, ModelError, ModelFileError)


@dataclass(frozen=True, slots=True)
class _Loading:
    """A function that loads the program of a segment from a file."""

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
    """Open a required device, or return the float32 variant of one of the caller's."""
    same = [device for device in callers.values() if name_in(EXACT, device.name) == required.name]
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
    """Open a file, its content, or the entry of a cache folder under a token.

    Raises:
        CacheError: the folder has no entry under the token.
        ModelFileError: the artifact is damaged, or has another digest.
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
