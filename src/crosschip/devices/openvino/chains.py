"""Chains of small matrix products, which OpenVINO makes one kernel of, and that one wrong."""

from __future__ import annotations

from typing import Any

from crosschip.ir import Model, Operand
from crosschip.ops.standard.matrix import FullyConnected, MatMul

_MOST = 256
"""The size of matrices up to which OpenVINO joins their products."""


def unfused(model: Model) -> dict[str, Any]:
    """The setting by which OpenVINO makes no kernels of several operations, where it must not.

    Of matrix products one after another (`TokenizeMLPSeqSnippets`), with few rows, it computes
    garbage where they are quantized; where the last one's result is both read and an output, the
    process dies while compiling. Seen with 2026.4.1 for 4, 6 and 8 rows on two processors.
    """
    return {"SNIPPETS_MODE": "DISABLE"} if _has_chain(model) else {}


def _has_chain(model: Model) -> bool:
    """Tell whether a small product is made, by whatever is between, of another one."""
    behind: set[Operand] = set()
    for operation in model.operations:
        if any(map(_has_chain, operation.bodies)):
            return True
        small = isinstance(operation, FullyConnected | MatMul) and all(
            map(_is_small, (operation.inputs[1], operation.outputs[0]))
        )
        follows = not behind.isdisjoint(filter(None, operation.inputs))
        if small and follows:
            return True
        if small or follows:
            behind.update(operation.outputs)
    return False


def _is_small(operand: Operand | None) -> bool:
    shape = None if operand is None else operand.type.static_shape
    return shape is not None and len(shape) == 2 and shape[-1] <= _MOST
