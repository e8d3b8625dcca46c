"""The shapes to compile for, and the ranges that shapes must keep to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from crosschip.hal import Sizes
from crosschip.ir import Dim, InputError, Model
from crosschip.passes.specialize import open_names


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


def check_names(model: Model, sizes: Sizes) -> None:
    """Refuse ranges and profiles of sizes that the model's inputs do not leave open.

    Raises:
        InputError: one is.
    """
    known = open_names(operand.type for operand in model.inputs.values())
    profiled = (name for profile in sizes.profiles for name, _ in profile)
    for name in (*(bounds.name for bounds in sizes.ranges), *profiled):
        if name not in known:
            told = ", ".join(known) or "none"
            raise InputError(f"the model has no open size {name!r}; its open sizes are {told}")


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
