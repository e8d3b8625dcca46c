"""Shape values: small integer tensors that are computed from shapes.

At build time they are symbolic (`TensorType.shape_value`). At run time, operations compute them,
which `Sizes` adds to a decomposition.
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
"""The operators that compute quotients and minima of sizes."""


class Sizes:
    """Sizes of an operand, for use in a decomposition.

    Attributes:
        shape: the operand's shape, with a separate name for each dynamic dimension.

    Args:
        b: the builder that operations are added to.
        source: the operand.

    Raises:
        UnknownRank: the rank of the operand is unknown.
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
        """Return expressions over `self.shape` as constants if static, else as an int64 operand."""
        known = tuple(size for size in shape if isinstance(size, int))
        if len(known) == len(shape):
            return known
        return self._add("CONCAT", [self.computed(size) for size in shape], 0)

    def computed(self, size: Dim) -> Operand:
        """Return an expression over `self.shape` as a computed int64 list of length 1."""
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
                index_list = self._b.constant(np.array([int(factor)]))
                part = self._add("GATHER", self._shape_operand(), index_list, 0)
            else:
                kind, first, *others = factor
                part = first
                for other in others:
                    part = self._add(_FUNCTIONS[kind], part, other)
            is_first = index == 0 and coefficient == 1
            value = part if is_first else self._add("MUL", value, part)
        return value

    def _shape_operand(self) -> Operand:
        if self._list is None:
            self._list = self._add("SHAPE", self._source)
        return self._list

    def _add(self, name: str, *arguments: object) -> Operand:
        return self._b.add(operator_named(name), *arguments)


def reshape_static(b: Builder, input: Operand, shape: Sequence[int]) -> Operand:
    """Return an operand reshape to a static shape with the same number of elements."""
    return b.add(operator_named("RESHAPE"), input, shape, allow_zero=0 in shape)


def reshape(
    b: Builder, input: Operand, sizes: Sizes, old_shape: Sequence[Dim], shape: Sequence[Dim]
) -> Operand:
    """Return an operand reshape to a shape that has at least one element.

    A single size that changes is inferred by -1, and sizes that stay at their axis are copied (0).

    Args:
        b: the builder that the operation is added to.
        input: the operand.
        sizes: computes the sizes of the shapes.
        old_shape: the operand's shape, as expressions over `sizes.shape`.
        shape: the new shape, as expressions over `sizes.shape`.
    """
    new_sizes = [
        0
        if not isinstance(size, int) and axis < len(old_shape) and size == old_shape[axis]
        else size
        for axis, size in enumerate(shape)
    ]
    computed = [axis for axis, size in enumerate(new_sizes) if not isinstance(size, int)]
    exact = 0 in shape or len(computed) > 1
    if len(computed) == 1:
        new_sizes[computed[0]] = -1
    return b.add(
        operator_named("RESHAPE"), input, sizes(shape if exact else new_sizes), allow_zero=exact
    )


def fail_if(b: Builder, broken: Operand, numbers: Operand) -> Operand:
    """Return integers that fail to compute at run time if any of some booleans is true.

    They are gathered with the number of true booleans as index into a list of length 1, so that any
    true boolean is an index out of range.
    """
    count = b.add(operator_named("CAST"), broken, ElementType.INT64)
    index = b.add(operator_named("REDUCE_SUM"), count, keepdim=False)
    return b.add(operator_named("GATHER"), b.add(operator_named("UNSQUEEZE"), numbers, (0,)), index)


def check_lengths(b: Builder, lengths: Operand, maximum: Operand) -> Operand:
    """Return lengths whose computation fails at run time unless they are in [0, maximum]."""
    less, zero = operator_named("LESS"), np.zeros(1, lengths.type.element_type.dtype)
    broken = [b.add(less, lengths, b.constant(zero)), b.add(less, maximum, lengths)]
    return fail_if(b, b.add(operator_named("CONCAT"), broken, 0), lengths)


def shape_value_by_elements(operation: Operator) -> Sequence[Dim]:
    """Return the shape value of an operation that moves, adds or multiplies elements.

    Raises:
        UnknownRank: the elements of an input are unknown, or an index is out of range.
        ComputedParameter: the target indices are known at run time only.
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
        elements: list[Dim] = np.asarray(operation.reference(**tensors)).ravel().tolist()
    except IndexError:
        # An index out of range is an error only if the operation runs.
        raise UnknownRank from None
    return elements


def shape_value_by_pairs(operation: Any, combine: Callable[[Dim, Dim], Any]) -> Sequence[Dim]:
    """Return the shape value of an operation on two tensors, with NumPy broadcasting.

    Args:
        operation: an operation with `input0` and `input1`.
        combine: returns the result for two elements.

    Raises:
        UnknownRank: the elements of an input are unknown, or `combine` raises it.
    """
    if operation.fused is not Fuse.NONE or operation.input0.type.element_type in FLOATS:
        raise UnknownRank
    pairs = np.broadcast(_elements(operation.input0), _elements(operation.input1))
    return [combine(_size(one), _size(other)) for one, other in pairs]


def are_equal(one: Dim, other: Dim) -> bool:
    """Return whether two elements of shape values are equal for all sizes.

    Raises:
        UnknownRank: it depends on the sizes.
    """
    difference = one - other
    if isinstance(difference, int):
        return difference == 0
    if is_natural(difference - 1) or is_natural(-difference - 1):
        return False
    raise UnknownRank


def _size(element: Any) -> Dim:
    """Return an array's element as a Python number, unless it is an expression."""
    return element.item() if isinstance(element, np.generic) else element


def _elements(operand: Operand) -> Array:
    """Return the elements of a small tensor; they may be symbolic sizes."""
    if operand.value is not None:
        return operand.value
    shape = operand.type.static_shape
    if shape is None:
        raise UnknownRank
    return np.array(shape_value_of(operand), object).reshape(shape)
