"""ONNX operations outside the standard set: which of them ONNX Runtime supports, in which opset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import onnx
import onnxruntime
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, defs, helper
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

from crosschip.devices.kits.onnx.graph import OPSET
from crosschip.devices.onnxruntime.embedding import PACKED, Payloads, all_nodes, with_inner
from crosschip.hal import YES, Rule, Support
from crosschip.ir import Extension

FRAMEWORK = "onnx"

_STANDARD_DOMAINS = ("", "ai.onnx")
_SILENT = 4
_OPEN = 2**31 - 1


def supports(operation: Extension) -> Support:
    """Return whether ONNX Runtime supports an operation, by its version, kernels and types."""
    if operation.framework != FRAMEWORK:
        return Support.no(operation, "", "is not an operation of ONNX", Rule.OPERATOR)
    payload = ModelProto.FromString(operation.payload)
    opset, newest = _opset(payload), _newest().opset
    joins = _joins(payload)
    if not joins and not _means_the_same(payload, _target(payload)):
        detail = (
            f"is of opset {opset}, but ONNX Runtime {onnxruntime.__version__} knows operators "
            f"up to {newest}"
            if opset > newest
            else f"calls functions that are not of its own opset {opset}, which ONNX Runtime reads "
            f"as if they were"
        )
        return Support.no(operation, "", detail, Rule.OPERATOR)
    if not joins and (lacking := _without_kernel(payload)):
        engine = f"ONNX Runtime {onnxruntime.__version__}"
        detail = f"is of opset {opset}, but {engine} has no {lacking} of that"
        return Support.no(operation, "", detail, Rule.OPERATOR)
    if loses_strings(payload):
        detail = "ONNX Runtime loses strings where it gathers rows of them"
        return Support.no(operation, "", detail, Rule.ELEMENT_TYPE)
    computed = (o for o in operation.inputs if o is not None and not o.is_constant)
    for operand in (*computed, *operation.outputs):
        if operand.type.element_type in PACKED:
            detail = (
                f"{operand.name!r} is {operand.type.element_type}, which ONNX Runtime packs into "
                f"bytes: it does not come in or out"
            )
            return Support.no(operation, "", detail, Rule.ELEMENT_TYPE)
    return YES if joins else Support(True, dialect=f"opset {_target(payload)}")


def opset_of(payloads: Payloads) -> int:
    """Return the version of the standard operators for a graph with these operations.

    Operations whose `supports` names different opsets are never in one model.
    """
    dialects = {_target(payload) for payload in payloads.values() if not _joins(payload)}
    return max(dialects, default=OPSET)


def _target(proto: ModelProto) -> int:
    """Return the opset for a model that cannot use the converters' opset."""
    return min(_opset(proto), _newest().opset)


def _joins(proto: ModelProto) -> bool:
    """Return whether a model can be embedded in graphs of the converters' opset."""
    return _means_the_same(proto, OPSET)


def _means_the_same(proto: ModelProto, opset: int) -> bool:
    """Return whether a model's standard operators are unchanged in another opset.

    ONNX Runtime reads the nodes of functions in the opset of the enclosing model.
    """
    model_opset = _opset(proto)
    bodies = [(model_opset, proto.graph.node)]
    bodies += [(_opset(function), function.node) for function in proto.functions]
    return all(
        version == opset or all(_is_same(node, version, opset) for node in with_inner(nodes))
        for version, nodes in bodies
    )


class _Newest(NamedTuple):
    """The newest opset and IR version that ONNX Runtime accepts."""

    opset: int
    ir_version: int


@lru_cache(maxsize=1)
def _newest() -> _Newest:
    """Return the newest versions that ONNX Runtime accepts, found by trial."""
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


def _without_kernel(payload: ModelProto) -> str:
    """Return a standard operator of the model that has no kernel for its version; empty if none.

    A kernel without a last version computes only its first version.
    """
    target, kernels = _target(payload), _kernels()
    for node in with_inner(payload.graph.node):
        # Functions are expanded, and constants are folded.
        is_standard = node.domain in _STANDARD_DOMAINS and defs.has(node.op_type)
        if not is_standard or node.op_type == "Constant":
            continue
        schema = defs.get_schema(node.op_type, target, "")
        if schema.all_function_opset_versions:  # type: ignore[attr-defined]  # its types lack it
            continue
        since = schema.since_version
        if not any(
            first == since or (last != _OPEN and first <= since <= last)
            for first, last in kernels.get(node.op_type, ())
        ):
            return str(node.op_type)
    return ""


@lru_cache(maxsize=1)
def _kernels() -> Mapping[str, Sequence[tuple[int, int]]]:
    """Return the version ranges of the processor's kernels, by standard operator."""
    versions: dict[str, list[tuple[int, int]]] = {}
    for kernel in get_all_opkernel_def():
        if kernel.domain in _STANDARD_DOMAINS and kernel.provider == "CPUExecutionProvider":
            versions.setdefault(kernel.op_name, []).append(kernel.version_range)
    return versions


def _opset(proto: ModelProto | FunctionProto) -> int:
    return max(
        (entry.version for entry in proto.opset_import if entry.domain in _STANDARD_DOMAINS),
        default=1,
    )


def _is_same(node: NodeProto, opset: int, other: int) -> bool:
    """Return whether two opsets define the same version of a node's operator."""
    if node.domain not in _STANDARD_DOMAINS:
        return True
    try:
        schema, other_schema = (defs.get_schema(node.op_type, v, "") for v in (opset, other))
    except defs.SchemaError:
        return False
    return bool(schema.since_version == other_schema.since_version)


def loses_strings(proto: ModelProto) -> bool:
    """Return whether a node gathers rows of strings (quirk `rows-of-strings`).

    In a model with strings, data of unknown type counts as strings.
    """
    tensors = {value.name: value.type.tensor_type for value in proto.graph.input}
    kinds = {name: tensor.elem_type for name, tensor in tensors.items()}
    ranks = {name: len(t.shape.dim) for name, t in tensors.items() if t.HasField("shape")}
    kinds.update((tensor.name, tensor.data_type) for tensor in proto.graph.initializer)
    ranks.update((tensor.name, len(tensor.dims)) for tensor in proto.graph.initializer)
    return TensorProto.STRING in kinds.values() and any(
        node.op_type == "Gather"
        and kinds.get(node.input[0], TensorProto.STRING) == TensorProto.STRING
        and next((a.i for a in node.attribute if a.name == "axis"), 0)
        not in (-1, ranks.get(node.input[0], 0) - 1)
        for node in all_nodes(proto)
    )
