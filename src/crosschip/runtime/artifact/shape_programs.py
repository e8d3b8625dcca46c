"""The programs of a segment that is compiled for each set of shapes, where they were saved."""

from __future__ import annotations

from collections.abc import Mapping

from crosschip.ir import DeviceError
from crosschip.runtime.cache.entry import Entry


class MissingProgramError(Exception):
    """A program is not among those that were saved."""


class SavedPrograms:
    """A store of programs that were saved, which holds no others and takes none.

    Args:
        programs: by entry.
    """

    def __init__(self, programs: Mapping[Entry, bytes | memoryview]) -> None:
        self._programs = {entry.key: saved for entry, saved in programs.items()}

    def read(self, entry: Entry) -> bytes:
        """Return the bytes of a program.

        Raises:
            MissingProgramError: there are none.
        """
        try:
            return bytes(self._programs[entry.key])
        except KeyError:
            raise MissingProgramError from None

    def write(self, entry: Entry, content: bytes) -> None:
        """Keep nothing."""

    def discard(self, entry: Entry, why: str) -> None:
        """Refuse bytes that a device does not load.

        Raises:
            DeviceError: always.
        """
        raise DeviceError(why)
