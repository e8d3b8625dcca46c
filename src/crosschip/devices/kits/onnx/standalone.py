"""Segments as self-contained ONNX files, for compilers that read them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from crosschip.devices.kits.onnx import control
from crosschip.devices.kits.onnx.converters import converters
from crosschip.devices.kits.onnx.converters.quantization import add_dequantize, add_quantize
from crosschip.devices.kits.onnx.graph import OPSET, Graph
from crosschip.devices.kits.onnx.lowering import lower
from crosschip.devices.kits.onnx.model import EXTERNAL_BYTES, OnnxModel
from crosschip.ir import ControlFlow, ElementType, Model, Operand, Operation, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.standard.quantization import Dequantize, Quantize

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

OLDEST_OPSET = 17
NEWEST_OPSET = 25
_REDUCTIONS_BY_INPUT = 18
"""The version since which all reductions read their axes from an input."""
_SAMPLING_WITHOUT_PREFIX = 20
"""The version since which GridSample's modes are called linear and cubic."""
_SAMPLING = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The ONNX subset that a compiler supports, by its vendor's documentation; sizes are static.

    Attributes:
        opset: the version of the standard operators, 17 to 25.
        operators: the supported ONNX operators; `None` if they are not documented.
        types: the element types.
        max_rank: the maximum rank of tensors; `None` if unlimited.
        real_boundary: whether inputs and outputs must be real. Quantized ones are float32 in the
            file then, and are converted in runs.
        contributed: whether ONNX Runtime's own operators are supported, too.
        workarounds: whether nodes are added for values that ONNX Runtime computes unlike ONNX's
            definitions: NaN, integers that overflow, tensors without elements.
    """

    opset: int = OPSET
    operators: frozenset[str] | None = None
    types: frozenset[ElementType]
    max_rank: int | None = None
    real_boundary: bool = False
    contributed: bool = False
    workarounds: bool = True

    def __post_init__(self) -> None:
        if not OLDEST_OPSET <= self.opset <= NEWEST_OPSET:
            raise ValueError(f"opset {self.opset} is not between {OLDEST_OPSET} and {NEWEST_OPSET}")


@dataclass(frozen=True, slots=True)
class Written:
    """A segment as ONNX.

    Attributes:
        model: the ONNX model.
        labels: the operations by the prefix of their node names.
    """

    model: OnnxModel
    labels: Mapping[str, Operation]

    def named_in(self, text: str) -> list[Operation]:
        """Return the operations whose nodes a text names, in order."""
        operations = {
            self.labels[label]
            for label in re.findall(r"(?<!\w)([A-Za-z0-9_]+_op\d+)(?!\w)", text)
            if label in self.labels
        }
        return [operation for operation in self.labels.values() if operation in operations]


def on_reals(operation: Operation) -> Operation:
    """Return a quantized operation on real tensors; other operations unchanged.

    ONNX compilers recognize a quantized operation by the conversions before and after it.
    """
    if not isinstance(operation, Operator) or isinstance(operation, Quantize | Dequantize):
        return operation
    if not operation.quantized_inputs():
        return operation
    inputs = [_real(o) if o and o.type.quantization else o for o in operation.inputs]
    outputs = [_real(o) if o.type.quantization else o for o in operation.outputs]
    real = type(operation)(operation.name, tuple(inputs), tuple(outputs))
    return real.standing_for(operation)


def boundary(operands: Iterable[Operand], dialect: Dialect) -> list[Operand]:
    """Return inputs or outputs with their types in the file."""
    real = dialect.real_boundary
    return [_real(o) if real and o.type.quantization else o for o in operands]


def write(model: Model, dialect: Dialect, amend: Callable[[ModelProto], None]) -> Written:
    """Write a model of supported operations.

    Args:
        model: the model.
        dialect: the ONNX subset.
        amend: a further rewrite of the ONNX model that keeps its meaning.

    Raises:
        CompileError: an operation cannot be written; the error names it.
    """
    written = _write(Graph, model, dialect)
    proto = _parse(written.model.proto)
    amend(proto)
    return Written(OnnxModel(proto.SerializeToString(), written.model.external), written.labels)


def _parse(proto: bytes) -> ModelProto:
    # Imported late: importing a device must be cheap.
    from onnx import ModelProto

    return ModelProto.FromString(proto)


def fingerprint(model: Model, dialect: Dialect) -> str:
    """Return the SHA-256 of a model's file, in hexadecimal, without names and large constants.

    Raises:
        CompileError: an operation cannot be written; the error names it.
    """
    written = _write(_Outline, model, dialect)
    proto = _parse(written.model.proto)
    for node in proto.graph.node:
        node.ClearField("name")
    return hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()


def unwritable(model: Model, dialect: Dialect) -> str:
    """Return what a dialect lacks for a model of operations with converters; empty if nothing."""
    written = _write(_Outline, model, dialect)
    proto = _parse(written.model.proto)
    for node in proto.graph.node:
        if not dialect.contributed and not _is_standard(node):
            return f"ONNX has no {node.op_type}"
    if dialect.operators is not None:
        lacking = sorted({node.op_type for node in proto.graph.node} - dialect.operators)
        if lacking:
            return f"the compiler does not have ONNX's {lacking[0]}"
    return "" if dialect.opset == OPSET else _missing_in_opset(proto, dialect.opset)


def _is_standard(node: NodeProto) -> bool:
    from onnx import defs

    return not node.domain and bool(defs.has(node.op_type))


def _missing_in_opset(proto: ModelProto, opset: int) -> str:
    """Return what an opset lacks for a model; empty if nothing."""
    from onnx import defs, shape_inference

    for node in filter(_is_standard, proto.graph.node):
        try:
            schema = defs.get_schema(node.op_type, opset, "")
        except defs.SchemaError:
            return f"opset {opset} of ONNX has no {node.op_type}"
        for attribute in node.attribute:
            if attribute.name not in schema.attributes:
                return f"{node.op_type} has no {attribute.name} in opset {opset} of ONNX"
    try:
        shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except Exception as error:  # onnx's own errors have no common base class
        return f"not in opset {opset} of ONNX: {str(error).strip().splitlines()[0]}"
    return ""


class _Outline(Graph):
    """A graph with zeros in place of large constants, which need not be loaded then."""

    def __getitem__(self, operand: Operand) -> str:
        shape = operand.type.static_shape
        if operand.is_constant and shape is not None and operand not in self._names:
            dtype = operand.type.element_type.dtype
            if prod(shape) * dtype.itemsize >= EXTERNAL_BYTES:
                self.bind(operand, self.constant(np.zeros(shape, dtype)))
        return super().__getitem__(operand)


def _write(kind: type[Graph], model: Model, dialect: Dialect) -> Written:
    graph = kind(boundary(model.inputs.values(), dialect), workarounds=dialect.workarounds)
    labels: dict[str, Operation] = {}
    graph.label = "inputs"
    for operand, real in zip(model.inputs.values(), graph.inputs, strict=True):
        if operand is not real:
            graph.bind(operand, add_quantize(graph, graph[real], operand))
    for index, operation in enumerate(model.operations):
        graph.label = f"{re.sub('[^A-Za-z0-9_]', '_', operation.name)}_op{index}"
        labels[graph.label] = operation
        graph.define(operation, _convert(graph, operation))
    graph.label = "outputs"
    declared = boundary(model.outputs.values(), dialect)
    for operand, real in zip(model.outputs.values(), declared, strict=True):
        if operand is not real:
            graph.bind(real, add_dequantize(graph, graph[operand], operand))
    onnx_model = graph.finish(declared)
    if dialect.opset == OPSET:
        return Written(onnx_model, labels)
    from onnx import helper

    proto = _parse(onnx_model.proto)
    proto.opset_import[0].version = dialect.opset
    proto.ir_version = helper.find_min_ir_version_for(proto.opset_import, ignore_unknown=True)
    _downgrade(proto.graph, dialect.opset, {})
    return Written(OnnxModel(proto.SerializeToString(), onnx_model.external), labels)


def _convert(graph: Graph, operation: Operation) -> Sequence[str]:
    """Return the value names of an operation's outputs."""
    reals = on_reals(operation)
    if reals is operation:
        return _convert_parts(graph, operation)
    for operand, real in zip(operation.inputs, reals.inputs, strict=True):
        if operand is not None and real is not None and operand is not real:
            graph.bind(real, add_dequantize(graph, graph[operand], operand))
    names = _convert_parts(graph, reals)
    return [
        add_quantize(graph, name, operand) if operand.type.quantization else name
        for name, operand in zip(names, operation.outputs, strict=True)
    ]


