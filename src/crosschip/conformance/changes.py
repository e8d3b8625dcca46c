"""Changes of a use's arguments: shapes, ranks, sizes in parameters, element types.

Inference decides whether the result is valid.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import nan, prod
from typing import Any

import numpy as np

from crosschip.conformance.draw import Draw
from crosschip.conformance.uses import MOST_ELEMENTS, draws, replaced
from crosschip.conformance.variations import retyped
from crosschip.ir import Array, ElementType, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.examples import Example
from crosschip.ops.definition.slots import Parameter, Slot


def decoded(slot: Parameter[Any], draw: Draw) -> Any:
    """Return the value of a computed parameter; `None` if the parameter does not accept it."""
    try:
        return slot.decode(np.asarray(draw.value))
    except ValueError:
        return None


def resized(
    arguments: Mapping[str, object], sizes: Mapping[tuple[str, int], int]
) -> dict[str, Any]:
    """Return the arguments with other sizes, by (input name, axis)."""
    changed = {}
    for name, draw in draws(arguments).items():
        shape = tuple(
            sizes.get((name, axis), size) for axis, size in enumerate(draw.type.static_shape or ())
        )
        changed[name] = reshaped(draw, shape)
    return replaced(arguments, changed)


def reshaped(draw: Draw, shape: tuple[int, ...]) -> Draw:
    """Return the draw with another shape; fixed elements are repeated or cut off."""
    if shape == draw.type.shape or prod(shape) > MOST_ELEMENTS:
        return draw
    quantization = draw.type.quantization
    if quantization and quantization.axis is not None and quantization.axis < len(shape):
        count = shape[quantization.axis]
        if count != len(quantization.scale):
            scale = np.resize(quantization.scale, count).tolist() or [1.0]
            quantization = Quantization(tuple(scale), (0,), quantization.axis)
    type_ = TensorType(draw.type.element_type, shape, quantization)
    if draw.value is None:
        return replace(draw, type=type_)
    value = draw.value
    fresh = np.asarray(np.resize(value, shape)) if value.size else np.zeros(shape, value.dtype)
    return replace(draw, type=type_, value=fresh)


def with_integers(
    operator: type[Operator], arguments: Mapping[str, Any], old: int, new: int, *, lists: bool
) -> dict[str, Any]:
    """Replace a number in integer parameters, and optionally in lists of integers."""
    changed = dict(arguments)
    for slot in operator.slots:
        value = changed.get(slot.name)
        if isinstance(value, bool) or not isinstance(slot, Parameter):
            continue
        if isinstance(value, int) and value == old and slot.kind == "integer":
            changed[slot.name] = new
        elif lists and isinstance(value, tuple) and slot.kind == "list of integers":
            changed[slot.name] = tuple(new if number == old else number for number in value)
    return changed


def without_axis(operator: type[Operator], arguments: Example, place: int) -> dict[str, Any]:
    """Remove an axis from all tensors of the highest rank, and from lists of that length."""
    ranks = ranks_of(operator, arguments)
    highest = max(ranks.values(), default=0)
    chosen = {name for name, rank in ranks.items() if rank == highest}
    return at_axis(operator, arguments, chosen, place, None)


def with_axis(operator: type[Operator], arguments: Example) -> dict[str, Any]:
    """Add a first axis of size 2 to the tensors of the highest rank."""
    ranks = ranks_of(operator, arguments)
    highest = max(ranks.values(), default=0)
    chosen = {name for name, rank in ranks.items() if rank == highest}
    return at_axis(operator, arguments, chosen, 0, 2)


def ranks_of(operator: type[Operator], arguments: Example) -> dict[str, int]:
    """Return the rank of each tensor that is not passed to a parameter."""
    parameters = {slot.name for slot in operator.slots if slot.parameter}
    items = draws(arguments).items()
    return {n: len(draw.type.shape or ()) for n, draw in items if n not in parameters}


def at_axis(
    operator: type[Operator],
    arguments: Example,
    chosen: Collection[str],
    place: int,
    size: int | None,
) -> dict[str, Any]:
    """Insert an axis of a size into some tensors, or remove it if `size` is `None`."""
    highest = max(ranks_of(operator, arguments).values(), default=0)
    changed = {}
    for name, draw in draws(arguments).items():
        if name in chosen:
            shape = list(draw.type.static_shape or ())
            if size is not None:
                shape.insert(min(place, len(shape)), size)
            elif place < len(shape):
                del shape[place]
            changed[name] = reshaped(draw, tuple(shape))
    changed_arguments = replaced(arguments, changed)
    for slot in operator.slots:
        value = changed_arguments.get(slot.name)
        if isinstance(slot, Parameter) and isinstance(value, tuple):
            changed_arguments[slot.name] = _list_of_rank(value, highest, place, size)
    return changed_arguments


def _list_of_rank(
    value: tuple[Any, ...], rank: int, place: int, size: int | None
) -> tuple[Any, ...]:
    """Adapt a list with one or two numbers per axis to one axis more or less."""
    more = size is not None
    if rank and sorted(map(_number, value)) == list(range(rank)):
        moved = [v + (v >= place) for v in value] if more else [v for v in value if v != place]
        return (
            (*moved[:place], place, *moved[place:])
            if more
            else tuple(v - (v > place) for v in moved)
        )
    if rank and len(value) == rank:
        return (
            (*value[:place], size, *value[place:]) if more else value[:place] + value[place + 1 :]
        )
    if rank and len(value) == 2 * rank:
        at = 2 * place
        return (*value[:at], 0, 0, *value[at:]) if more else value[:at] + value[at + 2 :]
    return value


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else nan


def retyped_group(
    operator: type[Operator], arguments: Example, leader: Slot, element_type: ElementType
) -> dict[str, Any]:
    """Change the element type of a slot and of those that share it, to plain elements."""
    group = group_of(operator, arguments, leader)
    changed = {name: retyped_draw(draw, element_type) for name, draw in group.items()}
    changed_arguments = replaced(arguments, changed)
    if not any(draw.type.quantization for draw in draws(changed_arguments).values()):
        changed_arguments.pop("quantization", None)
    return changed_arguments


def group_of(operator: type[Operator], arguments: Example, leader: Slot) -> dict[str, Draw]:
    """Return the draws of a slot and of those that share its element type."""
    names = {leader.name}
    for slot in operator.slots:
        if slot.like in names:
            names.add(slot.name)
    return {n: d for n, d in draws(arguments).items() if n.partition(".")[0] in names}


def retyped_draw(draw: Draw, element_type: ElementType) -> Draw:
    """Return the draw with plain elements of another type."""
    plain = replace(draw, type=TensorType(draw.type.element_type, draw.type.shape))
    if draw.type.quantization and draw.value is None:
        plain = replace(plain, low=-2, high=2)
    sample = retyped(plain, element_type)
    return replace(draw, type=sample.type, low=sample.low, high=sample.high, value=sample.value)


def given_draw(array: Array) -> Draw:
    """Return a draw with fixed elements."""
    return Draw(TensorType(ElementType.of(array.dtype), array.shape), value=array)


def places_in(arguments: Mapping[str, object]) -> list[tuple[str, int, int]]:
    """List all axes of all tensors as (input name, axis, size)."""
    return [
        (name, axis, size)
        for name, draw in draws(arguments).items()
        for axis, size in enumerate(draw.type.static_shape or ())
    ]
