"""Exporter to crosschip's serialized models, `.chipm` files (docs/formats.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crosschip.ir import Array, Model
from crosschip.ops.definition.serialization import from_bytes, to_bytes

suffix = ".chipm"
engine = "the reference"
static = False
properties: Mapping[str, str] = {}


def lower(model: Model, properties: Mapping[str, str]) -> Model:
    """Return the model: the format expresses all operations."""
    return model


def write(model: Model, properties: Mapping[str, str]) -> bytes:
    """Return the serialized model."""
    return to_bytes(model)


def run(content: bytes, model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Run a serialized model on the reference device."""
    from crosschip.devices.reference import ReferenceProgram

    return ReferenceProgram(from_bytes(content)).run(inputs)
