"""Compiled models: OpenVINO infer requests, and how models are compiled, saved and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import openvino

from crosschip.devices.openvino.converters import converters
from crosschip.devices.openvino.converters.table import fits_int32
from crosschip.devices.openvino.graph import Graph
from crosschip.devices.openvino.memory import array_of, shared_tensor
from crosschip.hal import Options, Precision, Program
from crosschip.ir import Array, DeviceError, ElementType, Model

_PRECISIONS = {Precision.FLOAT32: "f32", Precision.BFLOAT16: "bf16", Precision.FLOAT16: "f16"}
_CAPABILITIES = {
    Precision.FLOAT32: "FP32",
    Precision.BFLOAT16: "BF16",
    Precision.FLOAT16: "FP16",
}


class Engine:
    """OpenVINO's core, set on one of its devices.

    Args:
        device: `CPU`, `GPU`, …, as OpenVINO calls it.

    Attributes:
        chip: the full name of the device.
        precisions: the arithmetic that it offers.

    Raises:
        DeviceError: there is no such device.
    """

    version: str = openvino.get_version()

    def __init__(self, device: str) -> None:
        self._core = openvino.Core()
        self._device = device
        try:
            offered = self._core.get_property(device, "OPTIMIZATION_CAPABILITIES")
            self.chip: str = self._core.get_property(device, "FULL_DEVICE_NAME")
        except RuntimeError as error:
            present = ", ".join(self._core.available_devices)
            raise DeviceError(
                f"OpenVINO has no device {device!r} here; it has {present}"
            ) from error
        self.precisions = frozenset(p for p, word in _CAPABILITIES.items() if word in offered)

    def compile(self, model: Model, options: Options) -> OpenVinoProgram:
        """Compile a model of operations that there are converters for.

        Raises:
            DeviceError: OpenVINO failed.
        """
        config = self._config(options)
        graph = Graph(model.inputs.values())
        try:
            for operation in model.operations:
                graph.define(operation, converters.convert(graph, operation))
            built = graph.finish(model.outputs.values())
            compiled = self._core.compile_model(built, self._device, config)
        except RuntimeError as error:
            raise failure("failed to compile", error) from error
        return OpenVinoProgram(compiled, model, graph.kept)

    def load(self, saved: bytes, model: Model, options: Options) -> OpenVinoProgram:
        """Make a program again from what it was saved as; the bytes are used where they are.

        Raises:
            DeviceError: they are not what `save` returned, or OpenVINO failed.
        """
        config = self._config(options)
        try:
            stored = np.frombuffer(saved, np.uint8)
            tensor = shared_tensor(stored)
            compiled = self._core.import_model(tensor, self._device, config)
        except RuntimeError as error:
            raise failure("failed to load a saved program", error) from error
        return OpenVinoProgram(compiled, model, [stored], saved)

    def _config(self, options: Options) -> dict[str, Any]:
        """OpenVINO's own words for the options; a saved program keeps none of them."""
        config: dict[str, Any] = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": _PRECISIONS[options.precision],
        }
        if options.precision is Precision.FLOAT32:
            config["EXECUTION_MODE_HINT"] = "ACCURACY"
        if options.threads is not None:
            config["INFERENCE_NUM_THREADS"] = options.threads
        return config


class OpenVinoProgram(Program):
    """A pool of infer requests, one for each run that is under way.

    Args:
        compiled: what OpenVINO compiled.
        model: what it was compiled from.
        kept: arrays whose memory the compiled model reads.
        saved: what it was loaded from, if it was.
    """

    def __init__(
        self,
        compiled: openvino.CompiledModel,
        model: Model,
        kept: Sequence[Array],
        saved: bytes | None = None,
    ) -> None:
        self._compiled = compiled
        self._kept = kept
        self._saved = saved
        self._idle: list[_Request] = []
        self._wide = [
            index
            for index, operand in enumerate(model.inputs.values())
            if operand.type.element_type is ElementType.INT64
        ]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        for index in self._wide:
            if not fits_int32(inputs[index]):
                raise DeviceError(
                    f"openvino failed while running: input {index} has values beyond int32, in "
                    f"which OpenVINO computes int64; run the model on another device"
                )
        try:
            request = self._idle.pop()
        except IndexError:
            request = _Request(self._compiled)
        try:
            outputs = request.run(inputs)
        except RuntimeError as error:
            raise failure("failed while running", error) from error
        self._idle.append(request)
        return outputs

    def save(self) -> bytes:
        # OpenVINO does not read what it exports of a model that it has imported.
        if self._saved is not None:
            return self._saved
        exported: BytesIO = self._compiled.export_model()
        return exported.getvalue()

    def close(self) -> None:
        vars(self).clear()


class _Request:
    """An infer request that reads inputs where they are, and gives its outputs away."""

    def __init__(self, compiled: openvino.CompiledModel) -> None:
        self._request = compiled.create_infer_request()
        self._own_inputs = [
            self._request.get_input_tensor(index) for index in range(len(compiled.inputs))
        ]
        self._outputs = [
            (port.element_type, _initial_shape(port.partial_shape)) for port in compiled.outputs
        ]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        request = self._request
        outputs = [openvino.Tensor(type, shape) for type, shape in self._outputs]
        for index, array in enumerate(inputs):
            request.set_input_tensor(index, shared_tensor(array))
        for index, tensor in enumerate(outputs):
            request.set_output_tensor(index, tensor)
        request.infer(share_outputs=True)
        for index, tensor in enumerate(self._own_inputs):
            request.set_input_tensor(index, tensor)
        return [array_of(tensor) for tensor in outputs]


def failure(what: str, error: Exception) -> DeviceError:
    """The error that says what the engine did not do, in its own words."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    noise = ("Exception from", "Check '", "While validating")
    told = [line for line in lines if not line.startswith(noise)] or lines or [repr(error)]
    return DeviceError(f"openvino {what}: {told[0]}")


def _initial_shape(shape: openvino.PartialShape) -> list[int]:
    """A shape to allocate an output with; OpenVINO reallocates one that is not the final one."""
    if shape.rank.is_dynamic:
        return [0]
    return [size.get_length() if size.is_static else 0 for size in shape]
