"""Merging of segments: moving operations to other devices that support them, for fewer segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from crosschip.ir import Model
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.placement.asking import Answers
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.segments import cut

Owners = list[str | None]
Section = tuple[str, Sequence[int]]
"""A device, and the indices of the operations of a segment of it."""

_VISITS = 5_000_000
"""The operations that the search may look at before it moves many segments at once."""


def joined(
    model: Model,
    answers_by_device: Mapping[str, Answers],
    assigned_devices: Owners,
    constraints: Constraints,
) -> Owners:
    """Return the device of each operation, so that segments meet the constraints if they can.

    A segment of fewer than `min_segment` operations moves to another device if that gives fewer
    segments. While there are more than `max_segments`, the smallest segment that can move does.

    Args:
        model: the placed model.
        answers_by_device: each device's answers about all operations.
        assigned_devices: the device of each operation.
        constraints: the constraints.
    """
    return _Joining(model, answers_by_device, constraints).of(assigned_devices)


class _Joining:
    """Searches for an assignment of operations to devices with fewer segments."""

    def __init__(
        self, model: Model, answers_by_device: Mapping[str, Answers], constraints: Constraints
    ) -> None:
        self._model = model
        self._answers = answers_by_device
        self._constraints = constraints
        self._visits = _VISITS
        self._grouped = {
            device: {index for _, group in answers.groups for index in group}
            for device, answers in answers_by_device.items()
        }

    def of(self, assigned_devices: Owners) -> Owners:
        sections = self._sections(assigned_devices)
        while offending := self._offending(sections):
            steps = len(offending) * max(1, len(self._answers) - 1) * len(assigned_devices)
            candidates = self._one_by_one(assigned_devices, offending)
            if steps > self._visits:
                candidates = self._many_at_once(assigned_devices, offending)
            better = self._first_better(candidates, len(sections))
            if better is None:
                break
            assigned_devices = better
            sections = self._sections(assigned_devices)
        if self._too_many(sections):
            candidates = self._on_fewer_devices(assigned_devices)
            return (
                self._first_better(candidates, (self._constraints.max_segments or 0) + 1)
                or assigned_devices
            )
        return assigned_devices

    def _too_many(self, sections: Sequence[Section]) -> bool:
        most = self._constraints.max_segments
        return most is not None and len(sections) > most

    def _offending(self, sections: Sequence[Section]) -> Sequence[Section]:
        """Return the segments that should be merged into others, the smallest first."""
        least = self._constraints.min_segment
        too_many = self._too_many(sections)
        offending = [
            (device, run)
            for device, run in sections
            if device != RUNTIME and (too_many or len(run) < least)
        ]
        return sorted(offending, key=lambda section: len(section[1]))

    def _sections(self, assigned_devices: Owners) -> Sequence[Section]:
        """Return the segments of the operations that have a device."""
        self._visits -= len(assigned_devices)
        names = [assigned or "" for assigned in assigned_devices]
        words = [self._dialect(assigned, index) for index, assigned in enumerate(assigned_devices)]
        groups = [
            group
            for device, answers in self._answers.items()
            for _, group in answers.groups
            if all(assigned_devices[index] == device for index in group)
        ]
        runs = cut(self._model, names, words, groups)
        return [(names[run[0]], run) for run in runs if names[run[0]]]

    def _dialect(self, owner: str | None, index: int) -> str:
        answers = self._answers.get(owner or "")
        support = answers.supports[index] if answers else None
        return support.dialect if support else ""

    def _first_better(self, candidates: Iterator[Owners], count: int) -> Owners | None:
        """Return the first alternative with fewer segments."""
        return next(
            (candidate for candidate in candidates if len(self._sections(candidate)) < count), None
        )

    def _one_by_one(
        self, assigned_devices: Owners, offending: Sequence[Section]
    ) -> Iterator[Owners]:
        for section in offending:
            for target in self._answers:
                moved = self._moved(assigned_devices, [section], target)
                if moved is not None:
                    yield moved
        yield from self._all_at_once(assigned_devices, offending)

    def _many_at_once(
        self, assigned_devices: Owners, offending: Sequence[Section]
    ) -> Iterator[Owners]:
        """Move the offending segments of one device to another, of the last device first."""
        for device in reversed(list(self._answers)):
            own = [section for section in offending if section[0] == device]
            for target in self._answers:
                moved = self._moved(assigned_devices, own, target)
                if moved is not None:
                    yield moved
        yield from self._all_at_once(assigned_devices, offending)

    def _all_at_once(
        self, assigned_devices: Owners, offending: Sequence[Section]
    ) -> Iterator[Owners]:
        """Move all offending segments that one device supports to it; only neighbours merge."""
        for target in self._answers:
            moved = self._moved(assigned_devices, offending, target)
            if moved is not None:
                yield moved

    def _on_fewer_devices(self, assigned_devices: Owners) -> Iterator[Owners]:
        """Use only some of the devices, for all operations that they support."""
        for size in range(len(self._answers) - 1, 0, -1):
            for devices in combinations(self._answers, size):
                if self._visits < 0 and size > 1:
                    continue
                candidate = list(assigned_devices)
                for index, owner in enumerate(assigned_devices):
                    if owner not in (None, RUNTIME, *devices):
                        others = (d for d in devices if self._may_take(d, index))
                        candidate[index] = next(others, owner)
                yield candidate

    def _moved(
        self, assigned_devices: Owners, sections: Sequence[Section], target: str
    ) -> Owners | None:
        """Move segments to another device; return `None` if it supports none of them."""
        moved = None
        for device, run in sections:
            if device != target and all(self._may_take(target, index) for index in run):
                moved = moved or list(assigned_devices)
                for index in run:
                    moved[index] = target
        return moved

    def _may_take(self, device: str, index: int) -> bool:
        """Return whether a device supports an operation that belongs to no group."""
        return self._answers[device].takes(index) and index not in self._grouped[device]
