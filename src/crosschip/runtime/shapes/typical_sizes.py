"""Typical values of dynamic sizes that have no profile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from crosschip.hal import Sizes
from crosschip.ir import Shape, TensorType
from crosschip.ir.dimension import name_of


class Role(Enum):
    """The presumed meaning of a dynamic size."""

    BATCH = "batch"
    SIDE = "side of an image"
    LENGTH = "length"


USUAL: Mapping[Role, tuple[int, ...]] = {
    Role.BATCH: (1, 2, 4, 8, 16, 32),
    Role.SIDE: (224, 320, 640, 256, 48, 32, 64, 96, 128, 160, 192, 288, 384, 416, 448, 512, 1024),
    Role.LENGTH: (
        128,
        64,
        32,
        256,
        512,
        576,
        1024,
        1,
        16,
        8,
        100,
        160,
        400,
        480,
        2048,
        4096,
        16000,
    ),
}
"""The sizes that are tried for each role, the most typical first."""

_LENGTHS = re.compile(r"seq|len|time|frame|step|token|sample|past|total|num_", re.IGNORECASE)
"""Names of sizes that are lengths on any axis."""

_MOST_LONG_AXES = 5
"""The maximum rank of a tensor that is assumed to have long axes."""

_MOST_CHANNELS = 4
"""The maximum size of a last axis that counts as the channels of an image."""


def role_of(type_: TensorType, axis: int) -> Role:
    """Return the presumed role of a dynamic size, by its axis and name.

    Args:
        type_: the type of an input of known rank.
        axis: the axis of the size.
    """
    if len(type_.shape or ()) > _MOST_LONG_AXES:
        return Role.BATCH  # small, to keep the product of all sizes small
    shape = type_.shape or ()
    if _LENGTHS.search(name_of(shape[axis]) or ""):
        return Role.LENGTH
    if axis == 0 or (axis == 1 and _is_state(shape)):
        return Role.BATCH
    if len(shape) != 4:
        return Role.LENGTH
    last = shape[-1]
    channels_last = isinstance(last, int) and last <= _MOST_CHANNELS
    return Role.SIDE if axis > 1 or channels_last else Role.LENGTH


def _is_state(shape: Shape) -> bool:
    """Return whether a shape looks like a recurrent network's state: [layers, batch, units]."""
    if len(shape) != 3:
        return False
    first, _, last = shape
    return isinstance(first, int) and first > 1 and isinstance(last, int)


def typical_sizes(sizes: Sizes) -> dict[str, int]:
    """Return the sizes of the first profile, and the greatest sizes of other ranges."""
    named = {entry.name: entry.most for entry in sizes.ranges}
    if sizes.profiles:
        named.update(sizes.profiles[0])
    return named


def typical_shape(type_: TensorType, named: dict[str, int]) -> tuple[int, ...]:
    """Return a static shape; typical sizes that it adds are stored in `named`.

    Args:
        type_: the type of a tensor of known rank.
        named: sizes by name.
    """
    shape = type_.substitute(named).shape or ()
    sizes = []
    for axis, size in enumerate(shape):
        if isinstance(size, int):
            sizes.append(size)
            continue
        guess = USUAL[role_of(type_, axis)][0]
        name = name_of(size)
        sizes.append(guess if name is None else named.setdefault(name, guess))
    return tuple(sizes)
