"""Compiled models.

Compiling is two steps: ONNX Runtime optimizes the model for this processor, and a session is made
of the result. The result is what is saved, and loading is the second step alone, so that a loaded
program computes what the compiled one did, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnxruntime

from crosschip.devices.onnxruntime import saved as layout
from crosschip.devices.onnxruntime.converters import converters
from crosschip.devices.onnxruntime.extensions import onnx_model
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.devices.onnxruntime.memory import frugal
from crosschip.devices.onnxruntime.saved import OnnxModel
from crosschip.devices.onnxruntime.session import Settings, failure, ortvalues
from crosschip.hal import Options, Precision, Program
from crosschip.ir import Array, DeviceError, Extension, Model, Operand, TensorType

VERSION: str = onnxruntime.__version__


class OnnxRuntimeProgram(Program):
    """A session; it may be run from many threads at once.

    Args:
        model: what it runs, optimized.
        settings: how the session is made.
        outputs: the operands that its outputs stand for.

    Raises:
        DeviceError: ONNX Runtime does not accept the model.
    """

    def __init__(
        self, model: OnnxModel, settings: Settings, outputs: Iterable[Operand] = ()
    ) -> None:
        self._model = model
        self._declared = [(operand.name, operand.type) for operand in outputs]
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
        for (name, declared), array in zip(self._declared, outputs, strict=False):
            _check(name, declared, array)
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
    settings = Settings(options.threads, spinning)
    with frugal():
        optimized = settings.optimized(_onnx_model(model))
        return OnnxRuntimeProgram(optimized, settings, _unproven(model))


def _onnx_model(model: Model) -> OnnxModel:
    """The model in ONNX. An extension operation is one in ONNX already, and stands alone."""
    if any(isinstance(operation, Extension) for operation in model.operations):
        (operation,) = model.operations
        assert isinstance(operation, Extension), "there is no other operation"
        return onnx_model(model, operation)
    graph = Graph(model.inputs.values())
    for operation in model.operations:
        graph.label = operation.name
        graph.define(operation, converters.convert(graph, operation))
    return graph.finish(model.outputs.values())


def load(saved: bytes, model: Model, options: Options, *, spinning: bool) -> OnnxRuntimeProgram:
    """Make a program again from what it was saved as; the bytes are used where they are.

    Raises:
        DeviceError: they are not what `save` returns, or ONNX Runtime failed.
    """
    try:
        compiled = layout.read(saved)
    except Exception as error:
        raise failure("has not saved this program", error) from error
    with frugal():
        settings = Settings(options.threads, spinning)
        return OnnxRuntimeProgram(compiled, settings, _unproven(model))


def _unproven(model: Model) -> Iterable[Operand]:
    """The outputs whose types nothing but the model's file vouches for."""
    extended = any(isinstance(operation, Extension) for operation in model.operations)
    return model.outputs.values() if extended else ()


def _check(name: str, declared: TensorType, array: Array) -> None:
    """Refuse an output that is not what the model declares, and others rely on.

    Raises:
        DeviceError: it has another element type or shape.
    """
    shape = array.shape if declared.shape is None else declared.shape
    sizes = zip(shape, array.shape, strict=False)
    fits = len(shape) == array.ndim and all(
        size == found for size, found in sizes if isinstance(size, int)
    )
    if array.dtype != declared.element_type.dtype or not fits:
        raise DeviceError(
            f"onnxruntime: {name!r} is {array.dtype}{list(array.shape)}, but the model declares "
            f"{declared}; correct its declaration"
        )
