"""Chains of small matrix products, which OpenVINO makes one kernel of, and that one wrong.

Of matrix products one after another (`TokenizeMLPSeqSnippets`), with few rows, it computes garbage
where they are quantized; where the last one's result is both read and an output, the process dies
while compiling. Seen with 2026.4.1 for 4, 6 and 8 rows on two processors. It looks for matrices
only: with one more axis, a product joins no other.
"""

from __future__ import annotations

from crosschip.ir import Model, Operand, Operation
from crosschip.ops.standard.matrix import FullyConnected, MatMul

_MOST = 256
"""The size of matrices up to which OpenVINO joins their products."""


def chained(model: Model) -> frozenset[Operation]:
    """The small products that are made, by whatever is between, of others."""
    found: set[Operation] = set()
    behind: set[Operand] = set()
    for operation in model.operations:
        small = isinstance(operation, FullyConnected | MatMul) and all(
            map(_is_small, (operation.inputs[1], operation.outputs[0]))
        )
        follows = not behind.isdisjoint(filter(None, operation.inputs))
        if small and follows:
            found.add(operation)
        if small or follows:
            behind.update(operation.outputs)
    return frozenset(found)


def _is_small(operand: Operand | None) -> bool:
    shape = None if operand is None else operand.type.static_shape
    return shape is not None and len(shape) == 2 and shape[-1] <= _MOST
