"""Infer requests, one for each run that is under way."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import openvino

from crosschip.devices.openvino.memory import array_of, shared_tensor
from crosschip.hal import Carried
from crosschip.ir import Array

_COPIED_BYTES = 2**17
"""The bytes of a tensor up to which copying it takes less time than handing its memory over."""


class Request:
    """An infer request that reads inputs where they are, and gives its outputs away.

    Small tensors are copied into memory of the request's own and out of it.

    With a single thread, `infer` swallows what goes wrong: it leaves outputs as they were, and what
    was left undone ends the process later. Started and waited for, a request reports it, at the
    price of some 10 microseconds. Where all sizes are known, only the first run needs that, which
    allocates the memory. Where there are several streams, requests are always started: `infer`
    may put two callers into one stream, while another has nothing to do.

    Args:
        compiled: what OpenVINO compiled.
        open_sizes: whether some sizes show only in a run.
        carried: the tensors that a session hands on, for which it sets inputs and outputs itself.
    """

    def __init__(
        self,
        compiled: openvino.CompiledModel,
        open_sizes: bool,
        carried: Sequence[Carried] = (),
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
        held, left = {one.input for one in carried}, {one.output for one in carried}
        for index, port in enumerate(compiled.inputs):
            tensor = self._request.get_input_tensor(index)
            if index not in held and _is_small(port):
                self._copied_in.append((index, array_of(tensor)))
            elif index not in held:
                self._open_in.append(_Input(self._request, index, tensor))
        for index, port in enumerate(compiled.outputs):
            if index not in left and _is_small(port):
                tensor = self._request.get_output_tensor(index)
                self._copied_out.append((index, array_of(tensor)))
            elif index not in left:
                self._open_out.append(_Output(self._request, index, port))
        self.set_input = self._request.set_input_tensor
        self.set_output = self._request.set_output_tensor

    def run(self, inputs: Sequence[Any], places: Sequence[Array | None]) -> list[Any]:
        """The outputs, those that have a place in that; `None` for what is carried.

        Args:
            inputs: an array for each input; any value for what is carried.
            places: for each output where it is wanted, or `None`; empty if there is no place.
        """
        for index, own in self._copied_in:
            np.copyto(own, inputs[index])
        shared = [input for input in self._open_in if not input.take(inputs[input.index])]
        wanted = {index: place for index, place in enumerate(places) if place is not None}
        for output in self._open_out:
            output.wait_in(wanted.get(output.index))
        self._compute()
        for input in shared:
            input.forget()
        outputs: list[Any] = [None] * self._count
        for index, own in self._copied_out:
            outputs[index] = place = wanted.get(index)
            if place is None:
                outputs[index] = own.copy()
            else:
                np.copyto(place, own)
        for output in self._open_out:
            outputs[output.index] = output.last_output()
        return outputs

    def layers(self) -> Sequence[openvino.ProfilingInfo]:
        """The layers that were executed, with their mean times."""
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
    """An input that is large, or of sizes that show in a run.

    Args:
        request: reads it.
        index: the input's.
        tensor: the request's own.
    """

    def __init__(self, request: openvino.InferRequest, index: int, tensor: openvino.Tensor) -> None:
        self.index = index
        self._set = request.set_input_tensor
        self._tensor = tensor
        # Of a tensor that nobody has set, OpenVINO (2026.4) copies the elements to where the last
        # request read them, be that memory that a session has released.
        self.forget()
        self._bytes = tensor.element_type.bitwidth >= 8
        self._own: Array | None = None

    def take(self, array: Array) -> bool:
        """Have the request read a copy of a small array, or a large one where it is.

        Returns:
            Whether it is a copy, so that there is nothing to forget after the run.
        """
        if not (self._bytes and 0 < array.nbytes <= _COPIED_BYTES):
            self._set(self.index, shared_tensor(array))
            return False
        own = self._own
        if own is None or own.shape != array.shape:
            self._tensor.shape = array.shape
            own = self._own = array_of(self._tensor)
        np.copyto(own, array)
        return True

    def forget(self) -> None:
        """Have the request no more know an array that it has read."""
        self._set(self.index, self._tensor)


class _Output:
    """An output that is large, or of sizes that show in a run.

    Args:
        request: makes it.
        index: the output's.
        port: its type.
    """

    def __init__(
        self, request: openvino.InferRequest, index: int, port: openvino.ConstOutput
    ) -> None:
        self.index = index
        self._set = request.set_output_tensor
        self._type, self._shape = port.element_type, initial_shape(port)
        self._copies = port.element_type.bitwidth >= 8
        self._place: Array | None = None
        self._renew()

    def wait_in(self, place: Array | None) -> None:
        """Say where the output of the next run is wanted, if somewhere."""
        self._place = place
        if place is not None:
            self._set(self.index, shared_tensor(place))

    def last_output(self) -> Array:
        """The output of the last run, which is the caller's: a copy, if it is small."""
        if self._place is not None:
            place, self._place = self._place, None
            self._set(self.index, self._tensor)
            return place
        array = array_of(self._tensor)
        if self._copies and array.nbytes <= _COPIED_BYTES:
            return array.copy()
        self._renew()
        return array

    def _renew(self) -> None:
        """Have the next output be in memory that nobody else knows."""
        self._tensor = openvino.Tensor(self._type, self._shape)
        self._set(self.index, self._tensor)


def initial_shape(port: openvino.ConstOutput) -> openvino.Shape:
    """A shape to allocate an output with; OpenVINO reallocates one that is not the final one."""
    shape = port.partial_shape
    if shape.rank.is_dynamic:
        return openvino.Shape([0])
    return openvino.Shape([size.get_length() if size.is_static else 0 for size in shape])


def _is_small(port: openvino.ConstOutput) -> bool:
    """Tell whether a tensor is small and always of one size, of elements that fill bytes."""
    if port.partial_shape.is_dynamic or port.element_type.bitwidth < 8:
        return False
    elements = prod(port.partial_shape.to_shape())
    return bool(0 < elements * port.element_type.size <= _COPIED_BYTES)
