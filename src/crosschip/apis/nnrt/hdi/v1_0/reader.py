"""Import of the driver interface's models, with validation of untrusted input."""

from __future__ import annotations

import graphlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.memory import align, read
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes, operands_of
from crosschip.apis.nnrt.hdi.v1_0.types import DataType, Format, Model, Node, QuantParam, Tensor
from crosschip.apis.nnrt.hdi.v1_0.writer import BITS
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Error,
    ModelError,
    Operand,
    Quantization,
    TensorType,
    UnsupportedError,
    constant,
    symbol,
)
from crosschip.ir import Model as StandardModel
from crosschip.ir.model import Origin
from crosschip.ir.types import MAX_RANK
from crosschip.mapping.common import HDI_CODES, quantized_axis
from crosschip.mapping.translation import import_operation

_MAX_ELEMENTS = 1 << 60


@dataclass(frozen=True, slots=True)
class ReadModel:
    """An imported model.

    Attributes:
        model: the standard model; the results of refused nodes are inputs.
        nodes: for each operation, the index of its node.
        refused: the reason for each node that could not be imported, by index.
    """

    model: StandardModel
    nodes: Sequence[int]
    refused: Mapping[int, str]


def read_model(model: Model, nodes: Nodes = V1_0) -> StandardModel:
    """Convert a model of the interface to a standard model.

    Inputs and outputs have their tensors' names; or `input0`, `output0` and so on if a name is
    empty or repeated.

    Args:
        model: the model.
        nodes: the nodes of the interface's version.

    Raises:
        HdiError: the model is invalid.
        UnsupportedError: a node has no standard operator.
    """
    parts = read_parts(model, nodes)
    for node, reason in parts.refused.items():
        raise UnsupportedError(f"node {node}: {reason}")
    return parts.model


def read_parts(model: Model, nodes: Nodes = V1_0) -> ReadModel:
    """Convert those nodes of a model that have standard operators.

    Args:
        model: the model.
        nodes: the nodes of the interface's version.

    Raises:
        HdiError: the model as a whole is invalid.
    """
    _check(model)
    return _Reader(model, nodes).read()


@dataclass
class _Reader:
    """Importer of a model whose indices have been checked."""

    model: Model
    supported: Nodes
    builder: Builder = field(default_factory=lambda: Builder("hdi"))
    values: dict[int, Operand] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=list)

    def read(self) -> ReadModel:
        names = _names([self.model.allTensors[i].name for i in self.model.inputIndex], "input")
        for name, index in zip(names, self.model.inputIndex, strict=True):
            self.values[index] = self.builder.input(name, self.declared(index))
        for index, tensor in enumerate(self.model.allTensors):
            if tensor.data.fd >= 0:
                quantization = _quantization(index, tensor)
                self.values[index] = constant(
                    _elements(index, tensor), f"tensor_{index}", quantization
                )
        for node in _sort(self.model):
            self._add(node)
        names = _names([self.model.allTensors[i].name for i in self.model.outputIndex], "output")
        for name, index in zip(names, self.model.outputIndex, strict=True):
            self.builder.output(name, self._value(index))
        return ReadModel(self.builder.build(), self.nodes, self.refused)

    def declared(self, index: int) -> TensorType:
        """Return a tensor's type, with a symbol per dynamic dimension."""
        tensor = self.model.allTensors[index]
        shape = tuple(
            symbol(f"tensor_{index}_{axis}") if size < 0 else size
            for axis, size in enumerate(tensor.dims)
        )
        return TensorType(element_type(tensor.dataType), shape, _quantization(index, tensor))

    def _add(self, position: int) -> None:
        node, first = self.model.nodes[position], len(self.builder.operations)
        try:
            results = self._import_node(node)
        except Error as error:
            reason = str(error)
        except Exception as error:  # a malicious node must not break the import of others
            reason = f"{type(error).__name__}: {error}"
        else:
            self.values.update(zip(node.outputIndex, results, strict=True))
            self.nodes += [position] * (len(self.builder.operations) - first)
            return
        del self.builder.operations[first:]
        self.refused[position] = f"{node.nodeType.name}: {reason}"
        for output, index in enumerate(node.outputIndex):
            name = self.builder.unique_name(f"node_{position}_{output}")
            self.values[index] = self.builder.input(name, self.declared(index))

    def _import_node(self, node: Node) -> Sequence[Operand]:
        attributes = operands_of(self.supported.decode(node))
        inputs = [self._value(index) for index in node.inputIndex]
        declared = [self.declared(index) for index in node.outputIndex]
        tensors = self.model.allTensors
        self.builder.origins = (
            Origin(
                node.nodeType.name,
                tuple(tensors[index].name for index in node.inputIndex),
                tuple(tensors[index].name for index in node.outputIndex),
            ),
        )
        for entry in self.supported.rows.get(node.nodeType, ()):
            missing = [None] * max(entry.inputs - len(inputs), 0)
            operands = [*inputs, *missing, *(attributes[name] for name in entry.attributes)]
            if not entry.row.fits(operands, declared):
                continue
            if entry.image:
                self._check_formats(node)
            channels_last = tensors[node.inputIndex[0]].format is not Format.FORMAT_NCHW
            name = self.builder.unique_name(type_name(node))
            results = import_operation(
                entry.row, self.builder, operands, declared, name, channels_last
            )
            _check_results(results, declared)
            return results
        raise ModelError("there is no such case of it")

    def _check_formats(self, node: Node) -> None:
        """Raise `ModelError` if the node's input and output images have different layouts."""
        tensors = [self.model.allTensors[i] for i in (node.inputIndex[0], *node.outputIndex[:1])]
        layouts = {
            tensor.format is Format.FORMAT_NCHW for tensor in tensors if len(tensor.dims) > 2
        }
        if len(layouts) > 1:
            raise ModelError("the image that it makes has another format than the one it reads")

    def _value(self, index: int) -> Operand:
        if index not in self.values:
            raise _invalid(f"tensor {index} is no constant, and nothing makes it")
        return self.values[index]


