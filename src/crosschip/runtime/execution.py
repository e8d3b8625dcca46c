"""Execution of the programs of a placed model, one after the other.

Synchronous programs exchange arrays. Asynchronous programs read and return device buffers, which
stay on the device for programs of the same device and are copied to arrays for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.hal import Buffer, Event, HostBuffer, Submission
from crosschip.ir import Array, Operand
from crosschip.ir.dataclass import dataclass
from crosschip.runtime.copies import Copied, Copies
from crosschip.runtime.guard.calls import call
from crosschip.runtime.outline import Outline
from crosschip.runtime.programs import Abandoned, Awaited, SegmentProgram

if TYPE_CHECKING:
    from crosschip.hal.conditions import InputGuard

Value = Array | Buffer
Execute = Callable[[Sequence[Array]], Sequence[Array]]
ExecuteWhile = Callable[[Sequence[Array], Awaited], Sequence[Array]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A program, and the indices of the values that it reads and returns."""

    program: SegmentProgram
    reads: Sequence[int]
    writes: Sequence[int]


class Plan:
    """The programs of a placed model in order, over numbered values.

    Args:
        placement: a placement, or its outline.
        programs: the program of each segment, in order.
        copies: counts the copies.
        own: whether the caller must own the outputs; otherwise they may be inputs or constants.

    Attributes:
        execute: computes the outputs from arrays for the inputs, both in the model's order.
        execute_while: the same; cancels between two programs if no caller awaits the outputs.
        programs: the programs, in order.
        submits: whether a program is asynchronous.
    """

    def __init__(
        self,
        placement: Outline,
        programs: Sequence[SegmentProgram],
        copies: Copies,
        *,
        own: bool = True,
    ) -> None:
        model = placement.model
        self.programs = tuple(programs)
        self.count_copies(copies)
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
        sources = [_source(operand, number, fresh) for operand in model.outputs.values()]
        self._output_sources = [(source, copy and own) for source, copy in sources]
        self._sources = [source for source, _ in sources]
        self._copied = [index for index, (_, copy) in enumerate(self._output_sources) if copy]
        self._count = len(number)
        self.submits = any(program.submits for program in programs)
        self.execute: Execute = self._execute_arrays
        self.execute_while: ExecuteWhile = self._execute_to_arrays
        if self.submits:
            self.execute = self._execute_to_arrays
        elif len(programs) == 1 and is_whole(placement):
            self.execute, self.execute_while = programs[0].run, programs[0].run_while
        self._execute_checked = self.execute
        self._guard: InputGuard | None = None
        if placement.conditions:
            # Imported late: few models have conditions.
            from crosschip.hal.conditions import InputGuard

            self._guard = InputGuard(model, placement.conditions)
            check = self._guard.check
            self.execute, self.execute_while = with_checks(check, self.execute, self.execute_while)

    def count_copies(self, copies: Copies) -> None:
        """Set the counter of copies."""
        self._copies = copies
        for program in self.programs:
            program.count_copies(copies)

    def execute_values(
        self,
        inputs: Sequence[Value],
        targets: Mapping[int, Value],
        awaited: Awaited | None = None,
    ) -> Sequence[Value]:
        """Compute the outputs from arrays or buffers, without moving them from their device.

        Args:
            inputs: a value for each model input.
            targets: arrays and buffers for outputs, by the index of the output.
            awaited: returns whether a caller still waits for the outputs; `None` for always.

        Raises:
            Abandoned: no caller waits for the outputs any more.
            OutOfRange: the inputs violate a condition of the placement.
        """
        if self._guard is not None:
            self._guard.check([self._array(value, Copied.INPUT) for value in inputs])
        return self._execute_values(inputs, targets, awaited)

    def execute_keeping(
        self, kept_outputs: Collection[int]
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Return a function that computes the outputs from checked arrays or buffers.

        Args:
            kept_outputs: the indices of the outputs that stay on their device; others become
                arrays.
        """
        if not self.submits:
            return self._execute_checked

        def execute(inputs: Sequence[Value]) -> list[Value]:
            results = enumerate(self._execute_values(inputs, {}))
            return [v if i in kept_outputs else self._array(v, Copied.OUTPUT) for i, v in results]

        return execute

    def _execute_values(
        self,
        inputs: Sequence[Value],
        targets: Mapping[int, Value],
        awaited: Awaited | None = None,
    ) -> Sequence[Value]:
        """Compute the outputs from checked inputs; see `execute_values`."""
        values: list[Any] = [*inputs, *(None,) * (self._count - len(inputs))]
        targets_by_value = {
            self._output_sources[index][0]: target
            for index, target in targets.items()
            if isinstance(self._output_sources[index][0], int)
            and not self._output_sources[index][1]
        }
        submissions: list[tuple[SegmentProgram, Submission]] = []
        for step in self._steps:
            if awaited is not None and not awaited():
                for program, submission in submissions:
                    call(program.name, "running", submission.event.wait)
                raise Abandoned
            if step.program.submits:
                submissions.append(self._submit(step, values, targets_by_value))
            else:
                self._run(step, values, targets_by_value, awaited)
        for program, submission in submissions:
            call(program.name, "running", submission.event.wait)
            program.check_rules(submission.outputs)
        return self._outputs(values)

    def _execute_to_arrays(
        self, arrays: Sequence[Array], awaited: Awaited | None = None
    ) -> Sequence[Array]:
        results = self._execute_values(arrays, {}, awaited)
        return [self._array(value, Copied.OUTPUT) for value in results]

    def _execute_arrays(self, arrays: Sequence[Value]) -> list[Any]:
        values: list[Any] = [*arrays, *(None,) * (self._count - len(arrays))]
        for step in self._steps:
            results = step.program.run([values[i] for i in step.reads])
            self.keep(step.writes, values, results)
        return self._outputs(values)

    def _outputs(self, values: Sequence[Any]) -> list[Any]:
        """Return the outputs among all values; copies of those that the caller must own."""
        outputs = [values[s] if isinstance(s, int) else s for s in self._sources]
        for index in self._copied:
            outputs[index] = self._copy(self._array(outputs[index], Copied.OUTPUT))
        return outputs

    def _run(
        self,
        step: _Step,
        values: list[Any],
        targets_by_value: Mapping[int | Array, Value],
        awaited: Awaited | None,
    ) -> None:
        """Run a program, into the caller's arrays if there are any."""
        inputs = [self._array(values[i], Copied.BETWEEN) for i in step.reads]
        targets = [targets_by_value.get(i) for i in step.writes]
        arrays = None
        if any(isinstance(target, np.ndarray) for target in targets):
            arrays = [target if isinstance(target, np.ndarray) else None for target in targets]
        if awaited is not None:
            results = step.program.run_while(inputs, awaited, arrays)
        elif arrays is not None:
            results = step.program.run_into(inputs, arrays)
        else:
            results = step.program.run(inputs)
        self.keep(step.writes, values, results)

    def _submit(
        self, step: _Step, values: list[Any], targets_by_value: Mapping[int | Array, Value]
    ) -> tuple[SegmentProgram, Submission]:
        """Submit a run of a program, and store its future outputs."""
        program = step.program
        inputs = [
            value
            if isinstance(value, Buffer) and program.owns(value)
            else HostBuffer(self._array(value, Copied.BETWEEN))
            for value in (values[i] for i in step.reads)
        ]
        after = call(program.name, "taking on a run", _pending, inputs)
        targets = (targets_by_value.get(i) for i in step.writes)
        outputs = [
            target
            if isinstance(target, Buffer) and (target.device is None or program.owns(target))
            else None  # an array, or memory of a device on which the model ran before
            for target in targets
        ]
        submission = program.submit(inputs, outputs, after)
        for index, buffer in zip(step.writes, submission.outputs, strict=False):
            values[index] = buffer
        return program, submission

    def keep(self, indices: Sequence[int], values: list[Any], results: Sequence[Any]) -> None:
        """Store the outputs of a program for others, tensors in C order."""
        for index, value in zip(indices, results, strict=True):
            if type(value) is np.ndarray and not value.flags.c_contiguous:
                value = value.copy()  # the same value in another layout
                self._copies.add(Copied.BETWEEN, value)
            values[index] = value

    def _array(self, value: Value, kind: Copied) -> Array:
        """Return a value as an array; copied if it is in device memory."""
        if type(value) is np.ndarray or not isinstance(value, Buffer):
            return value
        array = call("a buffer", "handing out its elements", value.array)
        if value.device is not None:
            self._copies.add(kind, array)
        return array

    def _copy(self, value: Array) -> Array:
        """Return a copy of a value, deep if it is no tensor."""
        self._copies.add(Copied.OUTPUT, value)
        return value.copy() if type(value) is np.ndarray else deepcopy(value)


def _pending(buffers: Sequence[Buffer]) -> list[Event]:
    """Return the events that must end before the elements are valid."""
    return [buffer.ready for buffer in buffers if not buffer.ready.done]


def _source(
    operand: Operand, number: Mapping[Operand, int], fresh: set[Operand]
) -> tuple[Any, bool]:
    """Return the source of an output, and whether it must be copied for the caller to own it.

    Args:
        operand: the output.
        number: the indices of the operands' values.
        fresh: the operands whose values have not been returned yet; the returned one is removed.
    """
    value = operand.value
    if value is not None:
        return value, True
    copy = operand not in fresh
    fresh.discard(operand)
    return number[operand], copy


def is_whole(placement: Outline) -> bool:
    """Return whether the only segment of a model has the model's inputs and outputs, in order."""
    (segment,) = placement.segments
    model = placement.model
    return segment.inputs == tuple(model.inputs.values()) and segment.outputs == tuple(
        model.outputs.values()
    )


def with_checks(
    check: Callable[[Sequence[Array]], None], execute: Execute, execute_while: ExecuteWhile
) -> tuple[Execute, ExecuteWhile]:
    """Return the same functions with checks of the inputs."""

    def execute_checked(arrays: Sequence[Array]) -> Sequence[Array]:
        check(arrays)
        return execute(arrays)

    def execute_checked_while(arrays: Sequence[Array], awaited: Awaited) -> Sequence[Array]:
        check(arrays)
        return execute_while(arrays, awaited)

    return execute_checked, execute_checked_while
