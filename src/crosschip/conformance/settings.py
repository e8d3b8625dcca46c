"""Settings: values of the factors of an operator's uses, which `pairs` and `mixtures` combine.

A factor is a parameter, the element type or rank of a tensor, the size of an axis, whether a tensor
is a constant, whether dimensions are dynamic, and so on. A row of settings, applied to an example
in order, gives a use; the id of its case is made of the settings' words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from crosschip.conformance.changes import (
    at_axis,
    given_draw,
    group_of,
    ranks_of,
    reshaped,
    retyped_draw,
    retyped_group,
    with_axis,
    without_axis,
)
from crosschip.conformance.draw import Draw
from crosschip.conformance.uses import MOST_ELEMENTS, Use, draws, is_valid, replaced, use_of
from crosschip.conformance.variations import QUANTIZATIONS, interesting, leading_quantized, word
from crosschip.ir import ElementType
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.ops import Operator, examples_of, operator_named
from crosschip.ops.definition.slots import Parameter, Slot

Change = Callable[[Use], Use | None]

_PAIRED_VALUES = 4
"""The number of values of a parameter that are paired."""

_PAIRED_TYPES = (ElementType.FLOAT16, ElementType.INT32, ElementType.UINT8, ElementType.BOOL)
_PAIRED_SIZES = ((0, 0), (0, 7), (1, 7), (2, 7), (3, 7))
"""Axes and the sizes that they are set to."""

_SIZES = (1, 2, 5, 8, 17, 33, 65, 129, 1025)
"""Sizes of axes: odd and even ones, and those beyond 16, 32, 64, 128 and 1024."""

_NUMBERS = (-2, -1, 2, 3)
_STEP = -3
"""A further number that is tried in lists: as a negative step, it divides few spans."""

_AXES = ((0,), (-1,), (0, 1), (-2, -1), (0, -1), (1, 2), (-1, 1), (-3, 0, -1))
"""Lists of axes."""

_MAX_SHAPES = 5
"""The maximum number of shapes that are tried until a use is valid."""

_RANKS = (0, 1, 2, 3, 4, 5, 6, 7, 8)
"""The ranks that the tensors of the highest rank are set to."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value of a factor.

    Attributes:
        factor: the factor.
        words: the name in ids.
        change: applies the setting to a use; returns `None` if it does not apply.
        slot: the parameter that it sets or computes, if any; a row has at most one setting per
            slot.
    """

    factor: str
    words: str
    change: Change
    slot: str = ""

    def excludes(self, other: Setting) -> bool:
        """Return whether both settings cannot be in one row."""
        return self.factor == other.factor or self.slot == other.slot != ""


def row_words(row: Sequence[Setting]) -> str:
    """Return the words of a row of settings in the id of its case."""
    return ",".join(setting.words for setting in row)


def use_of_row(operator: type[Operator], index: int, words: str) -> Use:
    """Apply a row of settings to an example.

    Args:
        operator: the operator.
        index: the index of the example.
        words: the words of the row, as `row_words` returns them.

    Raises:
        KeyError: there is no such example, or no such setting.
    """
    if index >= len(examples_of(operator)):
        raise KeyError(index)
    use = use_of(operator, examples_of(operator)[index])
    for name in words.split(","):
        changed = _settings_by_words(operator.type)[name].change(use)
        if changed is None:
            raise KeyError(words)
        use = changed
    return use


@lru_cache(maxsize=8)
def _settings_by_words(operator: str) -> dict[str, Setting]:
    return {setting.words: setting for setting in all_settings(operator_named(operator))}


def by_factor(settings: Iterator[Setting]) -> dict[str, list[Setting]]:
    """Group settings by factor, without duplicates."""
    factors: dict[str, dict[str, Setting]] = {}
    for setting in settings:
        factors.setdefault(setting.factor, {}).setdefault(setting.words, setting)
    return {factor: list(settings.values()) for factor, settings in factors.items()}


def paired_settings(operator: type[Operator]) -> Iterator[Setting]:
    """Generate the settings of an operator whose pairs are covered."""
    tensors = [slot for slot in operator.slots if not slot.parameter]
    if tensors:
        for element_type in filter(tensors[0].types.__contains__, _PAIRED_TYPES):
            yield Setting("type", str(element_type), _set_type(tensors[0].name, element_type))
        if ElementType.FLOAT32 in tensors[0].types:
            yield Setting("type", "quantized-int8", _quantize("quantized-int8"))
    for slot in operator.slots:
        if isinstance(slot, Parameter):
            yield from _values(slot, operator)
            if slot.name != "fuse_code":
                yield Setting("computed", f"{slot.name}-computed", _make_computed(slot), slot.name)
    for axis, size in _PAIRED_SIZES:
        yield _size_setting("size", axis, size)
    yield Setting("rank", "axis-more", _add_axis)
    yield Setting("rank", "axis-less", _remove_axis)
    yield Setting("sizes", "dynamic", lambda use: replace(use, named=True))


def all_settings(operator: type[Operator]) -> Iterator[Setting]:
    """Generate all settings of an operator, the paired ones included; words may repeat."""
    yield from _type_settings(operator)
    for slot in operator.slots:
        if isinstance(slot, Parameter):
            yield from _more_values(slot, operator)
        else:
            yield from _tensor_settings(slot, operator)
        if slot.optional:
            yield Setting(slot.name, f"{slot.name}-left-out", _omit(slot.name), slot.name)
    others = {slot.name for slot in operator.slots if not slot.parameter}
    others -= {slot.name for slot in operator.slots if not slot.parameter and not slot.index}
    if len(others) > 1:
        yield Setting("constants", "others-constant", _make_constant(others))
    for axis in range(4):
        yield from (_size_setting(f"size of axis {axis}", axis, size) for size in _SIZES)
        yield _size_setting("empty", axis, 0)
    for rank in _RANKS:
        yield Setting("rank", f"rank={rank}", _set_rank(rank))
    yield Setting("saved", "loaded", lambda use: replace(use, loaded=True))
    yield from (setting for setting in paired_settings(operator) if setting.factor != "size")
    yield from (setting for setting in paired_settings(operator) if setting.factor == "size")


def _type_settings(operator: type[Operator]) -> Iterator[Setting]:
    tensors = [slot for slot in operator.slots if not slot.parameter]
    for index, slot in enumerate(tensors):
        if slot.like:
            continue
        factor, prefix = ("type", "") if index == 0 else (f"type of {slot.name}", f"{slot.name}=")
        for element_type in sorted(slot.types - PYTHONS_TYPES, key=lambda t: t.value):
            yield Setting(factor, f"{prefix}{element_type}", _set_type(slot.name, element_type))
    for words in QUANTIZATIONS:
        yield Setting("type", words, _quantize(words))


def _values(slot: Parameter[Any], operator: type[Operator]) -> Iterator[Setting]:
    """Generate the paired values of a parameter."""
    values: dict[str, Any] = {}
    for example in examples_of(operator):
        own_value = [example[slot.name]] if slot.name in example else []
        for value in (*own_value, *interesting(slot, example)):
            if not hasattr(value, "low"):
                values.setdefault(value_words(slot, value), value)
    for value in list(values.values())[:_PAIRED_VALUES]:
        yield value_setting(slot, value)


def _more_values(slot: Parameter[Any], operator: type[Operator]) -> Iterator[Setting]:
    """Generate values of a parameter beyond the paired ones."""
    if slot.kind == "integer":
        yield from (value_setting(slot, number) for number in _NUMBERS)
    if slot.options or slot.kind == "flag":
        for example in examples_of(operator):
            yield from (value_setting(slot, value) for value in interesting(slot, example))
    if slot.kind == "list of integers":
        if slot.name.endswith("axes"):
            yield from (value_setting(slot, axes) for axes in _AXES)
        for example in examples_of(operator):
            value_in_example: Any = example.get(slot.name)
            if isinstance(value_in_example, tuple) and value_in_example:
                yield from (
                    value_setting(slot, value) for value in _list_variants(value_in_example)
                )


def _list_variants(numbers: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Generate variants of a list.

    All elements are replaced by one number, only the first or the last is replaced, or the list is
    reversed.
    """
    for number in (*_NUMBERS, _STEP):
        yield (number,) * len(numbers)
        yield (number, *numbers[1:])
        yield (*numbers[:-1], number)
    yield numbers[::-1]


