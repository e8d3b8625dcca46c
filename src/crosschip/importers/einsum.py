"""Einstein's summation convention."""

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
    """What builds the operations that a node of a file stands for."""

    def add(self, operator: type[Operator], *arguments: object, **named: Any) -> Operand:
        """Build an operation and return what it makes."""


@dataclass(frozen=True)
class _Term:
    """An operand, and a label for each of its axes.

    Labels are single letters, and `0`, `1`, … for the axes of an ellipsis, counted from the last.
    """

    operand: Operand
    labels: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, Dim]:
        return dict(zip(self.labels, self.operand.type.shape or (), strict=True))


def contraction(node: Node, equation: str, operands: Sequence[Operand]) -> Operand:
    """The tensor that an equation in Einstein's convention makes of operands, `"ij,jk->ik"` say.

    Terms are multiplied from the left to the right; what no other term has is summed first.
    """
    inputs, result = _parsed(equation, operands)
    terms = [_Term(o, labels) for o, labels in zip(operands, inputs, strict=True)]
    terms = [_diagonal(node, term) for term in terms]
    product = terms[0]
    for index, other in enumerate(terms[1:], 2):
        needed = set(result).union(*(term.labels for term in terms[index:]))
        product = _product(node, _summed(node, product, needed.union(other.labels)), other, needed)
    product = _summed(node, product, set(result))
    if set(product.labels) != set(result):
        raise ModelError(f"the result {result} has labels that no term has")
    return _arranged(node, product, result).operand


def _parsed(
    equation: str, operands: Sequence[Operand]
) -> tuple[list[tuple[str, ...]], tuple[str, ...]]:
    """The labels of the terms and of the result."""
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


def _diagonal(node: Node, term: _Term) -> _Term:
    """A label that two axes have, on one."""
    twice = next((label for label in term.labels if term.labels.count(label) > 1), None)
    if twice is None:
        return term
    first = term.labels.index(twice)
    second = term.labels.index(twice, first + 1)
    shape = term.operand.type.shape or ()
    size, other = shape[first], shape[second]
    if not isinstance(size, int) or not isinstance(other, int):
        raise UnsupportedError(
            f"the sizes of {term.operand.name!r} on both axes labelled {twice!r} must be known"
        )
    if size != other:
        raise ModelError(f"axes labelled {twice!r} have the sizes {size}, {other}")
    others = [axis for axis in range(len(shape)) if axis not in (first, second)]
    moved = node.add(Transpose, term.operand, (*others, first, second))
    merged = node.add(Reshape, moved, (*(0 for _ in others), size * size))
    diagonal = node.add(Gather, merged, np.arange(size) * (size + 1), -1)
    return _diagonal(node, _Term(diagonal, (*(term.labels[axis] for axis in others), twice)))


def _summed(node: Node, term: _Term, needed: set[str]) -> _Term:
    """A term without the labels that nothing needs."""
    axes = tuple(axis for axis, label in enumerate(term.labels) if label not in needed)
    if not axes:
        return term
    labels = tuple(label for label in term.labels if label in needed)
    return _Term(node.add(ReduceSum, term.operand, axes, keepdim=False), labels)


def _product(node: Node, left: _Term, right: _Term, needed: set[str]) -> _Term:
    """The product of two terms, summed over the labels that nothing else needs."""
    right = _summed(node, right, needed.union(left.labels))
    shared = [label for label in left.labels if label in right.labels]
    contracted = [label for label in shared if label not in needed]
    sizes = {**left.sizes, **right.sizes}
    if not contracted or any(left.sizes[label] != right.sizes[label] for label in shared):
        return _multiplied(node, left, right, needed)
    batch = [label for label in shared if label in needed]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]
    orders = (batch, rows, contracted), (batch, contracted, columns), (batch, rows, columns)
    if not all(_can_be_grouped(sizes, order) for order in orders):
        return _multiplied(node, left, right, needed)

    def grouped(term: _Term, order: Sequence[Sequence[str]]) -> Operand:
        ordered = _arranged(node, term, tuple(label for group in order for label in group))
        if _is_grouped(order):
            return ordered.operand
        axes = [*([label] for label in order[0]), *order[1:]]
        return node.add(Reshape, ordered.operand, tuple(_count(sizes, axis) for axis in axes))

    product = node.add(MatMul, grouped(left, orders[0]), grouped(right, orders[1]))
    labels = (*batch, *rows, *columns)
    if not _is_grouped(orders[2]):
        product = node.add(Reshape, product, tuple(_count(sizes, [label]) for label in labels))
    return _Term(product, labels)


def _is_grouped(order: Sequence[Sequence[str]]) -> bool:
    """Tell whether each group of labels but the first, of the batch, is one axis as it is."""
    return all(len(group) == 1 for group in order[1:])


def _can_be_grouped(sizes: Mapping[str, Dim], order: Sequence[Sequence[str]]) -> bool:
    """Tell whether groups of labels can be made an axis each, and be divided again."""
    grouped_sizes = [sizes[label] for group in order for label in group]
    open_count = sum(not isinstance(size, int) for size in grouped_sizes)
    return _is_grouped(order) or (open_count <= 1 and 0 not in grouped_sizes)


def _multiplied(node: Node, left: _Term, right: _Term, needed: set[str]) -> _Term:
    """The same by multiplication and a sum, which needs no sizes and broadcasts."""
    labels = tuple(dict.fromkeys([*left.labels, *right.labels]))
    factors = []
    for term in (left, right):
        own = tuple(label for label in labels if label in term.labels)
        absent = tuple(axis for axis, label in enumerate(labels) if label not in own)
        operand = _arranged(node, term, own).operand
        factors.append(node.add(Unsqueeze, operand, absent) if absent else operand)
    return _summed(node, _Term(node.add(Mul, *factors), labels), needed)


def _arranged(node: Node, term: _Term, labels: tuple[str, ...]) -> _Term:
    """A term with its axes in another order."""
    if term.labels == labels:
        return term
    perm = tuple(term.labels.index(label) for label in labels)
    return _Term(node.add(Transpose, term.operand, perm), labels)


def _count(sizes: Mapping[str, Dim], labels: Sequence[str]) -> int:
    """The size of an axis that is made of those with some labels; -1 where it is open."""
    known = [size for label in labels if isinstance(size := sizes[label], int)]
    return math.prod(known) if len(known) == len(labels) else -1
