"""Mixtures: uses of an operator in which many settings meet that were drawn at random.

A mixture begins with an example. For each factor of the operator (type, size, rank, each
parameter, each tensor that may be a constant or left out, ...) a setting is drawn now and then,
and stays if inference takes it and all outputs still have elements. Of several such uses, that is
taken in which most pairs and triples of conditions (see `conditions`) meet for the first time. So
conditions of two and three settings are met by few cases, on a device that declines few of them;
what such a device declines, `pairs` covers one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from crosschip.conformance.changes import at_axis, group_of, ranks_of, reshaped, retyped_group
from crosschip.conformance.conditions import Coverage, conditions
from crosschip.conformance.draw import Draw
from crosschip.conformance.pairs import Change, Setting, settings_of, value_setting
from crosschip.conformance.uses import Use, draws, is_valid, output_sizes, replaced, use_of
from crosschip.conformance.variations import QUANTIZATIONS, leading_quantized
from crosschip.ir import ElementType
from crosschip.ir.types import NARROW_TYPES, PYTHONS_TYPES
from crosschip.ops import Operator, examples_of
from crosschip.ops.definition.slots import Parameter

_CHANCES = {
    "computed": 0.08,
    "empty": 0.05,
    "rank": 0.3,
    "sizes": 0.25,
    "saved": 0.3,
    "constants": 0.45,
}
_CHANCE = 0.4
"""How likely a factor is set, where `_CHANCES` does not say it."""

_SIZES = (1, 5, 16, 17, 33, 65)
_NUMBERS = (-2, -1, 2, 3)
_STEP = -3
"""A number that is tried in lists besides: as a step backwards, it divides few spans."""

_AXES = ((0, 1), (-2, -1), (0, -1), (1, 2), (-1, 1), (-3, 0, -1))
"""Lists of several axes."""

_UNMIXED = PYTHONS_TYPES | NARROW_TYPES - {ElementType.INT4, ElementType.FLOAT8E4M3FN}
"""Element types that are not mixed with other settings; most operators treat narrow ones alike."""

_MOST_TRIES = 3
"""How many settings of a factor are tried until inference takes one."""

_CANDIDATES = 5
"""How many uses are drawn for each mixture."""


def mixtures(operator: type[Operator], count: int) -> Iterator[tuple[int, str, Use]]:
    """Mixtures of an operator: the number of an example, the settings in words, and the use.

    The first ones are the same for any count.
    """
    examples = examples_of(operator)
    factors = _factors(operator)
    yielded: set[tuple[int, str]] = set()
    coverage = Coverage()
    for number in range(count):
        random = Random(f"{operator.type} {number}")
        best: tuple[int, str, Use] | None = None
        most = -1.0
        for candidate in range(_CANDIDATES):
            index = (number + candidate) % len(examples)
            use, words = _mixed(use_of(operator, examples[index]), factors, random)
            if words and (index, words) not in yielded:
                gain = coverage.gain(conditions(use))
                if gain > most:
                    most, best = gain, (index, words, use)
        if best is not None:
            coverage.add(conditions(best[2]))
            yielded.add(best[:2])
            yield best


def _mixed(use: Use, factors: dict[str, list[Setting]], random: Random) -> tuple[Use, str]:
    row: list[Setting] = []
    names = list(factors)
    random.shuffle(names)
    for name in names:
        if random.random() >= _CHANCES.get(name, _CHANCE):
            continue
        settings = [s for s in factors[name] if not any(s.excludes(other) for other in row)]
        for setting in random.sample(settings, min(_MOST_TRIES, len(settings))):
            changed = setting.change(use)
            sizes = None if changed is None else output_sizes(changed)
            if changed is None or sizes is None:
                continue
            if all(sizes) or name == "empty":
                use = changed
                row.append(setting)
                break
    return use, ",".join(sorted(setting.words for setting in row))


def _factors(operator: type[Operator]) -> dict[str, list[Setting]]:
    """The settings of each factor, each once."""
    found: dict[str, dict[str, Setting]] = {}
    paired = (setting for setting in settings_of(operator) if setting.factor != "size")
    for setting in (*_more_settings(operator), *paired):
        found.setdefault(setting.factor, {}).setdefault(setting.words, setting)
    return {factor: list(settings.values()) for factor, settings in found.items()}


def _more_settings(operator: type[Operator]) -> Iterator[Setting]:
    """Settings beyond those that are paired."""
    tensors = [slot for slot in operator.slots if not slot.parameter]
    for place, slot in enumerate(tensors):
        if slot.like:
            continue
        factor, prefix = ("type", "") if place == 0 else (f"type of {slot.name}", f"{slot.name}=")
        for element_type in sorted(slot.types - _UNMIXED, key=lambda t: t.value):
            yield Setting(factor, f"{prefix}{element_type}", _typed(slot.name, element_type))
    for words in QUANTIZATIONS:
        yield Setting("type", words, _quantized(words))
    for slot in operator.slots:
        if isinstance(slot, Parameter):
            if slot.kind == "integer":
                yield from (value_setting(slot, number) for number in _NUMBERS)
            if slot.kind == "list of integers":
                if slot.name.endswith("axes"):
                    yield from (value_setting(slot, axes) for axes in _AXES)
                for example in examples_of(operator):
                    given: Any = example.get(slot.name)
                    if isinstance(given, tuple) and given:
                        yield from (value_setting(slot, v) for v in _lists(given))
        if slot.optional:
            yield Setting(slot.name, f"{slot.name}-left-out", _left_out(slot.name), slot.name)
        if not slot.parameter:
            for index, example in enumerate(examples_of(operator)):
                if slot.optional and slot.name in example:
                    words = f"{slot.name}-as-in-{index}"
                    yield Setting(slot.name, words, _as_in(slot.name, index), slot.name)
            yield Setting(
                f"signs of {slot.name}", f"{slot.name}-from-the-end", _from_the_end(slot.name)
            )
            yield Setting("constants", f"{slot.name}-constant", _constant({slot.name}))
            for more in (True, False):
                words = f"{slot.name}:axis-{'more' if more else 'less'}"
                yield Setting("rank", words, _reranked(slot.name, more=more))
    others = {slot.name for slot in tensors[1:]}
    if len(others) > 1:
        yield Setting("constants", "others-constant", _constant(others))
    for axis in range(4):
        yield from (_size_setting(f"size of axis {axis}", axis, size) for size in _SIZES)
        yield _size_setting("empty", axis, 0)
    yield Setting("saved", "loaded", lambda use: replace(use, loaded=True))


def _size_setting(factor: str, axis: int, size: int) -> Setting:
    """An axis of the first tensor and all axes as long as it, at a size."""

    def change(use: Use) -> Use | None:
        found = draws(use.arguments)
        first = next(iter(found.values()), None)
        shape = () if first is None else first.type.static_shape or ()
        if first is None or axis >= len(shape):
            return None
        alone = (*shape[:axis], size, *shape[axis + 1 :])
        name = next(iter(found))
        use_alone = replace(use, arguments=replaced(use.arguments, {name: reshaped(first, alone)}))
        if is_valid(use_alone):
            return use_alone
        alike = {
            other: reshaped(
                draw, tuple(size if s == shape[axis] else s for s in draw.type.static_shape or ())
            )
            for other, draw in found.items()
        }
        return replace(use, arguments=replaced(use.arguments, alike))

    return Setting(factor, f"axis{axis}={size}", change)


def _lists(given: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Lists like a given one: of each of some numbers, and with one number of them alone."""
    for number in (*_NUMBERS, _STEP):
        yield (number,) * len(given)
        yield (number, *given[1:])
        yield (*given[:-1], number)
    yield given[::-1]


