"""Comparisons of what a node computes with what it should."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.apis.nnrt.hdi.v1_0.making import NCHW, NHWC, computed

from crosschip.ir import Array

F32, I32, I64 = np.float32, np.int32, np.int64

Inputs = Sequence[Array]


def drawn(*shape: int, low: float = -3, high: float = 3, seed: int = 0) -> Array:
    generator = np.random.default_rng([seed, *shape])
    return generator.uniform(low, high, shape).astype(F32)


def check(
    kind: str,
    inputs: Inputs,
    wanted: Array | Sequence[Array],
    *,
    tolerance: float = 1e-5,
    **more: Any,
) -> None:
    """Compare what a node computes with what it should."""
    every = [wanted] if isinstance(wanted, np.ndarray) else list(wanted)
    types = more.pop("types", [F32 if one.dtype == np.float64 else one.dtype for one in every])
    outputs = [(type_, one.shape) for type_, one in zip(types, every, strict=True)]
    made = computed(kind, inputs, outputs, **more)
    for found, one in zip(made, every, strict=True):
        np.testing.assert_allclose(found, one.astype(found.dtype), rtol=tolerance, atol=tolerance)


def turned(array: Array) -> Array:
    """An NHWC image as NCHW."""
    return np.ascontiguousarray(np.moveaxis(array, -1, 1))


def check_image(kind: str, image: Array, others: Inputs, wanted: Array, **more: Any) -> None:
    """Compare for images in both orders."""
    check(kind, [image, *others], wanted, order=NHWC, **more)
    check(kind, [turned(image), *others], turned(wanted), order=NCHW, **more)


def const(*values: int, dtype: Any = I32) -> Array:
    return np.array(values, dtype)


WITH_NUMBERS = {"ELU", "LEAKY_RELU", "THRESHOLDRELU", "HARD_TANH"}
"""The activations that take numbers of their own, which other nodes have no attributes for."""
