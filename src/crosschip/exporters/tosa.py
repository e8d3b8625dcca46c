"""Exporter to TOSA 1.0, the operator set that Arm's and other compilers read; shapes are static."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.ir import Array, DeviceError, Model

suffix = ".tosa"
engine = "Arm's TOSA reference model"
static = True
properties: Mapping[str, str] = {}


def lower(model: Model, properties: Mapping[str, str]) -> Model:
    """Decompose operations that TOSA does not express."""
    from crosschip.devices.kits.tosa.lowering import lower

    return lower(model)


def write(model: Model, properties: Mapping[str, str]) -> bytes:
    """Return the model as a TOSA file that holds all constants."""
    from crosschip.devices.kits.tosa.file import to_bytes
    from crosschip.devices.kits.tosa.model import build

    return to_bytes(build(model), "main")


def run(content: bytes, model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Run a file with the reference model, which also checks that it follows the specification.

    Raises:
        DeviceError: an int64 is beyond int32, the model is not installed, or it rejects the file.
    """
    from crosschip.devices.kits.tosa import reference_model

    for name, array in zip(model.inputs, inputs, strict=True):
        if array.dtype == np.int64 and np.any(array != array.astype(np.int32)):
            raise DeviceError(f"input {name!r}: has elements beyond int32")
    program = reference_model.required_path()
    return reference_model.run(content, model.inputs, model.outputs, inputs, program)
