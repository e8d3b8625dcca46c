"""Timed runs of a compiled model.

Each segment runs to its end before the next begins, even if they would overlap otherwise, so that
times are attributed correctly. Bodies of control flow that the runtime runs are timed likewise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import islice
from typing import Any

import numpy as np

from crosschip.hal import Buffer, HostBuffer, Profiler, Program, Sizes
from crosschip.ir import Array, ControlFlow, DeviceError, InputError, Operand
from crosschip.progress import task
from crosschip.runtime.control import ControlProgram, Execute, program_for
from crosschip.runtime.device_timing import typical_inputs
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.profiling.profile import Profile
from crosschip.runtime.profiling.spans import Recorder, Span, SpanKind
from crosschip.runtime.programs import SegmentProgram

Value = Array | Buffer

logger = logging.getLogger("crosschip")


def profile_runs(
    placement: Placement,
    programs: Sequence[SegmentProgram],
    inputs: Mapping[str, Any] | None,
    sizes: Sizes,
    arrange: Callable[[Mapping[str, Any]], Sequence[Value]],
    runs: int,
    warm_up: int,
) -> Profile:
    """Measure the times of runs.

    Args:
        placement: the placement of the programs.
        programs: the program of each segment, in order.
        inputs: values by the names of inputs; random if `None`.
        sizes: the ranges and profiles of open sizes.
        arrange: checks the inputs, and returns them in the model's order.
        runs: the number of measured runs.
        warm_up: the number of runs before them.

    Raises:
        InputError: the inputs do not fit the model, or cannot be generated.
        DeviceError: a device failed.
    """
    if inputs is None:
        inputs = typical_inputs(placement.model, sizes)
    recorder = Recorder()
    with ExitStack() as opened:
        profiled_programs: list[_ProfiledProgram] = []
        plan = _Plan(placement, programs, recorder, profiled_programs, opened)

        def run() -> None:
            with recorder.span(SpanKind.RUN, placement.model.name):
                with recorder.span(SpanKind.CHECK):
                    values = arrange(inputs)
                plan.execute(values)

        name, count = placement.model.name, warm_up + runs
        with task(f"profiling {name}", count, measures=True) as profiling:
            for _ in range(warm_up):
                run()
                profiling.advance()
            recorder.runs.clear()
            for program in profiled_programs:
                program.begin()
            for _ in range(runs):
                run()
                profiling.advance()
        for program in profiled_programs:
            program.collect_steps()
    return Profile(placement, recorder.runs)


def check_counts(runs: int, warm_up: int) -> None:
    """Raise InputError unless at least one run is measured."""
    if runs < 1 or warm_up < 0:
        raise InputError(f"there must be a run that counts: runs={runs}, warm_up={warm_up}")


class _ProfiledProgram(Program):
    """A program that runs with a profiler, and the spans of its runs.

    Args:
        name: the name of the device.
        program: the program.
        profiler: the profiler of the program.
    """

    def __init__(self, name: str, program: Program, profiler: Profiler) -> None:
        self.spans: list[Span] = []
        self.rules = program.rules
        self._name = name
        self._profiler = profiler

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self._profiler.run(inputs)

    def begin(self) -> None:
        """Discard the runs so far."""
        call(self._name, "profiling", self._profiler.begin)
        self.spans.clear()

    def collect_steps(self) -> None:
        """Add the steps that the profiler reports to the spans."""
        runs = call(self._name, "profiling", self._profiler.steps)
        if len(runs) != len(self.spans):
            raise DeviceError(
                f"{self._name}: told of {len(runs)} runs where there were {len(self.spans)}; the "
                f"device breaks the driver contract"
            )
        for span, steps in zip(self.spans, runs, strict=True):
            assert span.start is not None, "segments have a start"
            call(self._name, "profiling", span.add_steps, steps, span.start)


class _Plan:
    """A placed model with the timed program of each segment.

    Args:
        placement: the placement.
        programs: the program of each segment, in order.
        recorder: records the spans.
        profiled_programs: a list to which the programs with profilers are added.
        opened: closes the profilers.
    """

    def __init__(
        self,
        placement: Placement,
        programs: Sequence[SegmentProgram],
        recorder: Recorder,
        profiled_programs: list[_ProfiledProgram],
        opened: ExitStack,
    ) -> None:
        self._placement = placement
        self._recorder = recorder
        self._opened = opened
        self._profiled_programs = profiled_programs
        self._runners = [
            (segment, *self._runner(segment, program))
            for segment, program in zip(placement.segments, programs, strict=True)
        ]
        self._inputs = tuple(placement.model.inputs.values())

    def execute(self, inputs: Sequence[Value], *, own: bool = True) -> Sequence[Array]:
        """Compute the outputs.

        Args:
            inputs: a value for each model input.
            own: whether the caller must own the outputs.
        """
        values: dict[Operand, Value] = dict(zip(self._inputs, inputs, strict=True))
        for segment, program, steps in self._runners:
            read = [values[operand] for operand in segment.inputs]
            if program.submits:
                buffers = [self._as_buffer(value, program) for value in read]
                with self._segment(segment) as span:
                    outputs: Sequence[Value] = self._submit(program, buffers)
            else:
                arrays = [self._as_array(value) for value in read]
                with self._segment(segment) as span:
                    outputs = program.run(arrays)
            if steps is not None:
                steps.spans.append(span)
            values.update(zip(segment.outputs, map(self._contiguous, outputs), strict=True))
        return self._outputs(values, own=own)

    def _runner(
        self, segment: Segment, program: SegmentProgram
    ) -> tuple[SegmentProgram, _ProfiledProgram | None]:
        """Return the program that runs a segment; again if it has a profiler, else `None`."""
        if not isinstance(program, GuardedProgram):
            return program, None
        if isinstance(program.program, ControlProgram):
            return self._control(segment, program.program), None
        try:
            profiler = call(program.name, "making a profiler", program.program.profiler)
            if profiler is not None and not isinstance(profiler, Profiler):
                raise DeviceError(
                    f"{program.name}: returned an object of type {type(profiler).__name__}, not a "
                    f"Profiler; the device breaks the driver contract"
                )
        except DeviceError as error:
            logger.warning("%s; its segments are timed as a whole", error)
            return program, None
        if profiler is None:
            return program, None
        self._opened.callback(call, program.name, "closing a profiler", profiler.close)
        profiled = _ProfiledProgram(program.name, program.program, profiler)
        self._profiled_programs.append(profiled)
        return program.with_program(profiled), profiled

    def _control(self, segment: Segment, program: ControlProgram) -> GuardedProgram:
        """Return the program of control flow whose bodies are timed."""
        (operation,) = segment.model.operations
        assert isinstance(operation, ControlFlow), "the runtime runs nothing else"
        parts = iter(program.programs)
        bodies = [
            self._body(f"{operation.name} {role}", body, list(islice(parts, len(body.segments))))
            for role, body in zip(operation.roles, self._placement.bodies(operation), strict=True)
        ]
        again = program_for(operation, segment.inputs, segment.outputs, bodies, ())
        return GuardedProgram(segment.device, None, again, segment.model, 1)

    def _body(self, name: str, body: Placement, programs: Sequence[SegmentProgram]) -> Execute:
        plan = _Plan(body, programs, self._recorder, self._profiled_programs, self._opened)

        def execute(inputs: Sequence[Array]) -> Sequence[Array]:
            with self._recorder.span(SpanKind.BODY, name):
                return plan.execute(inputs, own=False)

        return execute

    def _segment(self, segment: Segment) -> AbstractContextManager[Span]:
        kind, operations = SpanKind.SEGMENT, segment.operations
        return self._recorder.span(kind, segment.name, segment.device, operations)

    def _submit(self, program: SegmentProgram, inputs: Sequence[Buffer]) -> Sequence[Buffer]:
        submission = program.submit(inputs, [], [b.ready for b in inputs if not b.ready.done])
        with self._recorder.span(SpanKind.WAIT, device=program.name):
            call(program.name, "running", submission.event.wait)
        program.check_rules(submission.outputs)
        return submission.outputs

    def _as_buffer(self, value: Value, program: SegmentProgram) -> Buffer:
        if isinstance(value, Buffer) and program.owns(value):
            return value
        return HostBuffer(self._as_array(value))

    def _as_array(self, value: Value) -> Array:
        if not isinstance(value, Buffer):
            return value
        with self._recorder.span(SpanKind.COPY):
            return call("a buffer", "handing out its elements", value.array)

    def _contiguous(self, value: Any) -> Any:
        if type(value) is not np.ndarray or value.flags.c_contiguous:
            return value
        with self._recorder.span(SpanKind.COPY):
            return value.copy()

    def _outputs(self, values: Mapping[Operand, Value], *, own: bool) -> list[Array]:
        """Return the outputs; inputs and constants are copied if the caller must own them."""
        returned = set(self._inputs)
        arrays = []
        for operand in self._placement.model.outputs.values():
            constant = operand.value
            array = self._as_array(values[operand]) if constant is None else constant
            if own and (constant is not None or operand in returned):
                with self._recorder.span(SpanKind.COPY):
                    array = array.copy() if isinstance(array, np.ndarray) else array
            returned.add(operand)
            arrays.append(array)
        return arrays
