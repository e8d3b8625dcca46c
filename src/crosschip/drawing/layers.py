"""The order and the horizontal positions of what lies in the layers of a layered layout.

Sugiyama's method: the order in each layer follows the barycentres of the neighbours; then each
position is as near to the mean of its neighbours as the order permits.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

_SWEEPS = 11
_GAP = 16
"""The width between two slots."""

_LINE_WEIGHT = 4.0
"""The weight of the distance of a line to its neighbours, to keep lines straight."""


@dataclass(slots=True, eq=False)
class Slot:
    """A part of a layer: a box, or the vertical piece of a line that passes the layer.

    Attributes:
        width: the width.
        is_line: whether it is a piece of a line.
        up: the links to the layer above.
        down: the links to the layer below.
        x: the left end.
    """

    width: float
    is_line: bool = False
    up: list[Link] = field(default_factory=list)
    down: list[Link] = field(default_factory=list)
    x: float = 0.0


@dataclass(slots=True, eq=False)
class Link:
    """A piece of a line between two layers.

    Attributes:
        upper: the slot that it leaves.
        lower: the slot that it enters.
        leaving: the position where it leaves, from the left end of `upper`.
        entering: the position where it enters, from the left end of `lower`.
        fixed: whether `entering` is fixed; otherwise the links of a slot are spread over it.
        transfer: whether it joins two groups.
    """

    upper: Slot
    lower: Slot
    leaving: float
    entering: float
    fixed: bool
    transfer: bool

    def __post_init__(self) -> None:
        """Add the link to its slots."""
        self.upper.down.append(self)
        self.lower.up.append(self)

    @property
    def start(self) -> float:
        """The horizontal position of the upper end."""
        return self.upper.x + self.leaving

    @property
    def end(self) -> float:
        """The horizontal position of the lower end."""
        return self.lower.x + self.entering


def place_layers(layers: Sequence[list[Slot]]) -> float:
    """Order the slots of each layer, set their positions from 0 on, and return the width."""
    _order(layers)
    for layer in layers:
        _place(layer, [0.0] * len(layer))
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        for layer in layers if downwards else reversed(layers):
            _place(
                layer, [_ideal_position(slot, downwards, sweep >= _SWEEPS - 2) for slot in layer]
            )
        _spread(layers)
    _straighten(layers)
    _spread(layers)
    left = min((slot.x for layer in layers for slot in layer), default=0.0)
    for layer in layers:
        for slot in layer:
            slot.x -= left
    return max((slot.x + slot.width for layer in layers for slot in layer), default=0.0)


def _order(layers: Sequence[list[Slot]]) -> None:
    """Sort each layer by the barycentres of neighbours; keep the order with fewest crossings."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        downwards = sweep % 2 == 0
        rank: dict[Slot, float] = {}
        for layer in layers if downwards else reversed(layers):
            positions: dict[Slot, float] = {}
            for index, slot in enumerate(layer):
                around = [
                    rank[link.upper] + link.leaving / (link.upper.width + 1)
                    if downwards
                    else rank[link.lower] + link.entering / (link.lower.width + 1)
                    for link in (slot.up if downwards else slot.down)
                ]
                positions[slot] = sum(around) / len(around) if around else float(index)
            layer.sort(key=positions.__getitem__)
            rank.update((slot, float(index)) for index, slot in enumerate(layer))
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    for layer, order in zip(layers, best, strict=True):
        layer[:] = order


def _crossings(layers: Sequence[Sequence[Slot]]) -> int:
    count = 0
    for upper, lower in pairwise(layers):
        rank = {slot: index for index, slot in enumerate(lower)}
        ends: list[tuple[int, float]] = []
        for slot in upper:
            targets = [(rank[link.lower], link.entering) for link in slot.down]
            count += sum(len(ends) - bisect_right(ends, target) for target in targets)
            for target in targets:
                insort(ends, target)
    return count


def _ideal_position(slot: Slot, downwards: bool, both: bool) -> float:
    """Return the mean of the positions at which the links of a slot would be vertical."""
    wanted = [link.start - link.entering for link in slot.up] if downwards or both else []
    if not downwards or both:
        wanted += [link.end - link.leaving for link in slot.down]
    return sum(wanted) / len(wanted) if wanted else slot.x


def _place(layer: Sequence[Slot], wanted: Sequence[float]) -> None:
    """Set the positions nearest to the wanted ones that keep the order and the gaps.

    Least squares with an order is isotonic regression: blocks of slots that would overlap move
    together (pool adjacent violators).
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, number of slots
    offset = 0.0
    offsets = []
    for slot, position in zip(layer, wanted, strict=True):
        offsets.append(offset)
        block = (position - offset, _LINE_WEIGHT if slot.is_line else 1.0, 1)
        while blocks and blocks[-1][0] > block[0]:
            mean, weight, count = blocks.pop()
            total = weight + block[1]
            block = ((mean * weight + block[0] * block[1]) / total, total, count + block[2])
        blocks.append(block)
        offset += slot.width + _GAP
    means = [mean for mean, _, count in blocks for _ in range(count)]
    for slot, mean, offset in zip(layer, means, offsets, strict=True):
        slot.x = mean + offset


def _straighten(layers: Sequence[Sequence[Slot]]) -> None:
    """Make lines straight where the neighbours permit it."""
    bounds: dict[Slot, tuple[Slot | None, Slot | None]] = {}
    for layer in layers:
        padded = [None, *layer, None]
        bounds.update(
            (slot, (before, after))
            for before, slot, after in zip(padded, layer, padded[2:], strict=False)
        )
    for layer in layers:
        for slot in layer:
            if len(slot.up) + len(slot.down) == 1:
                _straighten_end(slot, *bounds[slot])
    for layer in layers:
        for slot in layer:
            if slot.is_line and not (slot.up and slot.up[0].upper.is_line):
                _straighten_line(slot, bounds)


def _straighten_end(slot: Slot, before: Slot | None, after: Slot | None) -> None:
    """Move a slot with one link, so that the link is vertical."""
    wanted = slot.up[0].start - slot.up[0].entering if slot.up else slot.x
    wanted = slot.down[0].end - slot.down[0].leaving if slot.down else wanted
    low = -math.inf if before is None else before.x + before.width + _GAP
    high = math.inf if after is None else after.x - _GAP - slot.width
    if low <= high:
        slot.x = min(max(wanted, low), high)


def _straighten_line(top: Slot, bounds: dict[Slot, tuple[Slot | None, Slot | None]]) -> None:
    pieces, piece = [], top
    low, high = -math.inf, math.inf
    while True:
        before, after = bounds[piece]
        least = -math.inf if before is None else before.x + before.width + _GAP
        most = math.inf if after is None else after.x - _GAP - piece.width
        if max(low, least) > min(high, most):
            break
        low, high = max(low, least), min(high, most)
        pieces.append(piece)
        following = [link.lower for link in piece.down if link.lower.is_line]
        if not following:
            break
        piece = following[0]
    wanted = sum(piece.x for piece in pieces) / max(1, len(pieces))
    for piece in pieces:
        piece.x = min(max(wanted, low), high)
    if pieces and pieces[-1] is not piece:
        _straighten_line(piece, bounds)


def _spread(layers: Sequence[Sequence[Slot]]) -> None:
    """Spread the links into each slot over its width, in the order of their upper ends."""
    for layer in layers:
        for slot in layer:
            links = sorted(
                (link for link in slot.up if not link.fixed), key=lambda link: link.start
            )
            for index, link in enumerate(links):
                link.entering = slot.width * (index + 1) / (len(links) + 1)
