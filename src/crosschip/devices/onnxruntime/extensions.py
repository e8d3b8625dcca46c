"""ONNX operations that are outside of the standard set, as models that ONNX Runtime runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import onnx
import onnxruntime
from google.protobuf.message import EncodeError
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, helper

from crosschip.devices.onnxruntime.saved import OnnxModel
from crosschip.hal import YES, Rule, Support
from crosschip.ir import DeviceError, ElementType, Extension, Model
from crosschip.ir.types import NARROW_INTEGERS

FRAMEWORK = "onnx"

_STANDARD_DOMAINS = ("", "ai.onnx")
_SILENT = 4
_PACKED = NARROW_INTEGERS | {ElementType.FLOAT4E2M1}
"""The element types of which several share a byte in ONNX."""


def supports(operation: Extension) -> Support:
    """Whether ONNX Runtime takes an operation, as far as its version of the operators says."""
    if operation.framework != FRAMEWORK:
        return Support.no(operation, "", "is not an operation of ONNX", Rule.OPERATOR)
    payload = ModelProto.FromString(operation.payload)
    asked, newest = _opset(payload), _newest().opset
    if asked > newest and not all(_is_same(node, asked, newest) for node in _nodes(payload)):
        told = (
            f"is of opset {asked}, but ONNX Runtime {onnxruntime.__version__} knows operators "
            f"up to {newest}"
        )
        return Support.no(operation, "", told, Rule.OPERATOR)
    computed = (o for o in operation.inputs if o is not None and not o.is_constant)
    for operand in (*computed, *operation.outputs):
        if operand.type.element_type in _PACKED:
            told = (
                f"{operand.name!r} is {operand.type.element_type}, which ONNX Runtime packs into "
                f"bytes: it does not come in or out"
            )
            return Support.no(operation, "", told, Rule.ELEMENT_TYPE)
    return YES


def onnx_model(model: Model, operation: Extension) -> OnnxModel:
    """The ONNX model for a model of one extension operation, with its constants in it.

    ONNX Runtime does not find the constants of graphs in nodes again if they are outside, and does
    not read all that it writes of such graphs when it has optimized them. So it gets them as here.

    Raises:
        DeviceError: it would be too large for protobuf, with its constants.
    """
    proto = ModelProto.FromString(operation.payload)
    newest, graph = _newest(), proto.graph
    proto.ir_version = min(proto.ir_version, newest.ir_version)
    for entry in proto.opset_import:
        if entry.domain in _STANDARD_DOMAINS:
            entry.version = min(entry.version, newest.opset)
    declared = {value.name: value for value in [*graph.input, *graph.output]}
    first: dict[object, str] = {}
    same: list[NodeProto] = []
    pairs = [(o, v.name) for o, v in zip(operation.inputs, graph.input, strict=True)]
    for operand, name in pairs:
        assert operand is not None, "an extension lists the inputs that it has"
        if operand.value is not None:
            graph.initializer.append(onnx.numpy_helper.from_array(operand.value, name))
        elif operand in first:
            same.append(helper.make_node("Identity", [first[operand]], [name]))
        else:
            first[operand] = name
    made = dict(zip(operation.outputs, (value.name for value in graph.output), strict=True))
    _replace(graph.node, [*same, *graph.node])
    _replace(graph.input, [declared[first[o]] for o in model.inputs.values()])
    _replace(graph.output, [declared[made[o]] for o in model.outputs.values()])
    try:
        return OnnxModel(proto.SerializeToString(), {})
    except EncodeError as error:
        raise DeviceError(f"onnxruntime: {operation.type} {operation.name!r}: {error}") from error


class _Newest:
    """The newest versions that ONNX Runtime accepts.

    Attributes:
        opset: of the standard operators.
        ir_version: of the file format.
    """

    def __init__(self, opset: int, ir_version: int) -> None:
        self.opset = opset
        self.ir_version = ir_version


@lru_cache(maxsize=1)
def _newest() -> _Newest:
    """ONNX Runtime does not say what it accepts, but refuses at once what it does not."""
    oldest = 8
    ir_version = next(v for v in range(onnx.IR_VERSION, 0, -1) if _accepts(oldest, v))
    opset = next(v for v in range(defs.onnx_opset_version(), 0, -1) if _accepts(v, ir_version))
    return _Newest(opset, ir_version)


def _accepts(opset: int, ir_version: int) -> bool:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value], [])
    graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1]))
    imports = [helper.make_operatorsetid("", opset)]
    proto = helper.make_model(graph, ir_version=ir_version, opset_imports=imports)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _SILENT
    options.intra_op_num_threads = 1
    try:
        onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # the engine's exceptions have no base class
        return False
    return True


def _replace(field: object, values: Iterable[NodeProto] | Iterable[ValueInfoProto]) -> None:
    """Put other messages in a repeated field."""
    kept = list(values)
    del field[:]  # type: ignore[attr-defined]  # a repeated field, which has no public type
    field.extend(kept)  # type: ignore[attr-defined]  # as above


def _opset(proto: ModelProto) -> int:
    return max(
        (entry.version for entry in proto.opset_import if entry.domain in _STANDARD_DOMAINS),
        default=1,
    )


def _is_same(node: NodeProto, opset: int, other: int) -> bool:
    """Whether two versions of the operators mean the same by a node."""
    if node.domain not in _STANDARD_DOMAINS:
        return True
    try:
        found, wanted = (defs.get_schema(node.op_type, v, "") for v in (opset, other))
    except defs.SchemaError:
        return False
    return bool(found.since_version == wanted.since_version)


def _nodes(proto: ModelProto) -> Iterator[NodeProto]:
    """All nodes of a model, those of its functions and of the graphs that nodes hold too."""
    pending = [*proto.graph.node, *(node for f in proto.functions for node in f.node)]
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            pending.extend(attribute.g.node)
            for graph in attribute.graphs:
                pending.extend(graph.node)
