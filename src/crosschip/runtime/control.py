"""Execution of control flow: the compiled bodies, and the branch or loop around them.

A body is placed and compiled like a model. Its outputs are passed to its next iteration without a
copy; only the outputs of the operation are copied into arrays that the caller owns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from crosschip.hal import Program
from crosschip.ir import Array, ControlFlow, DeviceError, If, Loop, Model, Operand, Operation, Scan
from crosschip.ir.dimension import Dim, name_of, substitute
from crosschip.runtime.copies import Copied, Copies
from crosschip.runtime.execution import Plan
from crosschip.runtime.guard.calls import call
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.programs import Abandoned, Awaited, SegmentProgram

RUNTIME = "runtime"
"""The name of the runtime in placements, for control flow that no device runs as a whole."""

Execute = Callable[[Sequence[Array]], Sequence[Array]]
"""A compiled body: from input arrays to output arrays that may be inputs or constants of it."""


def program_for(
    operation: ControlFlow,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    bodies: Sequence[Execute],
    programs: Sequence[SegmentProgram],
) -> ControlProgram:
    """Return the program that runs an operation of control flow.

    Args:
        operation: the operation.
        inputs: the operands that the program receives, in order, without constants.
        outputs: the outputs of the operation to return, in order.
        bodies: the compiled bodies.
        programs: the programs of the bodies, which the program closes.
    """
    for kind, program_class in _PROGRAMS.items():
        if isinstance(operation, kind):
            return program_class(operation, inputs, outputs, bodies, programs)
    raise NotImplementedError(f"{operation.type} is no control flow that can be run")


class ControlProgram(Program):
    """An operation of control flow with compiled bodies.

    Attributes:
        programs: the programs of the bodies, in order.
        copies: counts the copies outside of the bodies.
    """

    def __init__(
        self,
        operation: ControlFlow,
        inputs: Sequence[Operand],
        outputs: Sequence[Operand],
        bodies: Sequence[Execute],
        programs: Sequence[SegmentProgram],
    ) -> None:
        index_of = {operand: index for index, operand in enumerate(inputs)}
        self._operation = operation
        self._where = f"{RUNTIME}: {operation.type} {operation.name!r}"
        self._sources = [
            None if o is None else _in_c_order(o.value) if o.is_constant else index_of[o]
            for o in operation.inputs
        ]
        self._constants = [
            operand.value
            for body in operation.bodies
            for operand in body.outputs.values()
            if operand.value is not None
        ]
        self._output_indices = [operation.outputs.index(operand) for operand in outputs]
        self._bodies = tuple(bodies)
        self.programs = tuple(programs)
        self.copies = Copies()

    def run(
        self, inputs: Sequence[Array], bodies: Sequence[Execute] | None = None
    ) -> Sequence[Array]:
        """Compute the outputs, optionally with replacements of the bodies."""
        values = [inputs[s] if isinstance(s, int) else s for s in self._sources]
        try:
            results = self._outputs(values, bodies or self._bodies)
        except ValueError as error:
            raise DeviceError(f"{self._where}: {error}") from error
        returned = [results[index] for index in self._output_indices]
        return self._take_ownership(
            returned, [v for v in values if v is not None] + self._constants
        )

    def close(self) -> None:
        for program in self.programs:
            program.close()

    def _outputs(self, values: list[Array | None], bodies: Sequence[Execute]) -> Sequence[Array]:
        """Return the outputs of the operation; arrays may be those of inputs or constants."""
        raise NotImplementedError

    def _take_ownership(self, arrays: Sequence[Array], borrowed: Sequence[Array]) -> list[Array]:
        """Return C-contiguous arrays that share no memory with borrowed arrays or each other."""
        occupied = list(borrowed)
        owned: list[Array] = []
        for array in arrays:
            is_shared = any(np.may_share_memory(array, other) for other in occupied)
            result = self._copy(array) if is_shared else self._contiguous(array)
            owned.append(result)
            occupied.append(result)
        return owned

    def _contiguous(self, array: Array) -> Array:
        return array if array.flags.c_contiguous else self._copy(array)

    def _copy(self, array: Array) -> Array:
        self.copies.add(Copied.BETWEEN, array)
        return array.copy()

    def _stack(
        self, parts: Sequence[Array], output: Operand, axis: int, values: Sequence[Array | None]
    ) -> Array:
        """Stack the values of all iterations; the sizes without any are the static ones, or 0."""
        if parts:
            if any(part.shape != parts[0].shape for part in parts):
                shapes = sorted({part.shape for part in parts})
                raise ValueError(f"{output.name!r} collects values of unlike shapes: {shapes}")
            return np.stack(parts, axis)
        sizes = _actual_sizes(self._operation.inputs, values)
        shape = [substitute(size, sizes) for size in output.type.shape or (0,)]
        shape[axis] = 0
        fixed = [size if isinstance(size, int) else 0 for size in shape]
        return np.zeros(fixed, output.type.element_type.dtype)


class _IfProgram(ControlProgram):
    def _outputs(self, values: list[Array | None], bodies: Sequence[Execute]) -> Sequence[Array]:
        then_body, else_body = bodies
        condition, *captures = cast(list[Array], values)
        return (then_body if _is_true(condition) else else_body)(captures)


class _LoopProgram(ControlProgram):
    _operation: Loop

    def _outputs(self, values: list[Array | None], bodies: Sequence[Execute]) -> Sequence[Array]:
        (body,) = bodies
        count = self._operation.states
        trips = None if values[0] is None else max(0, _number(values[0]))
        condition = values[1] is None or _is_true(values[1])
        state: Sequence[Array] = cast(list[Array], values[2 : 2 + count])
        captures = cast(list[Array], values[2 + count :])
        outputs = self._operation.outputs[count:]
        collected: list[list[Array]] = [[] for _ in outputs]
        trip = 0
        while condition and trip != trips:
            results = body([np.array(trip), _TRUE, *state, *captures])
            condition = _is_true(results[0])
            state = results[1 : 1 + count]
            for parts, part in zip(collected, results[1 + count :], strict=True):
                parts.append(part)
            trip += 1
        pairs = zip(collected, outputs, strict=True)
        return [*state, *(self._stack(parts, o, 0, values) for parts, o in pairs)]


class _ScanProgram(ControlProgram):
    _operation: Scan

    def _outputs(self, values: list[Array | None], bodies: Sequence[Execute]) -> Sequence[Array]:
        (body,) = bodies
        operation = self._operation
        arrays = cast(list[Array], values)
        count, scanned = operation.states, len(operation.input_axes)
        state: Sequence[Array] = arrays[:count]
        sliced = [
            np.moveaxis(value, axis, 0)[:: -1 if backwards else 1]
            for value, axis, backwards in zip(
                arrays[count : count + scanned],
                operation.input_axes,
                operation.input_reversed,
                strict=True,
            )
        ]
        lengths = {len(value) for value in sliced}
        if len(lengths) > 1:
            raise ValueError(f"the scanned inputs have different sizes: {sorted(lengths)}")
        captures = arrays[count + scanned :]
        outputs = operation.outputs[count:]
        collected: list[list[Array]] = [[] for _ in outputs]
        for trip in range(lengths.pop()):
            slices = [self._contiguous(value[trip, ...]) for value in sliced]
            results = body([*state, *slices, *captures])
            state = results[:count]
            for parts, part in zip(collected, results[count:], strict=True):
                parts.append(part)
        joined = [
            self._stack(parts[::-1] if backwards else parts, output, axis, values)
            for parts, output, axis, backwards in zip(
                collected, outputs, operation.output_axes, operation.output_reversed, strict=True
            )
        ]
        return [*state, *joined]


_PROGRAMS: Mapping[type[Operation], type[ControlProgram]] = {
    If: _IfProgram,
    Loop: _LoopProgram,
    Scan: _ScanProgram,
}

_TRUE = np.array(True)


def _in_c_order(value: Array | None) -> Array | None:
    return None if value is None else np.asarray(value, order="C")


def _is_true(condition: Array) -> bool:
    if condition.size != 1:
        raise ValueError(f"the condition has {condition.size} elements, but must have one")
    return bool(condition.item())


def _number(trips: Array) -> int:
    if trips.size != 1:
        raise ValueError(f"the trip count has {trips.size} elements, but must have one")
    return int(trips.item())


def _actual_sizes(
    operands: Sequence[Operand | None], values: Sequence[Array | None]
) -> dict[str, Dim]:
    """Return the named sizes according to the shapes of values."""
    return {
        name: actual
        for operand, value in zip(operands, values, strict=True)
        if operand is not None and value is not None
        for size, actual in zip(operand.type.shape or (), value.shape, strict=False)
        if (name := name_of(size)) is not None
    }


class ControlSegment(GuardedProgram):
    """A program of control flow that can be cancelled between two runs of its bodies.

    Args:
        program: the program.
        model: the model of the segment.
        plans: the compiled bodies.
    """

    def __init__(self, program: ControlProgram, model: Model, plans: Sequence[Plan]) -> None:
        super().__init__(RUNTIME, None, program, model, 1, program.programs)
        self._control = program
        self._plans = tuple(plans)

    def count_copies(self, copies: Copies) -> None:
        super().count_copies(copies)
        self._control.copies = copies
        for plan in self._plans:
            plan.count_copies(copies)

    def run_while(
        self,
        inputs: Sequence[Array],
        awaited: Awaited,
        targets: Sequence[Array | None] | None = None,
    ) -> Sequence[Array]:
        bodies = [_cancellable(plan, awaited) for plan in self._plans]
        outputs = call(self.name, "running", self._control.run, inputs, bodies)
        return self._checked(inputs, outputs)


def _cancellable(plan: Plan, awaited: Awaited) -> Execute:
    """Return the function of a body that raises `Abandoned` if no caller waits for the result."""

    def run(arrays: Sequence[Array]) -> Sequence[Array]:
        if not awaited():
            raise Abandoned
        return plan.execute_while(arrays, awaited)

    return run
