"""Sessions: tensors that remain in OpenVINO's memory between runs.

Each carried tensor has two buffers, which alternating runs read and write. Each of two requests is
bound to them once, so that runs do not set them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import openvino

from crosschip.devices.openvino.memory import array_of, shared_tensor
from crosschip.devices.openvino.request import Request, failure
from crosschip.devices.openvino.requirements import Requirements
from crosschip.hal import Carried, ProgramSession
from crosschip.ir import Array, Model, TensorType

Check = Callable[[Sequence[tuple[int, ...]]], Sequence[Array] | None]
"""Checks the inputs' shapes; returns the outputs if all are empty."""

_TURNS = range(2)
_SPARE = 4
"""A buffer is enlarged to the size of the other one plus 1 / _SPARE of it."""
_LEAST_BYTES = 4096


class OpenVinoSession(ProgramSession):
    """A session of two infer requests that alternate.

    Args:
        request: creates a request.
        renew: called after a failed run, before requests are created again.
        model: the source model.
        carried: the carried tensors.
        requirements: the conditions that each run is checked for.
        check: checks the inputs' shapes, if needed.
    """

    def __init__(
        self,
        request: Callable[[], Request],
        renew: Callable[[], None],
        model: Model,
        carried: Sequence[Carried],
        requirements: Requirements,
        check: Check | None,
    ) -> None:
        outputs = [operand.type for operand in model.outputs.values()]
        self._make = request
        self._renew = renew
        self._requirements = requirements
        self._check = check
        self._carried = [_State(each, outputs[each.output]) for each in carried]
        self._turn = 0
        self._requests = self._bind_requests()

    def run(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        turn, arrays = self._turn, list(inputs)
        for state in self._carried:
            arrays[state.input] = array_of(state.tensors[turn])
        self._requirements.check_inputs(arrays)  # type: ignore[arg-type]  # there are no gaps now
        shapes = [array.shape for array in arrays if array is not None]
        empty_outputs = None if self._check is None else self._check(shapes)
        if empty_outputs is not None:
            return self._store_empty(empty_outputs)
        self._requirements.sizes.check(shapes)
        try:
            outputs = self._requests[turn].run(arrays, ())
        except (RuntimeError, ValueError) as error:  # raised by NumPy for negative sizes
            self._renew()
            self._requests = self._bind_requests()
            raise failure("failed while running", error) from error
        if self._requirements.rules:
            self._requirements.check_flags(outputs.pop())
        return outputs

    def advance(self) -> None:
        self._turn = turn = 1 - self._turn
        for state in self._carried:
            state.make_room(turn)

    def shape(self, place: int) -> tuple[int, ...]:
        return array_of(self._carried[place].tensors[self._turn]).shape

    def read(self, place: int) -> Array:
        return array_of(self._carried[place].tensors[self._turn]).copy()

    def write(self, place: int, array: Array) -> None:
        try:
            self._carried[place].write(self._turn, array)
        except RuntimeError as error:
            raise failure("failed to keep a tensor", error) from error

    def close(self) -> None:
        vars(self).clear()

    def _bind_requests(self) -> list[Request]:
        """Create a request per turn, which reads the buffers that the other one writes."""
        requests = [self._make() for _ in _TURNS]
        for turn, request in enumerate(requests):
            for state in self._carried:
                request.set_input(state.input, state.tensors[turn])
                request.set_output(state.output, state.tensors[1 - turn])
        return requests

    def _store_empty(self, results: Sequence[Array]) -> list[Array | None]:
        """Return the outputs of a run whose results are all empty."""
        outputs: list[Array | None] = list(results)
        for state in self._carried:
            state.write(1 - self._turn, results[state.output])
            outputs[state.output] = None
        return outputs


class _State:
    """A carried tensor.

    Args:
        carried: the indices of its input and output.
        type_: the type of both.

    Attributes:
        input: the index of the input.
        output: the index of the output.
        tensors: the buffer that is read in each turn.
    """

    def __init__(self, carried: Carried, type_: TensorType) -> None:
        self.input, self.output = carried.input, carried.output
        sizes = [size if isinstance(size, int) else 0 for size in type_.shape or (0,)]
        kind = shared_tensor(np.empty(0, type_.element_type.dtype)).element_type
        self.tensors = [openvino.Tensor(kind, openvino.Shape(sizes)) for _ in _TURNS]
        self._is_open = type_.static_shape is None
        self._bytes = [0, 0]

    def make_room(self, turn: int) -> None:
        """Reserve more memory for the next output than this turn's input has."""
        size = self.tensors[turn].byte_size
        if self._is_open and self._bytes[1 - turn] <= size:
            self._bytes[1 - turn] = nbytes = max(_LEAST_BYTES, size + size // _SPARE)
            tensor = self.tensors[1 - turn]
            shape = array_of(tensor).shape
            tensor.shape = (nbytes // tensor.element_type.size,)
            tensor.shape = shape

    def write(self, turn: int, array: Array) -> None:
        """Copy an array to the buffer that is read in a turn."""
        self.tensors[turn].shape = array.shape
        np.copyto(array_of(self.tensors[turn]), array, casting="no")
