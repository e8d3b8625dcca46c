"""Shrinking of a failing use to the smallest use that fails in the same way.

The simpler uses of a use have a fixed order. The path to a smaller use is therefore a list of
indices, which the case's id records: `CONV_2D/random/0-17~3.0.12`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import Enum
from itertools import islice
from math import isfinite
from typing import Any

import numpy as np

from crosschip.conformance.changes import (
    decoded,
    places_in,
    reshaped,
    retyped_group,
    with_integers,
    without_axis,
)
from crosschip.conformance.draw import Draw
from crosschip.conformance.uses import Use, draws, is_valid, replaced
from crosschip.ir import ElementType, Quantization
from crosschip.ir.types import FLOATS
from crosschip.ops import Operator
from crosschip.ops.definition.examples import Example
from crosschip.ops.definition.slots import Parameter, Slot

_PLAIN_TYPES = (ElementType.FLOAT32, ElementType.INT32, ElementType.INT64, ElementType.BOOL)
_PLAIN_SCALES = Quantization((1.0,))
_FEW = 12
"""The elements of an array or list that are simplified one by one."""


def shrink(use: Use, fails: Callable[[Sequence[int]], bool], tries: int) -> list[int]:
    """Return the path to the smallest use that fails in the same way.

    Args:
        use: the failing use.
        fails: returns whether the use at the end of a path fails in the same way.
        tries: the maximum number of uses to try.
    """
    way: list[int] = []
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for index, candidate in enumerate(simpler_uses(use)):
            if cost(candidate) >= cost(use) or not is_valid(candidate):
                continue
            if not tries:
                return way
            tries -= 1
            if fails([*way, index]):
                way.append(index)
                use, is_smaller = candidate, True
                break
    return way


def follow_path(use: Use, way: Sequence[int]) -> Use:
    """Return the use at the end of a path, or raise `KeyError`."""
    for index in way:
        try:
            use = next(islice(simpler_uses(use), index, None))
        except StopIteration:
            raise KeyError(index) from None
    return use


def cost(use: Use) -> float:
    """Return the complexity of a use."""
    total = 100.0 * len(use.runs) + 30 * use.named + 30 * use.loaded
    total += sum(10 + _cost(value) for value in use.arguments.values())
    return total + sum(0.3 * _cost(value) for run in use.runs for value in run.values())


def simpler_uses(use: Use) -> Iterator[Use]:
    """Generate uses that are simpler in one respect, valid or not, the simplest first."""
    yield from _fewer_conditions(use)
    yield from _fewer_arguments(use)
    yield from _plainer_types(use)
    yield from _fewer_axes(use)
    yield from _smaller_sizes(use)
    yield from _plainer_parameters(use)
    yield from _plainer_data(use)


def _fewer_conditions(use: Use) -> Iterator[Use]:
    for index, run in enumerate(use.runs):
        yield replace(use, arguments={**use.arguments, **run}, runs=())
        yield replace(use, runs=use.runs[:index] + use.runs[index + 1 :])
    if use.loaded:
        yield replace(use, loaded=False)
    if use.named:
        yield replace(use, named=False)


def _fewer_arguments(use: Use) -> Iterator[Use]:
    for slot in use.operator.slots:
        value = use.arguments.get(slot.name)
        if slot.optional and slot.name in use.arguments:
            yield _apply_to_all_runs(use, _without, slot.name)
        if isinstance(slot, Parameter) and isinstance(value, Draw):
            known = {**use.arguments, slot.name: decoded(slot, value)}
            yield replace(
                use, arguments=known, runs=tuple(_without(r, slot.name) for r in use.runs)
            )
        if isinstance(value, list) and len(value) > 1:
            yield _apply_to_all_runs(use, _drop_first, slot.name)
    for name, draw in draws(use.arguments).items():
        if draw.constant:
            arguments = replaced(use.arguments, {name: replace(draw, constant=False)})
            yield replace(use, arguments=arguments)


def _plainer_types(use: Use) -> Iterator[Use]:
    if "quantization" in use.arguments:
        yield replace(use, arguments=_without(use.arguments, "quantization"))
    for slot in use.operator.slots:
        if not slot.parameter and not slot.like:
            for element_type in filter(slot.types.__contains__, _PLAIN_TYPES):
                yield _apply_to_all_runs(use, _retype, use.operator, slot, element_type)
    for name, draw in draws(use.arguments).items():
        scales = draw.type.quantization
        if scales is not None and scales != _PLAIN_SCALES:
            yield _apply_to_all_runs(use, _set_plain_scale, name)


def _fewer_axes(use: Use) -> Iterator[Use]:
    samples = draws(use.arguments)
    highest = max((len(draw.type.shape or ()) for draw in samples.values()), default=0)
    for place in range(highest):
        yield _apply_to_all_runs(use, _remove_axis, use.operator, place)
    for name, draw in samples.items():
        for axis in range(len(draw.type.shape or ())):
            yield _apply_to_all_runs(use, _remove_axis_of, name, axis)


def _smaller_sizes(use: Use) -> Iterator[Use]:
    places = places_in(use.arguments)
    for old in sorted({size for _, _, size in places}, reverse=True):
        for new in _smaller(old):
            alike = _apply_to_all_runs(use, _replace_sizes, old, new)
            yield alike
            for lists in (True, False):
                changed = with_integers(use.operator, alike.arguments, old, new, lists=lists)
                yield replace(alike, arguments=changed)
    for name, axis, old in places:
        for new in _smaller(old):
            yield _apply_to_all_runs(use, _set_axis, name, axis, new)
    for index, run in enumerate(use.runs):
        for name, axis, old in places_in(run):
            for new in _smaller(old):
                other = _set_axis(run, name, axis, new)
                yield replace(use, runs=(*use.runs[:index], other, *use.runs[index + 1 :]))


def _plainer_parameters(use: Use) -> Iterator[Use]:
    for slot in use.operator.slots:
        value = use.arguments.get(slot.name)
        if not isinstance(slot, Parameter) or value is None or isinstance(value, Draw):
            continue
        for plain in _simplify_value(slot, value):
            yield replace(use, arguments={**use.arguments, slot.name: plain})


def _plainer_data(use: Use) -> Iterator[Use]:
    for index, some in enumerate((use.arguments, *use.runs)):
        for name, draw in draws(some).items():
            for plain in _simplify_draw(draw):
                changed = replaced(some, {name: plain})
                if not index:
                    yield replace(use, arguments=changed)
                else:
                    yield replace(use, runs=(*use.runs[: index - 1], changed, *use.runs[index:]))


def _simplify_draw(draw: Draw) -> Iterator[Draw]:
    for index in range(len(draw.specials)):
        yield replace(draw, specials=draw.specials[:index] + draw.specials[index + 1 :])
    if draw.value is None:
        if draw.type.element_type in FLOATS and (draw.low, draw.high) != (-2, 2):
            yield replace(draw, low=-2, high=2)
        return
    value = draw.value
    if value.size and value.any():
        yield replace(draw, value=np.zeros_like(value))
    for place in range(min(value.size, _FEW)):
        now = value.reshape(-1)[place]
        for number in (0, 1):
            if value.dtype.kind in "iufb" and now != number:
                fresh = value.copy()
                fresh.reshape(-1)[place] = number
                yield replace(draw, value=fresh)


def _simplify_value(slot: Parameter[Any], value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for fill in (0, 1):
            if slot.kind == "list of integers" and any(v != fill for v in value):
                yield (fill,) * len(value)
        for index in range(min(len(value), _FEW)):
            yield value[:index] + value[index + 1 :]
            for plain in _simplify_number(value[index]):
                yield (*value[:index], plain, *value[index + 1 :])
    elif isinstance(value, Enum):
        if isinstance(value, ElementType):
            yield from _PLAIN_TYPES[:3]
        elif slot.options:
            yield next(iter(slot.options))
    elif isinstance(value, bool):
        yield False
    elif isinstance(value, int | float):
        yield from _simplify_number(value)


def _simplify_number(number: Any) -> Iterator[Any]:
    if isinstance(number, Enum):
        return
    kind = type(number)
    for plain in (0, 1, *((number // 2, number - 1) if isinstance(number, int) else ())):
        if plain != number and (isinstance(plain, int) or isfinite(plain)):
            yield kind(plain)


def _smaller(size: int) -> Sequence[int]:
    if not size:
        return (1,)
    return sorted({1, 2, size // 2, size - 1} - {0, size} - set(range(size + 1, 3)))


def _apply_to_all_runs(use: Use, change: Callable[..., Example], *how: Any) -> Use:
    """Apply a change to the samples of a use and of its further runs."""
    runs = []
    for run in use.runs:
        changed = change({**use.arguments, **run}, *how)
        runs.append({name: changed[name] for name in run if name in changed})
    return replace(use, arguments=change(use.arguments, *how), runs=tuple(runs))


def _without(some: Example, name: str) -> Example:
    return {slot: value for slot, value in some.items() if slot != name}


def _drop_first(some: Example, name: str) -> Example:
    value: Any = some[name]
    return {**some, name: value[1:]}


def _retype(
    some: Example, operator: type[Operator], slot: Slot, element_type: ElementType
) -> Example:
    return retyped_group(operator, some, slot, element_type)


def _set_plain_scale(some: Example, name: str) -> Example:
    draw = draws(some)[name]
    type_ = replace(draw.type, quantization=_PLAIN_SCALES)
    return replaced(some, {name: replace(draw, type=type_)})


def _remove_axis(some: Example, operator: type[Operator], place: int) -> Example:
    return without_axis(operator, some, place)


def _remove_axis_of(some: Example, name: str, axis: int) -> Example:
    draw = draws(some)[name]
    shape = draw.type.static_shape or ()
    return replaced(some, {name: reshaped(draw, shape[:axis] + shape[axis + 1 :])})


def _set_axis(some: Example, name: str, axis: int, size: int) -> Example:
    draw = draws(some)[name]
    shape = draw.type.static_shape or ()
    return replaced(some, {name: reshaped(draw, (*shape[:axis], size, *shape[axis + 1 :]))})


def _replace_sizes(some: Example, old: int, new: int) -> Example:
    """Change all axes of one size to another size."""
    resized = {}
    for name, draw in draws(some).items():
        shape = tuple(new if size == old else size for size in draw.type.static_shape or ())
        resized[name] = reshaped(draw, shape)
    return replaced(some, resized)


def _cost(value: object) -> float:
    if isinstance(value, list | tuple):
        return sum(1 + _cost(part) for part in value)
    if isinstance(value, Draw):
        return _draw_cost(value)
    if isinstance(value, ElementType):
        return 0.5 * list(ElementType).index(value)
    if isinstance(value, Quantization):
        return 5.0 + len(value.scale)
    if isinstance(value, np.ndarray):
        return float(value.size)
    if isinstance(value, bool | int | float):
        number = float(value)
        whole = number == int(number) if isfinite(number) else False
        return min(abs(number), 50.0) + (number < 0) * 0.5 + (not whole) * 0.5
    return 0.0


def _draw_cost(draw: Draw) -> float:
    shape = draw.type.static_shape or ()
    types = {t: 0.5 * i for i, t in enumerate(_PLAIN_TYPES)}
    total = 3.0 * len(shape) + sum(size or 1.5 for size in shape) + 5 * draw.constant
    total += types.get(draw.type.element_type, 3.0)
    if draw.type.quantization:
        total += 10 + _quantization_cost(draw.type.quantization)
    if draw.value is None:
        return total + 4 * len(draw.specials) + ((draw.low, draw.high) != (-2, 2))
    with np.errstate(all="ignore"):
        numbers = np.nan_to_num(np.abs(draw.value.astype(np.float64)), nan=50.0)
    return total + 15 + 0.1 * float(np.minimum(numbers, 50).sum())


def _quantization_cost(scales: Quantization) -> float:
    return 2.0 * (scales.axis is not None) + (scales.scale != (1.0,)) + (not scales.symmetric)
