"""Evaluation of machine-readable constraints on the operands of an operation."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from crosschip.ir import Operand
from crosschip.ir.dimension import Dimension
from crosschip.opdef.constraints import (
    Arithmetic,
    Comparison,
    Condition,
    Elements,
    Junction,
    Member,
    Negation,
    Number,
    Present,
    Property,
    Type,
    Value,
)

Operands = Mapping[str, Sequence[Operand]]
"""The operands by tensor: none if it is omitted, one, or several if it is repeated."""

_EXACT = 2**16
"""Arrays up to this size hold Python numbers, which do not overflow; larger ones float64."""

_MOST = 10_000
"""The maximum number of pairs of values of repeated tensors."""

_RELATIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


class _Absent(Exception):
    """Reference to an omitted tensor."""


class Nothing:
    """Undefined value: an axis out of range, or a quotient by 0. No comparison with it holds."""


NOTHING = Nothing()


def holds(rule: Condition, operands: Operands) -> bool | None:
    """Return whether a rule holds; `None` if that depends on values at run time.

    A comparison with an omitted tensor holds.

    Args:
        rule: the rule.
        operands: the operands of each tensor in the rule.
    """
    return _holds(rule, operands, True)


def evaluate(value: Value, operands: Operands) -> list[Any]:
    """Return the value of an expression, one for each operand of a repeated tensor.

    `None` stands for unknown values, `NOTHING` for undefined ones. The list is empty if a tensor is
    omitted. Elements are arrays, datatypes pairs (element type, whether quantized), shapes tuples.
    """
    try:
        return _values(value, operands)
    except _Absent:
        return []


def _holds(rule: Condition, operands: Operands, asserted: bool) -> bool | None:
    """Evaluate a condition as `holds` does; `asserted` is false inside a negation."""
    match rule:
        case Present(tensor):
            return bool(operands.get(tensor))
        case Negation(part):
            truth = _holds(part, operands, not asserted)
            return None if truth is None else not truth
        case Junction(is_conjunction, parts):
            truths = [_holds(part, operands, asserted) for part in parts]
            return _all(truths) if is_conjunction else _not(_all(map(_not, truths)))
        case Comparison(relation, left, right):
            try:
                pairs = _pairs(_values(left, operands), _values(right, operands))
                return _all(_compare(relation, a, b) for a, b in pairs)
            except _Absent:
                return asserted
        case Member(value, options):
            try:
                candidates = [truths for option in options for truths in _values(option, operands)]
                return _all(_is_member(truths, candidates) for truths in _values(value, operands))
            except _Absent:
                return asserted


def _is_member(value: Any, options: Sequence[Any]) -> bool | None:
    """Return whether a value, or each of its elements, is one of several values."""
    if isinstance(value, np.ndarray):
        return _all(_is_member(element, options) for element in value.flat)
    return _not(_all(_not(_compare("==", value, option)) for option in options))


def _pairs(left: Sequence[Any], right: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Return all pairs of values; a single unknown pair if there are too many."""
    return product(left, right) if len(left) * len(right) <= _MOST else [(None, None)]


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _all(truths: Iterable[bool | None]) -> bool | None:
    """Return false if any is false, else unknown (`None`) if any is unknown, else true."""
    each = list(truths)
    if False in each:
        return False
    return None if None in each else True


def _values(value: Value, operands: Operands) -> list[Any]:
    """Return the values as `evaluate` does; raise `_Absent` if a tensor is omitted."""
    match value:
        case Number(number):
            return [number]
        case Type(datatype):
            return [(datatype.element_type, datatype.quantized)]
        case Property("count", tensor):
            return [len(operands.get(tensor, ()))]
        case Property("dim", tensor, axis) if axis is not None:
            (index, *others) = _values(axis, operands)
            return [None if others else _dim(o, index) for o in _operands_of(tensor, operands)]
        case Property(function, tensor):
            return [_property(function, operand) for operand in _operands_of(tensor, operands)]
        case Elements(tensor):
            return [_elements(operand) for operand in _operands_of(tensor, operands)]
        case Arithmetic(sign, left, right):
            pairs = _pairs(_values(left, operands), _values(right, operands))
            return [_calculate(sign, a, b) for a, b in pairs]


def _operands_of(tensor: str, operands: Operands) -> Sequence[Operand]:
    filling = operands.get(tensor, ())
    if not filling:
        raise _Absent
    return filling


def _property(function: str, operand: Operand) -> Any:
    type_ = operand.type
    if function == "dtype":
        return type_.element_type, type_.quantization is not None
    if type_.shape is None:
        return None
    if function == "shape":
        return type_.shape
    return len(type_.shape) if function == "rank" else prod(type_.shape)


def _dim(operand: Operand, index: Any) -> Any:
    shape = operand.type.shape
    if shape is None or index is None or isinstance(index, Dimension):
        return None
    if isinstance(index, np.ndarray):
        index = index.item() if index.size == 1 else NOTHING
    if index is NOTHING or int(index) != index or not -len(shape) <= index < len(shape):
        return NOTHING
    return shape[int(index)]


def _elements(operand: Operand) -> Any:
    array = operand.value
    if array is None:
        return None
    if array.dtype.kind not in "iub":
        array = array.astype(np.float64)
    return array.astype(object if array.size <= _EXACT else np.float64)


def _calculate(sign: str, left: Any, right: Any) -> Any:
    if left is NOTHING or right is NOTHING:
        return NOTHING
    if left is None or right is None:
        return None
    if sign == "/" and (isinstance(left, Dimension) or isinstance(right, Dimension)):
        return None
    try:
        with np.errstate(all="raise"):
            return _SIGNS[sign](left, right)
    except TypeError:  # a dynamic dimension combined with reals or elements
        return None
    except (ArithmeticError, ValueError):
        return NOTHING


def _compare(relation: str, left: Any, right: Any) -> bool | None:
    if left is NOTHING or right is NOTHING:
        return False
    if left is None or right is None:
        return None
    if isinstance(left, tuple):
        return _compare_tuples(relation, left, right)
    if isinstance(left, Dimension) or isinstance(right, Dimension):
        difference = _calculate("-", left, right)
        is_known = isinstance(difference, int | float)
        return bool(_RELATIONS[relation](difference, 0)) if is_known else None
    try:
        return bool(np.all(_RELATIONS[relation](left, right)))
    except ValueError:  # shapes that do not broadcast
        return False


def _compare_tuples(relation: str, left: tuple[Any, ...], right: tuple[Any, ...]) -> bool | None:
    """Compare two datatypes or shapes; dynamic dimensions may make the result unknown."""
    if len(left) != len(right):
        return relation == "!="
    if any(isinstance(size, Dimension) for size in (*left, *right)):
        equal = _all(_compare("==", a, b) for a, b in zip(left, right, strict=True))
    else:
        equal = left == right
    return equal if relation == "==" else _not(equal)
