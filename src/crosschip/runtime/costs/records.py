"""Measured costs in the cache: a small file for each device, its options and the machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import field, replace
from math import inf

from crosschip.hal import Options
from crosschip.hal.capabilities import processor
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.cache.canonical import canonical
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.folder import Cache, ListedEntry
from crosschip.runtime.cache.key import costs_key
from crosschip.runtime.cache.store import Store
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.plain import from_plain, to_plain

TITLE = "measured costs"
"""What entries of costs have in place of the name of a model."""

_MOST_BLOCKS = 20_000
"""The maximum number of blocks in a record; the oldest ones are dropped."""


@dataclass(frozen=True, slots=True)
class BlockRecord:
    """The measured duration of a block that runs alone.

    Its inputs and outputs are in the memory of an asynchronous device, or else of the host.

    Attributes:
        seconds: the shortest of the durations.
        uncertainty: the distance of the lower quartile, in seconds.
        description: the work of the block, in words.
    """

    seconds: float
    uncertainty: float
    description: str


@dataclass(frozen=True, slots=True)
class TransferRecord:
    """The measured duration of launches or transfers of any size.

    Attributes:
        seconds: the duration for zero bytes.
        seconds_per_byte: what each byte adds to it.
    """

    seconds: float
    seconds_per_byte: float


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """What has been measured on a device.

    Attributes:
        device: the name of the device.
        version: its version.
        options: the compile options, in words; empty if they are the default.
        machine: the processor and the number of cores.
        asynchronous: whether the device has memory of its own and runs programs asynchronously.
        launch: the start of a segment, and what each byte of a small model's input adds; `None` if
            it has not been measured.
        transfers: the transfers to other devices, by their names and versions.
        blocks: the blocks, by signature.
    """

    device: str
    version: str
    options: str
    machine: str
    asynchronous: bool = False
    launch: TransferRecord | None = None
    transfers: Mapping[str, TransferRecord] = field(default_factory=dict)
    blocks: Mapping[str, BlockRecord] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """Return the record as JSON."""
        return json.dumps(to_plain(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> DeviceRecord:
        """Parse the result of `to_bytes`.

        Raises:
            ValueError: the content is malformed.
        """
        try:
            record = from_plain(cls, json.loads(data))
        except ValueError as error:
            raise ValueError(f"no costs: {error}") from None
        transfers = [*record.transfers.values(), *([record.launch] if record.launch else [])]
        numbers = [number for each in transfers for number in (each.seconds, each.seconds_per_byte)]
        for block in record.blocks.values():
            numbers += block.seconds, block.uncertainty
        if not all(0 <= number < inf for number in numbers):
            raise ValueError("no costs: a duration is negative or infinite")
        return record


class Records:
    """The measured costs of some devices, read from a store and written to it.

    Args:
        devices: the devices, by name.
        options: the compile options.
        store: the store; `None` for none.
    """

    def __init__(
        self, devices: Mapping[str, GuardedDevice], options: Options, store: Store | None
    ) -> None:
        self._store = store
        self._entries = {
            name: _entry_of(device, device.effective_options(options))
            for name, device in devices.items()
        }
        words = {n: _options_text(d.effective_options(options)) for n, d in devices.items()}
        self._records = {
            name: self._read(name) or DeviceRecord(name, device.version, words[name], machine())
            for name, device in devices.items()
        }
        self._changed: set[str] = set()

    def __getitem__(self, device: str) -> DeviceRecord:
        return self._records[device]

    def add_block(self, device: str, signature: str, record: BlockRecord) -> None:
        """Add the duration of a block."""
        old = self._records[device]
        blocks = {**old.blocks, signature: record}
        for oldest in list(blocks)[: len(blocks) - _MOST_BLOCKS]:
            del blocks[oldest]
        self._records[device] = replace(old, blocks=blocks)
        self._changed.add(device)

    def set_launch(
        self, device: str, launch: TransferRecord, *, asynchronous: bool = False
    ) -> None:
        """Set the duration of a launch, and whether the device is asynchronous."""
        old = self._records[device]
        self._records[device] = replace(old, launch=launch, asynchronous=asynchronous)
        self._changed.add(device)

    def transfer(self, source: str, destination: str) -> TransferRecord | None:
        """Return the duration of transfers from a device to another; `None` if not measured."""
        return self._records[source].transfers.get(self._identity(destination))

    def set_transfer(self, source: str, destination: str, transfer: TransferRecord) -> None:
        """Set the duration of transfers from a device to another."""
        old = self._records[source]
        transfers = {**old.transfers, self._identity(destination): transfer}
        self._records[source] = replace(old, transfers=transfers)
        self._changed.add(source)

    def save(self) -> None:
        """Write the changed records, with what other processes have written meanwhile."""
        for name in sorted(self._changed) if self._store is not None else ():
            record = self._records[name]
            written = self._read(name)
            if written is not None:
                record = replace(
                    record,
                    transfers={**written.transfers, **record.transfers},
                    blocks={**written.blocks, **record.blocks},
                )
            assert self._store is not None, "the loop is empty without a store"
            entry = replace(self._entries[name], operations=len(record.blocks))
            self._store.write(entry, record.to_bytes())
        self._changed.clear()

    def _identity(self, device: str) -> str:
        return f"{device} {self._records[device].version}"

    def _read(self, device: str) -> DeviceRecord | None:
        """Return the stored record of a device; `None` if there is none, or it is unusable."""
        entry = self._entries[device]
        saved = None if self._store is None else self._store.read(entry)
        if saved is None or self._store is None:
            return None
        try:
            return DeviceRecord.from_bytes(saved)
        except ValueError as error:
            self._store.discard(entry, str(error))
            return None


def stored_records(cache: Cache) -> list[tuple[ListedEntry, DeviceRecord]]:
    """Return the records in a cache with their files, by device; damaged ones are left out."""
    records = []
    for listed in cache.listing(whole=False):
        if listed.entry is None or listed.entry.model != TITLE:
            continue
        saved = cache.read(listed.entry)
        if saved is None:
            continue
        try:
            records.append((listed, DeviceRecord.from_bytes(saved)))
        except ValueError as error:
            cache.discard(listed.entry, str(error))
    return sorted(records, key=lambda pair: (pair[1].device, pair[1].version, pair[1].options))


def machine() -> str:
    """Return the name of the processor and the number of cores."""
    name = re.search(r"model name\s*:\s*(.+)", processor())
    text = name[1].strip() if name else processor().splitlines()[0]
    return f"{text}, {os.cpu_count() or 1} cores"


def _entry_of(device: GuardedDevice, options: Options) -> Entry:
    key = costs_key(device, options, f"{processor()} {os.cpu_count() or 1}")
    return Entry(key, device.name.partition("@")[0], device.version, TITLE, 0)


def _options_text(options: Options) -> str:
    """Return the options that differ from the default, in words."""
    default = Options()
    return ", ".join(
        f"{name}={canonical(getattr(options, name))}"
        for name in options.__slots__
        if getattr(options, name) != getattr(default, name)
    )
