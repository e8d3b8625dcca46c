"""Running control flow at compile time, as far as its course is known."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Chooses branches and unrolls loops whose course is known.

    1. `IF` of a constant condition becomes the branch.
    2. `LOOP` and `SCAN` that are known to run at most 64 times become their body, once for each
       time, unless unrolling makes more than 4,096 operations of the model. What contains others
       is unrolled with them or not at all; what stays is looked at again in its own body, by
       whoever simplifies that.

    What reads a value that has become known is folded in the same sweep.
    """

    def rewrite(self, model: Model) -> Model:
        if not any(operation.bodies for operation in model.operations):
            return model
        rewriter = Rewriter(model)
        left = _MAX_OPERATIONS
        for operation in map(rewriter.resolved, model.operations):
            attempt = _Attempt(left)
            try:
                results = attempt.results(operation)
            except _Unresolved:
                rewriter.keep(operation)
                continue
            if attempt.operations == [operation]:
                rewriter.keep(operation)
                continue
            left -= attempt.unrolled
            for one in attempt.operations:
                # What it reads may have been refined when it was emitted.
                one = rewriter.resolved(one)
                rewriter.emit(one if one.origins else one.standing_for(operation))
            for old, new in zip(operation.outputs, results, strict=True):
                if old is not new:
                    rewriter.replace(old, new)
        return rewriter.finish()


class _Unresolved(Exception):
    """The course of an operation is not known, or too long."""


class _TooMany(_Unresolved):
    """There would be too many operations."""


class _Attempt:
    """The operations that take the place of one.

    Attributes:
        operations: those so far.
        unrolled: how many operations of bodies have been looked at.
    """

    def __init__(self, most: int) -> None:
        self.operations: list[Operation] = []
        self.unrolled = 0
        self._most = most

    def results(self, operation: Operation) -> Sequence[Operand]:
        """Add what an operation becomes; returns what takes the place of its outputs.

        Raises:
            _Unresolved: it is control flow that stays.
        """
        match operation:
            case If():
                return self._branch(operation)
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

    def _branch(self, operation: If) -> Sequence[Operand]:
        body = operation.bodies[0 if _is_true(operation.condition) else 1]
        return self._inlined(body, operation.captures, operation.name)

    def _loop(self, operation: Loop) -> Sequence[Operand]:
        trips = None
        if operation.trip_count is not None:
            trips = _number(operation.trip_count)
        going = operation.condition is None or _is_true(operation.condition)
        state: Sequence[Operand] = operation.state
        collected: list[Sequence[Operand]] = []
        while going and (trips is None or len(collected) < trips):
            if len(collected) == _MAX_TRIPS:
                raise _Unresolved
            trip = constant(np.array(len(collected)), f"{operation.name}.trip")
            condition = constant(np.array(True), f"{operation.name}.condition")
            arguments = (trip, condition, *state, *operation.captures)
            name = f"{operation.name}/{len(collected)}"
            goes_on, *results = self._inlined(operation.body, arguments, name)
            going = _is_true(goes_on)
            state = results[: operation.states]
            collected.append(results[operation.states :])
        axes = [0] * (len(operation.outputs) - operation.states)
        return [*state, *self._joined(operation, collected, axes)]

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
                place = length - 1 - trip if operation.input_reversed[index] else trip
                axis = operation.input_axes[index]
                part = self._computed(
                    Gather, f"{name}.slice{index}", scanned, np.array(place), axis
                )
                slices.append(part)
            arguments = (*state, *slices, *operation.captures)
            results = self._inlined(operation.body, arguments, name)
            state = results[: operation.states]
            collected.append(results[operation.states :])
        joined = self._joined(
            operation, collected, operation.output_axes, operation.output_reversed
        )
        return [*state, *joined]

    def _inlined(self, body: Model, arguments: Sequence[Operand], name: str) -> Sequence[Operand]:
        """Add the operations of a body, with operands for its inputs; returns its outputs."""
        self.unrolled += len(body.operations)
        if self.unrolled > self._most:
            raise _TooMany
        new = dict(zip(body.inputs.values(), arguments, strict=True))
        for operation in body.operations:
            reads = tuple(None if o is None else new.get(o, o) for o in operation.inputs)
            renewed = operation.with_inputs(reads).with_name(f"{name}/{operation.name}")
            pairs = zip(operation.outputs, renewed.infer(), strict=True)
            outputs = tuple(Operand(f"{name}/{old.name}", type_) for old, type_ in pairs)
            results = self._inner_results(renewed.with_inputs(reads, outputs))
            new.update(zip(operation.outputs, results, strict=True))
        return [new.get(operand, operand) for operand in body.outputs.values()]

    def _inner_results(self, operation: Operation) -> Sequence[Operand]:
        """Like `results`; control flow whose course is not known stays as it is."""
        before = len(self.operations)
        try:
            return self.results(operation)
        except _TooMany:
            raise
        except _Unresolved:
            del self.operations[before:]
            self.operations.append(operation)
            return operation.outputs

    def _joined(
        self,
        operation: ControlFlow,
        collected: Sequence[Sequence[Operand]],
        axes: Sequence[int],
        backwards: Sequence[bool] = (),
    ) -> Sequence[Operand]:
        """The values of all times, along new axes."""
        outputs = operation.outputs[len(operation.outputs) - len(axes) :]
        if not collected:
            if any(output.type.static_shape is None for output in outputs):
                raise _Unresolved
            return [_nothing(output) for output in outputs]
        joined = []
        for index, axis in enumerate(axes):
            parts = [results[index] for results in collected]
            if backwards and backwards[index]:
                parts.reverse()
            name = f"{operation.name}.collected{index}"
            names = [f"{name}.{number}" for number in range(len(parts))]
            wider = [
                self._computed(Unsqueeze, own, part, (axis,))
                for own, part in zip(names, parts, strict=True)
            ]
            joined.append(self._computed(Concat, name, axis=axis, parts=wider))
        return joined

    def _computed(
        self, operator: type[Operator], name: str, *arguments: object, **named: object
    ) -> Operand:
        """Add an operation of one output and return that, or the constant that it makes."""
        operation = operator(name, operator.bind(name, arguments, named))
        (type_,) = operation.infer()
        return self.results(operation.with_inputs(operation.inputs, (Operand(name, type_),)))[0]


def _nothing(output: Operand) -> Operand:
    shape = output.type.static_shape
    assert shape is not None, "that has been asked before"
    array = np.zeros((0, *shape[1:]), output.type.element_type.dtype)
    return constant(array, output.name, output.type.quantization)


def _is_true(condition: Operand) -> bool:
    if condition.value is None or condition.value.size != 1:
        raise _Unresolved
    return bool(condition.value.item())


def _number(operand: Operand) -> int:
    if operand.value is None or operand.value.size != 1:
        raise _Unresolved
    return max(0, int(operand.value.item()))
