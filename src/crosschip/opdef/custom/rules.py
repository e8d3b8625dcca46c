"""Enforcement of constraints: on construction, in kernels, and as assertions in decompositions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosschip.ir import Array, Builder, ModelError, Operand
from crosschip.ir.types import FLOATS
from crosschip.opdef.constraints import (
    Arithmetic,
    Comparison,
    Condition,
    Elements,
    Junction,
    Member,
    Negation,
    Property,
    Value,
    tensors_of,
)
from crosschip.opdef.definitions import Constraint, Tensor
from crosschip.opdef.evaluation import Operands, evaluate, holds
from crosschip.ops import operator_named
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.kernel import Kernel


@dataclass(frozen=True)
class Rule:
    """Machine-readable constraint.

    Attributes:
        tensor: the tensor that declares the constraint.
        constraint: number and text.
        condition: the parsed text.
    """

    tensor: str
    constraint: Constraint
    condition: Condition

    @property
    def message(self) -> str:
        """The message for a violation."""
        return f"breaks the constraint {self.constraint.text.strip()!r}"


class Rules:
    """Machine-readable constraints of an operator.

    Args:
        rules: the constraints.
        inputs: the names of the inputs.
        outputs: the names of the outputs.
    """

    def __init__(
        self,
        rules: Sequence[tuple[Tensor, Constraint, Condition]],
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        all_rules = [Rule(tensor.name, constraint, rule) for tensor, constraint, rule in rules]
        output_names = set(outputs)
        self._input_rules = [
            r for r in all_rules if output_names.isdisjoint(tensors_of(r.condition))
        ]
        self._output_rules = [r for r in all_rules if r not in self._input_rules]
        self._at_run_time = [r for r in all_rules if _elements(r.condition) & {*inputs, *outputs}]

    def check(self, where: str, operands: Operands) -> None:
        """Raise a `ModelError` if a rule about inputs and parameters is violated."""
        _check(where, self._input_rules, operands)

    def check_outputs(self, where: str, operands: Operands) -> None:
        """Raise a `ModelError` if a rule about outputs is violated."""
        _check(where, self._output_rules, operands)

    def guard_kernel(self, operation: PackagedOperator, kernel: Kernel) -> Kernel:
        """Wrap a kernel in checks of its results and of the rules about elements."""
        names = [o.name for o in operation.outputs]
        rules = self._at_run_time

        def run(arrays: Sequence[Array | None]) -> tuple[Array, ...]:
            try:
                results = kernel(arrays)
            except (ValueError, MemoryError, KeyboardInterrupt):
                raise
            except Exception as error:  # raised by the package's function
                message = f"{type(error).__name__}: {error}".splitlines()[0]
                raise RuntimeError(f"its reference failed: {message}") from error
            for output, array in zip(operation.outputs, results, strict=True):
                if not output.type.admits(array):
                    raise ValueError(
                        f"its reference made {array.dtype}{list(array.shape)} of "
                        f"{output.name!r}, which is {output.type}"
                    )
            if rules:
                _check_elements(operation, rules, arrays, dict(zip(names, results, strict=True)))
            return results

        return run

    def add_assertions(
        self, operation: PackagedOperator, b: Builder, results: Sequence[Operand]
    ) -> tuple[Operand, ...]:
        """Add assertions of the rules about elements to a decomposition's results."""
        outputs = tuple(results)
        for rule in self._at_run_time:
            try:
                condition = _ConditionBuilder(operation, b, outputs).condition(rule.condition)
            except _NotExpressible:
                continue
            if condition is not None:
                # One assertion each, since outputs may differ in type.
                outputs = tuple(b.add(operator_named("ASSERT"), condition, [o]) for o in outputs)
        return outputs


def operands_by_tensor(
    operation: PackagedOperator, arrays: Sequence[Array | None]
) -> dict[str, list[Operand]]:
    """Return the operands of inputs and parameters, by tensor, with their values in a run."""
    with_values = {
        operand: Operand(operand.name, operand.type, array)
        for operand, array in zip(operation.inputs, arrays, strict=True)
        if operand is not None and array is not None
    }
    by_slot: dict[str, list[Operand]] = {}
    for slot, operand in operation.filled():
        by_slot.setdefault(slot.name, []).append(with_values.get(operand, operand))
    return {tensor: by_slot.get(slot, []) for tensor, slot in operation.tensors.items()}


def _check_elements(
    operation: PackagedOperator,
    rules: Sequence[Rule],
    arrays: Sequence[Array | None],
    results: Mapping[str, Array],
) -> None:
    operands = operands_by_tensor(operation, arrays)
    types = {output.name: output.type for output in operation.outputs}
    values = [Operand(name, types[name], array) for name, array in results.items()]
    for index, name in enumerate(operation.results):
        last = operation.repeats and index == len(operation.results) - 1
        operands[name] = values[index:] if last else values[index : index + 1]
    for rule in rules:
        if holds(rule.condition, operands) is False:
            raise ValueError(f"{rule.tensor}: {rule.message}")


