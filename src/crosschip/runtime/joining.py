"""Joining segments: giving operations to another device that runs them too, for fewer segments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from crosschip.ir import Model
from crosschip.runtime.asking import Answers
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.segments import cut
from crosschip.runtime.wishes import Wishes

Owners = list[str | None]
Section = tuple[str, Sequence[int]]
"""A device, and the indices of the operations of a segment of it."""

_VISITS = 5_000_000
"""The operations that the search may look at before it moves many segments at once."""


def joined(model: Model, asked: Mapping[str, Answers], owners: Owners, wishes: Wishes) -> Owners:
    """The device of each operation, such that segments are as the caller wishes, where they can be.

    A segment of fewer operations than `min_segment` moves to another device if there are fewer
    segments then. While there are more than `max_segments`, the smallest that can moves.

    Args:
        model: what is placed.
        asked: what each device says about every operation of it.
        owners: the device of each operation, as chosen.
        wishes: what is wished for.
    """
    return _Joining(model, asked, wishes).of(owners)


class _Joining:
    """The search for a better assignment of operations to devices."""

    def __init__(self, model: Model, asked: Mapping[str, Answers], wishes: Wishes) -> None:
        self._model = model
        self._asked = asked
        self._wishes = wishes
        self._visits = _VISITS
        self._grouped = {
            device: {index for _, group in answers.groups for index in group}
            for device, answers in asked.items()
        }

    def of(self, owners: Owners) -> Owners:
        sections = self._sections(owners)
        while offending := self._offending(sections):
            steps = len(offending) * max(1, len(self._asked) - 1) * len(owners)
            ways = self._one_by_one(owners, offending)
            if steps > self._visits:
                ways = self._many_at_once(owners, offending)
            better = self._first_better(ways, len(sections))
            if better is None:
                break
            owners = better
            sections = self._sections(owners)
        if self._too_many(sections):
            ways = self._on_fewer_devices(owners)
            return self._first_better(ways, (self._wishes.max_segments or 0) + 1) or owners
        return owners

    def _too_many(self, sections: Sequence[Section]) -> bool:
        most = self._wishes.max_segments
        return most is not None and len(sections) > most

    def _offending(self, sections: Sequence[Section]) -> Sequence[Section]:
        """The segments that should join others, the smallest first."""
        least = self._wishes.min_segment
        every = self._too_many(sections)
        found = [
            (device, run)
            for device, run in sections
            if device != RUNTIME and (every or len(run) < least)
        ]
        return sorted(found, key=lambda section: len(section[1]))

    def _sections(self, owners: Owners) -> Sequence[Section]:
        """The segments of operations that somebody runs."""
        self._visits -= len(owners)
        names = [owner or "" for owner in owners]
        words = [self._dialect(owner, index) for index, owner in enumerate(owners)]
        groups = [
            group
            for device, answers in self._asked.items()
            for _, group in answers.groups
            if all(owners[index] == device for index in group)
        ]
        runs = cut(self._model, names, words, groups)
        return [(names[run[0]], run) for run in runs if names[run[0]]]

    def _dialect(self, owner: str | None, index: int) -> str:
        answers = self._asked.get(owner or "")
        support = answers.supports[index] if answers else None
        return support.dialect if support else ""

    def _first_better(self, ways: Iterator[Owners], count: int) -> Owners | None:
        """The first way that has fewer segments."""
        return next((way for way in ways if len(self._sections(way)) < count), None)

    def _one_by_one(self, owners: Owners, offending: Sequence[Section]) -> Iterator[Owners]:
        for section in offending:
            for target in self._asked:
                moved = self._moved(owners, [section], target)
                if moved is not None:
                    yield moved

    def _many_at_once(self, owners: Owners, offending: Sequence[Section]) -> Iterator[Owners]:
        """The offending segments of one device to one other; the last device's move first."""
        for device in reversed(list(self._asked)):
            own = [section for section in offending if section[0] == device]
            for target in self._asked:
                moved = self._moved(owners, own, target)
                if moved is not None:
                    yield moved

    def _on_fewer_devices(self, owners: Owners) -> Iterator[Owners]:
        """All that some of the devices can take, on them."""
        for size in range(len(self._asked) - 1, 0, -1):
            for devices in combinations(self._asked, size):
                if self._visits < 0 and size > 1:
                    continue
                way = list(owners)
                for index, owner in enumerate(owners):
                    if owner not in (None, RUNTIME, *devices):
                        others = (d for d in devices if self._may_take(d, index))
                        way[index] = next(others, owner)
                yield way

    def _moved(self, owners: Owners, sections: Sequence[Section], target: str) -> Owners | None:
        """The assignment with segments on another device; `None` if it takes none of them."""
        moved = None
        for device, run in sections:
            if device != target and all(self._may_take(target, index) for index in run):
                moved = moved or list(owners)
                for index in run:
                    moved[index] = target
        return moved

    def _may_take(self, device: str, index: int) -> bool:
        """Tell whether a device runs an operation, and without others that go together with it."""
        return self._asked[device].takes(index) and index not in self._grouped[device]
