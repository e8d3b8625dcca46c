"""Types of outputs as a definition's constraints say them.

The shape of an output follows from `shape(out) == shape(in)`, or from its rank and a
`dim(out, i) == …` for each axis; its element type from its only datatype or from
`dtype(out) == dtype(in)`; and where it repeats, how many there are from `count(out) == …`.
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
class Outputs:
    """What the constraints of an operator say about one of its outputs.

    Attributes:
        tensor: its definition.
        stored: the element types that it may have.
        shape: what its shape is equal to.
        rank: what its number of axes is equal to.
        dims: what the sizes of axes are equal to, each with the axis.
        dtype: what its datatype is equal to.
        count: what the number of such outputs is equal to.
    """

    tensor: Output
    stored: frozenset[Stored]
    shape: Value | None = None
    rank: Value | None = None
    dims: list[tuple[Value, Value]] = field(default_factory=list)
    dtype: Value | None = None
    count: Value | None = None

    def check_shape(self, where: str) -> None:
        """Raise an `InputError` if nothing says what shape it has."""
        axes = self.tensor.shape.rank.axes
        if self.shape is None and not (self.dims and (axes or self.rank)):
            name = self.tensor.name
            raise InputError(
                f"{where}.{name}: its shape does not follow from the definition; add a Constraint "
                f"shape({name}) == …, or one dim({name}, i) == … for each axis, or define "
                "infer_shape"
            )

    def check_type(self, where: str) -> None:
        """Raise an `InputError` if nothing says what element type it has."""
        if len(self._values) != 1 and self.dtype is None:
            name = self.tensor.name
            raise InputError(
                f"{where}.{name}: its element type does not follow from the definition; add a "
                f"Constraint dtype({name}) == dtype(…), name one Datatype, or define "
                "infer_element_type"
            )

    def check_count(self, where: str) -> None:
        """Raise an `InputError` if it repeats, and nothing says how often."""
        if self.tensor.repeated and self.count is None:
            name = self.tensor.name
            raise InputError(
                f"{where}.{name}: how often it repeats does not follow from the definition; add a "
                f"Constraint count({name}) == …, or define output_count"
            )

    def number(self, operands: Operands) -> int:
        """Return the number of such outputs."""
        if self.count is None:
            return 1
        return _whole(self.tensor.name, _one(self.count, operands))

    def inferred_shape(self, operands: Operands) -> Shape:
        """Its shape.

        Raises:
            UnknownRank: not even the rank is known.
            ValueError: the sizes that constraints give it are none.
        """
        name = self.tensor.name
        if self.shape is not None:
            shape = _one(self.shape, operands)
            if not isinstance(shape, tuple):
                raise UnknownRank
            return shape
        rank = self.tensor.shape.rank.axes
        if rank is None:
            rank_value = None if self.rank is None else _one(self.rank, operands)
            if rank_value is None:
                raise UnknownRank
            rank = _whole(name, rank_value)
        sizes: list[Dim] = list(unknown_sizes(rank, name))
        for axis, size in self.dims:
            place = _whole(name, _one(axis, operands))
            if not -rank <= place < rank:
                raise ValueError(f"{name}: has no axis {place}, but {rank}")
            sizes[place] = _size(name, _one(size, operands))
        return tuple(sizes)

    def inferred_type(self, operands: Operands) -> ElementType:
        """Return the element type of what it stands for: float32 where it is quantized."""
        if self.dtype is None:
            return next(iter(self._values))
        value = _one(self.dtype, operands)
        if not isinstance(value, tuple):
            raise ValueError(f"{self.tensor.name}: its element type follows from what is left out")
        return _value_type(value)

    @property
    def _values(self) -> set[ElementType]:
        return set(map(_value_type, self.stored))


def outputs_of(
    op_def: OpDef, rules: Sequence[Condition], stored: Mapping[str, frozenset[Stored]]
) -> list[Outputs]:
    """Return what the rules of an operator say about each of its outputs.

    Args:
        op_def: the operator.
        rules: its machine-readable constraints.
        stored: the element types of each output.
    """
    by_name = {o.name: Outputs(o, stored[o.name]) for o in op_def.outputs}
    later = list(by_name)
    for rule in _conjuncts(rules):
        if not isinstance(rule, Comparison) or rule.relation != "==":
            continue
        for own, other in ((rule.left, rule.right), (rule.right, rule.left)):
            if not isinstance(own, Property) or own.tensor not in by_name:
                continue
            # What follows from outputs that come later would go round in a circle.
            if not set(later[later.index(own.tensor) :]) & set(tensors_of(other)):
                _note(by_name[own.tensor], own, other)
    return list(by_name.values())


def placeholder(output: Outputs, shape: Shape | None, element_type: ElementType) -> Operand:
    """Return an output whose type has been inferred, for the rules that speak of it."""
    return Operand(output.tensor.name, TensorType(element_type, shape))


def _value_type(stored: Stored) -> ElementType:
    element_type, quantized = stored
    return ElementType.FLOAT32 if quantized else element_type


def _note(output: Outputs, own: Property, other: Value) -> None:
    match own.function:
        case "dim" if own.axis is not None:
            output.dims.append((own.axis, other))
        case "shape" | "rank" | "count" if getattr(output, own.function) is None:
            setattr(output, own.function, other)
        case "dtype" if output.dtype is None and isinstance(other, Property | Type):
            output.dtype = other


def _conjuncts(rules: Sequence[Condition]) -> Iterator[Condition]:
    for rule in rules:
        if isinstance(rule, Junction) and rule.is_conjunction:
            yield from _conjuncts(rule.parts)
        else:
            yield rule


def _one(value: Value, operands: Operands) -> object:
    """Return the only value; `None` where it is not known."""
    values = evaluate(value, operands)
    if not values:
        return None
    first = values[0]
    return first.item() if isinstance(first, np.ndarray) and first.size == 1 else first


def _whole(name: str, number: object) -> int:
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
    size = _whole(name, number)
    if size < 0:
        raise ValueError(f"{name}: a constraint makes a size of {size}")
    return size
