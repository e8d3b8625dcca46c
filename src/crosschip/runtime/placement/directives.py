"""Directives of a caller: partition configurations, pins and limits, and what they constrain."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from crosschip.hal import Kind
from crosschip.ir import InputError, Model, Operation
from crosschip.runtime.placement.constraints import Constraints, Home
from crosschip.runtime.placement.partition import (
    Entry,
    entry_of,
    matches,
    parse,
    unmatched,
    words_of,
)
from crosschip.runtime.placement.sources import Source, sources_of

_TOLD = 10
"""The most entries that match nothing and are told one by one."""

logger = logging.getLogger("crosschip")


@dataclass(frozen=True, slots=True)
class Directives:
    """A caller's words about placement.

    Attributes:
        partition: operators that are kept off the first device and run on processors: the path of a
            configuration, or its content.
        pin: the device that alone may run what a pattern names.
        min_segment: the fewest operations that are worth a segment of their own.
        max_segments: how many segments there may be at most.
        strict: whether it is an error if an operation does not go where it is preferred.
    """

    partition: str | bytes | Path | None = None
    pin: Mapping[str, str] | None = None
    min_segment: int = 1
    max_segments: int | None = None
    strict: bool = False

    @property
    def moves(self) -> bool:
        """Tell whether operations may go elsewhere than the devices' answers send them."""
        limits = self.min_segment > 1 or self.max_segments is not None
        return self.partition is not None or bool(self.pin) or limits

    def words(self) -> tuple[object, ...]:
        """The directives as plain values, with the content of a configuration in a file.

        Raises:
            InputError: a configuration is not of its form, or cannot be read.
        """
        pins = [*(self.pin or {}).items()]
        return words_of(self.partition), pins, self.min_segment, self.max_segments, self.strict

    def check(self) -> None:
        """Refuse values that are none.

        Raises:
            InputError: there is one.
        """
        for name, value in (("min_segment", self.min_segment), ("max_segments", self.max_segments)):
            number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not number and not (value is None and name == "max_segments"):
                raise InputError(f"{name} is {value!r}, but must be an integer of at least 1")
        if not isinstance(self.strict, bool):
            raise InputError(f"strict is {self.strict!r}, but must be True or False")
        pin = {} if self.pin is None else self.pin
        if not isinstance(pin, Mapping) or not all(
            isinstance(text, str) for pair in pin.items() for text in pair
        ):
            raise InputError(
                f'pin is {pin!r}, but must be devices by pattern, like {{"conv2d": "openvino"}}'
            )

    def constraints(self, model: Model, given: Model, kinds: Mapping[str, Kind]) -> Constraints:
        """The meaning for a model; warns of entries that match nothing.

        Args:
            model: what is to be placed.
            given: the model before passes.
            kinds: the sort of each device, by name, in the order of preference.

        Raises:
            InputError: a configuration is not of its form, a pin names no device or nothing of the
                model, or there is no processor for what a configuration lists.
        """
        homes: dict[Operation, Home] = {}
        if self.partition is not None or self.pin:
            sources = sources_of(model)
            if self.partition is not None:
                homes.update(_partitioned(self.partition, sources, given, kinds))
            homes.update(_pinned(self.pin or {}, sources, list(kinds)))
        return Constraints(homes, self.min_segment, self.max_segments, self.strict)


def _partitioned(
    partition: str | bytes | Path,
    sources: Sequence[Source],
    given: Model,
    kinds: Mapping[str, Kind],
) -> Iterator[tuple[Operation, Home]]:
    """The homes of the operations that a configuration lists: processors behind the first device.

    Raises:
        InputError: there is none, or the configuration is not of its form.
    """
    entries = parse(partition)
    first, *others = kinds
    hosts = tuple(name for name in others if kinds[name] is Kind.CPU)
    if entries and not hosts:
        raise InputError(
            f"partition keeps operators off {first}, but there is no processor behind it to run "
            f"them; add one to the devices, as in {first},reference"
        )
    found = matches(entries, sources)
    unmatched_entries = [entry for entry in entries if not found[entry]]
    warn_of_unmatched("partition", unmatched_entries, sources, given)
    for entry in entries:
        home = Home(hosts, f"kept off by line {entry.line} of the partition, {entry.text!r}")
        for source in found[entry]:
            for operation in source.operations:
                yield operation, home


def warn_of_unmatched(
    argument: str, entries: Sequence[Entry], sources: Sequence[Source], given: Model
) -> None:
    """Say which entries match nothing.

    Args:
        argument: the name of the configuration.
        entries: those that match nothing.
        sources: the operators of the model that is placed.
        given: the model before passes.
    """
    if not entries:
        return
    before = sources_of(given)
    gone = matches(entries, before)
    for entry in entries[:_TOLD]:
        told = (
            f"{entry.text!r} names what needs not run: its result is known, or its input"
            if gone[entry]
            else unmatched(entry, sources or before)
        )
        logger.warning("%s, line %d: %s", argument, entry.line, told)
    if len(entries) > _TOLD:
        logger.warning("%s: %d more lines match nothing", argument, len(entries) - _TOLD)


def _pinned(
    pin: Mapping[str, str], sources: Sequence[Source], devices: Sequence[str]
) -> Iterator[tuple[Operation, Home]]:
    """The homes of the operations that patterns name; of patterns that fit one, the last holds.

    Raises:
        InputError: a pattern fits nothing, or its device is not there.
    """
    for pattern, device in pin.items():
        if device not in devices:
            raise InputError(
                f"pin sends {pattern!r} to {device!r}, which is not among the devices: "
                f"{', '.join(devices)}"
            )
        entry = entry_of(pattern, "pin")
        home = Home((device,), f"pinned to {device} by {pattern!r}")
        fitting = [
            operation for source in sources for operation in _fitting(entry, pattern, source)
        ]
        if not fitting:
            raise InputError(f"pin: {unmatched(entry, sources)}")
        yield from ((operation, home) for operation in fitting)


def _fitting(entry: Entry, pattern: str, source: Source) -> Sequence[Operation]:
    """The operations of a source that a pattern names.

    It does so by the type of an operator of the file, and then all of them; or by the type or the
    name of an operation itself.
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
