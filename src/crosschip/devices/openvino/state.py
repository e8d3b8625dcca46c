"""Sessions: tensors that stay in OpenVINO's hands from one run to the next.

Where the shapes of inputs determine those of what is carried, OpenVINO writes it into memory that
is used again and again; else into memory of its own. Both are handed on as they are.
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
from crosschip.hal.sessions import OutputShapes, Rooms
from crosschip.ir import Array, Model, TensorType

Check = Callable[[Sequence[tuple[int, ...]]], Sequence[Array] | None]
"""Checks the inputs' shapes; the outputs, if it is known that they have no elements."""


class OpenVinoSession(ProgramSession):
    """Runs of one infer request.

    Args:
        request: makes the request.
        renew: is called after a run that failed, before another request is made.
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
        self._request = request()
        self._renew = renew
        self._requirements = requirements
        self._check = check
        self._shapes = OutputShapes(model)
        self._carried = [_State(one, outputs[one.output]) for one in carried]

    def run(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        arrays = list(inputs)
        for state in self._carried:
            arrays[state.input] = state.array
        self._requirements.check_inputs(arrays)  # type: ignore[arg-type]  # there are no gaps now
        shapes = [array.shape for array in arrays if array is not None]
        nothing = None if self._check is None else self._check(shapes)
        if nothing is not None:
            return self._of_nothing(nothing)
        self._requirements.sizes.check(shapes)
        wanted = self._shapes.of(shapes)
        try:
            for state in self._carried:
                state.bind(self._request, wanted[state.output])
            made = self._request.run(arrays, ())
        except (RuntimeError, ValueError) as error:  # of NumPy, where sizes came out negative
            self._renew()
            self._request = self._make()
            raise failure("failed while running", error) from error
        if self._requirements.rules:
            self._requirements.check_flags(made.pop())
        return made

    def advance(self) -> None:
        for state in self._carried:
            state.advance()

    def shape(self, place: int) -> tuple[int, ...]:
        return self._carried[place].array.shape

    def read(self, place: int) -> Array:
        return self._carried[place].array.copy()

    def write(self, place: int, array: Array) -> None:
        self._carried[place].write(array)

    def close(self) -> None:
        vars(self).clear()

    def _of_nothing(self, made: Sequence[Array]) -> list[Array | None]:
        """The outputs of a run that need not be done."""
        outputs: list[Array | None] = list(made)
        for state in self._carried:
            state.take(made[state.output])
            outputs[state.output] = None
        return outputs


class _State:
    """A tensor that is carried.

    Args:
        carried: from where and to where.
        type_: of both.

    Attributes:
        array: what the next run reads.
    """

    def __init__(self, carried: Carried, type_: TensorType) -> None:
        self.input, self.output = carried.input, carried.output
        self._rooms = Rooms(type_.element_type)
        self._tensor: openvino.Tensor
        self._next_array: Array | None = None
        sizes = [size if isinstance(size, int) else 0 for size in type_.shape or (0,)]
        self.write(np.zeros(sizes, type_.element_type.dtype))
        self._open = self._tensor.element_type, openvino.Shape(sizes)

    def bind(self, request: Request, shape: tuple[int, ...] | None) -> None:
        """Have a run read the tensor, and write the next one."""
        request.set_input(self.input, self._tensor)
        if shape is None:
            self._next_array, self._next = None, openvino.Tensor(*self._open)
        else:
            place = self._next_array = self._rooms.place(shape)
            self._next = shared_tensor(place)
        request.set_output(self.output, self._next)

    def take(self, array: Array) -> None:
        """Have the next value be one that was made elsewhere."""
        self._next_array, self._next = array, shared_tensor(array)

    def advance(self) -> None:
        """Read the next value."""
        made = self._next_array
        self.array = array_of(self._next) if made is None else made
        self._tensor = self._next
        if made is not None:
            self._rooms.turn(made)

    def write(self, array: Array) -> None:
        """Have the value be a copy of an array."""
        self._rooms.write(array)
        self.array = self._rooms.array
        self._tensor = shared_tensor(self.array)
