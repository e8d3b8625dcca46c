"""Conditions that a use of an operator meets, and which pairs and triples of them are covered.

A fault of a device depends on conditions of a use: that a parameter is negative, that a tensor is a
constant, that elements have one byte. Settings, by which uses are made, say less: an example meets
many conditions before anything is set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from crosschip.conformance.draw import Draw
from crosschip.conformance.uses import Use, draws
from crosschip.conformance.variations import word
from crosschip.ir import TensorType
from crosschip.ir.types import NARROW_TYPES
from crosschip.ops.definition.slots import Parameter

_LONG = 16
"""The size above which an axis counts as long."""


def conditions(use: Use) -> frozenset[str]:
    """The conditions that a use meets, in words: of parameters, tensors, sizes and saved form.

    Of a parameter they are its value where that is not the default, of a list also whether it has
    several numbers, negative ones, some above 1 and different ones. Of a tensor they are the class
    of its element type, its number of axes, and whether it is constant.
    """
    return frozenset(_conditions(use))


def _conditions(use: Use) -> Iterator[str]:
    for slot in use.operator.slots:
        if isinstance(slot, Parameter) and slot.name in use.arguments:
            value = use.arguments[slot.name]
            if isinstance(value, Draw):
                yield f"{slot.name} computed"
            elif value is not None and value != slot.default:
                yield from (f"{slot.name} {kind}" for kind in _kinds(value))
    for place, (name, draw) in enumerate(draws(use.arguments).items()):
        shape = draw.type.static_shape or ()
        yield f"{name} rank {len(shape)}"
        if draw.constant:
            yield f"{name} constant"
        if not place:
            yield f"type {_type_class(draw.type)}"
            yield from (f"long axis {axis}" for axis, size in enumerate(shape) if size > _LONG)
        elif draw.value is not None and draw.value.dtype.kind == "i" and (draw.value < 0).any():
            yield f"{name} negative"
    if use.named:
        yield "dynamic"
    if use.loaded:
        yield "loaded"


def _type_class(type_: TensorType) -> str:
    """The class of an element type: a kind of number and its bytes, narrow types as one class."""
    if type_.element_type in NARROW_TYPES:
        return "narrow"
    dtype = type_.element_type.dtype
    return f"{'quantized ' if type_.quantization else ''}{dtype.kind}{dtype.itemsize}"


def _kinds(value: Any) -> Iterator[str]:
    if not isinstance(value, tuple):
        yield word(value)
        return
    numbers = [number for number in value if isinstance(number, int | float)]
    if len(value) > 1:
        yield "several"
    if any(number < 0 for number in numbers):
        yield "negative"
    if any(number < -1 for number in numbers):
        yield "below -1"
    if any(number > 1 for number in numbers):
        yield "above 1"
    if len(set(value)) > 1:
        yield "uneven"


class Coverage:
    """The pairs and triples of conditions that some uses meet."""

    def __init__(self) -> None:
        self._met: set[tuple[str, ...]] = set()
        self._counts: Counter[str] = Counter()

    def gain(self, met: frozenset[str]) -> float:
        """The weight of the pairs and triples of conditions that no use has met yet.

        Each counts for 1 or less, the less the more often its rarest condition has been met.
        """
        counts = self._counts
        new = (group for group in _groups(met) if group not in self._met)
        return sum(1 / (1 + min(counts[condition] for condition in group)) for group in new)

    def add(self, met: frozenset[str]) -> None:
        """Count the pairs and triples of conditions as met."""
        self._met.update(_groups(met))
        self._counts.update(met)


def _groups(met: frozenset[str]) -> Iterator[tuple[str, ...]]:
    ordered = sorted(met)
    yield from combinations(ordered, 2)
    yield from combinations(ordered, 3)