def element_type(data_type: DataType) -> ElementType:
    """Return crosschip's element type.

    Raises:
        HdiError: the type is unknown.
    """
    code = HDI_CODES[ElementType].get(data_type)
    if code is None:
        raise _invalid(f"there are no tensors of {data_type.name}")
    return ElementType.from_code(code)


def type_name(node: Node) -> str:
    """Return the name of a node's operator in messages."""
    return node.nodeType.name.removeprefix("NODE_TYPE_").lower()


def _check(model: Model) -> None:
    """Raise `HdiError` if an index or a size is out of range, or a tensor is defined twice."""
    count = len(model.allTensors)
    for index, tensor in enumerate(model.allTensors):
        _check_tensor(index, tensor)
    _check_indices("inputs of the model", model.inputIndex, count, unique=True)
    _check_indices("outputs of the model", model.outputIndex, count, unique=True)
    constants = {i for i, tensor in enumerate(model.allTensors) if tensor.data.fd >= 0}
    computed: set[int] = set()
    defined = constants | set(model.inputIndex)
    for position, node in enumerate(model.nodes):
        _check_indices(f"inputs of node {position}", node.inputIndex, count)
        _check_indices(f"outputs of node {position}", node.outputIndex, count, unique=True)
        if not node.inputIndex or not node.outputIndex:
            raise _invalid(f"node {position} has no inputs, or no outputs")
        redefined = defined & set(node.outputIndex)
        if redefined:
            raise _invalid(
                f"tensor {min(redefined)}, which node {position} makes, is made elsewhere, is a "
                "constant or an input of the model"
            )
        defined |= set(node.outputIndex)
        computed |= set(node.outputIndex)
    if constants & set(model.inputIndex):
        raise _invalid("a constant is an input of the model")
    _check_parts(model)


def _check_parts(model: Model) -> None:
    if len(model.subGraph) > 1:
        raise HdiError(ReturnCode.HDF_ERR_NOT_SUPPORT, "the model has several sub-graphs")
    for part in model.subGraph:
        _check_indices("inputs of the sub-graph", part.inputIndices, len(model.allTensors))
        _check_indices("outputs of the sub-graph", part.outputIndices, len(model.allTensors))
        _check_indices("nodes of the sub-graph", part.nodeIndices, len(model.nodes), unique=True)
        if len(part.nodeIndices) != len(model.nodes):
            raise _invalid("the sub-graph is not all of the model")


