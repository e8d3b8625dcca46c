"""Functions of one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.ir import Builder, ElementType, Model, Operand, Operation
from crosschip.ops.standard.activation import HardSigmoid
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.unary import Abs, Neg
from crosschip.passes.rewrite_operations import rebuild


def hard_sigmoid_in_float32(b: Builder, op: HardSigmoid) -> Sequence[Operand] | None:
    """Compute in float32, lest `alpha` and `beta` be rounded to a narrower type."""
    own = op.input.type.element_type
    if own is ElementType.FLOAT32:
        return None
    wide = rebuild(b, op, input=b.add(Cast, op.input, ElementType.FLOAT32))
    return (b.add(Cast, wide, own),)


def absolute_of_negative(b: Builder, op: Abs) -> Sequence[Operand]:
    """Take the absolute values of the negative of a concatenation.

    OpenVINO's kernel writes over what a concatenation has made, whoever else reads that. Only there
    is it taken of something else: of negated constants, OpenVINO makes nothing of it.
    """
    return (rebuild(b, op, input=b.add(Neg, op.input)),)


def reads_concatenation(model: Model) -> frozenset[Operation]:
    """The absolute values of concatenations of signed numbers."""
    return frozenset(
        operation
        for operation in model.operations
        if isinstance(operation, Abs)
        and not np.issubdtype(operation.input.type.element_type.dtype, np.unsignedinteger)
        and isinstance(model.producers.get(operation.input), Concat)
    )
