"""Placement options applied to a model: the devices that each operation may run on."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from crosschip.hal import Kind
from crosschip.ir import InputError, Model, Operation
from crosschip.runtime.placement.constraints import Home
from crosschip.runtime.placement.partition import Entry, entry_of, matches, parse, unmatched
from crosschip.runtime.placement.sources import Source, sources_of

_TOLD = 10
"""The most entries that match nothing and are told one by one."""

logger = logging.getLogger("crosschip")


def homes(
    partition: str | bytes | Path | None,
    pin: Mapping[str, str],
    model: Model,
    original: Model,
    kinds: Mapping[str, Kind],
) -> dict[Operation, Home]:
    """Return the allowed devices of the named operations; warn of entries that match nothing.

    Args:
        partition: the configuration of operators that must not run on the first device, if any.
        pin: the only allowed device of the operations that a pattern matches.
        model: the model to place.
        original: the model before passes.
        kinds: the kind of each device, by name, in the order of preference.

    Raises:
        InputError: as for `PlacementOptions.constraints`.
    """
    homes_by_operation: dict[Operation, Home] = {}
    sources = sources_of(model)
    if partition is not None:
        homes_by_operation.update(_partitioned(partition, sources, original, kinds))
    homes_by_operation.update(_pinned(pin, sources, list(kinds)))
    return homes_by_operation


def _partitioned(
    partition: str | bytes | Path,
    sources: Sequence[Source],
    original: Model,
    kinds: Mapping[str, Kind],
) -> Iterator[tuple[Operation, Home]]:
    """Return the processors after the first device for the operations of a configuration.

    Raises:
        InputError: there is no such processor, or the configuration is malformed.
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
        home = Home(hosts, f"kept off by line {entry.line} of the partition, {entry.brief!r}")
        for source in matched[entry]:
            for operation in source.operations:
                yield operation, home


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
    for entry in entries[:_TOLD]:
        reason = (
            f"{entry.brief!r} names what needs not run: its result is known, or its input"
            if gone[entry]
            else unmatched(entry, sources or before)
        )
        logger.warning("%s, line %d: %s", argument, entry.line, reason)
    if len(entries) > _TOLD:
        logger.warning("%s: %d more lines match nothing", argument, len(entries) - _TOLD)


def _pinned(
    pin: Mapping[str, str], sources: Sequence[Source], devices: Sequence[str]
) -> Iterator[tuple[Operation, Home]]:
    """Return the allowed device of operations that patterns match; the last match counts.

    Raises:
        InputError: a pattern matches nothing, or its device is not available.
    """
    for pattern, named in pin.items():
        device = _among(devices, named)
        if device is None:
            raise InputError(
                f"pin sends {pattern!r} to {named!r}, which is not among the devices: "
                f"{', '.join(devices)}"
            )
        entry = entry_of(pattern, "pin")
        home = Home((device,), f"pinned to {device} by {entry.brief!r}")
        fitting = [
            operation for source in sources for operation in _fitting(entry, pattern, source)
        ]
        if not fitting:
            raise InputError(f"pin: {unmatched(entry, sources)}")
        yield from ((operation, home) for operation in fitting)


def _among(devices: Sequence[str], named: str) -> str | None:
    """Return the device with a name; `npu` also names the only driver process `npu@driver`."""
    if named in devices:
        return named
    in_drivers = [device for device in devices if device.partition("@")[0] == named]
    return in_drivers[0] if len(in_drivers) == 1 else None


def _fitting(entry: Entry, pattern: str, source: Source) -> Sequence[Operation]:
    """Return the operations of a source that a pattern matches.

    It matches all of them by the type of the file's operator, or single ones by their own type or
    name.
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
