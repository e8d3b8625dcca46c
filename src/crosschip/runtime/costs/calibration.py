"""Calibration of blocks' durations with that of the whole model on a device.

A block that runs alone also pays for its borders: engines convert layouts there, and do not fuse
across them. So the blocks of a model take longer alone than the whole. The excess is charged to the
bytes of the borders, as far as each block's duration permits; the rest, and a lack, to all blocks
alike. Placements then pay for the borders of their segments only.
"""

from __future__ import annotations

import numpy as np

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass

LEAST_SHARE = 0.3
"""The share of a block's duration alone that its borders leave at least."""

_STEPS = 60
"""The number of bisections for the duration per byte of borders."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The durations of blocks within segments of a device.

    Attributes:
        seconds: the duration of each block, without borders, [blocks].
        border: the seconds per byte of the inputs and outputs of a segment.
        residual: the relative difference between the blocks' sum and the whole that `border` does
            not explain.
    """

    seconds: Array
    border: float
    residual: float


def calibrate(alone: Array, nbytes: Array, whole: float | None, host_bytes: int) -> Calibration:
    """Divide the durations of blocks alone into their own and those of their borders.

    Args:
        alone: the duration of each block alone, without the launch, [blocks].
        nbytes: the bytes of each block's inputs and outputs, [blocks].
        whole: the duration of the whole model, without the launch; `None` if the device does not
            run it.
        host_bytes: the bytes of the model's inputs and outputs.
    """
    if whole is None:
        return Calibration(alone, 0.0, 0.0)
    whole = max(whole, 0.1 * float(alone.sum()))

    def inner(border: float) -> Array:
        return np.maximum(LEAST_SHARE * alone, alone - border * nbytes)

    def excess(border: float) -> float:
        return float(inner(border).sum()) + border * host_bytes - whole

    border = 0.0
    if excess(0.0) > 0:
        low, high = 0.0, float(alone.sum() / max(1.0, float(nbytes.sum())))
        for _ in range(_STEPS):
            border = (low + high) / 2
            low, high = (border, high) if excess(border) > 0 else (low, border)
    seconds = inner(border)
    total, target = float(seconds.sum()), max(whole - border * host_bytes, 0.1 * whole)
    scale = target / total if total else 1.0
    return Calibration(seconds * scale, border, abs(scale - 1))