def value_words(slot: Parameter[Any], value: object) -> str:
    """Return `name=value` as in ids; an enumeration's member by its name, also for its number."""
    member = slot.options(value) if slot.options and isinstance(value, int) else value
    return f"{slot.name}={word(member)}"


def value_setting(slot: Parameter[Any], value: object) -> Setting:
    """Return the setting that sets a parameter to a value."""

    def change(use: Use) -> Use | None:
        changed = replace(use, arguments={**use.arguments, slot.name: value})
        if slot.kind != "flag" or is_valid(changed):
            return changed
        return _first_valid(_transpose_matrices(changed))

    return Setting(slot.name, value_words(slot, value), change, slot.name)


def _transpose_matrices(use: Use) -> Iterator[Use]:
    """Generate uses in which one tensor has its last two axes swapped, for each such tensor."""
    for name, draw in draws(use.arguments).items():
        shape = draw.type.static_shape or ()
        if len(shape) > 1 and shape[-1] != shape[-2]:
            swapped = reshaped(draw, (*shape[:-2], shape[-1], shape[-2]))
            yield replace(use, arguments=replaced(use.arguments, {name: swapped}))


def _tensor_settings(slot: Slot, operator: type[Operator]) -> Iterator[Setting]:
    name = slot.name
    if slot.optional:
        for index, example in enumerate(examples_of(operator)):
            if name in example:
                yield Setting(name, f"{name}-as-in-{index}", _take_from_example(name, index), name)
    if name.endswith("indices"):
        yield Setting(f"signs of {name}", f"{name}-from-the-end", _count_from_end(name))
    for each in (f"{name}.0", f"{name}.1") if slot.variadic else (name,):
        yield Setting("constants", f"{each}-constant", _make_constant({each}))
    for more in (True, False):
        words = f"{name}:axis-{'more' if more else 'less'}"
        yield Setting(f"rank of {name}", words, _change_rank(name, more=more))
    yield Setting(f"rank of {name}", f"{name}:rank=0", _make_scalar(name))
    for axis in (-1, -2, -3):
        yield Setting(f"rank of {name}", f"{name}:axis{axis}=1", _set_axis_to_one(name, axis))


