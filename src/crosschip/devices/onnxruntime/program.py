"""Compiled models.

Compiling is two steps: ONNX Runtime optimizes the model for this processor, and a session is made
of the result. The result is what is saved, and loading is the second step alone, so that a loaded
program computes what the compiled one did, bit for bit. The model of an extension operation, or
with control flow, is saved as it is, and optimized whenever a session is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnxruntime

from crosschip.devices.onnxruntime import control
from crosschip.devices.onnxruntime import saved as layout
from crosschip.devices.onnxruntime.extensions import onnx_model
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.devices.onnxruntime.memory import frugal
from crosschip.devices.onnxruntime.saved import OnnxModel
from crosschip.devices.onnxruntime.session import Settings, failure, ortvalues
from crosschip.devices.onnxruntime.values import all_known, array_of, is_tensor, ortvalue
from crosschip.hal import Options, Program
from crosschip.ir import Array, DeviceError, Extension, Model, TensorType
from crosschip.ir.types import boxed

VERSION: str = onnxruntime.__version__


class OnnxRuntimeProgram(Program):
    """A session; it may be run from many threads at once.

    Args:
        model: what it runs, optimized unless it is an extension operation's.
        settings: how the session is made.
        optimize: whether the model is still to be optimized.
        extension: what it was compiled from, if that is an extension operation. Nothing but the
            model's file vouches for the types of what it makes.

    Raises:
        DeviceError: ONNX Runtime does not accept the model.
    """

    def __init__(
        self,
        model: OnnxModel,
        settings: Settings,
        *,
        optimize: bool = False,
        extension: Model | None = None,
    ) -> None:
        self._model = model
        unproven = extension.outputs.values() if extension else ()
        self._declared = [(operand.name, operand.type) for operand in unproven]
        self._values = ortvalues(model)
        self._session = settings.session(model, self._values, optimize=optimize)
        inputs, made = self._session.get_inputs(), self._session.get_outputs()
        self._inputs = [value.name for value in inputs]
        self._outputs = [value.name for value in made]
        self._is_plain = all_known([*inputs, *made])
        self._tensors_in = [is_tensor(value) for value in inputs]
        self._tensors_out = [is_tensor(value) for value in made]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            if self._is_plain:
                outputs = self._run_arrays(inputs)
            elif all(self._tensors_in) and all(self._tensors_out):
                outputs = self._run_values(inputs)
            else:
                outputs = self._run_objects(inputs)
        except Exception as error:
            raise failure("failed while running", error) from error
        for (name, declared), array in zip(self._declared, outputs, strict=False):
            _check(name, declared, array)
        return outputs

    def _run_arrays(self, inputs: Sequence[Array]) -> Sequence[Array]:
        feed = dict(zip(self._inputs, inputs, strict=True))
        outputs: Sequence[Array] = self._session.run(self._outputs, feed)
        return outputs

    def _run_values(self, inputs: Sequence[Array]) -> Sequence[Array]:
        feed = dict(zip(self._inputs, map(ortvalue, inputs), strict=True))
        return [array_of(v) for v in self._session.run_with_ort_values(self._outputs, feed)]

    def _run_objects(self, inputs: Sequence[Array]) -> Sequence[Array]:
        feed = {
            name: ortvalue(array) if tensor else array.item()
            for name, tensor, array in zip(self._inputs, self._tensors_in, inputs, strict=True)
        }
        outputs = self._session.run(self._outputs, feed)
        return [
            value if tensor else boxed(value)
            for tensor, value in zip(self._tensors_out, outputs, strict=True)
        ]

    def save(self) -> bytes:
        return layout.write(self._model)

    def close(self) -> None:
        vars(self).clear()


def compile(model: Model, options: Options, *, spinning: bool) -> OnnxRuntimeProgram:
    """Compile a model of operations that there are converters for.

    Raises:
        DeviceError: ONNX Runtime failed.
    """
    settings = Settings(options.threads, spinning)
    with frugal():
        extension = _extension(model)
        if extension is not None:
            made = onnx_model(model, extension)
            return OnnxRuntimeProgram(made, settings, optimize=True, extension=model)
        if _holds_graphs(model):
            return OnnxRuntimeProgram(_onnx_model(model), settings, optimize=True)
        return OnnxRuntimeProgram(settings.optimized(_onnx_model(model)), settings)


def _extension(model: Model) -> Extension | None:
    """The operation that the model consists of, if it is one in ONNX already: it stands alone."""
    first = next(iter(model.operations), None)
    return first if isinstance(first, Extension) else None


def _holds_graphs(model: Model) -> bool:
    return any(operation.bodies for operation in model.operations)


def _onnx_model(model: Model) -> OnnxModel:
    graph = Graph(model.inputs.values())
    control.add_operations(graph, model)
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
        extension = model if _extension(model) else None
        optimize = extension is not None or _holds_graphs(model)
        return OnnxRuntimeProgram(compiled, settings, optimize=optimize, extension=extension)


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
