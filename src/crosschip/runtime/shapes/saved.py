"""The programs of a segment that is compiled for each set of shapes, as one part of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.ir import DeviceError
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache.container import Container, assemble
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.plain import from_plain, to_plain

KIND = "programs by shapes"

Key = tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]
"""The shapes of all inputs, and the elements of those that hold sizes."""


@dataclass(frozen=True, slots=True)
class ShapesHeader:
    """The header of the part.

    Attributes:
        devices: those that compile for further shapes, in the order of preference.
        buckets: the sizes that are padded to, by the name of a size.
        shapes: those that there are programs for, the least recently used first.
        entries: the entry of a cache that each of the programs would be.
    """

    devices: tuple[str, ...]
    buckets: Mapping[str, tuple[int, ...]]
    shapes: tuple[Key, ...]
    entries: tuple[Entry, ...]


class Missing(Exception):
    """A program is not among those that were saved."""


class SavedPrograms:
    """Programs that were saved, as a store that holds no others and takes none.

    Args:
        programs: by entry.
    """

    def __init__(self, programs: Mapping[Entry, bytes]) -> None:
        self._programs = {entry.key: saved for entry, saved in programs.items()}

    def read(self, entry: Entry) -> bytes | None:
        """The bytes of a program.

        Raises:
            Missing: there are none.
        """
        try:
            return self._programs[entry.key]
        except KeyError:
            raise Missing from None

    def write(self, entry: Entry, content: bytes) -> None:
        """Keep nothing."""

    def discard(self, entry: Entry, why: str) -> None:
        """Refuse bytes that a device does not load.

        Raises:
            DeviceError: always.
        """
        raise DeviceError(why)


def written(
    devices: Sequence[str],
    buckets: Mapping[str, Sequence[int]],
    shapes: Sequence[Key],
    programs: Mapping[Entry, bytes],
) -> bytes:
    """The content of the part; its arguments are as in the header."""
    padded = {name: tuple(sizes) for name, sizes in buckets.items()}
    header = ShapesHeader(tuple(devices), padded, tuple(shapes), tuple(programs))
    return b"".join(assemble(KIND, to_plain(header), list(programs.values())))


def read(part: bytes) -> tuple[ShapesHeader, SavedPrograms]:
    """What a part says, and the programs in it.

    Raises:
        ValueError: it is not laid out as it should be.
        ModelFileError: it is damaged.
    """
    with Container(part) as file:
        plain = {name: value for name, value in file.header.items() if name not in _OF_ANY_FILE}
        header = from_plain(ShapesHeader, plain)
        if file.kind != KIND or file.count != len(header.entries):
            raise ValueError("its programs are others than its header says")
        return header, SavedPrograms(dict(zip(header.entries, file.parts(), strict=True)))


_OF_ANY_FILE = ("kind", "parts")
