"""Conversion of models to TOSA blocks."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.devices.kits.tosa.block import Block, Value
from crosschip.devices.kits.tosa.converters import converters
from crosschip.devices.kits.tosa.converters.table import (
    STORED,
    convert_quantized,
    supports_quantized,
)
from crosschip.devices.kits.tosa.graph import Graph
from crosschip.devices.kits.tosa.lowering import MAX_RANK, ChannelsLast
from crosschip.hal.device import CompileError
from crosschip.ir import ElementType, Model, Operand, Operation
from crosschip.ops import Operator


def _convert(graph: Graph, operation: Operation) -> Sequence[Value]:
    if isinstance(operation, ChannelsLast):
        graph.channels_last = True
        try:
            return _convert(graph, operation.operation)
        finally:
            graph.channels_last = False
    if not supports_quantized(operation):
        return converters.convert(graph, operation)
    assert isinstance(operation, Operator), "only operators have quantized forms"
    return convert_quantized(graph, operation)


def build(model: Model, *, checks_indices: bool = False) -> Block:
    """Return a legalized model as a block, with inputs and outputs in order.

    Args:
        model: the model.
        checks_indices: whether all indices out of range make the reference model fail.

    Raises:
        CompileError: an operation cannot be written; the error names it.
    """
    graph = Graph({*model.inputs, *model.outputs}, checks_indices=checks_indices)
    for name, operand in model.inputs.items():
        element_type, shape = _checked(f"input {name!r}", operand)
        graph.bind(operand, graph.boundary_input(name, element_type, shape))
    for operation in model.operations:
        for output, value in zip(operation.outputs, _convert(graph, operation), strict=True):
            graph.bind(output, value)
    for name, operand in model.outputs.items():
        element_type, _ = _checked(f"output {name!r}", operand)
        graph.boundary_output(name, graph[operand], element_type)
    return graph


def _checked(where: str, operand: Operand) -> tuple[ElementType, tuple[int, ...]]:
    """Return the element type and shape of an input or output, if TOSA has such tensors."""
    element_type, shape = operand.type.element_type, operand.type.static_shape
    if element_type not in STORED or shape is None or 0 in shape or len(shape) > MAX_RANK:
        raise CompileError(f"{where}: TOSA has no tensor of {operand.type}", [])
    return element_type, shape
