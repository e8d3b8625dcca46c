"""Exporter to TensorFlow Lite, with the quantization of the model; sizes must be static."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.ir import Array, DeviceError, Model
from crosschip.ir.errors import install_command

suffix = ".tflite"
engine = "LiteRT"
static = True
properties: Mapping[str, str] = {}


def lower(model: Model, properties: Mapping[str, str]) -> Model:
    """Rewrite a model into operators of TensorFlow Lite, with images' channels last."""
    from crosschip.devices.kits.tflite.lowering import lower

    return lower(model)


def write(model: Model, properties: Mapping[str, str]) -> bytes:
    """Return the model as a FlatBuffer."""
    from crosschip.devices.kits.tflite.model import to_bytes

    return to_bytes(model)


def run(content: bytes, model: Model, inputs: Sequence[Array]) -> Sequence[Array]:
    """Run a file with LiteRT on the processor."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise DeviceError(f"LiteRT is not installed; {install_command('litert')}") from error
    try:
        interpreter = Interpreter(model_content=content)
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], np.require(array, requirements="C"))
        interpreter.invoke()
        details = interpreter.get_output_details()
        return [interpreter.get_tensor(detail["index"]) for detail in details]
    except (RuntimeError, ValueError) as error:
        raise DeviceError(f"LiteRT: {error}") from error
