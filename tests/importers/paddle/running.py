"""Runs imported models on the reference device, and compares what they compute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Model
from crosschip.ir.control import ControlFlow


def outputs(model: Model, inputs: Mapping[str, Array]) -> list[Array]:
    """The outputs of the model for inputs given by name."""
    model.verify()
    if any(isinstance(operation, ControlFlow) for operation in model.operations):
        with crosschip.compile(model, ["reference"], cache=False) as compiled:
            given = {name: inputs[name] for name in model.inputs}
            return list(cast("dict[str, Array]", compiled.run(given)).values())
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
