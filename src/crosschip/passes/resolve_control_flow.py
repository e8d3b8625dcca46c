"""Evaluation of control flow at compile time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crosschip.ir import ControlFlow, If, Loop, Model, Operand, Operation, Scan, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.folding import fold_operation
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.ops.standard.quantization import Dequantize
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter

_MAX_TRIPS = 64
_MAX_OPERATIONS = 4096


@dataclass(frozen=True)
class ResolveControlFlow(Pass):
    """Selects branches and unrolls loops that are determined at compile time.

    1. `IF` of a constant condition becomes the selected branch.
    2. `LOOP` and `SCAN` that are known to run at most 64 times are unrolled, unless that adds more
       than 4,096 operations to the model. Nested control flow is unrolled with them, if it can be;
       the bodies of the rest are rewritten when the bodies are simplified.

    Operations on values that become constant are folded in the same sweep.
    """

    def rewrite(self, model: Model) -> Model:
        if not any(operation.bodies for operation in model.operations):
            return model
        rewriter = Rewriter(model)
        budget = _MAX_OPERATIONS
        for operation in map(rewriter.resolved, model.operations):
            attempt = _Attempt(budget)
            try:
                replacements = attempt.replacements(operation)
            except _Unresolved:
                rewriter.keep(operation)
                continue
            if attempt.operations == [operation]:
                rewriter.keep(operation)
                continue
            budget -= attempt.unrolled
            for replacement in attempt.operations:
                # The types of its inputs may have been refined when their producers were emitted.
                replacement = rewriter.resolved(replacement)
                rewriter.emit(
                    replacement if replacement.origins else replacement.standing_for(operation)
                )
            for old, new in zip(operation.outputs, replacements, strict=True):
                if old is not new:
                    rewriter.replace(old, new)
        return rewriter.finish()


class _Unresolved(Exception):
    """The course of control flow is not known at compile time, or takes too many trips."""


class _TooMany(_Unresolved):
    """Unrolling would create too many operations."""


class _Attempt:
    """The operations that replace one operation.

    Attributes:
        operations: the replacing operations so far.
        unrolled: the number of operations copied from bodies.
    """

    def __init__(self, max_unrolled: int) -> None:
        self.operations: list[Operation] = []
        self.unrolled = 0
        self._max_unrolled = max_unrolled

    def replacements(self, operation: Operation) -> Sequence[Operand]:
        """Add the operations that replace one; return the operands that replace its outputs.

        Raises:
            _Unresolved: the operation is control flow that stays.
        """
        match operation:
            case If():
                body = operation.bodies[0 if _scalar(operation.condition) else 1]
                return self._inline(body, operation.captures, operation.name)
            case Loop():
                return self._loop(operation)
            case Scan():
                return self._scan(operation)
        # Quantized weights stay quantized, as they do in constant folding.
        values = None if isinstance(operation, Dequantize) else fold_operation(operation)
        if values is not None:
            pairs = zip(values, operation.outputs, strict=True)
            return [constant(v, o.name, o.type.quantization) for v, o in pairs]
        self.operations.append(operation)
        return operation.outputs

    def _loop(self, operation: Loop) -> Sequence[Operand]:
        trips = None if operation.trip_count is None else _scalar(operation.trip_count)
        runs = operation.condition is None or _scalar(operation.condition)
        state: Sequence[Operand] = operation.state
        collected: list[Sequence[Operand]] = []
        while runs and (trips is None or len(collected) < trips):
            if len(collected) == _MAX_TRIPS:
                raise _Unresolved
            trip = constant(np.array(len(collected)), f"{operation.name}.trip")
            condition = constant(np.array(True), f"{operation.name}.condition")
            arguments = (trip, condition, *state, *operation.captures)
            name = f"{operation.name}/{len(collected)}"
            continues, *results = self._inline(operation.body, arguments, name)
            runs = _scalar(continues)
            state = results[: operation.states]
            collected.append(results[operation.states :])
        axes = [0] * (len(operation.outputs) - operation.states)
        return [*state, *self._concat_results(operation, collected, axes)]

    def _scan(self, operation: Scan) -> Sequence[Operand]:
        shape = operation.scanned[0].type.shape
        length = None if shape is None else shape[operation.input_axes[0]]
        if not isinstance(length, int) or length > _MAX_TRIPS:
            raise _Unresolved
        state: Sequence[Operand] = operation.state
        collected: list[Sequence[Operand]] = []
        for trip in range(length):
            name = f"{operation.name}/{trip}"
            slices = []
            for index, scanned in enumerate(operation.scanned):
                index_on_axis = length - 1 - trip if operation.input_reversed[index] else trip
                axis = operation.input_axes[index]
                part = self._add_computed(
                    Gather, f"{name}.slice{index}", scanned, np.array(index_on_axis), axis
                )
                slices.append(part)
            arguments = (*state, *slices, *operation.captures)
            results = self._inline(operation.body, arguments, name)
            state = results[: operation.states]
            collected.append(results[operation.states :])
        stacked = self._concat_results(
            operation, collected, operation.output_axes, operation.output_reversed
        )
        return [*state, *stacked]

    def _inline(self, body: Model, arguments: Sequence[Operand], name: str) -> Sequence[Operand]:
        """Add a body's operations, with operands for its inputs; return its outputs."""
        self.unrolled += len(body.operations)
        if self.unrolled > self._max_unrolled:
            raise _TooMany
        new = dict(zip(body.inputs.values(), arguments, strict=True))
        for operation in body.operations:
            reads = tuple(None if o is None else new.get(o, o) for o in operation.inputs)
            renewed = operation.with_inputs(reads).with_name(f"{name}/{operation.name}")
            pairs = zip(operation.outputs, renewed.infer(), strict=True)
            outputs = tuple(Operand(f"{name}/{old.name}", type_) for old, type_ in pairs)
            replacements = self._inner_replacements(renewed.with_inputs(reads, outputs))
            new.update(zip(operation.outputs, replacements, strict=True))
        return [new.get(operand, operand) for operand in body.outputs.values()]

    def _inner_replacements(self, operation: Operation) -> Sequence[Operand]:
        """Like `replacements`, but keep control flow that is not resolved."""
        before = len(self.operations)
        try:
            return self.replacements(operation)
        except _TooMany:
            raise
        except _Unresolved:
            del self.operations[before:]
            self.operations.append(operation)
            return operation.outputs

    def _concat_results(
        self,
        operation: ControlFlow,
        collected: Sequence[Sequence[Operand]],
        axes: Sequence[int],
        backwards: Sequence[bool] = (),
    ) -> Sequence[Operand]:
        """Return the collected values of all iterations, concatenated along new axes."""
        outputs = operation.outputs[len(operation.outputs) - len(axes) :]
        if not collected:
            if any(output.type.static_shape is None for output in outputs):
                raise _Unresolved
            return [_empty_constant(output) for output in outputs]
        stacked = []
        for index, axis in enumerate(axes):
            parts = [results[index] for results in collected]
            if backwards and backwards[index]:
                parts.reverse()
            name = f"{operation.name}.collected{index}"
            names = [f"{name}.{number}" for number in range(len(parts))]
            unsqueezed = [
                self._add_computed(Unsqueeze, part_name, part, (axis,))
                for part_name, part in zip(names, parts, strict=True)
            ]
            stacked.append(self._add_computed(Concat, name, axis=axis, parts=unsqueezed))
        return stacked

    def _add_computed(
        self, operator: type[Operator], name: str, *arguments: object, **named: object
    ) -> Operand:
        """Add an operation with one output; return the output, or the constant that it folds to."""
        operation = operator(name, operator.bind(name, arguments, named))
        (type_,) = operation.infer()
        return self.replacements(operation.with_inputs(operation.inputs, (Operand(name, type_),)))[
            0
        ]


def _empty_constant(output: Operand) -> Operand:
    shape = output.type.static_shape
    assert shape is not None, "checked by the caller"
    array = np.zeros((0, *shape[1:]), output.type.element_type.dtype)
    return constant(array, output.name, output.type.quantization)


def _scalar(operand: Operand) -> Any:
    """Return the only element of a constant; raise _Unresolved for other operands."""
    if operand.value is None or operand.value.size != 1:
        raise _Unresolved
    return operand.value.item()
