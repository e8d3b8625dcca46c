"""Export of standard models to models of the driver interface."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crosschip.apis.nnrt.hdi.v1_0.attributes import encode
from crosschip.apis.nnrt.hdi.v1_0.memory import MAX_BYTES, create_constant
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes, convert_operation
from crosschip.apis.nnrt.hdi.v1_0.types import (
    DataType,
    Format,
    Model,
    Node,
    NodeType,
    QuantParam,
    QuantType,
    SharedBuffer,
    SubGraph,
    Tensor,
)
from crosschip.ir import Array, ElementType, Operand, Operation, TensorType, UnsupportedError
from crosschip.ir import Model as StandardModel
from crosschip.ir.closing import Closing
from crosschip.mapping.common import HDI_CODES, quantized_axis
from crosschip.mapping.translation import Expressed
from crosschip.mapping.writer import Writer
from crosschip.ops import Operator

BITS = 8
"""The number of bits of quantized integers."""

_ALIGNMENT = 64
_CODES = {ours: theirs for theirs, ours in HDI_CODES[ElementType].items()}


@dataclass(frozen=True, slots=True)
class WrittenModel(Closing):
    """An exported model; owns the memory of its constants until closed.

    Attributes:
        model: the model.
        descriptor: the memory's file descriptor.
        nodes: the range of nodes of each operation, if exported by `write_parts`.
        refused: the error of each operation that could not be exported, by index.
    """

    model: Model
    descriptor: int
    nodes: Sequence[range] = ()
    refused: Mapping[int, UnsupportedError] = field(default_factory=dict)

    def close(self) -> None:
        os.close(self.descriptor)


def write_model(
    model: StandardModel,
    format: Format = Format.FORMAT_NHWC,
    nodes: Nodes = V1_0,
    *,
    decompose: bool = True,
) -> WrittenModel:
    """Export a standard model.

    Args:
        model: the model.
        format: the memory layout of images. NNRt always uses NHWC, which every driver supports.
        nodes: the nodes of the interface's version.
        decompose: whether to decompose operations that the interface has no node for; else
            they are refused.

    Raises:
        UnsupportedError: the interface lacks an operation or a type; the message names it.
        HdiError: memory for the constants is exhausted.
    """
    writer = _Writer(format, nodes, decompose=decompose)
    inputs, outputs = writer.write(model)
    pairs = zip((*inputs, *outputs), (*model.inputs, *model.outputs), strict=True)
    return writer.result(inputs, outputs, dict(pairs), {})


def write_parts(
    model: StandardModel, format: Format = Format.FORMAT_NHWC, nodes: Nodes = V1_0
) -> WrittenModel:
    """Export those operations of a standard model that the interface has nodes for.

    The results of other operations become inputs; results that other operations read, or no
    operation, become outputs.

    Raises:
        HdiError: memory for the constants is exhausted.
    """
    writer = _Writer(format, nodes, decompose=False)
    refused: dict[int, UnsupportedError] = {}
    for index, operation in enumerate(model.operations):
        try:
            writer.write_operation(operation)
        except UnsupportedError as error:
            writer.spans.append(range(0))
            refused[index] = error
    inputs, outputs = writer.boundary()
    return writer.result(inputs, outputs, {}, refused)


def tensor_of(type_: TensorType, format: Format) -> Tensor:
    """Return an unnamed tensor of a type, without elements.

    Raises:
        UnsupportedError: the interface has no such type.
    """
    code = _CODES.get(type_.element_type.code)
    if code is None or type_.shape is None:
        raise UnsupportedError(f"the driver interface has no tensors of {type_}")
    sizes = tuple(size if isinstance(size, int) else -1 for size in type_.shape)
    if max(sizes, default=0) >= 2**31:
        raise UnsupportedError(f"the driver interface has no sizes as in {type_}")
    params: tuple[QuantParam, ...] = ()
    quantization = type_.quantization
    if quantization is not None:
        axis = None if quantization.axis is None else quantized_axis(sizes, len(quantization.scale))
        if type_.element_type.dtype.itemsize * 8 != BITS or axis != quantization.axis:
            raise UnsupportedError(f"the driver interface has no quantization of {type_}")
        pairs = zip(quantization.zero_point, quantization.scale, strict=True)
        params = tuple(QuantParam(BITS, zero, scale) for zero, scale in pairs)
    return Tensor("", DataType(code), sizes, format, quantParams=params)


class _Writer(Writer[tuple[NodeType, Any]]):
    """Exports nodes and tensors.

    Attributes:
        spans: the range of nodes of each operation.
    """

    def __init__(self, format: Format, nodes: Nodes, *, decompose: bool) -> None:
        super().__init__("the driver interface", decomposing=decompose)
        self.spans: list[range] = []
        self._format = format
        self._supported = nodes
        self._tensors: list[Tensor] = []
        self._values: list[Operand] = []
        self._nodes: list[Node] = []

    def write_operation(self, operation: Operation) -> None:
        """Export an operation, and record its range of nodes."""
        first = len(self._nodes)
        self.operation(operation)
        self.spans.append(range(first, len(self._nodes)))

    def expressions(self, operation: Operator) -> Iterator[tuple[tuple[NodeType, Any], Expressed]]:
        refusal, channels_last = None, self._format is not Format.FORMAT_NCHW
        for entry in self._supported.by_operator.get(type(operation), ()):
            structure = self._supported.structures[entry.node_type]
            try:
                expression, attributes = convert_operation(
                    entry, operation, channels_last, structure
                )
            except UnsupportedError as error:
                refusal = refusal or error
                continue
            yield (entry.node_type, attributes), expression
        if refusal is not None:
            raise refusal

    def check(self, operand: Operand) -> None:
        tensor_of(operand.type, self._format)

    def declare(self, operand: Operand) -> None:
        self._tensors.append(tensor_of(operand.type, self._format))
        self._values.append(operand)

    def call(self, key: tuple[NodeType, Any], expression: Expressed) -> None:
        node_type, attributes = key
        name = f"{type(attributes).__name__}:{len(self._nodes)}"
        if any(operand is None for operand in expression.inputs):
            raise UnsupportedError(f"{name}: an input in front of others cannot be left out")
        inputs = tuple(
            self.index_of(operand) for operand in expression.inputs if operand is not None
        )
        outputs = tuple(map(self.index_of, expression.outputs))
        quantized = bool(outputs) and bool(self._tensors[outputs[0]].quantParams)
        self._nodes.append(
            Node(name, node_type, encode(attributes), inputs, outputs, QuantType(int(quantized)))
        )

    def boundary(self) -> tuple[Sequence[int], Sequence[int]]:
        """Return the tensors without a producer, and those without a consumer."""
        computed = [index for node in self._nodes for index in node.outputIndex]
        read = dict.fromkeys(index for node in self._nodes for index in node.inputIndex)
        inputs = [
            index
            for index in read
            if index not in set(computed) and self._values[index].value is None
        ]
        return inputs, [index for index in computed if index not in read]

    def result(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        names: Mapping[int, str],
        refused: Mapping[int, UnsupportedError],
    ) -> WrittenModel:
        """Return the exported model.

        Args:
            inputs: the indices of the inputs.
            outputs: the indices of the outputs.
            names: the names of tensors, by index.
            refused: the errors of operations that could not be exported.
        """
        parts, descriptor = self._constants()
        tensors = []
        for index, tensor in enumerate(self._tensors):
            data = parts.get(index, SharedBuffer())
            name = names.get(index, f"Tensor: {index}")
            tensors.append(
                Tensor(name, tensor.dataType, tensor.dims, tensor.format, data, tensor.quantParams)
            )
        subgraph = SubGraph(
            "NNRt_SubGraph", tuple(inputs), tuple(outputs), tuple(range(len(self._nodes)))
        )
        boundary = (tuple(inputs), tuple(outputs))
        exported = Model("NNR_Model", *boundary, tuple(self._nodes), tuple(tensors), (subgraph,))
        return WrittenModel(exported, descriptor, self.spans, refused)

    def _constants(self) -> tuple[Mapping[int, SharedBuffer], int]:
        """Write all constants to one memory; return their locations and its descriptor."""
        arrays: list[tuple[int, Array]] = []
        locations: dict[int, tuple[int, int]] = {}
        end = 0
        for index, operand in enumerate(self._values):
            if operand.value is not None:
                array = np.asarray(operand.value)
                end = -(-end // _ALIGNMENT) * _ALIGNMENT
                arrays.append((end, array))
                locations[index] = (end, array.nbytes)
                end += array.nbytes
        if end > MAX_BYTES:
            raise UnsupportedError(
                f"the constants take {end} bytes, but at most {MAX_BYTES} are shared"
            )
        fd, size = create_constant(arrays), max(end, 1)
        return {
            index_: SharedBuffer(fd, size, *location) for index_, location in locations.items()
        }, fd
