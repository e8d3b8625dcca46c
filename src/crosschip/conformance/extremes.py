"""Runs on extreme elements: integers of all magnitudes of their type, NaN, infinities and zeros.

Another run is on elements of one sign, negative ones where the type has them: what starts a maximum
from 0 shows there. Their integers have most of the bits of their type and leave a few, so that sums
of some of them do not wrap: what computes 64-bit integers in float64 shows there.

Integers are drawn so that each number of bits is as likely, but the highest number more likely:
most products of int64 have more than the 53 bits that float64 holds, and many numbers of uint64
more than the 63 that int64 does. Half of them are one of the two greatest integers of the type, so
that operands of one type have equal and adjacent elements. Of integers that
stand for reals the ends of the range are drawn. Floats are multiples of an eighth, so that some are
equal and some lie in the middle between integers, and special numbers are among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import numpy as np

from crosschip.conformance.draw import Draw
from crosschip.ir import Array, ElementType
from crosschip.ir.types import FLOATS, INTEGERS
from crosschip.ops.definition.examples import Example, Sample, samples
from crosschip.ops.definition.quantized import limits

_SPECIALS = ((nan, -0.0), (inf, -0.0), (-inf, 0.0), (nan, inf, -0.0))


@dataclass(frozen=True, slots=True)
class Extreme(Draw):
    """A draw of integers of all magnitudes, or of floats that are multiples of an eighth."""

    def array(self, generator: np.random.Generator) -> Array:
        if self.type.element_type in FLOATS:
            eighths = np.rint(generator.uniform(self.low, self.high, self.type.static_shape) * 8)
            clipped = np.clip(eighths / 8, self.low, self.high)
            return self.with_specials(clipped.astype(self.type.element_type.dtype), generator)
        least, greatest = limits(self.type.element_type)
        shape = self.type.static_shape or ()
        if self.type.quantization is not None:
            drawn = generator.integers(least, greatest, shape, endpoint=True)
            ends = generator.choice((least, greatest), shape)
            integers = np.where(generator.random(shape) < 0.5, ends, drawn)
            return integers.astype(self.type.element_type.dtype)
        own = _integers(self.type.element_type, shape, generator)
        ends = own.dtype.type(greatest) - generator.integers(0, 2, shape).astype(own.dtype)
        return np.where(generator.random(shape) < 0.5, own, ends).astype(own.dtype)


def _integers(
    element_type: ElementType, shape: tuple[int, ...], generator: np.random.Generator
) -> Array:
    """Integers of all magnitudes of a type; a quarter of them have its highest bit set."""
    least, greatest = limits(element_type)
    bits = generator.uniform(0, greatest.bit_length(), shape)
    bits = np.where(generator.random(shape) < 0.25, greatest.bit_length() - 0.5, bits)
    low_bits = generator.integers(0, 1 << 16, shape).astype(np.uint64)
    magnitude = np.floor(np.exp2(bits)).astype(np.uint64)
    magnitude |= low_bits & (magnitude >> np.uint64(1))
    drawn = np.minimum(magnitude, np.uint64(greatest)).astype(element_type.dtype)
    if least == 0:
        return np.asarray(drawn)
    return np.where(generator.random(shape) < 0.5, drawn, -drawn).astype(element_type.dtype)


@dataclass(frozen=True, slots=True)
class OneSigned(Draw):
    """A draw of elements below 0, or of large integers where the type has no sign."""

    def array(self, generator: np.random.Generator) -> Array:
        element_type, shape = self.type.element_type, self.type.static_shape or ()
        if element_type in FLOATS:
            return -np.abs(Sample.array(self, generator))
        least, greatest = limits(element_type)
        bits = greatest.bit_length()
        exponents = generator.uniform(max(0, bits - _SPARE_BITS), max(1, bits - _SUM_BITS), shape)
        low_bits = generator.integers(0, 8, shape).astype(np.uint64)
        magnitude = np.floor(np.exp2(exponents)).astype(np.uint64) | low_bits
        magnitude = np.minimum(magnitude, np.uint64(greatest)).astype(element_type.dtype)
        return np.asarray(-magnitude if least < 0 else magnitude)


_SPARE_BITS, _SUM_BITS = 9, 4
"""The greatest and the least number of bits that integers of one sign leave unused."""


def one_signed_run(arguments: Example) -> dict[str, Any]:
    """Samples of an example for a run on elements of one sign, by slot; empty if none can be."""
    drawn = ((name, _one_signed(sample)) for name, sample in samples(arguments))
    changed = {name: sample for name, sample in drawn if sample is not None}
    return _with(arguments, changed) if changed else {}


def _one_signed(sample: Sample) -> Sample | None:
    type_ = sample.type
    if sample.value is not None or getattr(sample, "constant", False) or type_.quantization:
        return None
    if type_.element_type in INTEGERS or (type_.element_type in FLOATS and sample.low < 0):
        return OneSigned(type_, sample.low, sample.high)
    return None


def extreme_run(arguments: Example, number: int = 0) -> dict[str, Any]:
    """Samples of an example for a run on extreme elements, by slot; empty if there can be none.

    Args:
        arguments: the example.
        number: which special numbers are among random floats.
    """
    drawn = ((name, _extreme(sample, number)) for name, sample in samples(arguments))
    changed = {name: sample for name, sample in drawn if sample is not None}
    return _with(arguments, changed) if changed else {}


def _extreme(sample: Sample, number: int) -> Sample | None:
    element_type = sample.type.element_type
    if sample.value is not None or getattr(sample, "constant", False):
        return None
    if element_type in INTEGERS:
        return Extreme(sample.type, sample.low, sample.high)
    if element_type in FLOATS:
        specials = _SPECIALS[number % len(_SPECIALS)]
        return Extreme(sample.type, sample.low, sample.high, specials=specials)
    return None


def _with(arguments: Example, changed: Mapping[str, Sample]) -> dict[str, Any]:
    """The slots that hold changed samples, with these in their places."""
    slots: dict[str, Any] = {}
    for name, sample in changed.items():
        slot, _, index = name.partition(".")
        if not index:
            slots[slot] = sample
            continue
        given: Any = arguments[slot]
        parts = slots.setdefault(slot, list(given))
        parts[int(index)] = sample
    return slots
