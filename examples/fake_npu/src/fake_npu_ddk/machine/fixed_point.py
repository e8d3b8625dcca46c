"""Multiplying integers by reals without reals, as chips do: times an integer, then shifted right.

A real `r` becomes `factor / 2**shift`, with as many bits as the product leaves room for. Source:
Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
Inference, 2018 (arXiv:1712.05877), section 2.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fake_npu_ddk.tensors import Array


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Positive reals as integers over a power of two.

    Attributes:
        factors: the integers, of int64.
        shift: the power of two, 1 to 62.
    """

    factors: Array
    shift: int

    @classmethod
    def of(cls, reals: Array | float, bits: int = 31) -> FixedPoint:
        """The nearest to some reals with one power of two, the greatest having so many bits."""
        values = np.asarray(reals, np.float64)
        exponent = int(np.frexp(values.max())[1])
        shift = min(max(bits - exponent, 1), 62)
        factors = np.minimum(np.rint(np.ldexp(values, shift)), 2.0**bits - 1)
        return cls(factors.astype(np.int64), shift)

    def rounded(self, products: Array) -> Array:
        """Products with the factors, over the power of two: the nearest integers, ties to even."""
        shift = np.int64(self.shift)
        products += (np.int64(1) << (shift - 1)) - 1 + ((products >> shift) & 1)
        products >>= shift
        return products

    def scaled(self, integers: Array) -> Array:
        """Integers times the reals, rounded, as int64."""
        return self.rounded(integers.astype(np.int64) * self.factors)
