"""Lowering of Einstein summations to matrix products, multiplications and sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from crosschip.ir import Dim, ModelError, Operand, UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape, Transpose, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceSum


class Node(Protocol):
    """Importer's view of one node of a file, which appends the operations that replace it."""

    def add(self, operator: type[Operator], *arguments: object, **named: Any) -> Operand:
        """Append an operation and return its output."""


@dataclass(frozen=True)
class _Term:
    """Operand with one label per axis.

    Labels are single letters, and `0`, `1`, … for the axes of an ellipsis, counted from the last.
    """

    operand: Operand
    labels: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, Dim]:
        return dict(zip(self.labels, self.operand.type.shape or (), strict=True))


def contraction(node: Node, equation: str, operands: Sequence[Operand]) -> Operand:
    """Return the result of an Einstein summation such as `"ij,jk->ik"`.

    Terms are multiplied from left to right. Labels that occur in one term only are summed first.
    """
    inputs, result = _parse_equation(equation, operands)
    terms = [_Term(o, labels) for o, labels in zip(operands, inputs, strict=True)]
    terms = [_take_diagonal(node, term) for term in terms]
    product = terms[0]
    for index, other in enumerate(terms[1:], 2):
        needed = set(result).union(*(term.labels for term in terms[index:]))
        product = _contract(node, _reduce(node, product, needed.union(other.labels)), other, needed)
    product = _reduce(node, product, set(result))
    if set(product.labels) != set(result):
        raise ModelError(f"the result {result} has labels that no term has")
    return _transpose(node, product, result).operand


def _parse_equation(
    equation: str, operands: Sequence[Operand]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """Return the labels of each term and of the result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        raise ModelError(f"equation {equation!r} has {len(parts)} terms, not {len(operands)}")
    terms = [_labels(part, o) for part, o in zip(parts, operands, strict=True)]
    dots = max((sum(label.isdigit() for label in term) for term in terms), default=0)
    ellipsis = tuple(str(axis) for axis in reversed(range(dots)))
    if arrow:
        before, has_dots, after = right.partition("...")
        return terms, (*before, *(ellipsis if has_dots else ()), *after)
    letters = left.replace(".", "").replace(",", "")
    return terms, (*ellipsis, *sorted(c for c in set(letters) if letters.count(c) == 1))


def _labels(part: str, operand: Operand) -> tuple[str, ...]:
    shape = operand.type.shape
    if shape is None:
        raise UnsupportedError(f"the number of axes of {operand.name!r} must be known")
    before, dots, after = part.partition("...")
    count = len(shape) - len(before) - len(after)
    if not (before + after).isalpha() and before + after:
        raise ModelError(f"{part!r} has other labels than letters")
    if count < 0 or (count and not dots):
        raise ModelError(f"{part!r} does not label the {len(shape)} axes of {operand.name!r}")
    return (*before, *(str(axis) for axis in reversed(range(count))), *after)


def _take_diagonal(node: Node, term: _Term) -> _Term:
    """Merge axes that share a label by taking their diagonal."""
    repeated = next((label for label in term.labels if term.labels.count(label) > 1), None)
    if repeated is None:
        return term
    first = term.labels.index(repeated)
    second = term.labels.index(repeated, first + 1)
    shape = term.operand.type.shape or ()
    size, second_size = shape[first], shape[second]
    if not isinstance(size, int) or not isinstance(second_size, int):
        raise UnsupportedError(
            f"the sizes of {term.operand.name!r} on both axes labelled {repeated!r} must be known"
        )
    if size != second_size:
        raise ModelError(f"axes labelled {repeated!r} have the sizes {size}, {second_size}")
    others = [axis for axis in range(len(shape)) if axis not in (first, second)]
    transposed = node.add(Transpose, term.operand, (*others, first, second))
    merged = node.add(Reshape, transposed, (*(0 for _ in others), size * size))
    diagonal = node.add(Gather, merged, np.arange(size) * (size + 1), -1)
    return _take_diagonal(
        node, _Term(diagonal, (*(term.labels[axis] for axis in others), repeated))
    )


def _reduce(node: Node, term: _Term, needed: set[str]) -> _Term:
    """Sum a term over the labels that are not needed."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in needed)
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in needed)
    return _Term(node.add(ReduceSum, term.operand, axes, keepdim=False), labels)


def _contract(node: Node, left: _Term, right: _Term, needed: set[str]) -> _Term:
    """Multiply two terms and sum over the labels that are not needed afterwards."""
    right = _reduce(node, right, needed.union(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    contracted = [label for label in shared if label not in needed]
    sizes = {**left.sizes, **right.sizes}
    if not contracted or any(left.sizes[label] != right.sizes[label] for label in shared):
        return _broadcast_product(node, left, right, needed)
    batch = [label for label in shared if label in needed]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]
    orders = (batch, rows, contracted), (batch, contracted, columns), (batch, rows, columns)
    if not all(_can_be_grouped(sizes, order) for order in orders):
        return _broadcast_product(node, left, right, needed)

    def grouped(term: _Term, order: Sequence[Sequence[str]]) -> Operand:
        ordered = _transpose(node, term, tuple(label for group in order for label in group))
        if _is_grouped(order):
            return ordered.operand
        axes = [*([label] for label in order[0]), *order[1:]]
        return node.add(Reshape, ordered.operand, tuple(_merged_size(sizes, axis) for axis in axes))

    product = node.add(MatMul, grouped(left, orders[0]), grouped(right, orders[1]))
    labels = (*batch, *rows, *columns)
    if not _is_grouped(orders[2]):
        product = node.add(
            Reshape, product, tuple(_merged_size(sizes, [label]) for label in labels)
        )
    return _Term(product, labels)


def _is_grouped(order: Sequence[Sequence[str]]) -> bool:
    """Return whether each group of labels after the batch group has exactly one label."""
    return all(len(group) == 1 for group in order[1:])


def _can_be_grouped(sizes: Mapping[str, Dim], order: Sequence[Sequence[str]]) -> bool:
    """Return whether each group of labels can be reshaped to one axis and back."""
    grouped_sizes = [sizes[label] for group in order for label in group]
    open_count = sum(not isinstance(size, int) for size in grouped_sizes)
    return _is_grouped(order) or (open_count <= 1 and 0 not in grouped_sizes)


def _broadcast_product(node: Node, left: _Term, right: _Term, needed: set[str]) -> _Term:
    """Compute the product by broadcasting multiplication and a sum, which needs no static sizes."""
    labels = tuple(dict.fromkeys([*left.labels, *right.labels]))
    factors = []
    for term in (left, right):
        present = tuple(label for label in labels if label in term.labels)
        absent = tuple(axis for axis, label in enumerate(labels) if label not in present)
        operand = _transpose(node, term, present).operand
        factors.append(node.add(Unsqueeze, operand, absent) if absent else operand)
    return _reduce(node, _Term(node.add(Mul, *factors), labels), needed)


def _transpose(node: Node, term: _Term, labels: tuple[str, ...]) -> _Term:
    if term.labels == labels:
        return term
    perm = tuple(term.labels.index(label) for label in labels)
    return _Term(node.add(Transpose, term.operand, perm), labels)


def _merged_size(sizes: Mapping[str, Dim], labels: Sequence[str]) -> int:
    """Return the product of the sizes of some labels; -1 if one of them is dynamic."""
    static = [size for label in labels if isinstance(size := sizes[label], int)]
    return math.prod(static) if len(static) == len(labels) else -1