def _typed(name: str, element_type: ElementType) -> Change:
    def change(use: Use) -> Use | None:
        slot = next(each for each in use.operator.slots if each.name == name)
        if not group_of(use.operator, use.arguments, slot):
            return None
        arguments = retyped_group(use.operator, use.arguments, slot, element_type)
        return replace(use, arguments=arguments)

    return change


def _quantized(words: str) -> Change:
    def change(use: Use) -> Use | None:
        if not draws(use.arguments):
            return None
        plain = _typed(
            next(slot.name for slot in use.operator.slots if not slot.parameter),
            ElementType.FLOAT32,
        )(use)
        made = plain and leading_quantized(use.operator, plain.arguments, words)
        return replace(use, arguments=use_of(use.operator, made).arguments) if made else None

    return change


def _left_out(name: str) -> Change:
    def change(use: Use) -> Use | None:
        if name not in use.arguments:
            return None
        return replace(use, arguments={n: v for n, v in use.arguments.items() if n != name})

    return change


def _as_in(name: str, index: int) -> Change:
    def change(use: Use) -> Use | None:
        example = examples_of(use.operator)[index]
        value = use_of(use.operator, {name: example[name]}).arguments[name]
        return replace(use, arguments={**use.arguments, name: value})

    return change


def _from_the_end(name: str) -> Change:
    """Every second given index counted from the end: `-1 - i` in the place of `i`."""

    def change(use: Use) -> Use | None:
        draw = draws(use.arguments).get(name)
        value = None if draw is None else draw.value
        if draw is None or value is None or value.dtype not in (np.int32, np.int64):
            return None
        flipped = value.copy()
        flat = flipped.reshape(-1)
        flat[::2] = np.where(flat[::2] >= 0, ~flat[::2], flat[::2])
        return replace(use, arguments=replaced(use.arguments, {name: replace(draw, value=flipped)}))

    return change


def _constant(names: set[str]) -> Change:
    def change(use: Use) -> Use | None:
        held = {
            name: replace(draw, constant=True)
            for name, draw in draws(use.arguments).items()
            if name in names
        }
        free = [d for n, d in draws(use.arguments).items() if n not in held and not d.constant]
        if not held or not free:
            return None
        return replace(use, arguments=replaced(use.arguments, held))

    return change


def _reranked(name: str, *, more: bool) -> Change:
    """One tensor with an axis more or less in front, and no other."""

    def change(use: Use) -> Use | None:
        if not ranks_of(use.operator, use.arguments).get(name, 0) and not more:
            return None
        if name not in use.arguments or not isinstance(use.arguments[name], Draw):
            return None
        arguments = dict(use.arguments)
        changed = at_axis(use.operator, use.arguments, {name}, 0, 2 if more else None)
        arguments[name] = changed[name]
        return replace(use, arguments=arguments)

    return change
