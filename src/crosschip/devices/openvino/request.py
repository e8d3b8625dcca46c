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

_COPIED_BYTES = 16384
"""The bytes of a tensor up to which copying it takes less time than handing its memory over."""


class Request:
    """An infer request that reads inputs where they are, and gives its outputs away.

    Small tensors of known sizes are copied into memory of the request's own and out of it.

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
        self._shared_in: list[tuple[int, openvino.Tensor]] = []
        self._copied_out: list[tuple[int, Array]] = []
        self._given_out: list[tuple[int, openvino.Type, openvino.Shape]] = []
        self._count = len(compiled.outputs)
        held, left = {one.input for one in carried}, {one.output for one in carried}
        for index, port in enumerate(compiled.inputs):
            tensor = self._request.get_input_tensor(index)
            if index not in held and _is_small(port):
                self._copied_in.append((index, array_of(tensor)))
            elif index not in held:
                self._shared_in.append((index, tensor))
        for index, port in enumerate(compiled.outputs):
            if index not in left and _is_small(port):
                tensor = self._request.get_output_tensor(index)
                self._copied_out.append((index, array_of(tensor)))
            elif index not in left:
                self._given_out.append((index, port.element_type, initial_shape(port)))
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
        for index, _ in self._shared_in:
            self.set_input(index, shared_tensor(inputs[index]))
        given = []
        for index, type_, shape in self._given_out:
            place = places[index] if index < len(places) else None
            tensor = openvino.Tensor(type_, shape) if place is None else shared_tensor(place)
            self.set_output(index, tensor)
            given.append(tensor)
        self._compute()
        for index, tensor in self._shared_in:
            self.set_input(index, tensor)
        made: list[Any] = [None] * self._count
        for index, own in self._copied_out:
            made[index] = own.copy()
        for (index, _, _), tensor in zip(self._given_out, given, strict=True):
            made[index] = array_of(tensor)
        if any(place is not None for place in places):
            self._put(made, places)
        return made

    def layers(self) -> Sequence[openvino.ProfilingInfo]:
        """The layers that were executed, with their mean times."""
        found: Sequence[openvino.ProfilingInfo] = self._request.get_profiling_info()
        return found

    def _compute(self) -> None:
        if self._waits:
            self._request.start_async()
            self._request.wait()
            self._waits = self._waits_always
        else:
            self._request.infer(share_outputs=True)

    def _put(self, made: list[Any], places: Sequence[Array | None]) -> None:
        """Have outputs in their places, which the request forgets."""
        copied = {index for index, _ in self._copied_out}
        for index, place in enumerate(places):
            if place is not None and index in copied:
                np.copyto(place, made[index])
            if place is not None:
                made[index] = place
        for index, type_, shape in self._given_out:
            if index < len(places) and places[index] is not None:
                self.set_output(index, openvino.Tensor(type_, shape))


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
