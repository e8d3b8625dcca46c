"""Calibration of blocks' durations with that of the whole model on a device.

A block that runs alone also pays for its boundaries: engines convert layouts there, do not fuse
across them, and start more for a real segment than for a small model. So the blocks of a model take
longer alone than the whole. The excess is charged to the boundaries, in proportion to a launch and
to their bytes, as far as each block's duration permits; the rest, and a lack, to all blocks alike.
Placements then pay for the boundaries of their segments only.
"""

from __future__ import annotations

from math import inf

import numpy as np

from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass

SECONDS_PER_BYTE = 1e-10
"""The duration of one pass over a byte, which the boundary of a block takes some times."""

LEAST_SHARE = 0.3
"""The share of a block's duration alone that its boundaries leave at least."""

_STEPS = 60
"""The number of bisections for what boundaries take."""


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """The durations of blocks within segments of a device.

    Attributes:
        seconds: the duration of each block, without boundaries, [blocks].
        launch: the seconds that a segment takes besides the launch of a small model.
        boundary_rate: the seconds per byte of the inputs and outputs of a segment.
        residual: the relative difference between the blocks' sum and the whole that boundaries do
            not explain.
    """

    seconds: Array
    launch: float = 0.0
    boundary_rate: float = 0.0
    residual: float = 0.0


def calibrate(
    alone: Array, nbytes: Array, launch: float, whole: float, host_bytes: int
) -> Calibration:
    """Divide the durations of blocks alone into their own and those of their boundaries.

    Args:
        alone: the duration of each block alone, without the launch, [blocks].
        nbytes: the bytes of each block's inputs and outputs, [blocks].
        launch: the duration of the launch of a small model.
        whole: the duration of the whole model, without the launch.
        host_bytes: the bytes of the model's inputs and outputs.
    """
    unit = launch + SECONDS_PER_BYTE * nbytes
    unit_of_whole = launch + SECONDS_PER_BYTE * host_bytes

    def inner(passes: float) -> Array:
        return np.maximum(LEAST_SHARE * alone, alone - passes * unit)

    def excess(passes: float) -> float:
        return float(inner(passes).sum()) + passes * unit_of_whole - whole

    low, high = 0.0, 0.0
    if excess(0.0) > 0:
        most = 0.5 * whole / unit_of_whole if unit_of_whole else inf
        high = min(most, float(alone.sum()) / float(unit.sum() or 1.0))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    seconds = inner(high)
    total = float(seconds.sum())
    scale = (whole - high * unit_of_whole) / total if total else 1.0
    return Calibration(seconds * scale, high * launch, high * SECONDS_PER_BYTE, abs(scale - 1))