def _check_indices(name: str, indices: Sequence[int], count: int, *, unique: bool = False) -> None:
    for index in indices:
        if not 0 <= index < count:
            raise _invalid(f"{name}: there is no {index}, but {count}")
    if unique and len(set(indices)) < len(indices):
        raise _invalid(f"{name}: {list(indices)} has an index twice")


def _check_tensor(index: int, tensor: Tensor) -> None:
    if len(tensor.dims) > MAX_RANK:
        raise _invalid(f"tensor {index}: has {len(tensor.dims)} axes, more than {MAX_RANK}")
    if any(size < -1 for size in tensor.dims):
        raise _invalid(f"tensor {index}: has the sizes {list(tensor.dims)}")
    count = math.prod(size for size in tensor.dims if size > 0)
    if count > _MAX_ELEMENTS:
        raise _invalid(f"tensor {index}: has {count} elements")
    if tensor.data.fd < -1:
        raise _invalid(f"tensor {index}: fd is {tensor.data.fd}")
    element_type(tensor.dataType)
    _quantization(index, tensor)


def _quantization(index: int, tensor: Tensor) -> Quantization | None:
    params: Sequence[QuantParam] = tensor.quantParams
    if not params:
        return None
    axis = None
    if len(params) > 1:
        axis = quantized_axis(tensor.dims, len(params))
        if axis is None:
            raise _invalid(f"tensor {index}: has no channels for {len(params)} scales")
    integer = element_type(tensor.dataType)
    if {param.numBits for param in params} != {BITS} or integer.dtype.itemsize * 8 != BITS:
        raise _invalid(f"tensor {index}: quantized integers must have {BITS} bits")
    try:
        scales = tuple(param.scale for param in params)
        return Quantization(scales, tuple(param.zeroPoint for param in params), axis)
    except ValueError as error:
        raise _invalid(f"tensor {index}: {error}") from None


def _elements(index: int, tensor: Tensor) -> Array:
    """Return a constant's elements."""
    dtype = element_type(tensor.dataType).dtype
    if min(tensor.dims, default=0) < 0:
        raise _invalid(f"tensor {index}: is a constant with an open size")
    expected = math.prod(tensor.dims) * dtype.itemsize
    if tensor.data.dataSize != expected:
        raise _invalid(
            f"tensor {index}: takes {expected} bytes, but its data has {tensor.data.dataSize}"
        )
    content = read(tensor.data, constant=True)
    array = content != 0 if dtype.kind == "b" else align(content, dtype.alignment).view(dtype)
    return array.reshape(tensor.dims)


def _sort(model: Model) -> Iterator[int]:
    """Yield the indices of the nodes in topological order."""
    producers = {
        index: position for position, node in enumerate(model.nodes) for index in node.outputIndex
    }
    dependencies = {
        position: [producers[index] for index in node.inputIndex if index in producers]
        for position, node in enumerate(model.nodes)
    }
    try:
        yield from graphlib.TopologicalSorter(dependencies).static_order()
    except graphlib.CycleError:
        raise _invalid("a node reads what follows from its own output") from None


def _check_results(results: Sequence[Operand], declared: Sequence[TensorType]) -> None:
    if len(results) != len(declared):
        raise ModelError(f"makes {len(results)} outputs, not {len(declared)}")
    for operand, expected in zip(results, declared, strict=True):
        plain = TensorType(operand.type.element_type, operand.type.shape)
        if not plain.fits(TensorType(expected.element_type, expected.shape)):
            raise ModelError(f"makes {operand.type}, not {expected}")


def _names(names: Sequence[str], stem: str) -> Sequence[str]:
    """Return the names if all differ and none is empty, else numbered ones."""
    counts = Counter(names)
    if "" in counts or max(counts.values(), default=0) > 1:
        return [f"{stem}{index}" for index in range(len(names))]
    return names


def _invalid(message: str) -> HdiError:
    return HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, message)
