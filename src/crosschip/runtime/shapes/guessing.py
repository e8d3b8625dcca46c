"""Sizes made up where nobody has said what they will be."""

from __future__ import annotations

from crosschip.hal import Sizes
from crosschip.ir import TensorType
from crosschip.ir.dimension import name_of

_BATCH, _SIDE, _LENGTH = 1, 224, 128
"""For open sizes: the first of any tensor, the others of images, those of the rest."""


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
    found = []
    for axis, size in enumerate(shape):
        if isinstance(size, int):
            found.append(size)
            continue
        guess = _BATCH if axis == 0 else _SIDE if len(shape) == 4 and axis > 1 else _LENGTH
        name = name_of(size)
        found.append(guess if name is None else named.setdefault(name, guess))
    return tuple(found)
