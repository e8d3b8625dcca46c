"""Sessions: tensors that stay in OpenVINO's hands from one run to the next.

Of what is carried there are two tensors, which runs read and write in turn. A request for each turn
knows them from the beginning: no run needs to say where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import openvino

from crosschip.devices.openvino.failures import failure
from crosschip.devices.openvino.memory import array_of, shared_tensor
from crosschip.devices.openvino.request import Request
from crosschip.devices.openvino.requirements import Requirements
from crosschip.hal import Carried, ProgramSession
from crosschip.ir import Array, Model, TensorType

Check = Callable[[Sequence[tuple[int, ...]]], Sequence[Array] | None]
"""Checks the inputs' shapes; the outputs, if it is known that they have no elements."""

_TURNS = range(2)
_SPARE = 4
"""A tensor that may become too small is made larger than the other one by one in so many."""
_LEAST_BYTES = 4096


class OpenVinoSession(ProgramSession):
    """Runs of two infer requests, which take turns.

    Args:
        request: makes a request.
        renew: is called after a run that failed, before other requests are made.
        model: what is run.
        carried: the tensors that are handed on.
        requirements: what must hold in a run.
        check: checks the inputs' shapes; `None` if nothing is to be checked.
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
        self._carried = [_State(one, outputs[one.output]) for one in carried]
        self._turn = 0
        self._requests = self._bound()

    def run(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        turn, arrays = self._turn, list(inputs)
        for state in self._carried:
            arrays[state.input] = array_of(state.tensors[turn])
        self._requirements.check_inputs(arrays)  # type: ignore[arg-type]  # there are no gaps now
        shapes = [array.shape for array in arrays if array is not None]
        nothing = None if self._check is None else self._check(shapes)
        if nothing is not None:
            return self._of_nothing(nothing)
        self._requirements.sizes.check(shapes)
        try:
            outputs = self._requests[turn].run(arrays, ())
        except (RuntimeError, ValueError) as error:  # of NumPy, where sizes came out negative
            self._renew()
            self._requests = self._bound()
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

    def _bound(self) -> list[Request]:
        """A request for each turn, which reads what that of the other one writes."""
        requests = [self._make() for _ in _TURNS]
        for turn, request in enumerate(requests):
            for state in self._carried:
                request.set_input(state.input, state.tensors[turn])
                request.set_output(state.output, state.tensors[1 - turn])
        return requests

    def _of_nothing(self, results: Sequence[Array]) -> list[Array | None]:
        """The outputs of a run that need not be done."""
        outputs: list[Array | None] = list(results)
        for state in self._carried:
            state.write(1 - self._turn, results[state.output])
            outputs[state.output] = None
        return outputs


class _State:
    """A tensor that is carried.

    Args:
        carried: from where and to where.
        type_: of both.

    Attributes:
        input: the input that it is.
        output: the output that it is.
        tensors: for each turn what a run reads then.
    """

    def __init__(self, carried: Carried, type_: TensorType) -> None:
        self.input, self.output = carried.input, carried.output
        sizes = [size if isinstance(size, int) else 0 for size in type_.shape or (0,)]
        kind = shared_tensor(np.empty(0, type_.element_type.dtype)).element_type
        self.tensors = [openvino.Tensor(kind, openvino.Shape(sizes)) for _ in _TURNS]
        self._is_open = type_.static_shape is None
        self._bytes = [0, 0]

    def make_room(self, turn: int) -> None:
        """Have the next run that reads in this turn find room for somewhat more than it reads."""
        size = self.tensors[turn].byte_size
        if self._is_open and self._bytes[1 - turn] <= size:
            self._bytes[1 - turn] = wanted = max(_LEAST_BYTES, size + size // _SPARE)
            tensor = self.tensors[1 - turn]
            shape = array_of(tensor).shape
            tensor.shape = (wanted // tensor.element_type.size,)
            tensor.shape = shape

    def write(self, turn: int, array: Array) -> None:
        """Have what is read in a turn be a copy of an array."""
        self.tensors[turn].shape = array.shape
        np.copyto(array_of(self.tensors[turn]), array, casting="no")
