"""Shape values: small tensors of integers that follow from shapes.

While a model is built they are known by name (`TensorType.shape_value`); when it runs they are
computed, by operations that `Sizes` adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from crosschip.ir import Array, Builder, Dim, ElementType, Operand, Shape
from crosschip.ir.dimension import is_natural, symbol, terms_of
from crosschip.ir.types import FLOATS
from crosschip.ops.definition.operator import Operator, UnknownRank, shape_of, shape_value_of
from crosschip.ops.definition.registry import operator_named
from crosschip.ops.definition.slots import Fuse

_FUNCTIONS = {"//": "DIV", "min": "MIN"}
"""The operators of functions of sizes."""


class Sizes:
    """The sizes of an operand, for use in a decomposition.

    Attributes:
        shape: its shape, with a name of its own for each size that is known only at run time.

    Args:
        b: where computations of sizes are added.
        source: whose sizes they are.

    Raises:
        UnknownRank: not even the rank of the operand is known.
    """

    def __init__(self, b: Builder, source: Operand) -> None:
        self._b = b
        self._source = source
        self._list: Operand | None = None
        self.shape: Shape = tuple(
            size if isinstance(size, int) else symbol(str(axis))
            for axis, size in enumerate(shape_of(source))
        )

    def __call__(self, shape: Sequence[Dim]) -> tuple[int, ...] | Operand:
        """A list of expressions over `self.shape`: as it is if known, else computed, in int64."""
        known = tuple(size for size in shape if isinstance(size, int))
        if len(known) == len(shape):
            return known
        return self._add("CONCAT", [self.computed(size) for size in shape], 0)

    def computed(self, size: Dim) -> Operand:
        """An expression over `self.shape`, as a list of one int64."""
        if isinstance(size, int):
            return self._b.constant(np.array([size]))
        total: Operand | None = None
        for term in terms_of(size, self.computed):
            value = self._product(term)
            total = value if total is None else self._add("ADD", total, value)
        assert total is not None, "an expression that is no number has terms"
        return total

    def _product(self, term: Any) -> Operand:
        coefficient, *factors = term
        value = self.computed(coefficient)
        for index, factor in enumerate(factors):
            if isinstance(factor, str):
                places = self._b.constant(np.array([int(factor)]))
                part = self._add("GATHER", self._all(), places, 0)
            else:
                kind, first, *others = factor
                part = first
                for other in others:
                    part = self._add(_FUNCTIONS[kind], part, other)
            is_first = index == 0 and coefficient == 1
            value = part if is_first else self._add("MUL", value, part)
        return value

    def _all(self) -> Operand:
        if self._list is None:
            self._list = self._add("SHAPE", self._source)
        return self._list

    def _add(self, name: str, *arguments: object) -> Operand:
        return self._b.add(operator_named(name), *arguments)


def of_shape(b: Builder, input: Operand, shape: Sequence[int]) -> Operand:
    """An operand in another shape of as many elements, all of whose sizes are known."""
    return b.add(operator_named("RESHAPE"), input, shape, allow_zero=0 in shape)


def reshaped(
    b: Builder, input: Operand, sizes: Sizes, own: Sequence[Dim], shape: Sequence[Dim]
) -> Operand:
    """An operand in another shape of as many elements, none of them included.

    Sizes that stay in their place are not computed, unless several others are.

    Args:
        b: where the operation is added.
        input: the operand.
        sizes: what computes the sizes of the shapes.
        own: the shape that it has, by expressions over `sizes.shape`.
        shape: the shape that it gets.
    """
    wanted = [
        0 if not isinstance(size, int) and axis < len(own) and size == own[axis] else size
        for axis, size in enumerate(shape)
    ]
    computed = [axis for axis, size in enumerate(wanted) if not isinstance(size, int)]
    exact = 0 in shape or len(computed) > 1
    if len(computed) == 1:
        wanted[computed[0]] = -1
    return b.add(
        operator_named("RESHAPE"), input, sizes(shape if exact else wanted), allow_zero=exact
    )


def refused_if(b: Builder, broken: Operand, numbers: Operand) -> Operand:
    """Integers, refused when they are computed if one of some booleans is true.

    They are entry 0 of a list of one; every rule that is broken leads further beyond its end.
    """
    count = b.add(operator_named("CAST"), broken, ElementType.INT64)
    place = b.add(operator_named("REDUCE_SUM"), count, keepdim=False)
    return b.add(operator_named("GATHER"), b.add(operator_named("UNSQUEEZE"), numbers, (0,)), place)


def within(b: Builder, lengths: Operand, most: Operand) -> Operand:
    """A list of lengths, refused when it is computed if one is less than 0 or more than `most`."""
    less, zero = operator_named("LESS"), np.zeros(1, lengths.type.element_type.dtype)
    broken = [b.add(less, lengths, b.constant(zero)), b.add(less, most, lengths)]
    return refused_if(b, b.add(operator_named("CONCAT"), broken, 0), lengths)


def shape_value_by_elements(operation: Operator) -> Sequence[Dim]:
    """The shape value that an operator makes which moves elements, or adds or multiplies them.

    Raises:
        UnknownRank: nothing is known of the elements of an input, or there is no such element.
        ComputedParameter: where they move to is known only when the model runs.
    """
    if operation.fused is not Fuse.NONE:
        raise UnknownRank
    tensors: dict[str, Any] = {}
    for slot in operation.slots:
        if slot.variadic:
            tensors[slot.name] = [_elements(part) for part in getattr(operation, slot.name)]
        elif not slot.parameter:
            operand = operation.operand(slot.name)
            tensors[slot.name] = None if operand is None else _elements(operand)
    try:
        moved: list[Dim] = np.asarray(operation.reference(**tensors)).ravel().tolist()
    except IndexError:
        # An index out of range is an error of the run, if there is one.
        raise UnknownRank from None
    return moved


def shape_value_by_pairs(operation: Any, combine: Callable[[Dim, Dim], Any]) -> Sequence[Dim]:
    """The shape value that an operator on two tensors makes, broadcast as NumPy does.

    Args:
        operation: an operation with `input0` and `input1`.
        combine: the result for two elements.

    Raises:
        UnknownRank: nothing is known of the elements of an input, or `combine` does not know.
    """
    if operation.fused is not Fuse.NONE or operation.input0.type.element_type in FLOATS:
        raise UnknownRank
    pairs = np.broadcast(_elements(operation.input0), _elements(operation.input1))
    return [combine(_size(one), _size(other)) for one, other in pairs]


def are_equal(one: Dim, other: Dim) -> bool:
    """Tell whether two elements of shape values are equal, whatever the sizes are.

    Raises:
        UnknownRank: that depends on them.
    """
    difference = one - other
    if isinstance(difference, int):
        return difference == 0
    if is_natural(difference - 1) or is_natural(-difference - 1):
        return False
    raise UnknownRank


def _size(element: Any) -> Dim:
    """An element of an array as a plain number, if it is not an expression."""
    return element.item() if isinstance(element, np.generic) else element


def _elements(operand: Operand) -> Array:
    """The elements of a small tensor, sizes known by name among them."""
    if operand.value is not None:
        return operand.value
    shape = operand.type.static_shape
    if shape is None:
        raise UnknownRank
    return np.array(shape_value_of(operand), object).reshape(shape)
