"""Random changes of a use of an operator: sizes, ranks, parameters, types, data.

A change modifies one thing, or several that must change together. Inference decides whether the
result is valid. A change that does not apply returns `None`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from random import Random
from typing import Any

import numpy as np

from crosschip.conformance.changes import (
    at_axis,
    decoded,
    given_draw,
    group_of,
    places_in,
    ranks_of,
    resized,
    retyped_draw,
    retyped_group,
    with_integers,
)
from crosschip.conformance.draw import Draw
from crosschip.conformance.uses import Use, draws, replaced
from crosschip.conformance.variations import as_integers
from crosschip.ir import Array, ElementType, Quantization, TensorType
from crosschip.ir.types import FLOATS, INTEGERS, QUANTIZABLE
from crosschip.ops import examples_of
from crosschip.ops.definition.quantized import limits, stored
from crosschip.ops.definition.slots import Parameter

RandomChange = Callable[[Use, Random], Use | None]

_SIZES = (0, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17)
_INTEGERS = (-2, -1, 0, 1, 1, 2, 2, 3, 3, 4, 5)
_REALS = (0.0, 1.0, -1.0, 0.5, 2.0, 0.1, 1e-5, 3.0, 10.0)
_RANGES = ((-2.0, 2.0), (0.0, 1.0), (-1e-2, 1e-2), (-100.0, 100.0), (1.0, 2.0), (-9.0, 9.0))
_SPECIALS = (nan, nan, inf, -inf, 0.0, -0.0, 0.5, -1.5, 2.5, 1.0)
_SCALES = (0.03, 0.05, 0.5, 1.0, 1e-3, 0.0078125)


def resize(use: Use, random: Random) -> Use | None:
    """Change the size of one axis, of all axes of equal size, or of all multiples of it."""
    places = places_in(use.arguments)
    if not places:
        return None
    name, axis, old = random.choice(places)
    size = random.choice((*_SIZES, old + 1, old * 2))
    how = random.choice(("alone", "alike", "alike", "multiples", "some"))
    chosen = {(name, axis): size}
    for other, at, length in places:
        if (how == "alike" or (how == "some" and random.random() < 0.5)) and length == old:
            chosen[other, at] = size
        elif how == "multiples" and old > 1 and length % old == 0:
            chosen[other, at] = length // old * size
    changed = resized(use.arguments, chosen)
    if how != "alone" and random.random() < 0.5:
        changed = with_integers(use.operator, changed, old, size, lists=random.random() < 0.5)
    return replace(use, arguments=changed)


def add_axis(use: Use, random: Random) -> Use | None:
    """Add an axis to the tensors of the highest rank, to one tensor, or to all."""
    return _change_ranks(use, random, more=True)


def drop_axis(use: Use, random: Random) -> Use | None:
    """Remove an axis from the tensors of the highest rank, from one tensor, or from all."""
    return _change_ranks(use, random, more=False)


def set_parameter(use: Use, random: Random) -> Use | None:
    """Change a parameter, or one element of a list."""
    slots = [slot for slot in use.operator.slots if isinstance(slot, Parameter)]
    if not slots:
        return None
    slot = random.choice(slots)
    now = use.arguments.get(slot.name, slot.default)
    if isinstance(now, Draw):
        now = decoded(slot, now)
    value = _another(slot, now, use, random)
    return None if value is None else _with(use, slot.name, value)


def leave_out(use: Use, random: Random) -> Use | None:
    """Omit an optional tensor or parameter."""
    optional = [slot.name for slot in use.operator.slots if slot.optional]
    optional = [name for name in optional if name in use.arguments]
    return _without(use, random.choice(optional)) if optional else None


def take_from_example(use: Use, random: Random) -> Use | None:
    """Fill a slot as one of the operator's examples does."""
    example = random.choice(examples_of(use.operator))
    slot = random.choice(sorted(example))
    value: Any = example[slot]
    if isinstance(value, list):
        return None
    return _with(use, slot, Draw.of(value) if hasattr(value, "low") else value)


def retype(use: Use, random: Random) -> Use | None:
    """Change the element type of a tensor and of those that share it; quantized or plain."""
    leaders = [s for s in use.operator.slots if not s.parameter and not s.like]
    if not leaders:
        return None
    slot = random.choice(leaders)
    group = group_of(use.operator, use.arguments, slot)
    if not group:
        return None
    if ElementType.FLOAT32 in slot.types and random.random() < 0.3:
        return _random_quantization(use, group, random)
    element_type = random.choice(sorted(slot.types, key=lambda t: t.code))
    changed = retyped_group(use.operator, use.arguments, slot, element_type)
    return replace(use, arguments=changed)


