"""The allowed ranges of dynamic sizes."""

from __future__ import annotations

from collections.abc import Mapping

from crosschip.hal import Sizes
from crosschip.ir import Dim, InputError


def check_ranges(values: Mapping[str, Dim], sizes: Sizes) -> None:
    """Raise if sizes of inputs are out of their ranges.

    Args:
        values: the sizes of the inputs, by name.
        sizes: the ranges.

    Raises:
        InputError: a size is out of its range.
    """
    for bounds in sizes.ranges:
        value = values.get(bounds.name)
        if isinstance(value, int) and not bounds.least <= value <= bounds.most:
            raise InputError(
                f"the size {bounds.name} is {value}, but the model was compiled for "
                f"{bounds.least} to {bounds.most}; compile it with another range"
            )
