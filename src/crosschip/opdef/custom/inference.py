"""Inference of output types from a definition's constraints.

An output's shape follows from `shape(out) == shape(in)`, or from its rank and `dim(out, i) == …`
for each axis. Its element type follows from its only datatype or from `dtype(out) == dtype(in)`.
The number of repeated outputs follows from `count(out) == …`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from crosschip.ir import Dim, Dimension, ElementType, InputError, Operand, Shape, TensorType
from crosschip.ir.dimension import unknown
from crosschip.opdef.constraints import (
    Comparison,
    Condition,
    Junction,
    Property,
    Type,
    Value,
    tensors_of,
)
from crosschip.opdef.custom.slots import Stored
from crosschip.opdef.definitions import OpDef, Output
from crosschip.opdef.evaluation import NOTHING, Operands, evaluate
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.shapes import unknown_sizes


@dataclass
class OutputRules:
    """Output of an operator with the expressions that its constraints equate to its properties.

    Attributes:
        tensor: the definition.
        stored: the permitted element types.
        shape: the expression for the shape.
        rank: the expression for the rank.
        dims: pairs of expressions for an axis and its size.
        dtype: the expression for the datatype.
        count: the expression for the number of operands.
    """

    tensor: Output
    stored: frozenset[Stored]
    shape: Value | None = None
    rank: Value | None = None
    dims: list[tuple[Value, Value]] = field(default_factory=list)
    dtype: Value | None = None
    count: Value | None = None

    def check_shape(self, where: str) -> None:
        """Raise an `InputError` unless the constraints determine the shape."""
        axes = self.tensor.shape.rank.axes
        if self.shape is None and not (self.dims and (axes or self.rank)):
            name = self.tensor.name
            raise InputError(
                f"{where}.{name}: its shape does not follow from the definition; add a Constraint "
                f"shape({name}) == …, or one dim({name}, i) == … for each axis, or define "
                "infer_shape"
            )

    def check_type(self, where: str) -> None:
        """Raise an `InputError` unless the constraints determine the element type."""
        if len(self._values) != 1 and self.dtype is None:
            name = self.tensor.name
            raise InputError(
                f"{where}.{name}: its element type does not follow from the definition; add a "
                f"Constraint dtype({name}) == dtype(…), name one Datatype, or define "
                "infer_element_type"
            )

    def check_count(self, where: str) -> None:
        """Raise an `InputError` unless the constraints determine how often the output repeats."""
        if self.tensor.repeated and self.count is None:
            name = self.tensor.name
            raise InputError(
                f"{where}.{name}: how often it repeats does not follow from the definition; add a "
                f"Constraint count({name}) == …, or define output_count"
            )

    def operand_count(self, operands: Operands) -> int:
        """Return the number of operands of the output."""
        if self.count is None:
            return 1
        return _integer(self.tensor.name, _first_value(self.count, operands))

    def infer_shape(self, operands: Operands) -> Shape:
        """Infer the shape.

        Raises:
            UnknownRank: the rank is unknown.
            ValueError: the constraints yield invalid sizes.
        """
        name = self.tensor.name
        if self.shape is not None:
            shape = _first_value(self.shape, operands)
            if not isinstance(shape, tuple):
                raise UnknownRank
            return shape
        rank = self.tensor.shape.rank.axes
        if rank is None:
            rank_value = None if self.rank is None else _first_value(self.rank, operands)
            if rank_value is None:
                raise UnknownRank
            rank = _integer(name, rank_value)
        sizes: list[Dim] = list(unknown_sizes(rank, name))
        for axis, size in self.dims:
            location = _integer(name, _first_value(axis, operands))
            if not -rank <= location < rank:
                raise ValueError(f"{name}: has no axis {location}, but {rank}")
            sizes[location] = _size(name, _first_value(size, operands))
        return tuple(sizes)

    def infer_type(self, operands: Operands) -> ElementType:
        """Infer the element type of the represented values: float32 for quantized outputs."""
        if self.dtype is None:
            return next(iter(self._values))
        value = _first_value(self.dtype, operands)
        if not isinstance(value, tuple):
            raise ValueError(f"{self.tensor.name}: its element type follows from what is left out")
        return _value_type(value)

    @property
    def _values(self) -> set[ElementType]:
        return set(map(_value_type, self.stored))


def outputs_of(
    op_def: OpDef, rules: Sequence[Condition], stored: Mapping[str, frozenset[Stored]]
) -> list[OutputRules]:
    """Return an operator's outputs with the expressions from its rules.

    Args:
        op_def: the operator.
        rules: its machine-readable constraints.
        stored: the element types of each output.
    """
    by_name = {o.name: OutputRules(o, stored[o.name]) for o in op_def.outputs}
    output_order = list(by_name)
    for rule in _conjuncts(rules):
        if not isinstance(rule, Comparison) or rule.relation != "==":
            continue
        for target, expression in ((rule.left, rule.right), (rule.right, rule.left)):
            if not isinstance(target, Property) or target.tensor not in by_name:
                continue
            # Expressions may refer only to earlier outputs, which rules out cycles.
            if not set(output_order[output_order.index(target.tensor) :]) & set(
                tensors_of(expression)
            ):
                _record_equation(by_name[target.tensor], target, expression)
    return list(by_name.values())


def placeholder(output: OutputRules, shape: Shape | None, element_type: ElementType) -> Operand:
    """Return an operand for an inferred output, for rules that refer to it."""
    return Operand(output.tensor.name, TensorType(element_type, shape))


def _value_type(stored: Stored) -> ElementType:
    element_type, quantized = stored
    return ElementType.FLOAT32 if quantized else element_type


def _record_equation(output: OutputRules, target: Property, expression: Value) -> None:
    match target.function:
        case "dim" if target.axis is not None:
            output.dims.append((target.axis, expression))
        case "shape" | "rank" | "count" if getattr(output, target.function) is None:
            setattr(output, target.function, expression)
        case "dtype" if output.dtype is None and isinstance(expression, Property | Type):
            output.dtype = expression


def _conjuncts(rules: Sequence[Condition]) -> Iterator[Condition]:
    for rule in rules:
        if isinstance(rule, Junction) and rule.is_conjunction:
            yield from _conjuncts(rule.parts)
        else:
            yield rule


def _first_value(value: Value, operands: Operands) -> object:
    """Return the first value of an expression; `None` if it is unknown."""
    values = evaluate(value, operands)
    if not values:
        return None
    first = values[0]
    return first.item() if isinstance(first, np.ndarray) and first.size == 1 else first


def _integer(name: str, number: object) -> int:
    if isinstance(number, int | float) and number == int(number):
        return int(number)
    raise ValueError(f"{name}: a constraint makes a number of {number!r}, which is not whole")


def _size(name: str, number: object) -> Dim:
    if number is None:
        return unknown()
    if isinstance(number, Dimension):
        return number
    if number is NOTHING:
        raise ValueError(f"{name}: a constraint speaks of an axis that there is not")
    size = _integer(name, number)
    if size < 0:
        raise ValueError(f"{name}: a constraint makes a size of {size}")
    return size
