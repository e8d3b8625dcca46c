"""The dynamic shape strategies."""

from __future__ import annotations

from enum import Enum


class DynamicShapeStrategy(Enum):
    """The treatment of the dynamic sizes of a segment."""

    FIXED = "fixed"
    """There are none."""
    OPEN = "open"
    """The device compiles them."""
    PROGRAM_PER_SHAPE = "a program a shape"
    """The device compiles the segment for each set of shapes."""
