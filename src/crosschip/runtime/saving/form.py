"""A compiled model as a file of parts: its models, its placement, and the program of each segment.

The file is specified in docs/formats.md. Everything in it but the programs themselves is checked
when it is read; the programs go to their devices as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosschip.hal import Options
from crosschip.ir import DeviceError, Error, ModelError, UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.version import VERSION
from crosschip.ops.definition.serialization import many_from_bytes, many_to_bytes
from crosschip.runtime.cache.container import Container, assemble
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.placing import Placement
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.plain import from_plain, to_plain
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.saving.identity import Identity, Needs
from crosschip.runtime.saving.placements import describe, left_out, programs_by_segment, restore

KIND = "compiled model"

_MODELS, _PLACEMENT, _PROGRAMS = 0, 1, 2
"""The numbers of the parts; from the last on, there is one for each segment that a device runs."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a file of a compiled model.

    Attributes:
        crosschip: the version that compiled it.
        name: the model's.
        identity: what it is known by.
        devices: those that compiled the programs.
        options: how it was compiled.
        segments: for each program, the name of its device and how many operations it runs.
    """

    crosschip: str
    name: str
    identity: Identity
    devices: tuple[Needs, ...]
    options: Options
    segments: tuple[tuple[str, int], ...]


def assembled(
    placement: Placement,
    programs: Sequence[SegmentProgram],
    devices: Mapping[str, GuardedDevice],
    options: Options,
    identity: Identity,
) -> Iterator[bytes]:
    """The content of the file of a compiled model, piece by piece.

    Raises:
        UnsupportedError: a device does not save its programs.
        DeviceError: a device fails to save one.
        ModelFileError: a file that the model's weights are in has changed.
    """
    made = dict(programs_by_segment(placement, programs))
    segments = [segment for segment in placement.every_segment() if segment in made]
    saved = [_saved(segment, made[segment]) for segment in segments]
    compilers = [name for segment in segments for name in made[segment].compilers]
    used = dict.fromkeys([s.device for s in segments] + compilers) or placement.devices[:1]
    compiled_later = [segment for segment in segments if made[segment].compilers]
    models = [placement.given]
    described = describe(placement, models)
    header = Header(
        VERSION,
        placement.model.name,
        identity,
        tuple(Needs.of(devices[name]) for name in used),
        options,
        tuple((segment.device, len(segment.operations)) for segment in segments),
    )
    parts = [
        many_to_bytes(models, left_out(placement, devices, compiled_later)),
        json.dumps(described, separators=(",", ":")).encode(),
        *saved,
    ]
    return assemble(KIND, to_plain(header), parts)


def read_header(file: Container) -> Header:
    """The header of a file of a compiled model.

    Raises:
        ModelFileError: it is a file of something else.
        DeviceError: another version of crosschip saved it.
    """
    if file.kind != KIND:
        raise file.error(f"is a file of a {file.kind}, not of a compiled model")
    plain = {name: value for name, value in file.header.items() if name not in ("kind", "parts")}
    if plain.get("crosschip") != VERSION:
        raise DeviceError(
            f"{file.where}: crosschip {plain.get('crosschip')} compiled it, and this is "
            f"{VERSION}; compile the model again (crosschip compile)"
        )
    try:
        header = from_plain(Header, plain)
    except ValueError as error:
        raise file.error(f"has a header that is not laid out as it should be: {error}") from None
    if file.count != _PROGRAMS + len(header.segments):
        raise file.error(f"has {file.count} parts, which do not fit its header")
    return header


def read_placement(file: Container, header: Header) -> Placement:
    """The placement that was saved.

    Raises:
        ModelFileError: it is damaged, or not laid out as it should be.
    """
    models = many_from_bytes(file.part(_MODELS), file.where)
    try:
        plain: Mapping[str, Any] = json.loads(file.part(_PLACEMENT))
        placement = restore(plain, models[0], models)
        segments = [s for s in placement.every_segment() if s.device in placement.devices]
        if header.segments != tuple((s.device, len(s.operations)) for s in segments):
            raise ValueError("its segments are others than its header says")
    except (ModelError, UnsupportedError) as error:
        raise file.error(str(error)) from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise file.error(f"has a placement that is not laid out as it should be: {error}") from None
    return placement


def read_programs(file: Container, placement: Placement) -> dict[Segment, int]:
    """For each segment that a device runs, the part that holds its program."""
    segments = [s for s in placement.every_segment() if s.device in placement.devices]
    return {segment: _PROGRAMS + index for index, segment in enumerate(segments)}


def check_fit(file: Container, header: Header, devices: Mapping[str, GuardedDevice]) -> None:
    """Make sure that the devices here are those that the file was made with.

    Raises:
        DeviceError: some are not; the message lists all that does not fit.
    """
    told = []
    for needs in header.devices:
        here = devices.get(needs.name)
        misfit = f"{needs.name} is not among the devices" if here is None else needs.mismatch(here)
        told += [misfit] if misfit else []
    if told:
        raise DeviceError(
            f"{file.where}: does not fit: {'; '.join(told)}; compile the model again "
            f"(crosschip compile)"
        )


def _saved(segment: Segment, program: SegmentProgram) -> bytes:
    count = len(segment.operations)
    where = f"segment {segment.name}, {count} operation{'s' if count > 1 else ''}"
    try:
        saved = program.save()
    except Error as error:
        raise DeviceError(f"the compiled model cannot be saved: {error} ({where})") from error
    if saved is None:
        raise UnsupportedError(
            f"the compiled model cannot be saved: {segment.device} does not save its programs "
            f"({where}); compile it for other devices, or ship the model itself"
        )
    return bytes(saved)
