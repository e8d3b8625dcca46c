"""Reductions of windows along all axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.flatbuffer.schemas.tflite.enumerations import ReduceWindowFunction
from crosschip.flatbuffer.schemas.tflite.options import ReduceWindowOptions
from crosschip.importers.facts import size_of
from crosschip.importers.tflite.node import Node, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ops import Operator
from crosschip.ops.standard.arithmetic import Add, Max, Min, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.logical import And, Or
from crosschip.ops.standard.reduction import (
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    ReduceSum,
)

_FUNCTIONS: dict[str, tuple[type[Operator], type[Operator]]] = {
    "ADD": (ReduceSum, Add),
    "ALL": (ReduceAll, And),
    "ANY": (ReduceAny, Or),
    "MAXIMUM": (ReduceMax, Max),
    "MINIMUM": (ReduceMin, Min),
    "MUL": (ReduceProd, Mul),
}
"""The reduction along an axis and the operator on two tensors, by function."""

_OF_BOOLEANS = {"MAXIMUM": "ANY", "MINIMUM": "ALL", "MUL": "ALL"}
"""The functions of booleans that are those of numbers in the schema."""


@imports("REDUCE_WINDOW")
def reduce_window(node: Node) -> Operand:
    """Import the reduction of windows that lie in the tensor, beginning with a value."""
    function = ReduceWindowFunction(node.options(ReduceWindowOptions).reduce_function).name
    if function not in _FUNCTIONS:
        raise UnsupportedError(f"reduction of windows by {function}")
    names = ("the list of window sizes", "the list of strides", "the list of dilations")
    sizes, strides, dilations = (
        [int(value) for value in node.value(index, name).ravel()]
        for index, name in enumerate(names, 2)
    )
    initial = node.add(Reshape, node[1], ())
    return reduce_windows(node, node[0], initial, function, sizes, strides, dilations)


def reduce_windows(
    node: Node,
    operand: Operand,
    initial: Operand,
    function: str,
    sizes: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Operand:
    """Return the reductions of windows, one axis after the other.

    Args:
        node: the operator.
        operand: the tensor.
        initial: the value with which each reduction begins.
        function: its name in the schema.
        sizes: the sizes of the windows, a number for each axis.
        strides: the distances between them.
        dilations: the distances between the elements of one.
    """
    dtype = operand.type.element_type
    if dtype is ElementType.BOOL:
        function = _OF_BOOLEANS.get(function, function)
    reduction, combine = _FUNCTIONS[function]
    if min(*sizes, *strides, *dilations) < 1:
        raise ModelError("a size, stride or dilation of its windows is below 1")
    is_logical = function in ("ALL", "ANY")
    if is_logical:
        operand, initial = (node.add(Cast, each, ElementType.BOOL) for each in (operand, initial))
    for axis, (size, stride, dilation) in enumerate(zip(sizes, strides, dilations, strict=True)):
        length = size_of(operand, axis)
        if size == stride == 1:
            continue
        count = max(0, (length - (size - 1) * dilation - 1) // stride + 1)
        spend(bytes=8 * count * size)
        positions = np.arange(count)[:, None] * stride + np.arange(size) * dilation
        windows = node.add(Gather, operand, positions.astype(np.int64), axis=axis)
        operand = node.add(reduction, windows, (axis + 1,), False)
    result = node.add(combine, initial, operand)
    return node.add(Cast, result, dtype) if is_logical else result
