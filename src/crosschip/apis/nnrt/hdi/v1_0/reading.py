"""Models of the interface read as standard models; nothing that comes in is believed."""

from __future__ import annotations

import graphlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError, ReturnCode
from crosschip.apis.nnrt.hdi.v1_0.memory import aligned, elements
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0, Nodes, operands_of
from crosschip.apis.nnrt.hdi.v1_0.types import DataType, Format, Model, Node, QuantParam, Tensor
from crosschip.apis.nnrt.hdi.v1_0.writing import BITS
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

_MOST_ELEMENTS = 1 << 60


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A standard model that was read from one of the interface.

    Attributes:
        model: the model; what a refused node makes is an input of it.
        nodes: for each operation of the model, the node that it is part of.
        refused: for each node that no operation stands for, why.
    """

    model: StandardModel
    nodes: Sequence[int]
    refused: Mapping[int, str]


def read_model(model: Model, nodes: Nodes = V1_0) -> StandardModel:
    """Put a model of the interface into standard operators.

    Its inputs and outputs are called as their tensors are, or `input0` and `output0` and so on
    where these have no names, or the same.

    Args:
        model: the model.
        nodes: the nodes of the interface's version.

    Raises:
        HdiError: the model is damaged.
        UnsupportedError: a node is not one that a standard operator stands for.
    """
    parts = read_parts(model, nodes)
    for node, why in parts.refused.items():
        raise UnsupportedError(f"node {node}: {why}")
    return parts.model


def read_parts(model: Model, nodes: Nodes = V1_0) -> ReadModel:
    """Put those nodes of a model into standard operators for which that can be done.

    Args:
        model: the model.
        nodes: the nodes of the interface's version.

    Raises:
        HdiError: the model as a whole is damaged.
    """
    _check(model)
    return _Reader(model, nodes).read()


@dataclass
class _Reader:
    """The reading of a model whose indices have been checked."""

    model: Model
    known: Nodes
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
        for place in _ordered(self.model):
            self._add(place)
        names = _names([self.model.allTensors[i].name for i in self.model.outputIndex], "output")
        for name, index in zip(names, self.model.outputIndex, strict=True):
            self.builder.output(name, self._value(index))
        return ReadModel(self.builder.build(), self.nodes, self.refused)

    def declared(self, index: int) -> TensorType:
        """Return the type of a tensor, with a name for each open size."""
        tensor = self.model.allTensors[index]
        shape = tuple(
            symbol(f"tensor_{index}_{axis}") if size < 0 else size
            for axis, size in enumerate(tensor.dims)
        )
        return TensorType(element_type(tensor.dataType), shape, _quantization(index, tensor))

    def _add(self, place: int) -> None:
        node, before = self.model.nodes[place], len(self.builder.operations)
        try:
            results = self._import_node(node)
        except Error as error:
            why = str(error)
        except Exception as error:  # a rule that a hostile node surprises must harm nobody else
            why = f"{type(error).__name__}: {error}"
        else:
            self.values.update(zip(node.outputIndex, results, strict=True))
            self.nodes += [place] * (len(self.builder.operations) - before)
            return
        del self.builder.operations[before:]
        self.refused[place] = f"{node.nodeType.name}: {why}"
        for output, index in enumerate(node.outputIndex):
            name = self.builder.unique_name(f"node_{place}_{output}")
            self.values[index] = self.builder.input(name, self.declared(index))

    def _import_node(self, node: Node) -> Sequence[Operand]:
        attributes = operands_of(self.known.decoded(node))
        read = [self._value(index) for index in node.inputIndex]
        declared = [self.declared(index) for index in node.outputIndex]
        tensors = self.model.allTensors
        self.builder.origins = (
            Origin(
                node.nodeType.name,
                tuple(tensors[index].name for index in node.inputIndex),
                tuple(tensors[index].name for index in node.outputIndex),
            ),
        )
        for entry in self.known.rows.get(node.nodeType, ()):
            missing = [None] * max(entry.inputs - len(read), 0)
            operands = [*read, *missing, *(attributes[name] for name in entry.attributes)]
            if not entry.row.fits(operands, declared):
                continue
            if entry.image:
                self._check_formats(node)
            last = tensors[node.inputIndex[0]].format is not Format.FORMAT_NCHW
            name = self.builder.unique_name(type_name(node))
            results = import_operation(entry.row, self.builder, operands, declared, name, last)
            _check_results(results, declared)
            return results
        raise ModelError("there is no such case of it")

    def _check_formats(self, node: Node) -> None:
        """`ModelError` if the image that a node makes is stored in another order than its own."""
        tensors = [self.model.allTensors[i] for i in (node.inputIndex[0], *node.outputIndex[:1])]
        orders = {one.format is Format.FORMAT_NCHW for one in tensors if len(one.dims) > 2}
        if len(orders) > 1:
            raise ModelError("the image that it makes has another format than the one it reads")

    def _value(self, index: int) -> Operand:
        if index not in self.values:
            raise _invalid(f"tensor {index} is no constant, and nothing makes it")
        return self.values[index]


def element_type(data_type: DataType) -> ElementType:
    """Return the type of elements that a number stands for.

    Raises:
        HdiError: it is not known.
    """
    code = HDI_CODES[ElementType].get(data_type)
    if code is None:
        raise _invalid(f"there are no tensors of {data_type.name}")
    return ElementType.from_code(code)


def type_name(node: Node) -> str:
    """What messages call the operation of a node."""
    return node.nodeType.name.removeprefix("NODE_TYPE_").lower()


def _check(model: Model) -> None:
    """`HdiError` if an index, a size or an order in a model is impossible."""
    count = len(model.allTensors)
    for index, tensor in enumerate(model.allTensors):
        _check_tensor(index, tensor)
    _check_indices("inputs of the model", model.inputIndex, count, unique=True)
    _check_indices("outputs of the model", model.outputIndex, count, unique=True)
    constants = {i for i, tensor in enumerate(model.allTensors) if tensor.data.fd >= 0}
    computed: set[int] = set()
    defined = constants | set(model.inputIndex)
    for place, node in enumerate(model.nodes):
        _check_indices(f"inputs of node {place}", node.inputIndex, count)
        _check_indices(f"outputs of node {place}", node.outputIndex, count, unique=True)
        if not node.inputIndex or not node.outputIndex:
            raise _invalid(f"node {place} has no inputs, or no outputs")
        again = defined & set(node.outputIndex)
        if again:
            raise _invalid(
                f"tensor {min(again)}, which node {place} makes, is made elsewhere, is a constant "
                "or an input of the model"
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


def _check_indices(what: str, indices: Sequence[int], count: int, *, unique: bool = False) -> None:
    for index in indices:
        if not 0 <= index < count:
            raise _invalid(f"{what}: there is no {index}, but {count}")
    if unique and len(set(indices)) < len(indices):
        raise _invalid(f"{what}: {list(indices)} has an index twice")


def _check_tensor(index: int, tensor: Tensor) -> None:
    if len(tensor.dims) > MAX_RANK:
        raise _invalid(f"tensor {index}: has {len(tensor.dims)} axes, more than {MAX_RANK}")
    if any(size < -1 for size in tensor.dims):
        raise _invalid(f"tensor {index}: has the sizes {list(tensor.dims)}")
    known = math.prod(size for size in tensor.dims if size > 0)
    if known > _MOST_ELEMENTS:
        raise _invalid(f"tensor {index}: has {known} elements")
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
    if {one.numBits for one in params} != {BITS} or integer.dtype.itemsize * 8 != BITS:
        raise _invalid(f"tensor {index}: quantized integers must have {BITS} bits")
    try:
        scales = tuple(one.scale for one in params)
        return Quantization(scales, tuple(one.zeroPoint for one in params), axis)
    except ValueError as error:
        raise _invalid(f"tensor {index}: {error}") from None


def _elements(index: int, tensor: Tensor) -> Array:
    """Return the elements of a constant."""
    dtype = element_type(tensor.dataType).dtype
    if min(tensor.dims, default=0) < 0:
        raise _invalid(f"tensor {index}: is a constant with an open size")
    expected = math.prod(tensor.dims) * dtype.itemsize
    if tensor.data.dataSize != expected:
        raise _invalid(
            f"tensor {index}: takes {expected} bytes, but its data has {tensor.data.dataSize}"
        )
    held = elements(tensor.data, constant=True)
    array = held != 0 if dtype.kind == "b" else aligned(held, dtype.alignment).view(dtype)
    return array.reshape(tensor.dims)


def _ordered(model: Model) -> Iterator[int]:
    """Yield the places of the nodes, each after those that make what it reads."""
    makers = {index: place for place, node in enumerate(model.nodes) for index in node.outputIndex}
    needed = {
        place: [makers[index] for index in node.inputIndex if index in makers]
        for place, node in enumerate(model.nodes)
    }
    try:
        yield from graphlib.TopologicalSorter(needed).static_order()
    except graphlib.CycleError:
        raise _invalid("a node reads what follows from its own output") from None


def _check_results(results: Sequence[Operand], declared: Sequence[TensorType]) -> None:
    if len(results) != len(declared):
        raise ModelError(f"makes {len(results)} outputs, not {len(declared)}")
    for operand, wanted in zip(results, declared, strict=True):
        plain = TensorType(operand.type.element_type, operand.type.shape)
        if not plain.fits(TensorType(wanted.element_type, wanted.shape)):
            raise ModelError(f"makes {operand.type}, not {wanted}")


def _names(names: Sequence[str], stem: str) -> Sequence[str]:
    """Return a name for each; those that are given where none is empty or there twice."""
    counts = Counter(names)
    if "" in counts or max(counts.values(), default=0) > 1:
        return [f"{stem}{place}" for place in range(len(names))]
    return names


def _invalid(message: str) -> HdiError:
    return HdiError(ReturnCode.HDF_ERR_INVALID_PARAM, message)
