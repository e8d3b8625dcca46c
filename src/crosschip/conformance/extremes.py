"""Runs on extreme elements (integers of all magnitudes, NaN, infinities, zeros) and on one sign.

Integers are drawn with a uniform number of bits, the highest more often: most int64 products exceed
the 53 bits of float64, and many uint64 elements the 63 bits of int64. Half of the elements are one
of the two greatest values of the type, so that operands have equal and adjacent elements. Quantized
elements include both ends of their range. Floats are multiples of 1/8, so that some are equal and
some are ties between integers.

Runs on elements of one sign are negative where the type is signed: they show a maximum that starts
from 0. Their integers leave a few of the highest bits unused, so that sums do not wrap: they show
64-bit integers that are computed in float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    """A draw of integers of all magnitudes, or of floats that are multiples of 1/8."""

    def elements(self, generator: np.random.Generator) -> Array:
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
    """Draw integers of all magnitudes; a quarter of them have the type's highest bit set."""
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
    """A draw of negative elements, or of large integers where the type is unsigned."""

    def elements(self, generator: np.random.Generator) -> Array:
        element_type, shape = self.type.element_type, self.type.static_shape or ()
        if element_type in FLOATS:
            return -np.abs(Sample.elements(self, generator))
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
    """Return one-signed samples of an example's tensors, by slot; empty if there are none."""
    drawn = ((name, _one_signed(sample)) for name, sample in samples(arguments))
    changed = {name: sample for name, sample in drawn if sample is not None}
    return _with(arguments, changed) if changed else {}


def _one_signed(sample: Sample) -> Sample | None:
    type_ = sample.type
    if sample.value is not None or getattr(sample, "constant", False) or type_.quantization:
        return None
    if type_.element_type in INTEGERS or (type_.element_type in FLOATS and sample.low < 0):
        return OneSigned(type_, sample.low, sample.high, ascending=sample.ascending)
    return None


def extreme_run(arguments: Example, number: int = 0) -> dict[str, Any]:
    """Return extreme samples of an example's tensors, by slot; empty if none can be extreme.

    Args:
        arguments: the example.
        number: selects the special numbers of random floats.
    """
    drawn = ((name, _extreme(sample, number)) for name, sample in samples(arguments))
    changed = {name: sample for name, sample in drawn if sample is not None}
    return _with(arguments, changed) if changed else {}


def _extreme(sample: Sample, number: int) -> Sample | None:
    is_real = sample.type.element_type in FLOATS
    if sample.value is not None or getattr(sample, "constant", False):
        return None
    if not is_real and sample.type.element_type not in INTEGERS:
        return None
    specials = _SPECIALS[number % len(_SPECIALS)] if is_real else ()
    return replace(Extreme.of(sample), specials=specials)


def _with(arguments: Example, changed: Mapping[str, Sample]) -> dict[str, Any]:
    """Return the slots of the changed samples; lists keep their other elements."""
    slots: dict[str, Any] = {}
    for name, sample in changed.items():
        slot, _, index = name.partition(".")
        if not index:
            slots[slot] = sample
            continue
        argument: Any = arguments[slot]
        parts = slots.setdefault(slot, list(argument))
        parts[int(index)] = sample
    return slots