def change_data(use: Use, random: Random) -> Use | None:
    """Change the range or the special numbers of random elements, or fixed elements."""
    samples = draws(use.arguments)
    if not samples:
        return None
    name = random.choice(sorted(samples))
    changed = redraw(samples[name], use, random)
    return replace(use, arguments=replaced(use.arguments, {name: changed}))


def compute_parameter(use: Use, random: Random) -> Use | None:
    """Compute a parameter when the model runs, or fix it again."""
    slots = [
        slot
        for slot in use.operator.slots
        if isinstance(slot, Parameter)
        and slot.name != "fuse_code"
        and use.arguments.get(slot.name) is not None
    ]
    if not slots:
        return None
    slot = random.choice(slots)
    value = use.arguments[slot.name]
    if isinstance(value, Draw):
        known = decoded(slot, value)
        return None if known is None else _with(use, slot.name, known)
    try:
        array = slot.encode(value)
    except ValueError:  # one that its type cannot hold, which the use is refused for
        return None
    if array.dtype == np.int32 and random.random() < 0.5:
        array = array.astype(np.int64)
    return _with(use, slot.name, given_draw(array))


def make_constant(use: Use, random: Random) -> Use | None:
    """Turn an input into a constant, or back."""
    parameters = {slot.name for slot in use.operator.slots if slot.parameter}
    samples = {n: d for n, d in draws(use.arguments).items() if n not in parameters | _parts(use)}
    if not samples:
        return None
    name = random.choice(sorted(samples))
    turned = replace(samples[name], constant=not samples[name].constant)
    return replace(use, arguments=replaced(use.arguments, {name: turned}))


def redraw(draw: Draw, use: Use, random: Random) -> Draw:
    """Return a draw with another range or special numbers, or with one fixed element changed."""
    if draw.value is not None:
        return replace(draw, value=_perturb(draw.value, use, random))
    element_type = draw.type.element_type
    if element_type in FLOATS and random.random() < 0.6:
        return replace(draw, specials=tuple(random.sample(_SPECIALS, random.choice((1, 1, 2, 3)))))
    if element_type in FLOATS:
        low, high = random.choice(_RANGES)
        return replace(draw, low=low, high=high, specials=())
    if element_type in INTEGERS:
        least, greatest = limits(element_type)
        reach = random.choice((1, 3, 10, 100))
        low = max(least, random.choice((0, -reach)))
        return replace(draw, low=low, high=min(greatest, low + 2 * reach) + 1)
    return draw


def _change_ranks(use: Use, random: Random, *, more: bool) -> Use | None:
    ranks = ranks_of(use.operator, use.arguments)
    highest = max(ranks.values(), default=0)
    if not ranks or not (more or highest):
        return None
    how = random.choice(("highest", "one", "all"))
    chosen = {n for n, rank in ranks.items() if how == "all" or rank == highest}
    if how == "one":
        chosen = {random.choice(sorted(ranks))}
    place = random.choice((0, random.randrange(highest + 1 if more else highest)))
    size = random.choice((1, 1, 2, 3)) if more else None
    return replace(use, arguments=at_axis(use.operator, use.arguments, chosen, place, size))


def _another(slot: Parameter[Any], now: Any, use: Use, random: Random) -> Any:
    """Return another plain value of a parameter; `None` if there is none."""
    if slot.rank == 1:
        return _another_list(slot, list(now or ()), use, random)
    if slot.options:
        return random.choice(list(slot.options))
    if slot.kind == "flag":
        return not now
    if slot.kind == "integer":
        return _another_integer(slot.name, now, use, random)
    if slot.kind in ("real number", "number"):
        numbers = (*_REALS, *((-now, now * 2) if isinstance(now, int | float) else ()))
        return random.choice(numbers)
    if slot.kind == "element type":
        return random.choice(list(ElementType)[:23])
    return None


def _another_integer(name: str, now: Any, use: Use, random: Random) -> int:
    if name.endswith(("axis", "axes")):
        rank = max((len(d.type.shape or ()) for d in draws(use.arguments).values()), default=0)
        return random.randint(-rank, rank)
    near: tuple[int, ...] = (now - 1, now + 1, now * 2) if isinstance(now, int) else ()
    return random.choice((*_INTEGERS, *near))