def _check(where: str, rules: Sequence[Rule], operands: Operands) -> None:
    for rule in rules:
        if holds(rule.condition, operands) is False:
            raise ModelError(f"{where}.{rule.tensor}: {rule.message}")


def _elements(part: Condition | Value) -> set[str]:
    """Return the tensors whose elements a rule reads."""
    match part:
        case Elements(name):
            return {name}
        case Property(_, _, axis) if axis is not None:
            return _elements(axis)
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return _elements(left) | _elements(right)
        case Member(value, options):
            return set().union(_elements(value), *map(_elements, options))
        case Negation(inner):
            return _elements(inner)
        case Junction(_, parts):
            return set().union(*map(_elements, parts))
    return set()


_RELATIONS = {
    "==": "EQUAL",
    "!=": "NOT_EQUAL",
    "<": "LESS",
    "<=": "LESS_EQUAL",
    ">": "GREATER",
    ">=": "GREATER_EQUAL",
}


class _NotExpressible(Exception):
    """Condition on elements that operations cannot express."""


class _ConditionBuilder:
    """Builder of operations for conditions on elements.

    Args:
        operation: the operation that is decomposed.
        b: the builder of the decomposition.
        results: the outputs of the decomposition.
    """

    def __init__(self, operation: PackagedOperator, b: Builder, results: Sequence[Operand]) -> None:
        self._b = b
        all_operands: dict[str, Sequence[Operand]] = dict(
            operands_by_tensor(operation, [None] * len(operation.inputs))
        )
        all_operands.update(
            (name, [o]) for name, o in zip(operation.results, results, strict=False)
        )
        self._operands = all_operands

    def condition(self, rule: Condition) -> Operand | None:
        """Return a boolean operand for a rule; `None` if the rule statically holds.

        Raises:
            _NotExpressible: the rule compares elements with something other than numbers.
        """
        truth = holds(rule, self._operands)
        if truth is not None:
            return None if truth else self._b.constant(np.zeros((), np.bool_))
        match rule:
            case Comparison(relation, left, right):
                return self._conjunction(self._compare(relation, left, right))
            case Member(value, options):
                comparisons = [self._compare("==", value, option) for option in options]
                return self._conjunction(
                    [
                        self._combine("OR", alternatives)
                        for alternatives in zip(*comparisons, strict=True)
                    ]
                )
            case Negation(part):
                inner = self.condition(part)
                assert inner is not None, "a statically true part makes the negation static"
                return self._b.add(operator_named("NOT"), inner)
            case Junction(is_conjunction, parts):
                conditions = [c for part in parts if (c := self.condition(part)) is not None]
                return self._combine("AND" if is_conjunction else "OR", conditions)
        raise _NotExpressible

    def _compare(self, relation: str, left: Value, right: Value) -> list[Operand]:
        """Compare the elements of a tensor with a static number."""
        limit = self._static_number(right)
        if limit is None and self._static_number(left) is not None:
            return self._compare(_MIRRORED.get(relation, relation), right, left)
        if limit is None or not isinstance(left, Elements):
            raise _NotExpressible
        operands = self._operands[left.tensor]
        if any(operand.type.quantization is not None for operand in operands):
            raise _NotExpressible
        comparison = operator_named(_RELATIONS[relation])
        return [self._b.add(comparison, o, _number(limit, o)) for o in operands]

    def _static_number(self, value: Value) -> float | None:
        """Return a static expression's value if it is a single number."""
        values = evaluate(value, self._operands)
        only = values[0] if len(values) == 1 else None
        if isinstance(only, np.ndarray) and only.size == 1:
            only = only.item()
        return only if isinstance(only, int | float) else None

    def _conjunction(self, parts: Sequence[Operand]) -> Operand:
        """Return a boolean operand: whether all elements of all parts are true."""
        reduced = [self._b.add(operator_named("REDUCE_ALL"), part, keepdim=False) for part in parts]
        return self._combine("AND", reduced)

    def _combine(self, operator: str, parts: Sequence[Operand]) -> Operand:
        result = parts[0]
        for part in parts[1:]:
            result = self._b.add(operator_named(operator), result, part)
        return result


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _number(value: float, like: Operand) -> Array:
    number = np.array(value).astype(like.type.element_type.dtype)
    if like.type.element_type not in FLOATS and number.item() != value:
        raise _NotExpressible  # rounding the limit would change the comparison
    return number
