"""Infer requests, one per concurrent run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import openvino

from crosschip.devices.openvino.memory import array_of, shared_tensor
from crosschip.hal import Carried
from crosschip.ir import Array, DeviceError

_COPIED_BYTES = 2**17
"""The size in bytes up to which copying a tensor is faster than setting its memory."""


class Request:
    """An infer request that reads inputs in place and returns outputs in new memory.

    Small tensors are copied to and from the request's own memory.

    With a single thread, `infer` hides errors: outputs keep their old values, and the process may
    die later. `start_async` and `wait` report errors, but take some 10 microseconds. With static
    shapes only the first run, which allocates memory, needs them. With several streams, requests
    are always started: `infer` may queue two callers on one stream while another is idle.

    Args:
        compiled: the compiled model.
        open_sizes: whether the model has dynamic dimensions.
        carried: the tensors that a session carries, whose inputs and outputs it sets itself.
    """

    def __init__(
        self, compiled: openvino.CompiledModel, open_sizes: bool, carried: Sequence[Carried] = ()
    ) -> None:
        self._request = compiled.create_infer_request()
        several = compiled.get_property("NUM_STREAMS") > 1
        single = compiled.get_property("INFERENCE_NUM_THREADS") == 1
        self._waits_always = several or (single and open_sizes)
        self._waits = several or single
        self._copied_in: list[tuple[int, Array]] = []
        self._open_in: list[_Input] = []
        self._copied_out: list[tuple[int, Array]] = []
        self._open_out: list[_Output] = []
        self._count = len(compiled.outputs)
        carried_inputs, carried_outputs = (
            {each.input for each in carried},
            {each.output for each in carried},
        )
        for index, port in enumerate(compiled.inputs):
            tensor = self._request.get_input_tensor(index)
            if index not in carried_inputs and _is_small(port):
                self._copied_in.append((index, array_of(tensor)))
            elif index not in carried_inputs:
                self._open_in.append(_Input(self._request, index, tensor))
        for index, port in enumerate(compiled.outputs):
            if index not in carried_outputs and _is_small(port):
                tensor = self._request.get_output_tensor(index)
                self._copied_out.append((index, array_of(tensor)))
            elif index not in carried_outputs:
                self._open_out.append(_Output(self._request, index, port))
        self.set_input = self._request.set_input_tensor
        self.set_output = self._request.set_output_tensor

    def run(self, inputs: Sequence[Any], destinations: Sequence[Array | None]) -> list[Any]:
        """Run the model and return the outputs; `None` for carried ones.

        Args:
            inputs: an array per input; any value for a carried one.
            destinations: per output, the array to write it to, or `None`; empty if there are none.
        """
        for index, buffer in self._copied_in:
            np.copyto(buffer, inputs[index])
        shared = [input for input in self._open_in if not input.take(inputs[input.index])]
        destination_of = {
            index: destination
            for index, destination in enumerate(destinations)
            if destination is not None
        }
        for output in self._open_out:
            output.wait_in(destination_of.get(output.index))
        self._compute()
        for input in shared:
            input.forget()
        outputs: list[Any] = [None] * self._count
        for index, buffer in self._copied_out:
            outputs[index] = destination = destination_of.get(index)
            if destination is None:
                outputs[index] = buffer.copy()
            else:
                np.copyto(destination, buffer)
        for output in self._open_out:
            outputs[output.index] = output.last_output()
        return outputs

    def layers(self) -> Sequence[openvino.ProfilingInfo]:
        """Return the executed layers with their mean times."""
        layers: Sequence[openvino.ProfilingInfo] = self._request.get_profiling_info()
        return layers

    def _compute(self) -> None:
        if self._waits:
            self._request.start_async()
            self._request.wait()
            self._waits = self._waits_always
        else:
            self._request.infer(share_outputs=True)


class _Input:
    """An input that is large or has dynamic dimensions.

    Args:
        request: the infer request.
        index: the index of the input.
        tensor: the request's tensor for it.
    """

    def __init__(self, request: openvino.InferRequest, index: int, tensor: openvino.Tensor) -> None:
        self.index = index
        self._set = request.set_input_tensor
        self._tensor = tensor
        # OpenVINO (2026.4) copies a tensor that was never set to where the last request read it,
        # which may be released memory.
        self.forget()
        self._bytes = tensor.element_type.bitwidth >= 8
        self._own: Array | None = None

    def take(self, array: Array) -> bool:
        """Copy a small array into the request's tensor, or set a large one.

        Returns:
            Whether the array was copied, so that the request holds no reference to it.
        """
        if not (self._bytes and 0 < array.nbytes <= _COPIED_BYTES):
            self._set(self.index, shared_tensor(array))
            return False
        buffer = self._own
        if buffer is None or buffer.shape != array.shape:
            self._tensor.shape = array.shape
            buffer = self._own = array_of(self._tensor)
        np.copyto(buffer, array)
        return True

    def forget(self) -> None:
        """Remove the request's reference to the caller's array."""
        self._set(self.index, self._tensor)


class _Output:
    """An output that is large or has dynamic dimensions.

    Args:
        request: the infer request.
        index: the index of the output.
        port: the output's type and shape.
    """

    def __init__(
        self, request: openvino.InferRequest, index: int, port: openvino.ConstOutput
    ) -> None:
        self.index = index
        self._set = request.set_output_tensor
        self._type, self._shape = port.element_type, initial_shape(port)
        self._copies = port.element_type.bitwidth >= 8
        self._destination: Array | None = None
        self._renew()

    def wait_in(self, destination: Array | None) -> None:
        """Set the array for the next run's output, if there is one."""
        self._destination = destination
        if destination is not None:
            self._set(self.index, shared_tensor(destination))

    def last_output(self) -> Array:
        """Return the output of the last run, owned by the caller: a copy, if it is small."""
        if self._destination is not None:
            destination, self._destination = self._destination, None
            self._set(self.index, self._tensor)
            return destination
        array = array_of(self._tensor)
        if self._copies and array.nbytes <= _COPIED_BYTES:
            return array.copy()
        self._renew()
        return array

    def _renew(self) -> None:
        """Allocate new memory for the next output."""
        self._tensor = openvino.Tensor(self._type, self._shape)
        self._set(self.index, self._tensor)


def initial_shape(port: openvino.ConstOutput) -> openvino.Shape:
    """Return a shape for allocating an output, which OpenVINO reallocates if it is too small."""
    shape = port.partial_shape
    if shape.rank.is_dynamic:
        return openvino.Shape([0])
    return openvino.Shape([size.get_length() if size.is_static else 0 for size in shape])


def _is_small(port: openvino.ConstOutput) -> bool:
    """Return whether a tensor is small and of static shape, with elements of whole bytes."""
    if port.partial_shape.is_dynamic or port.element_type.bitwidth < 8:
        return False
    elements = prod(port.partial_shape.to_shape())
    return bool(0 < elements * port.element_type.size <= _COPIED_BYTES)


def failure(what: str, error: Exception) -> DeviceError:
    """Return an error that says what failed, with the first line of OpenVINO's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    noise = ("Exception from", "Caught exception", "Check '", "While validating")
    messages = [line for line in lines if not line.startswith(noise)] or lines or [repr(error)]
    return DeviceError(f"openvino {what}: {messages[0]}")