def _size_setting(factor: str, axis: int, size: int) -> Setting:
    """Return the setting that sets an axis of the first tensor to a size.

    If the changed use is invalid, all axes of the same size are set to the new size, in all
    tensors.
    """

    def change(use: Use) -> Use | None:
        tensors = draws(use.arguments)
        first = next(iter(tensors.values()), None)
        shape = () if first is None else first.type.static_shape or ()
        if first is None or axis >= len(shape) or first.value is not None:
            return None
        alone = (*shape[:axis], size, *shape[axis + 1 :])
        if prod(alone) > MOST_ELEMENTS:
            return None
        name = next(iter(tensors))
        use_alone = replace(use, arguments=replaced(use.arguments, {name: reshaped(first, alone)}))
        if is_valid(use_alone):
            return use_alone
        alike = {
            other: reshaped(
                draw, tuple(size if s == shape[axis] else s for s in draw.type.static_shape or ())
            )
            for other, draw in tensors.items()
        }
        return replace(use, arguments=replaced(use.arguments, alike))

    return Setting(factor, f"axis{axis}={size}", change)


def _set_type(name: str, element_type: ElementType) -> Change:
    def change(use: Use) -> Use | None:
        slot = next(each for each in use.operator.slots if each.name == name)
        if not group_of(use.operator, use.arguments, slot):
            return None
        arguments = retyped_group(use.operator, use.arguments, slot, element_type)
        return replace(use, arguments=arguments)

    return change


def _quantize(words: str) -> Change:
    def change(use: Use) -> Use | None:
        if not draws(use.arguments):
            return None
        plain = _set_type(
            next(slot.name for slot in use.operator.slots if not slot.parameter),
            ElementType.FLOAT32,
        )(use)
        quantized = plain and leading_quantized(use.operator, plain.arguments, words)
        if not quantized:
            return None
        return replace(use, arguments=use_of(use.operator, quantized).arguments)

    return change


def _make_computed(slot: Parameter[Any]) -> Change:
    def change(use: Use) -> Use | None:
        value = use.arguments.get(slot.name, slot.default)
        if value is None or isinstance(value, Draw):
            return None
        computed = given_draw(slot.encode(value))
        return replace(use, arguments={**use.arguments, slot.name: computed})

    return change


def _omit(name: str) -> Change:
    def change(use: Use) -> Use | None:
        if name not in use.arguments:
            return None
        return replace(use, arguments={n: v for n, v in use.arguments.items() if n != name})

    return change


