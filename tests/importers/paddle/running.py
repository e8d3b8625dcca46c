"""Runs imported models on the reference device, and compares what they compute."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Model


def outputs(model: Model, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of the model for inputs given by name."""
    model.verify()
    program = ReferenceDevice().compile(model, Options())
    return list(program.run([inputs[name] for name in model.inputs]))


def normal(seed: int, *shape: int) -> Array:
    """Seeded random numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def error(found: Array, expected: Array) -> float:
    """The largest difference, relative to the largest expected magnitude."""
    assert found.shape == expected.shape
    largest = float(np.abs(expected).max())
    return float(np.abs(found.astype(np.float64) - expected).max()) / (largest or 1.0)
