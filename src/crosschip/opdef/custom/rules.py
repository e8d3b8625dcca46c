"""Constraints of a definition that are enforced: where it is used, and where it runs."""

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
from crosschip.ops import Operator, operator_named
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.kernel import Kernel


@dataclass(frozen=True)
class Rule:
    """A constraint that is enforced.

    Attributes:
        tensor: the tensor that it stands at.
        constraint: its number and text.
        condition: what it says.
    """

    tensor: str
    constraint: Constraint
    condition: Condition

    @property
    def broken(self) -> str:
        """The sentence that it does not hold."""
        return f"breaks the constraint {self.constraint.text.strip()!r}"


class Rules:
    """The constraints of an operator that are enforced.

    Args:
        rules: all of them.
        inputs: the names of its inputs.
        outputs: the names of its outputs.
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
        self.all_rules = all_rules

    def check(self, where: str, operands: Operands) -> None:
        """Raise a `ModelError` if one that speaks of no output does not hold."""
        _check(where, self._input_rules, operands)

    def check_outputs(self, where: str, operands: Operands) -> None:
        """Raise a `ModelError` if one that speaks of an output does not hold."""
        _check(where, self._output_rules, operands)

    def guarding(self, operation: PackagedOperator, kernel: Kernel) -> Kernel:
        """Return the kernel, which refuses elements that break a rule, and checks what it makes."""
        names = [o.name for o in operation.outputs]
        rules = self._at_run_time

        def run(arrays: Sequence[Array | None]) -> tuple[Array, ...]:
            try:
                results = kernel(arrays)
            except (ValueError, MemoryError, KeyboardInterrupt):
                raise
            except Exception as error:  # a package's own function
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

    def asserted(
        self, operation: PackagedOperator, b: Builder, results: Sequence[Operand]
    ) -> tuple[Operand, ...]:
        """Return what a decomposition makes, behind an assertion for each rule about elements."""
        outputs = tuple(results)
        for rule in self._at_run_time:
            try:
                condition = _Assertion(operation, b, outputs).condition(rule.condition)
            except _NotSaid:
                continue
            if condition is not None:
                # They may be of several types, which one assertion does not take.
                outputs = tuple(b.add(operator_named("ASSERT"), condition, [o]) for o in outputs)
        return outputs


def filling(
    operation: PackagedOperator, arrays: Sequence[Array | None]
) -> dict[str, list[Operand]]:
    """Return the inputs and parameters of an operation with their elements in a run, by tensor."""
    known = {
        operand: Operand(operand.name, operand.type, array)
        for operand, array in zip(operation.inputs, arrays, strict=True)
        if operand is not None and array is not None
    }
    by_slot: dict[str, list[Operand]] = {}
    for slot, operand in operation.filled():
        by_slot.setdefault(slot.name, []).append(known.get(operand, operand))
    return {tensor: by_slot.get(slot, []) for tensor, slot in operation.tensors.items()}


def _check_elements(
    operation: PackagedOperator,
    rules: Sequence[Rule],
    arrays: Sequence[Array | None],
    results: Mapping[str, Array],
) -> None:
    operands = filling(operation, arrays)
    types = {output.name: output.type for output in operation.outputs}
    values = [Operand(name, types[name], array) for name, array in results.items()]
    for index, name in enumerate(operation.results):
        last = operation.repeats and index == len(operation.results) - 1
        operands[name] = values[index:] if last else values[index : index + 1]
    for rule in rules:
        if holds(rule.condition, operands) is False:
            raise ValueError(f"{rule.tensor}: {rule.broken}")


def _check(where: str, rules: Sequence[Rule], operands: Operands) -> None:
    for rule in rules:
        if holds(rule.condition, operands) is False:
            raise ModelError(f"{where}.{rule.tensor}: {rule.broken}")


def _elements(part: Condition | Value) -> set[str]:
    """Return the tensors of whose elements a rule speaks."""
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


class _NotSaid(Exception):
    """A condition is not one on elements that operations tell."""


class _Assertion:
    """Conditions on elements as operations.

    Args:
        operation: what is decomposed.
        b: takes the operations.
        made: what the decomposition makes.
    """

    def __init__(self, operation: PackagedOperator, b: Builder, results: Sequence[Operand]) -> None:
        self._b = b
        all_operands: dict[str, Sequence[Operand]] = dict(
            filling(operation, [None] * len(operation.inputs))
        )
        all_operands.update(
            (name, [o]) for name, o in zip(operation.results, results, strict=False)
        )
        self._operands = all_operands

    def condition(self, rule: Condition) -> Operand | None:
        """Return one boolean for a rule; `None` if it is known to hold.

        Raises:
            _NotSaid: it compares elements with something else than numbers.
        """
        known = holds(rule, self._operands)
        if known is not None:
            return None if known else self._b.constant(np.zeros((), np.bool_))
        match rule:
            case Comparison(relation, left, right):
                return self._conjunction(self._compared(relation, left, right))
            case Member(value, options):
                alike = [self._compared("==", value, option) for option in options]
                return self._conjunction(
                    [self._joined("OR", one) for one in zip(*alike, strict=True)]
                )
            case Negation(part):
                inner = self.condition(part)
                assert inner is not None, "it is not known whether it holds"
                return self._b.add(operator_named("NOT"), inner)
            case Junction(is_conjunction, parts):
                conditions = [c for part in parts if (c := self.condition(part)) is not None]
                return self._joined("AND" if is_conjunction else "OR", conditions)
        raise _NotSaid

    def _compared(self, relation: str, left: Value, right: Value) -> list[Operand]:
        """Return a comparison of the elements of one tensor with a number that is known."""
        limit = self._known(right)
        if limit is None and self._known(left) is not None:
            return self._compared(_TURNED.get(relation, relation), right, left)
        if limit is None or not isinstance(left, Elements):
            raise _NotSaid
        operands = self._operands[left.tensor]
        if any(operand.type.quantization is not None for operand in operands):
            raise _NotSaid
        return [self._b.add(_named(relation), o, _number(limit, o)) for o in operands]

    def _known(self, value: Value) -> float | None:
        """Return a value that is one number, whatever is computed: written, or a parameter's."""
        values = evaluate(value, self._operands)
        only = values[0] if len(values) == 1 else None
        if isinstance(only, np.ndarray) and only.size == 1:
            only = only.item()
        return only if isinstance(only, int | float) else None

    def _conjunction(self, parts: Sequence[Operand]) -> Operand:
        """Return one boolean: true if all elements of all parts are."""
        whole = [self._b.add(operator_named("REDUCE_ALL"), part, keepdim=False) for part in parts]
        return self._joined("AND", whole)

    def _joined(self, operator: str, parts: Sequence[Operand]) -> Operand:
        result = parts[0]
        for part in parts[1:]:
            result = self._b.add(operator_named(operator), result, part)
        return result


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _named(relation: str) -> type[Operator]:
    return operator_named(_RELATIONS[relation])


def _number(value: float, like: Operand) -> Array:
    number = np.array(value).astype(like.type.element_type.dtype)
    if like.type.element_type not in FLOATS and number.item() != value:
        raise _NotSaid  # integers on this side of 0.5 are not those on this side of 0
    return number
