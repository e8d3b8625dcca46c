"""Samples of inputs with special elements, or stored in the model as constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from crosschip.ir import Array
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.examples import Sample


@dataclass(frozen=True, slots=True)
class Draw(Sample):
    """A sample with special numbers among its random elements.

    Attributes:
        specials: numbers, such as NaN, that replace some of the random elements of a float tensor.
        constant: whether the tensor is a constant of the model instead of an input.
    """

    specials: tuple[float, ...] = ()
    constant: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.value, np.generic):  # as NumPy makes of an array without axes
            object.__setattr__(self, "value", np.asarray(self.value))

    def elements(self, generator: np.random.Generator) -> Array:
        drawn = Sample.elements(self, generator)
        is_real = self.type.element_type in FLOATS
        return self.with_specials(drawn, generator) if is_real else drawn

    def with_specials(self, drawn: Array, generator: np.random.Generator) -> Array:
        """Return the array with special numbers in place of some elements."""
        if not self.specials or not drawn.size:
            return drawn
        with np.errstate(all="ignore"):
            specials = np.array(self.specials).astype(drawn.dtype)[: drawn.size]
        flat = drawn.reshape(-1).copy()
        flat[generator.choice(flat.size, specials.size, replace=False)] = specials
        flat[generator.choice((0, -1))] = specials[0]
        return flat.reshape(drawn.shape)

    @classmethod
    def of(cls, sample: Sample) -> Self:
        """Return a draw with the type, range, elements and order of a sample."""
        return cls(sample.type, sample.low, sample.high, sample.value, sample.ascending)


@dataclass(frozen=True, slots=True)
class Scaled(Draw):
    """A draw of floats that are multiplied by a power of 2.

    Attributes:
        exponent: the exponent of that power.
    """

    exponent: int = 0

    def elements(self, generator: np.random.Generator) -> Array:
        return np.asarray(np.ldexp(Draw.elements(self, generator), self.exponent))
