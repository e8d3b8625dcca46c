"""Sessions: tensors that stay in ONNX Runtime's hands from one run to the next.

Where the shapes of inputs determine those of what is carried, ONNX Runtime writes it into memory
that is used again and again; else into memory of its own. Both are handed on as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnxruntime import InferenceSession, OrtValue

from crosschip.devices.onnxruntime.failures import failure
from crosschip.devices.onnxruntime.values import array_of, ortvalue
from crosschip.hal import Carried, ProgramSession
from crosschip.hal.sessions import OutputShapes, Rooms
from crosschip.ir import Array, Model, TensorType

Check = Callable[[Sequence[tuple[int, ...]]], Sequence[Array] | None]
"""Checks the inputs' shapes; the outputs, if it is known that they have no elements."""


class OnnxRuntimeSession(ProgramSession):
    """Runs of an inference session by one binding of inputs and outputs.

    Args:
        session: what is run.
        model: what it was compiled from, whose inputs and outputs are its own, in order.
        carried: the tensors that are handed on.
        check: checks the inputs' shapes; `None` if nothing is to be checked.
        declared: the outputs, by index, that are checked to be what the model says they are.
    """

    def __init__(
        self,
        session: InferenceSession,
        model: Model,
        carried: Sequence[Carried],
        check: Check | None,
        declared: Mapping[int, Callable[[Any], None]],
    ) -> None:
        names = [value.name for value in session.get_inputs()]
        made = [value.name for value in session.get_outputs()]
        outputs = [operand.type for operand in model.outputs.values()]
        held, left = {one.input for one in carried}, {one.output for one in carried}
        self._session = session
        self._binding = session.io_binding()
        self._check = check
        self._shapes = OutputShapes(model)
        self._dtypes = [type_.element_type.dtype for type_ in outputs]
        self._declared = [(i, check) for i, check in declared.items() if i not in left]
        self._given = [(i, name) for i, name in enumerate(names) if i not in held]
        self._taken = [(i, name) for i, name in enumerate(made) if i not in left]
        self._carried = [
            _State(one, names[one.input], made[one.output], outputs[one.output]) for one in carried
        ]
        self._outputs, self._own = len(made), len(outputs)

    def run(self, inputs: Sequence[Array | None]) -> list[Array | None]:
        shapes = self._input_shapes(inputs)
        nothing = None if self._check is None else self._check(shapes)
        if nothing is not None:
            return self._of_nothing(nothing)
        wanted = self._shapes.of(shapes)
        try:
            return self._run(inputs, wanted)
        except Exception as error:
            raise failure("failed while running", error) from error

    def advance(self) -> None:
        for state in self._carried:
            state.advance()

    def shape(self, place: int) -> tuple[int, ...]:
        return self._carried[place].shape

    def read(self, place: int) -> Array:
        return self._carried[place].read()

    def write(self, place: int, array: Array) -> None:
        self._carried[place].write(array)

    def close(self) -> None:
        vars(self).clear()

    def _input_shapes(self, inputs: Sequence[Array | None]) -> list[tuple[int, ...]]:
        shapes = [() if array is None else array.shape for array in inputs]
        for state in self._carried:
            shapes[state.input] = state.shape
        return shapes

    def _run(
        self, inputs: Sequence[Any], wanted: Sequence[tuple[int, ...] | None]
    ) -> list[Array | None]:
        binding = self._binding
        for index, name in self._given:
            binding.bind_ortvalue_input(name, ortvalue(inputs[index]))
        found: list[tuple[int, int]] = []
        for place, state in enumerate(self._carried):
            binding.bind_ortvalue_input(state.reads, state.value)
            room = state.place(wanted[state.output])
            if room is None:
                binding.bind_output(state.writes)
                found.append((place, -1))
            else:
                binding.bind_ortvalue_output(state.writes, room)
        made: list[Array | None] = [None] * self._outputs
        for place, (index, name) in enumerate(self._taken, len(self._carried)):
            shape = wanted[index] if index < len(wanted) else None
            if shape is None:
                binding.bind_output(name)
                found.append((place, index))
            else:
                array = made[index] = np.empty(shape, self._dtypes[index])
                binding.bind_ortvalue_output(name, ortvalue(array))
        self._session.run_with_iobinding(binding)
        if found:
            values = binding.get_outputs()
            for place, index in found:
                if index < 0:
                    self._carried[place].take(values[place])
                else:
                    made[index] = array_of(values[place])
        for index, check in self._declared:
            check(made[index])
        return made[: self._own]

    def _of_nothing(self, made: Sequence[Array]) -> list[Array | None]:
        """The outputs of a run that need not be done."""
        outputs: list[Array | None] = list(made)
        for state in self._carried:
            state.take(ortvalue(made[state.output]))
            outputs[state.output] = None
        return outputs


class _State:
    """A tensor that is carried.

    Args:
        carried: from where and to where.
        reads: the name of the input.
        writes: the name of the output.
        type_: of both.

    Attributes:
        value: what the next run reads.
        shape: the shape of that.
    """

    def __init__(self, carried: Carried, reads: str, writes: str, type_: TensorType) -> None:
        self.input, self.output = carried.input, carried.output
        self.reads, self.writes = reads, writes
        self._rooms = Rooms(type_.element_type)
        self._next_array: Array | None = None
        sizes = [size if isinstance(size, int) else 0 for size in type_.shape or (0,)]
        self.write(np.zeros(sizes, type_.element_type.dtype))

    def place(self, shape: tuple[int, ...] | None) -> OrtValue | None:
        """Memory for the next value; `None` if ONNX Runtime is to find some."""
        if shape is None:
            return None
        self._next_array = self._rooms.place(shape)
        self._next, self._next_shape = ortvalue(self._next_array), shape
        return self._next

    def take(self, value: OrtValue) -> None:
        """Have the next value be one in memory of ONNX Runtime's."""
        self._next_array = None
        self._next, self._next_shape = value, tuple(value.shape())

    def advance(self) -> None:
        """Read the next value."""
        self.value, self.shape = self._next, self._next_shape
        if self._next_array is not None:
            self._rooms.turn(self._next_array)

    def read(self) -> Array:
        """A copy of the value."""
        return array_of(self.value).copy()

    def write(self, array: Array) -> None:
        """Have the value be a copy of an array."""
        self._rooms.write(array)
        self.value, self.shape = ortvalue(self._rooms.array), array.shape