def _take_from_example(name: str, index: int) -> Change:
    """Return a change that takes a tensor from an example, adapted to the other tensors.

    The tensor gets their element type and sizes if its slot requires these.
    """

    def change(use: Use) -> Use | None:
        source = use_of(use.operator, examples_of(use.operator)[index])
        value = source.arguments[name]
        slot = next(each for each in use.operator.slots if each.name == name)
        leader = draws(use.arguments).get(slot.like or "")
        if isinstance(value, Draw) and leader is not None and leader.type.quantization is None:
            value = retyped_draw(value, leader.type.element_type)
        fitted = _adapt_sizes(value, source, use) if isinstance(value, Draw) else [value]
        return _first_valid(
            replace(use, arguments={**use.arguments, name: each}) for each in fitted
        )

    return change


def _first_valid(uses: Iterator[Use]) -> Use | None:
    """Return the first use that type inference accepts; `None` if the first few are invalid."""
    return next(filter(is_valid, islice(uses, _MAX_SHAPES)), None)


def _adapt_sizes(draw: Draw, source: Use, use: Use) -> Iterator[Draw]:
    """Generate a tensor of `source` with sizes adapted to `use`, unchanged first.

    A size is replaced by the sizes that the tensors of `use` have on axes on which the tensors of
    `source` have this size.
    """
    yield draw
    sizes: dict[int, dict[int, None]] = {}
    others = draws(use.arguments)
    for name, each in draws(source.arguments).items():
        pairs = zip(each.type.static_shape or (), _shape(others.get(name)), strict=False)
        for size, other in pairs:
            sizes.setdefault(size, {})[other] = None
    shape = draw.type.static_shape or ()
    for fitted in product(*([*sizes.get(size, ()), size] for size in shape)):
        if fitted != shape:
            yield reshaped(draw, fitted)


def _shape(draw: Draw | None) -> tuple[int, ...]:
    return () if draw is None else draw.type.static_shape or ()


def _count_from_end(name: str) -> Change:
    """Return a change that replaces each second constant index `i` by `-1 - i`."""

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


def _make_constant(names: set[str]) -> Change:
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


def _add_axis(use: Use) -> Use | None:
    return replace(use, arguments=with_axis(use.operator, use.arguments))


def _remove_axis(use: Use) -> Use | None:
    return replace(use, arguments=without_axis(use.operator, use.arguments, 0))


def _set_rank(rank: int) -> Change:
    """Return a change that brings the tensors of the highest rank to a rank.

    New first axes have sizes 2 and 1 in turn; surplus first axes are removed.
    """

    def change(use: Use) -> Use | None:
        ranks = ranks_of(use.operator, use.arguments)
        highest = max(ranks.values(), default=0)
        if rank == highest or not ranks:
            return None
        chosen = {name for name, each in ranks.items() if each == highest}
        arguments = use.arguments
        for number in range(highest, rank):
            size = 2 if (number - highest) % 2 == 0 else 1
            arguments = at_axis(use.operator, arguments, chosen, 0, size)
        for _ in range(rank, highest):
            arguments = without_axis(use.operator, arguments, 0)
        return replace(use, arguments=arguments)

    return change


def _draw_of(use: Use, name: str) -> Draw | None:
    value = use.arguments.get(name)
    return value if isinstance(value, Draw) else None


def _change_rank(name: str, *, more: bool) -> Change:
    """Return a change that adds (`more`) or removes the first axis of one tensor only."""

    def change(use: Use) -> Use | None:
        draw = _draw_of(use, name)
        if draw is None or not (more or draw.type.shape):
            return None
        changed = at_axis(use.operator, use.arguments, {name}, 0, 2 if more else None)
        return replace(use, arguments={**use.arguments, name: changed[name]})

    return change


def _make_scalar(name: str) -> Change:
    """Return a change that makes one tensor a scalar."""

    def change(use: Use) -> Use | None:
        draw = _draw_of(use, name)
        if draw is None or not draw.type.shape:
            return None
        return replace(use, arguments={**use.arguments, name: reshaped(draw, ())})

    return change


def _set_axis_to_one(name: str, axis: int) -> Change:
    """Return a change that sets an axis of one tensor to size 1."""

    def change(use: Use) -> Use | None:
        draw = _draw_of(use, name)
        shape = () if draw is None else draw.type.static_shape or ()
        if draw is None or len(shape) < -axis or shape[axis] == 1:
            return None
        index = len(shape) + axis
        broadcast = reshaped(draw, (*shape[:index], 1, *shape[index + 1 :]))
        return replace(use, arguments={**use.arguments, name: broadcast})

    return change
