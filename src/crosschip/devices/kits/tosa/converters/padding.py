"""Padding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.converters.table import converts
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.ops.standard.padding import Pad, PadMode

_MODES = {
    PadMode.REFLECT: "reflect",
    PadMode.REPLICATE: "edge",
    PadMode.EDGE: "edge",
    PadMode.SYMMETRIC: "symmetric",
    PadMode.WRAP: "wrap",
}


@converts(Pad)
def pad(g: Graph, op: Pad) -> Value:
    value = g[op.input]
    sides = list(zip(op.pads[::2], op.pads[1::2], strict=True))
    added = [(max(0, before), max(0, after)) for before, after in sides]
    mode = _MODES.get(op.mode)
    if mode is None:
        fill = g.number(0, value) if op.value is None else g[op.value]
        # Before the ends are cut off, of which all elements of an axis may be a part.
        return _crop(g, g.pad(value, added, fill), sides)
    value = _crop(g, value, sides)
    for axis, side in enumerate(added):
        if any(side):
            order = np.pad(np.arange(value.shape[axis]), side, mode=mode)  # type: ignore[call-overload]
            value = g.gather(value, order, axis)
    return value


def _crop(g: Graph, value: Value, sides: Sequence[tuple[int, int]]) -> Value:
    """Cut off the ends of axes with negative padding."""
    starts = [max(0, -before) for before, _ in sides]
    sizes = [
        size - start - max(0, -after)
        for size, start, (_, after) in zip(value.shape, starts, sides, strict=True)
    ]
    return g.slice(value, starts, sizes)
