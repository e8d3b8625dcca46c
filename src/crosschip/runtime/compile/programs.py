"""The programs of segments, and where they come from: a compiler, the cache, or a saved file."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from crosschip.ir import DeviceError
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache import background_writer
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.key import cache_key
from crosschip.runtime.cache.store import Store, begin_reading, write_parts
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.programs import SegmentProgram

if TYPE_CHECKING:
    from crosschip.runtime.compile.segments import Compilation

logger = logging.getLogger("crosschip")


CacheWord = Literal["hit", "miss", "off"]
"""Where programs came from: `hit` is the cache, `miss` a compiler with the cache, `off` without."""


@dataclass(frozen=True, slots=True)
class Built:
    """A program of a segment, and where it came from.

    Attributes:
        program: the program.
        cache: returns where it came from; a program per shape changes that with further shapes.
        entry: the cache entry of the program, if it has one.
    """

    program: SegmentProgram
    cache: Callable[[], CacheWord]
    entry: Entry | None = None

    @classmethod
    def once(cls, program: SegmentProgram, word: CacheWord, entry: Entry | None = None) -> Built:
        """Return a program whose source does not change."""
        return cls(program, lambda: word, entry)


def cache_word(words: Iterable[CacheWord]) -> CacheWord:
    """Return `hit` if all cached programs were loaded, `miss` if one was not, `off` without any."""
    cached = set(words) - {"off"}
    if not cached:
        return "off"
    return "miss" if "miss" in cached else "hit"


def cache_entries(built: Sequence[Built]) -> list[Entry] | None:
    """Return the cache entries of programs; `None` if one has none."""
    entries = [program.entry for program in built if program.entry is not None]
    return entries if len(entries) == len(built) else None


def entry_of(segment: Segment, device: GuardedDevice, compilation: Compilation) -> Entry:
    key = cache_key(
        segment.model,
        device,
        compilation.options,
        compilation.fingerprints,
        by_code=not compilation.shipped,
    )
    return Entry(
        key,
        segment.device.partition("@")[0],  # a device in a driver process has the same programs
        device.version,
        segment.model.name,
        len(segment.model.operations),
    )


class StoredProgram:
    """The program of a segment in a store, under `entry`."""

    def __init__(
        self, segment: Segment, device: GuardedDevice, compilation: Compilation, store: Store
    ) -> None:
        self._model = segment.model
        self._device = device
        self._options = compilation.options
        self._store = store
        self.entry = entry_of(segment, device, compilation)

    def load(self) -> GuardedProgram | None:
        """Load the program; return `None` if the store has none that the device can load."""
        background_writer.wait(self.entry.key)
        saved = begin_reading(self._store, self.entry)()
        if saved is None:
            return None
        try:
            return self._device.load(saved, self._model, self._options)
        except DeviceError as error:
            self._store.discard(self.entry, str(error))
            return None

    def save(self, program: GuardedProgram) -> bool:
        """Store a program in the background; return whether its device can save it."""
        try:
            make = program.saving()
        except DeviceError as error:
            logger.warning("%s", error)
            return False
        if make is None:
            return False
        background_writer.put(self.entry.key, partial(self._write, make))
        return True

    def _write(self, make: Callable[[], Sequence[bytes | memoryview] | None]) -> None:
        parts = make()
        if parts is not None:
            write_parts(self._store, self.entry, parts)


class MissingProgramError(Exception):
    """The absence of a program among the saved ones."""


class SavedPrograms:
    """A read-only store of the programs in a saved compiled model.

    Args:
        programs: the programs, by entry.
    """

    def __init__(self, programs: Mapping[Entry, bytes | memoryview]) -> None:
        self._programs = {entry.key: saved for entry, saved in programs.items()}

    def read(self, entry: Entry) -> bytes:
        """Return the bytes of a program.

        Raises:
            MissingProgramError: there is no such program.
        """
        try:
            return bytes(self._programs[entry.key])
        except KeyError:
            raise MissingProgramError from None

    def write(self, entry: Entry, content: bytes) -> None:
        """Do nothing, since the store is read-only."""

    def discard(self, entry: Entry, why: str) -> None:
        """Raise DeviceError, since a device cannot load a saved program."""
        raise DeviceError(why)
