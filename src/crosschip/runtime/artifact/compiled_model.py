"""A compiled model as an artifact: its models, its placement, and the programs of its segments.

Models and placement are checked when they are read; programs are passed to devices unchecked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from crosschip.ir import DeviceError, Error, ModelError, UnsupportedError
from crosschip.ops.definition.serialization import many_from_bytes, many_to_bytes
from crosschip.runtime.artifact.container import Artifact, ArtifactError
from crosschip.runtime.artifact.header import (
    DeviceRequirements,
    Header,
    ShapePrograms,
    StoredSegment,
)
from crosschip.runtime.artifact.placements import (
    describe,
    omitted_constants,
    programs_by_segment,
    restore,
)
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.plain import to_plain
from crosschip.runtime.programs import SegmentProgram
from crosschip.runtime.shapes.specialized import SpecializedProgram

if TYPE_CHECKING:
    from crosschip.runtime.executable import Executable


class Contents(NamedTuple):
    """The arguments of `container.encode` for a compiled model."""

    metadata: Mapping[str, object]
    parts: Sequence[bytes]


def compiled_contents(executable: Executable) -> Contents:
    """Return the contents of a compiled model with its programs.

    Raises:
        UnsupportedError: a device cannot save programs.
        DeviceError: a device fails to save a program.
        ModelFileError: a file with the model's weights has changed.
    """
    placement, devices = executable.details.placement(), executable.devices
    program_of = dict(programs_by_segment(placement, executable.programs))
    segments = [segment for segment in placement.all_segments() if segment in program_of]
    saved = [_save(segment, program_of[segment]) for segment in segments]
    compilers = [name for segment in segments for name in program_of[segment].compilers]
    used = dict.fromkeys([s.device for s in segments] + compilers) or placement.devices[:1]
    compiled_later = [segment for segment in segments if program_of[segment].compilers]
    header = Header(
        placement.model.name,
        executable.details.identity(),
        tuple(DeviceRequirements.of(devices[name]) for name in used),
        executable.options,
        tuple(
            StoredSegment(segment.device, len(segment.operations), shapes=shapes)
            for segment, (shapes, _) in zip(segments, saved, strict=True)
        ),
    )
    parts = [part for _, parts in saved for part in parts]
    return Contents(
        to_plain(header),
        [*describe_placement(placement, devices, compiled_later), *parts],
    )


def describe_placement(
    placement: Placement,
    devices: Mapping[str, GuardedDevice],
    compiled_later: Sequence[Segment] = (),
) -> tuple[bytes, bytes]:
    """Return the models and the placement as parts; arguments are as for `omitted_constants`."""
    models = [placement.original]
    described = json.dumps(describe(placement, models), separators=(",", ":")).encode()
    return many_to_bytes(models, omitted_constants(placement, devices, compiled_later)), described


def restore_placement(models: bytes, described: bytes, header: Header, location: str) -> Placement:
    """Return the placement that `describe_placement` described.

    Raises:
        ModelFileError: the parts are damaged or malformed.
    """
    decoded = many_from_bytes(models, location)
    try:
        plain: Mapping[str, Any] = json.loads(described)
        placement = restore(plain, decoded[0], decoded)
        stored = [(segment.device, segment.operations) for segment in header.segments]
        if stored != [(s.device, len(s.operations)) for s in device_segments(placement)]:
            raise ValueError("its segments differ from those in its header")
    except (ModelError, UnsupportedError) as error:
        raise ArtifactError(f"{location}: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ArtifactError(
            f"{location}: has a placement that is not laid out as it should be: {error}"
        ) from None
    return placement


def device_segments(placement: Placement) -> list[Segment]:
    """Return the segments that devices run, in the order of the header."""
    return [s for s in placement.all_segments() if s.device in placement.devices]


def check_devices(artifact: Artifact, header: Header, devices: Mapping[str, GuardedDevice]) -> None:
    """Check that the devices meet the requirements in the header.

    Raises:
        DeviceError: some do not; the message lists all mismatches.
    """
    mismatches = []
    for required in header.devices:
        device = devices.get(required.name)
        if device is None:
            mismatches.append(f"{required.name} is not among the devices")
        elif mismatch := required.mismatch(device):
            mismatches.append(mismatch)
    if mismatches:
        raise DeviceError(
            f"{artifact.location}: does not fit: {'; '.join(mismatches)}; compile the model again "
            f"(crosschip compile)"
        )


def _save(
    segment: Segment, program: SegmentProgram
) -> tuple[ShapePrograms | None, Sequence[bytes]]:
    """Return the saved program of a segment; or its programs for sets of shapes, and the shapes."""
    count = len(segment.operations)
    location = f"segment {segment.name}, {count} operation{'s' if count > 1 else ''}"
    saved: tuple[ShapePrograms | None, Sequence[bytes]] | None
    try:
        if isinstance(program, SpecializedProgram):
            saved = program.save_all()
        else:
            content = program.save()
            saved = None if content is None else (None, [bytes(content)])
    except Error as error:
        raise DeviceError(f"the compiled model cannot be saved: {error} ({location})") from error
    if saved is None:
        raise UnsupportedError(
            f"the compiled model cannot be saved: {segment.device} does not save its programs "
            f"({location}); compile it for other devices, or ship the model itself"
        )
    return saved