def _another_list(slot: Parameter[Any], now: list[Any], use: Use, random: Random) -> Any:
    how = random.choice(("one", "one", "all", "more", "less", "order"))
    if how == "less" and now:
        del now[random.randrange(len(now))]
    elif how == "order":
        random.shuffle(now)
    else:
        value = _element(slot, now, use, random)
        if value is None:
            return None
        if how == "more" or not now:
            now.insert(random.randrange(len(now) + 1), value)
        elif how == "all":
            now = [value] * len(now)
        else:
            now[random.randrange(len(now))] = value
    return tuple(now)


def _element(slot: Parameter[Any], now: Sequence[Any], use: Use, random: Random) -> Any:
    if slot.options:
        return random.choice(list(slot.options))
    old = random.choice(now) if now else 1
    if slot.kind == "list of integers":
        return _another_integer(slot.name, old, use, random)
    if slot.kind in ("list of real numbers", "list of numbers"):
        return random.choice((*_REALS, old * 2, old + 1))
    return None


def _random_quantization(use: Use, group: Mapping[str, Draw], random: Random) -> Use | None:
    element_type = random.choice(sorted(QUANTIZABLE, key=lambda t: t.code))
    if element_type not in INTEGERS or random.random() < 0.5:
        element_type = random.choice((ElementType.INT8, ElementType.UINT8))
    changed: dict[str, Draw] = {}
    for name, draw in group.items():
        real = draw if draw.type.quantization is None else retyped_draw(draw, ElementType.FLOAT32)
        scales = _scales(element_type, real.type.static_shape or (), random)
        if real.value is not None:
            if real.value.dtype != np.float32:
                return None
            with np.errstate(all="ignore"):
                value = stored(real.value, scales, element_type)
            type_ = TensorType(element_type, real.type.shape, scales)
            changed[name] = replace(real, type=type_, value=value)
            continue
        quantized = as_integers(real, element_type, scales)
        if quantized is None:
            return None
        changed[name] = replace(
            draw, type=quantized.type, low=quantized.low, high=quantized.high, specials=()
        )
    arguments = replaced(use.arguments, changed)
    arguments.pop("quantization", None)
    if random.random() < 0.7:
        arguments["quantization"] = _scales(element_type, (), random)
    return replace(use, arguments=arguments)


def _scales(element_type: ElementType, shape: Sequence[int], random: Random) -> Quantization:
    """Draw scales and zero points: mostly per tensor, sometimes per index of an axis."""
    per_axis = bool(shape) and random.random() < 0.2
    axis = random.randrange(len(shape)) if per_axis else None
    count = shape[axis] if axis is not None else 1
    if not count:
        axis, count = None, 1
    zero = 0
    if element_type in INTEGERS and random.random() < 0.6:
        least, greatest = limits(element_type)
        zero = random.randint(max(least, -128), min(greatest, 255))
    return Quantization(tuple(random.choice(_SCALES) for _ in range(count)), (zero,) * count, axis)


def _perturb(value: Array, use: Use, random: Random) -> Array:
    """Return the array with one element changed."""
    fresh = value.copy()
    if not fresh.size:
        return fresh
    flat = fresh.reshape(-1)
    place = random.randrange(flat.size)
    if value.dtype.kind in "iu":
        least, most = max(-9, np.iinfo(value.dtype).min), np.iinfo(value.dtype).max
        near = int(flat[place])
        sizes = [size for _, _, size in places_in(use.arguments)] or [1]
        size = random.choice(sizes)
        number = random.choice((*_INTEGERS, size, size - 1, -size, -size - 1, near + 1, 1000))
        flat[place] = max(least, min(number, most))
    elif value.dtype.kind == "b":
        flat[place] = not flat[place]
    elif value.dtype.kind == "f":
        flat[place] = random.choice((*_REALS, *_SPECIALS))
    return fresh


def _parts(use: Use) -> set[str]:
    """Return the names of inputs in slots that take several tensors."""
    return {name for name in draws(use.arguments) if "." in name}


def _with(use: Use, slot: str, value: object) -> Use:
    return replace(use, arguments={**use.arguments, slot: value})


def _without(use: Use, slot: str) -> Use:
    rest = {name: value for name, value in use.arguments.items() if name != slot}
    return replace(use, arguments=rest)


RANDOM_CHANGES: tuple[tuple[int, RandomChange], ...] = (
    (5, resize),
    (1, add_axis),
    (1, drop_axis),
    (7, set_parameter),
    (1, leave_out),
    (2, take_from_example),
    (2, retype),
    (2, change_data),
    (1, compute_parameter),
    (1, make_constant),
)
"""All random changes, each with its relative probability."""
