"""Pairwise coverage: uses in which any two settings of an operator meet, where they can.

A setting is a value of a factor: of a parameter, the element type, the rank, the size of an axis,
or that sizes are open. Rows are grown greedily. A row begins with a pair that none has had yet, on
the example where it is valid, and takes in other settings, those first that complete new pairs.
Pairs that inference refuses on every example that is tried are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import Any

from crosschip.conformance.changes import (
    given_draw,
    reshaped,
    retyped_group,
    with_axis,
    without_axis,
)
from crosschip.conformance.draw import Draw
from crosschip.conformance.uses import Use, draws, is_valid, replaced, use_of
from crosschip.conformance.variations import interesting, leading_quantized, word
from crosschip.ir import ElementType
from crosschip.ops import Operator, examples_of
from crosschip.ops.definition.slots import Parameter

Change = Callable[[Use], Use | None]

_EXAMPLES = 2
"""The number of examples a pair is tried on before it counts as impossible."""

_WIDTH = 4
"""The most settings of a row: what a device declines hides all else in its row."""

_EXTENSIONS = 1
"""The number of settings of each other factor that a row is offered."""

_VALUES = 4
"""The number of values of a parameter that are paired."""

_TYPES = (ElementType.FLOAT16, ElementType.INT32, ElementType.UINT8, ElementType.BOOL)
_QUANTIZED = ("quantized-int8",)
_SIZES = ((0, 0), (0, 7), (1, 7), (2, 7), (3, 7))
"""Axes and the sizes that they are given."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value of a factor.

    Attributes:
        factor: what it is a value of.
        words: what it is called in ids.
        change: sets it; `None` where there is nothing to set.
        slot: the parameter that it sets or computes, if any; only one setting of a row may.
    """

    factor: str
    words: str
    change: Change
    slot: str = ""

    def excludes(self, other: Setting) -> bool:
        """Tell whether the two cannot be in one row."""
        return self.factor == other.factor or self.slot == other.slot != ""


def pairs(operator: type[Operator]) -> Iterator[tuple[int, str, Use]]:
    """Rows that cover all pairs: the number of an example, what is set in words, and the use."""
    random = Random(operator.type)
    factors = _factors(operator)
    every = [setting for settings in factors.values() for setting in settings]
    left = dict.fromkeys((a.words, b.words) for a, b in combinations(every, 2) if not a.excludes(b))
    by_words = {setting.words: setting for setting in every}
    while left:
        pair = next(iter(left))
        del left[pair]
        begun = _begun(operator, [by_words[words] for words in pair], random)
        if begun is None:
            continue
        index, use = begun
        chosen = _extended(use, [by_words[words] for words in pair], factors, left, random)
        row = sorted(chosen[0], key=every.index)
        for a, b in combinations(row, 2):
            left.pop((a.words, b.words), None)
        yield index, ",".join(setting.words for setting in row), chosen[1]


def _begun(
    operator: type[Operator], settings: list[Setting], random: Random
) -> tuple[int, Use] | None:
    """An example with two settings, if there is one on which they are valid."""
    indices = random.sample(
        range(len(examples_of(operator))), min(_EXAMPLES, len(examples_of(operator)))
    )
    for index in indices:
        use: Use | None = use_of(operator, examples_of(operator)[index])
        for setting in settings:
            use = None if use is None else setting.change(use)
        if use is not None and is_valid(use):
            return index, use
    return None


def _extended(
    use: Use,
    row: list[Setting],
    factors: Mapping[str, list[Setting]],
    left: Mapping[tuple[str, str], None],
    random: Random,
) -> tuple[list[Setting], Use]:
    """A row with settings of other factors that complete pairs."""
    others = [name for name in factors if all(setting.factor != name for setting in row)]
    random.shuffle(others)
    for name in others:
        if len(row) == _WIDTH:
            break
        free = [s for s in factors[name] if not any(s.excludes(other) for other in row)]
        news = [(sum(_new(s, other, left) for other in row), s) for s in free]
        best = sorted((entry for entry in news if entry[0]), key=lambda entry: -entry[0])
        for _, setting in best[:_EXTENSIONS]:
            changed = setting.change(use)
            if changed is not None and is_valid(changed):
                use, row = changed, [*row, setting]
                break
    return row, use


def _new(a: Setting, b: Setting, left: Mapping[tuple[str, str], None]) -> bool:
    return (a.words, b.words) in left or (b.words, a.words) in left


def _factors(operator: type[Operator]) -> dict[str, list[Setting]]:
    found: dict[str, list[Setting]] = {}
    for setting in settings_of(operator):
        found.setdefault(setting.factor, []).append(setting)
    return found


def value_setting(slot: Parameter[Any], value: object) -> Setting:
    """A parameter at a value."""
    words = f"{slot.name}={word(_plain(slot, value))}"
    return Setting(slot.name, words, _set(slot.name, value), slot.name)


def settings_of(operator: type[Operator]) -> Iterator[Setting]:
    """The settings of an operator that are paired."""
    tensors = [slot for slot in operator.slots if not slot.parameter]
    if tensors:
        for element_type in filter(tensors[0].types.__contains__, _TYPES):
            yield Setting("type", str(element_type), _typed(element_type))
        if ElementType.FLOAT32 in tensors[0].types:
            for words in _QUANTIZED:
                yield Setting("type", words, _quantized(words))
    for slot in operator.slots:
        if isinstance(slot, Parameter):
            values: dict[str, Any] = {}
            for example in examples_of(operator):
                own = [example[slot.name]] if slot.name in example else []
                for value in (*own, *interesting(slot, example)):
                    if not isinstance(value, Draw) and not hasattr(value, "low"):
                        values.setdefault(f"{slot.name}={word(_plain(slot, value))}", value)
            for value in list(values.values())[:_VALUES]:
                yield value_setting(slot, value)
            if slot.name != "fuse_code":
                yield Setting("computed", f"{slot.name}-computed", _computed(slot), slot.name)
    for axis, size in _SIZES:
        yield Setting("size", f"axis{axis}={size}", _sized(axis, size))
    yield Setting(
        "rank",
        "axis-more",
        lambda use: replace(use, arguments=with_axis(use.operator, use.arguments)),
    )
    yield Setting("rank", "axis-less", _axis_less)
    yield Setting("sizes", "dynamic", lambda use: replace(use, named=True))


def _plain(slot: Parameter[Any], value: object) -> object:
    """A choice by its member, which an example may give by its number."""
    return slot.options(value) if slot.options and isinstance(value, int) else value


def _typed(element_type: ElementType) -> Change:
    def change(use: Use) -> Use | None:
        slot = next(slot for slot in use.operator.slots if not slot.parameter)
        if not any(name.partition(".")[0] == slot.name for name in draws(use.arguments)):
            return None
        arguments = retyped_group(use.operator, use.arguments, slot, element_type)
        return replace(use, arguments=arguments)

    return change


def _quantized(words: str) -> Change:
    def change(use: Use) -> Use | None:
        plain = _typed(ElementType.FLOAT32)(use)
        if plain is None:
            return None
        made = leading_quantized(use.operator, plain.arguments, words)
        return None if made is None else use_of(use.operator, made)

    return change


def _set(slot: str, value: object) -> Change:
    return lambda use: replace(use, arguments={**use.arguments, slot: value})


def _computed(slot: Parameter[Any]) -> Change:
    def change(use: Use) -> Use | None:
        value = use.arguments.get(slot.name, slot.default)
        if value is None or isinstance(value, Draw):
            return None
        computed = given_draw(slot.encode(value))
        return replace(use, arguments={**use.arguments, slot.name: computed})

    return change


def _sized(axis: int, size: int) -> Change:
    """One axis of the first tensor at a size, and of all tensors that are as long somewhere."""

    def change(use: Use) -> Use | None:
        found = draws(use.arguments)
        first = next(iter(found.values()), None)
        if first is None or axis >= len(first.type.shape or ()) or first.value is not None:
            return None
        name = next(iter(found))
        shape = first.type.static_shape or ()
        own = reshaped(first, (*shape[:axis], size, *shape[axis + 1 :]))
        alone = replace(use, arguments=replaced(use.arguments, {name: own}))
        if is_valid(alone):
            return alone
        old, resized = shape[axis], {}
        for other, draw in found.items():
            sizes = draw.type.static_shape or ()
            resized[other] = reshaped(draw, tuple(size if s == old else s for s in sizes))
        return replace(use, arguments=replaced(use.arguments, resized))

    return change


def _axis_less(use: Use) -> Use | None:
    return replace(use, arguments=without_axis(use.operator, use.arguments, 0))
