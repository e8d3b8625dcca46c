"""The shapes to compile for, and the ranges that shapes must keep to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crosschip.hal import Sizes
from crosschip.ir import Dim, InputError, Model


def shapes_for(model: Model, sizes: Sizes) -> Iterator[tuple[tuple[int, ...], ...]]:
    """The shapes of a model's inputs for each profile that determines all of them.

    A model without open sizes has one, whatever the profiles are.
    """
    types = [operand.type for operand in model.inputs.values()]
    for profile in sizes.profiles or ((),):
        known = dict(profile)
        shapes = [type_.substitute(known).static_shape for type_ in types]
        if all(shape is not None for shape in shapes):
            yield tuple(shape for shape in shapes if shape is not None)


def check_ranges(found: Mapping[str, Dim], sizes: Sizes) -> None:
    """Refuse sizes of inputs that are outside of their ranges.

    Args:
        found: the sizes of the inputs, by name.
        sizes: the ranges.

    Raises:
        InputError: one is.
    """
    for bounds in sizes.ranges:
        value = found.get(bounds.name)
        if isinstance(value, int) and not bounds.least <= value <= bounds.most:
            raise InputError(
                f"the size {bounds.name} is {value}, but the model was compiled for "
                f"{bounds.least} to {bounds.most}; compile it with another range"
            )