def _convert_parts(graph: Graph, operation: Operation) -> Sequence[str]:
    if isinstance(operation, ControlFlow):
        control.add_operation(graph, operation, graph.label)
        return [graph[output] for output in operation.outputs]
    for part in lower(operation, workarounds=graph.workarounds):
        graph.define(part, converters.convert(graph, part))
    return [graph[output] for output in operation.outputs]


def _real(operand: Operand) -> Operand:
    """Return a float32 operand with the shape of a quantized one."""
    return Operand(operand.name, TensorType(ElementType.FLOAT32, operand.type.shape))


def _downgrade(graph: GraphProto, opset: int, outer: Mapping[str, TensorProto]) -> None:
    """Rewrite the nodes of a graph and its subgraphs to older versions of their operators.

    Args:
        graph: the graph.
        opset: the version of the standard operators.
        outer: the constants of the graphs around it, by name.
    """
    constants = {**outer, **{tensor.name: tensor for tensor in graph.initializer}}
    for node in graph.node:
        if node.op_type == "GridSample" and opset < _SAMPLING_WITHOUT_PREFIX:
            for attribute in node.attribute:
                if attribute.name == "mode":
                    attribute.s = _SAMPLING[attribute.s.decode()].encode()
        if node.op_type.startswith("Reduce") and opset < _REDUCTIONS_BY_INPUT:
            _move_axes_to_attribute(node, constants)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _downgrade(attribute.g, opset, constants)


def _move_axes_to_attribute(node: NodeProto, constants: Mapping[str, TensorProto]) -> None:
    """Rewrite the constant axes of a reduction to the attribute of older versions."""
    from onnx import helper, numpy_helper

    if node.op_type == "ReduceSum" or len(node.input) < 2 or node.input[1] not in constants:
        return
    axes = numpy_helper.to_array(constants[node.input[1]]).tolist()
    if not axes:
        return  # older versions then reduce all axes
    del node.input[1:]
    others = [a for a in node.attribute if a.name != "noop_with_empty_axes"]
    del node.attribute[:]
    node.attribute.extend([*others, helper.make_attribute("axes", axes)])
