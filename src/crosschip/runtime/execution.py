"""Running the programs of a placed model, one after the other, and handing on what they make.

Between programs that only block, arrays are handed on. A program that takes on work and goes on
gets and makes buffers, which stay where they are while programs of the same device read them, and
become arrays where anybody else does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np

from crosschip.hal import Buffer, Event, HostBuffer
from crosschip.ir import Array, Operand
from crosschip.runtime.guard import call
from crosschip.runtime.placement.placing import Placement
from crosschip.runtime.programs import SegmentProgram

Value = Array | Buffer
Execute = Callable[[Sequence[Array]], Sequence[Array]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A program, and the numbers of the values that it reads and makes."""

    program: SegmentProgram
    reads: Sequence[int]
    writes: Sequence[int]


class Plan:
    """The programs of a placed model in order, over numbered values.

    Args:
        placement: what the programs were compiled from.
        programs: one for each segment, in order.
        own: whether the outputs must be the caller's own; else they may be inputs or constants.

    Attributes:
        execute: computes the outputs from arrays for the inputs, both in the model's order.
        submits: whether a program takes on work and goes on.
    """

    def __init__(
        self, placement: Placement, programs: Sequence[SegmentProgram], *, own: bool = True
    ) -> None:
        model = placement.model
        number = {operand: i for i, operand in enumerate(model.inputs.values())}
        self._steps = [
            _Step(
                program,
                [number[operand] for operand in segment.inputs],
                [number.setdefault(operand, len(number)) for operand in segment.outputs],
            )
            for segment, program in zip(placement.segments, programs, strict=True)
        ]
        fresh = {operand for segment in placement.segments for operand in segment.outputs}
        given = [_source(operand, number, fresh) for operand in model.outputs.values()]
        self._given = [(source, copy and own) for source, copy in given]
        self._count = len(number)
        self.submits = any(program.submits for program in programs)
        self.execute: Execute = self._execute_arrays
        if self.submits:
            self.execute = self._execute_to_arrays
        elif len(programs) == 1 and is_whole(placement):
            self.execute = programs[0].run

    def execute_values(
        self, inputs: Sequence[Value], targets: Mapping[int, Buffer]
    ) -> Sequence[Value]:
        """The outputs from arrays or buffers for the inputs, left where they were made.

        Args:
            inputs: for each model input.
            targets: buffers in which outputs are wanted, by the index of the output.
        """
        values: list[Any] = [*inputs, *(None,) * (self._count - len(inputs))]
        wanted = {
            self._given[index][0]: buffer
            for index, buffer in targets.items()
            if isinstance(self._given[index][0], int)
        }
        taken = []
        for step in self._steps:
            if step.program.submits:
                taken.append(_submit(step, values, wanted))
            else:
                made = step.program.run([_array(values[i]) for i in step.reads])
                for index, value in zip(step.writes, made, strict=True):
                    values[index] = _contiguous(value)
        for program, submission in taken:
            call(program.name, "running", submission.event.wait)
            program.check_rules(submission.outputs)
        found = ((values[s] if isinstance(s, int) else s, copy) for s, copy in self._given)
        return [_copied(_array(value)) if copy else value for value, copy in found]

    def _execute_to_arrays(self, arrays: Sequence[Array]) -> Sequence[Array]:
        return [_array(value) for value in self.execute_values(arrays, {})]

    def _execute_arrays(self, arrays: Sequence[Array]) -> Sequence[Array]:
        values: list[Any] = [*arrays, *(None,) * (self._count - len(arrays))]
        for step in self._steps:
            made = step.program.run([values[i] for i in step.reads])
            for index, value in zip(step.writes, made, strict=True):
                values[index] = _contiguous(value)
        found = ((values[s] if isinstance(s, int) else s, copy) for s, copy in self._given)
        return [_copied(value) if copy else value for value, copy in found]


def _submit(
    step: _Step, values: list[Any], wanted: Mapping[int | Array, Buffer]
) -> tuple[SegmentProgram, Any]:
    """Hand a program its inputs, and keep where its outputs will be."""
    program = step.program
    inputs = [
        value if isinstance(value, Buffer) and program.owns(value) else HostBuffer(_array(value))
        for value in (values[i] for i in step.reads)
    ]
    after = call(program.name, "taking on a run", _pending, inputs)
    outputs = [wanted.get(i) for i in step.writes]
    submission = program.submit(inputs, outputs, after)
    for index, buffer in zip(step.writes, submission.outputs, strict=False):
        values[index] = buffer
    return program, submission


def _pending(buffers: Sequence[Buffer]) -> list[Event]:
    """The events that must come before the elements are there."""
    return [buffer.ready for buffer in buffers if not buffer.ready.done]


def _array(value: Value) -> Array:
    if not isinstance(value, Buffer):
        return value
    return call("a buffer", "handing out its elements", value.array)


def _contiguous(value: Array) -> Array:
    """The value, in C order if it is a tensor."""
    if type(value) is not np.ndarray or value.flags.c_contiguous:
        return value
    return value.copy()


def _copied(value: Array) -> Array:
    """A copy of a value, and of all that is in it if it is no tensor."""
    return value.copy() if type(value) is np.ndarray else deepcopy(value)


def _source(
    operand: Operand, number: Mapping[Operand, int], fresh: set[Operand]
) -> tuple[Any, bool]:
    """The source of an output, and whether it must be copied to be the caller's own.

    Args:
        operand: the output.
        number: where the values of operands are.
        fresh: the operands whose values nobody has yet; what is handed out is removed.
    """
    value = operand.value
    if value is not None:
        return value, True
    copy = operand not in fresh
    fresh.discard(operand)
    return number[operand], copy


def is_whole(placement: Placement) -> bool:
    """Tell whether the one segment of a model has the model's inputs and outputs, in order."""
    (segment,) = placement.segments
    model = placement.model
    return segment.inputs == tuple(model.inputs.values()) and segment.outputs == tuple(
        model.outputs.values()
    )
