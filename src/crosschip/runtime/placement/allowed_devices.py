"""Placement options applied to a model: the devices that each operation may run on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from crosschip.hal import Kind
from crosschip.ir import InputError, Model, Operation
from crosschip.runtime.placement.constraints import AllowedDevices
from crosschip.runtime.placement.partition import Entry, entry_of, matches, parse, unmatched
from crosschip.runtime.placement.sources import Source, sources_of

_MAX_WARNINGS = 10
"""The maximum number of entries without a match that get a warning each."""

logger = logging.getLogger("crosschip")


def allowed_devices(
    partition: str | bytes | Path | None,
    pin: Mapping[str, str],
    model: Model,
    original: Model,
    kinds: Mapping[str, Kind],
) -> dict[Operation, AllowedDevices]:
    """Return the allowed devices of the named operations; warn of entries without a match.

    Args:
        partition: the configuration of operators that must not run on the first device, if any.
        pin: the only allowed device of the operations that a pattern matches.
        model: the model to place.
        original: the model before passes.
        kinds: the kind of each device, by name, in the order of preference.

    Raises:
        InputError: as for `PlacementOptions.constraints`.
    """
    constraints_by_operation: dict[Operation, AllowedDevices] = {}
    sources = sources_of(model)
    if partition is not None:
        constraints_by_operation.update(_partition_devices(partition, sources, original, kinds))
    constraints_by_operation.update(_pinned_devices(pin, sources, list(kinds)))
    return constraints_by_operation


def _partition_devices(
    partition: str | bytes | Path,
    sources: Sequence[Source],
    original: Model,
    kinds: Mapping[str, Kind],
) -> Iterator[tuple[Operation, AllowedDevices]]:
    """Return the processors after the first device for the operations of a configuration.

    Raises:
        InputError: no processor follows the first device, or the configuration is malformed.
    """
    entries = parse(partition)
    first, *others = kinds
    hosts = tuple(name for name in others if kinds[name] is Kind.CPU)
    if entries and not hosts:
        raise InputError(
            f"partition keeps operators off {first}, but there is no processor behind it to run "
            f"them; add one to the devices, as in {first},reference"
        )
    matched = matches(entries, sources)
    unmatched_entries = [entry for entry in entries if not matched[entry]]
    warn_of_unmatched("partition", unmatched_entries, sources, original)
    for entry in entries:
        allowed = AllowedDevices(
            hosts, f"kept off by line {entry.line} of the partition, {entry.brief!r}"
        )
        for source in matched[entry]:
            for operation in source.operations:
                yield operation, allowed


def warn_of_unmatched(
    argument: str, entries: Sequence[Entry], sources: Sequence[Source], original: Model
) -> None:
    """Warn of entries that match nothing.

    Args:
        argument: the name of the configuration.
        entries: the entries that match nothing.
        sources: the source operators of the placed model.
        original: the model before passes.
    """
    if not entries:
        return
    before = sources_of(original)
    gone = matches(entries, before)
    for entry in entries[:_MAX_WARNINGS]:
        reason = (
            f"{entry.brief!r} names what needs not run: its result is known, or its input"
            if gone[entry]
            else unmatched(entry, sources or before)
        )
        logger.warning("%s, line %d: %s", argument, entry.line, reason)
    if len(entries) > _MAX_WARNINGS:
        logger.warning("%s: %d more lines match nothing", argument, len(entries) - _MAX_WARNINGS)


def _pinned_devices(
    pin: Mapping[str, str], sources: Sequence[Source], devices: Sequence[str]
) -> Iterator[tuple[Operation, AllowedDevices]]:
    """Return the allowed device of operations that patterns match; the last match counts.

    Raises:
        InputError: a pattern matches nothing, or its device is not available.
    """
    for pattern, named in pin.items():
        device = _find_device(devices, named)
        if device is None:
            raise InputError(
                f"pin sends {pattern!r} to {named!r}, which is not among the devices: "
                f"{', '.join(devices)}"
            )
        entry = entry_of(pattern, "pin")
        allowed = AllowedDevices((device,), f"pinned to {device} by {entry.brief!r}")
        fitting = [
            operation
            for source in sources
            for operation in _matched_operations(entry, pattern, source)
        ]
        if not fitting:
            raise InputError(f"pin: {unmatched(entry, sources)}")
        yield from ((operation, allowed) for operation in fitting)


def _find_device(devices: Sequence[str], named: str) -> str | None:
    """Return the device with a name; `npu` also stands for `npu@driver` if that is the only one."""
    if named in devices:
        return named
    in_drivers = [device for device in devices if device.partition("@")[0] == named]
    return in_drivers[0] if len(in_drivers) == 1 else None


def _matched_operations(entry: Entry, pattern: str, source: Source) -> Sequence[Operation]:
    """Return the operations of a source that a pattern matches.

    A pattern matches all of them by the type of the file's operator, or single operations by type
    or name.
    """
    if any(fnmatchcase(form.type, entry.type) and entry.fits(form) for form in source.forms):
        return source.operations
    return [
        operation
        for operation in source.operations
        if operation.name == pattern
        or (
            any(fnmatchcase(text, entry.type) for text in (operation.type, operation.name))
            and entry.fits(source.whole)
        )
    ]
