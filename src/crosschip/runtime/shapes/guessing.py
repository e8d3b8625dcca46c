"""Sizes made up where nobody has said what they will be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from crosschip.hal import Sizes
from crosschip.ir import Shape, TensorType
from crosschip.ir.dimension import name_of


class Role(Enum):
    """The meaning that an open size seems to have."""

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
"""The sizes that are tried for each meaning, the most usual first."""

_LENGTHS = re.compile(r"seq|len|time|frame|step|token|sample|past|total|num_", re.IGNORECASE)
"""The names of sizes that are lengths wherever they stand."""

_MOST_LONG_AXES = 5
"""A tensor with more axes has none that is long."""

_MOST_CHANNELS = 4
"""An image whose last axis is no longer has its channels there."""


def role_of(type_: TensorType, axis: int) -> Role:
    """The meaning that an open size of an input seems to have, by its place and its name.

    Args:
        type_: the input's, whose number of axes is known.
        axis: where the size is.
    """
    if len(type_.shape or ()) > _MOST_LONG_AXES:
        return Role.BATCH  # small, so that the product of all is
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
    """Tell whether a shape looks like a recurrent network's state: [layers, batch, units]."""
    if len(shape) != 3:
        return False
    first, _, last = shape
    return isinstance(first, int) and first > 1 and isinstance(last, int)


def typical_sizes(sizes: Sizes) -> dict[str, int]:
    """The sizes of the first profile, and else the most of those that have a range."""
    named = {entry.name: entry.most for entry in sizes.ranges}
    if sizes.profiles:
        named.update(sizes.profiles[0])
    return named


def typical_shape(type_: TensorType, named: dict[str, int]) -> tuple[int, ...]:
    """A shape with every size known; a size that is made up is kept under its name.

    Args:
        type_: of a tensor whose number of axes is known.
        named: sizes that are known.
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
