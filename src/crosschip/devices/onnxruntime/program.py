"""Compiled models.

Compiling is two steps: ONNX Runtime optimizes the model for this processor, and a session is made
of the result. The result is what is saved, and loading is the second step alone, so that a loaded
program computes what the compiled one did, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnxruntime

from crosschip.devices.onnxruntime import saved as layout
from crosschip.devices.onnxruntime.converters import converters
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.devices.onnxruntime.memory import frugal
from crosschip.devices.onnxruntime.saved import OnnxModel
from crosschip.devices.onnxruntime.session import Settings, failure, ortvalues
from crosschip.hal import Options, Precision, Program
from crosschip.ir import Array, DeviceError, Model

VERSION: str = onnxruntime.__version__


class OnnxRuntimeProgram(Program):
    """A session; it may be run from many threads at once.

    Args:
        model: what it runs, optimized.
        settings: how the session is made.

    Raises:
        DeviceError: ONNX Runtime does not accept the model.
    """

    def __init__(self, model: OnnxModel, settings: Settings) -> None:
        self._model = model
        self._values = ortvalues(model)
        self._session = settings.session(model, self._values)
        self._inputs = [value.name for value in self._session.get_inputs()]
        self._outputs = [value.name for value in self._session.get_outputs()]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            outputs: Sequence[Array] = self._session.run(
                self._outputs, dict(zip(self._inputs, inputs, strict=True))
            )
        except Exception as error:
            raise failure("failed while running", error) from error
        return outputs

    def save(self) -> bytes:
        return layout.write(self._model)

    def close(self) -> None:
        vars(self).clear()


def compile(model: Model, options: Options, *, spinning: bool) -> OnnxRuntimeProgram:
    """Compile a model of operations that there are converters for.

    Raises:
        DeviceError: the options ask for what this device does not do, or ONNX Runtime failed.
    """
    if options.precision is not Precision.FLOAT32:
        raise DeviceError(f"onnxruntime computes in float32, not in {options.precision.value}")
    graph = Graph(model.inputs.values())
    for operation in model.operations:
        graph.label = operation.name
        graph.define(operation, converters.convert(graph, operation))
    settings = Settings(options.threads, spinning)
    with frugal():
        optimized = settings.optimized(graph.finish(model.outputs.values()))
        return OnnxRuntimeProgram(optimized, settings)


def load(saved: bytes, options: Options, *, spinning: bool) -> OnnxRuntimeProgram:
    """Make a program again from what it was saved as; the bytes are used where they are.

    Raises:
        DeviceError: they are not what `save` returns, or ONNX Runtime failed.
    """
    try:
        model = layout.read(saved)
    except Exception as error:
        raise failure("has not saved this program", error) from error
    with frugal():
        return OnnxRuntimeProgram(model, Settings(options.threads, spinning))
