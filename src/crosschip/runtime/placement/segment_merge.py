"""Merging of segments: moving operations to other devices that support them, for fewer segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from crosschip.ir import Model
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.placement.constraints import Constraints
from crosschip.runtime.placement.queries import Answers
from crosschip.runtime.placement.segments import cut_segments

Devices = list[str | None]
Section = tuple[str, Sequence[int]]
"""The device of a segment, and the indices of its operations."""

_VISITS = 5_000_000
"""The maximum number of operations that the search visits before it moves many segments at once."""


def merge_segments(
    model: Model,
    answers_by_device: Mapping[str, Answers],
    assigned_devices: Devices,
    constraints: Constraints,
) -> Devices:
    """Return the device of each operation after merges that meet the constraints, if possible.

    A segment of fewer than `min_segment` operations moves to another device if that gives fewer
    segments. While there are more than `max_segments`, the smallest movable segment moves.

    Args:
        model: the placed model.
        answers_by_device: each device's answers about all operations.
        assigned_devices: the device of each operation.
        constraints: the constraints.
    """
    return _Merger(model, answers_by_device, constraints).merge(assigned_devices)


class _Merger:
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

    def merge(self, assigned_devices: Devices) -> Devices:
        sections = self._sections(assigned_devices)
        while movable := self._segments_to_merge(sections):
            steps = len(movable) * max(1, len(self._answers) - 1) * len(assigned_devices)
            candidates = self._single_moves(assigned_devices, movable)
            if steps > self._visits:
                candidates = self._moves_by_device(assigned_devices, movable)
            better = self._first_better(candidates, len(sections))
            if better is None:
                break
            assigned_devices = better
            sections = self._sections(assigned_devices)
        if self._too_many(sections):
            candidates = self._with_fewer_devices(assigned_devices)
            return (
                self._first_better(candidates, (self._constraints.max_segments or 0) + 1)
                or assigned_devices
            )
        return assigned_devices

    def _too_many(self, sections: Sequence[Section]) -> bool:
        most = self._constraints.max_segments
        return most is not None and len(sections) > most

    def _segments_to_merge(self, sections: Sequence[Section]) -> Sequence[Section]:
        """Return the segments that should be merged into others, the smallest first."""
        least = self._constraints.min_segment
        too_many = self._too_many(sections)
        movable = [
            (device, run)
            for device, run in sections
            if device != RUNTIME and (too_many or len(run) < least)
        ]
        return sorted(movable, key=lambda section: len(section[1]))

    def _sections(self, assigned_devices: Devices) -> Sequence[Section]:
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
        runs = cut_segments(self._model, names, words, groups)
        return [(names[run[0]], run) for run in runs if names[run[0]]]

    def _dialect(self, owner: str | None, index: int) -> str:
        answers = self._answers.get(owner or "")
        support = answers.supports[index] if answers else None
        return support.dialect if support else ""

    def _first_better(self, candidates: Iterator[Devices], count: int) -> Devices | None:
        """Return the first alternative with fewer segments."""
        return next(
            (candidate for candidate in candidates if len(self._sections(candidate)) < count), None
        )

    def _single_moves(
        self, assigned_devices: Devices, movable: Sequence[Section]
    ) -> Iterator[Devices]:
        for section in movable:
            for target in self._answers:
                candidate = self._move(assigned_devices, [section], target)
                if candidate is not None:
                    yield candidate
        yield from self._joint_moves(assigned_devices, movable)

    def _moves_by_device(
        self, assigned_devices: Devices, movable: Sequence[Section]
    ) -> Iterator[Devices]:
        """Move the segments of one device to another, those of the last device first."""
        for device in reversed(list(self._answers)):
            sections = [section for section in movable if section[0] == device]
            for target in self._answers:
                candidate = self._move(assigned_devices, sections, target)
                if candidate is not None:
                    yield candidate
        yield from self._joint_moves(assigned_devices, movable)

    def _joint_moves(
        self, assigned_devices: Devices, movable: Sequence[Section]
    ) -> Iterator[Devices]:
        """Move all segments to a device that supports them; only adjacent ones merge."""
        for target in self._answers:
            candidate = self._move(assigned_devices, movable, target)
            if candidate is not None:
                yield candidate

    def _with_fewer_devices(self, assigned_devices: Devices) -> Iterator[Devices]:
        """Use only some of the devices, for all operations that they support."""
        for size in range(len(self._answers) - 1, 0, -1):
            for devices in combinations(self._answers, size):
                if self._visits < 0 and size > 1:
                    continue
                candidate = list(assigned_devices)
                for index, owner in enumerate(assigned_devices):
                    if owner not in (None, RUNTIME, *devices):
                        others = (d for d in devices if self._can_move_to(d, index))
                        candidate[index] = next(others, owner)
                yield candidate

    def _move(
        self, assigned_devices: Devices, sections: Sequence[Section], target: str
    ) -> Devices | None:
        """Move segments to another device; return `None` if it supports none of them."""
        result = None
        for device, run in sections:
            if device != target and all(self._can_move_to(target, index) for index in run):
                result = result or list(assigned_devices)
                for index in run:
                    result[index] = target
        return result

    def _can_move_to(self, device: str, index: int) -> bool:
        """Return whether a device supports an operation that is in none of its groups."""
        return self._answers[device].takes(index) and index not in self._grouped[device]
