"""Standard models written out as models of the interface."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crosschip.apis.nnrt.hdi.v1_0.attributes import encoded
from crosschip.apis.nnrt.hdi.v1_0.memory import MOST, holding
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes, expressed
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
"""The bits of the integers of quantized tensors."""

_ALIGNMENT = 64
_CODES = {ours: theirs for theirs, ours in HDI_CODES[ElementType].items()}


@dataclass(frozen=True, slots=True)
class WrittenModel(Closing):
    """A model of the interface, with the memory of its constants until it is closed.

    Attributes:
        model: the model.
        descriptor: of that memory.
        nodes: for each operation of the model that parts were written of, its nodes.
        refused: for each of these that could not be written, by its place, why.
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
    decomposing: bool = True,
) -> WrittenModel:
    """Write a standard model out.

    Args:
        model: the model.
        format: the order in which images are stored. NNRt always says NHWC, so that is what every
            driver takes.
        nodes: the nodes of the interface's version.
        decomposing: whether what the interface has no node for is written as the simpler operators
            that it decomposes into; else it is refused.

    Raises:
        UnsupportedError: the interface cannot say an operation or a type; the message names it.
        HdiError: there is no memory for the constants.
    """
    writer = _Writer(format, nodes, decomposing=decomposing)
    inputs, outputs = writer.write(model)
    names = _names(zip(model.inputs, inputs, strict=True), zip(model.outputs, outputs, strict=True))
    return writer.result(inputs, outputs, names, {})


def write_parts(
    model: StandardModel, format: Format = Format.FORMAT_NHWC, nodes: Nodes = V1_0
) -> WrittenModel:
    """Write out those operations of a standard model for which the interface has nodes.

    What other operations make is an input; what others read, or nobody, is an output.

    Raises:
        HdiError: there is no memory for the constants.
    """
    writer = _Writer(format, nodes, decomposing=False)
    refused: dict[int, UnsupportedError] = {}
    for place, operation in enumerate(model.operations):
        try:
            writer.part(operation)
        except UnsupportedError as error:
            writer.spans.append(range(0))
            refused[place] = error
    inputs, outputs = writer.ends()
    return writer.result(inputs, outputs, {}, refused)


def tensor_of(type_: TensorType, format: Format) -> Tensor:
    """A tensor of a type, without a name and elements.

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
    """Writes nodes and tensors.

    Attributes:
        spans: the nodes of each operation of the model.
    """

    def __init__(self, format: Format, nodes: Nodes, *, decomposing: bool) -> None:
        super().__init__("the driver interface", decomposing=decomposing)
        self.spans: list[range] = []
        self._format = format
        self._known = nodes
        self._tensors: list[Tensor] = []
        self._values: list[Operand] = []
        self._nodes: list[Node] = []

    def part(self, operation: Operation) -> None:
        """Write an operation of the model, and remember which nodes are its."""
        first = len(self._nodes)
        self.operation(operation)
        self.spans.append(range(first, len(self._nodes)))

    def expressions(self, operation: Operator) -> Iterator[tuple[tuple[NodeType, Any], Expressed]]:
        refusal, last = None, self._format is not Format.FORMAT_NCHW
        for entry in self._known.uses.get(type(operation), ()):
            structure = self._known.structures[entry.node_type]
            try:
                expression, attributes = expressed(entry, operation, last, structure)
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
        read = tuple(self.index_of(operand) for operand in expression.inputs if operand is not None)
        outputs = tuple(map(self.index_of, expression.outputs))
        quantized = bool(outputs) and bool(self._tensors[outputs[0]].quantParams)
        self._nodes.append(
            Node(name, node_type, encoded(attributes), read, outputs, QuantType(int(quantized)))
        )

    def ends(self) -> tuple[Sequence[int], Sequence[int]]:
        """The tensors that no node makes, and those that no node reads."""
        computed = [place for node in self._nodes for place in node.outputIndex]
        read = dict.fromkeys(place for node in self._nodes for place in node.inputIndex)
        inputs = [p for p in read if p not in set(computed) and self._values[p].value is None]
        return inputs, [place for place in computed if place not in read]

    def result(
        self,
        inputs: Sequence[int],
        outputs: Sequence[int],
        names: Mapping[int, str],
        refused: Mapping[int, UnsupportedError],
    ) -> WrittenModel:
        """The model of what has been written.

        Args:
            inputs: the places of its inputs.
            outputs: those of its outputs.
            names: the names of tensors, by place.
            refused: what could not be written.
        """
        parts, descriptor = self._constants()
        tensors = []
        for place, tensor in enumerate(self._tensors):
            data = parts.get(place, SharedBuffer())
            name = names.get(place, f"Tensor: {place}")
            tensors.append(
                Tensor(name, tensor.dataType, tensor.dims, tensor.format, data, tensor.quantParams)
            )
        whole = SubGraph(
            "NNRt_SubGraph", tuple(inputs), tuple(outputs), tuple(range(len(self._nodes)))
        )
        ends = (tuple(inputs), tuple(outputs))
        written = Model("NNR_Model", *ends, tuple(self._nodes), tuple(tensors), (whole,))
        return WrittenModel(written, descriptor, self.spans, refused)

    def _constants(self) -> tuple[Mapping[int, SharedBuffer], int]:
        """The parts of one memory that hold the elements of constants, by place."""
        arrays: list[tuple[int, Array]] = []
        places: dict[int, tuple[int, int]] = {}
        end = 0
        for place, operand in enumerate(self._values):
            if operand.value is not None:
                array = np.asarray(operand.value)
                end = -(-end // _ALIGNMENT) * _ALIGNMENT
                arrays.append((end, array))
                places[place] = (end, array.nbytes)
                end += array.nbytes
        if end > MOST:
            raise UnsupportedError(f"the constants take {end} bytes, but at most {MOST} are shared")
        fd, size = holding(arrays), max(end, 1)
        return {p: SharedBuffer(fd, size, *where) for p, where in places.items()}, fd


def _names(*ends: Iterator[tuple[str, int]] | zip[tuple[str, int]]) -> Mapping[int, str]:
    return {place: name for end in ends for name, place in end}
