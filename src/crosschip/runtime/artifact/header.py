"""The header of a compiled model: in a file, under a token, or in a plan.

A plan is a compiled model whose programs are references to other entries of the cache. Loading one
imports neither operators nor placement, so this module does not either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from crosschip.hal import Options
from crosschip.ir import DeviceError
from crosschip.ir.dataclass import dataclass
from crosschip.ir.version import VERSION
from crosschip.runtime.artifact.container import Artifact
from crosschip.runtime.artifact.origin import Origin
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.choice import Choice
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.plain import from_plain

KIND = "compiled model"

MODELS, PLACEMENT, PROGRAMS = 0, 1, 2
"""The indices of the parts; all from `PROGRAMS` on are programs of segments."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The token and keys of a compiled model.

    Attributes:
        token: the caller's token, or 32 digits of `request`.
        model: the key of the source model (see `crosschip.runtime.cache.key`).
        request: the key of all arguments of `compile`, including the model.
    """

    token: str
    model: str
    request: str


@dataclass(frozen=True, slots=True)
class DeviceRequirements:
    """The properties of a device that must be equal when its programs are loaded.

    Attributes:
        name: the device's name.
        version: the version of the engine.
        tied_to: further texts that must be equal, like the processor.
        properties: the settings that the device is opened with.
    """

    name: str
    version: str
    tied_to: tuple[str, ...]
    properties: Mapping[str, str]

    @classmethod
    def of(cls, device: GuardedDevice) -> DeviceRequirements:
        """Return the requirements that a device meets."""
        tied_to = device.capabilities.tied_to
        return cls(device.name, device.version, tuple(tied_to), dict(device.properties))

    def mismatch(self, device: GuardedDevice) -> str:
        """Return a device's difference from the requirements, in words; empty if there is none."""
        actual = DeviceRequirements.of(device)
        if actual.version != self.version:
            return f"{self.name} {self.version} compiled it, and here is {actual.version}"
        if actual.tied_to != self.tied_to:
            theirs, ours = _difference(self.tied_to, actual.tied_to)
            return f"{self.name} compiled it for another machine: {theirs!r}, and here is {ours!r}"
        if actual.properties != self.properties:
            return (
                f"{self.name} compiled it with the properties {dict(self.properties)}, and has "
                f"{dict(actual.properties)}"
            )
        return ""


ShapeKey = tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
"""The shapes of all inputs, and the elements of those whose values are sizes."""


@dataclass(frozen=True, slots=True)
class ShapePrograms:
    """The programs of a segment that is compiled for each set of its inputs' shapes.

    Attributes:
        devices: the devices that compile for further shapes, in the order of preference.
        buckets: the sizes to pad to, by the name of a size.
        shapes: the shapes that have programs, the least recently used first.
        entries: the cache entry of each program; each is in one part.
    """

    devices: tuple[str, ...]
    buckets: Mapping[str, tuple[int, ...]]
    shapes: tuple[ShapeKey, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A segment with its program.

    Attributes:
        device: the name of its device.
        operations: the number of its operations.
        entry: the cache entry with the program; `None` if a part has it.
        shapes: the programs for sets of shapes, if the segment is compiled per shape.
    """

    device: str
    operations: int
    entry: Entry | None = None
    shapes: ShapePrograms | None = None

    @property
    def parts(self) -> int:
        """The number of parts that hold its programs."""
        if self.entry is not None:
            return 0
        return 1 if self.shapes is None else len(self.shapes.entries)


@dataclass(frozen=True, slots=True)
class Plan:
    """The additional fields of a plan in the header of a compiled model.

    Attributes:
        origin: the files that the model was loaded from.
        candidates: the names of the candidate devices.
        classes: the module and qualified name of the class of each device in use.
        messages: the log messages about the placement, as levels and texts.
        choice: the measurements for `"auto"`; `None` if the caller named the devices.
        outline: the result of `describe_outline`.
    """

    origin: Origin
    candidates: tuple[str, ...]
    classes: tuple[tuple[str, str], ...]
    messages: tuple[tuple[int, str], ...]
    choice: Choice | None
    outline: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Header:
    """The metadata of a compiled model.

    Attributes:
        name: the name of the model.
        identity: the token and keys.
        devices: the requirements of the devices that compiled the programs.
        options: the compile options.
        segments: the segments that devices run.
        plan: the fields of a plan; `None` for a compiled model with its programs.
    """

    name: str
    identity: Identity
    devices: tuple[DeviceRequirements, ...]
    options: Options
    segments: tuple[StoredSegment, ...]
    plan: Plan | None = None

    def part_numbers(self) -> Iterator[range]:
        """Return the indices of the parts with the programs of each segment."""
        begin = PROGRAMS
        for segment in self.segments:
            yield range(begin, begin + segment.parts)
            begin += segment.parts


def read_header(artifact: Artifact, *, plan: bool = False) -> Header:
    """Return the header of a compiled model with its programs, or of a plan.

    Raises:
        ArtifactError: the artifact is of another kind.
        DeviceError: another version of crosschip saved it.
    """
    if artifact.kind != KIND:
        raise artifact.error(f"is a file of a {artifact.kind}, not of a compiled model")
    if artifact.version != VERSION:
        raise DeviceError(
            f"{artifact.location}: crosschip {artifact.version} compiled it, and this is "
            f"{VERSION}; compile the model again (crosschip compile)"
        )
    try:
        header = from_plain(Header, artifact.metadata)
    except ValueError as error:
        raise artifact.error(
            f"has a header that is not laid out as it should be: {error}"
        ) from None
    if plan != (header.plan is not None):
        raise artifact.error(f"is {'no' if plan else 'a'} plan, whose programs are in a cache")
    if artifact.count != PROGRAMS + sum(segment.parts for segment in header.segments):
        raise artifact.error(f"has {artifact.count} parts, which do not fit its header")
    if any(plan != (segment.entry is not None) for segment in header.segments):
        raise artifact.error("has programs both in itself and in other entries")
    return header


def _difference(theirs: Sequence[str], ours: Sequence[str]) -> tuple[str, str]:
    """Return the first lines in which two descriptions of machines differ."""
    lines = [
        [line for text in lines_of for line in text.splitlines()] for lines_of in (theirs, ours)
    ]
    missing = [
        next((line for line in lines_of if line not in other), "")
        for lines_of, other in (lines, reversed(lines))
    ]
    return missing[0], missing[1]
