"""ONNX operations outside the standard set, run by ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, TypeProto, helper
from onnx.reference import ReferenceEvaluator

from crosschip.hal import YES, Rule, Support
from crosschip.ir import Array, DeviceError, ElementType, Extension, Operand
from crosschip.ops.definition.kernel import Kernel

FRAMEWORK = "onnx"

_STRING = TensorProto.STRING

_CHANGED = {"Hardmax": 13, "LogSoftmax": 13, "RoiAlign": 16, "Softmax": 13}
"""The first opset for which the evaluator is right; it computes the same in all opsets."""


def supports(operation: Extension) -> Support:
    """Return whether the evaluator implements an operation with its subgraphs."""
    if operation.framework != FRAMEWORK:
        return Support.no(operation, "", "is not an operation of ONNX", Rule.OPERATOR)
    proto = ModelProto.FromString(operation.payload)
    texts = {v.name for v in proto.graph.input if v.type.tensor_type.elem_type == _STRING}
    texts.update(t.name for t in proto.graph.initializer if t.data_type == _STRING)
    problem = next(filter(None, (_wrong(n, opset, texts) for n, opset in _all_nodes(proto))), "")
    try:
        ReferenceEvaluator(proto)
    except Exception as error:  # it raises whatever its operators do
        problem = problem or f"does not have it ({_first_line(error)})"
    if not problem:
        return YES
    reason = operation.reason or "is not a standard operator"
    detail = f"{reason}, and ONNX's own evaluator {problem}"
    return Support.no(operation, "", detail, Rule.OPERATOR)


def kernel(operation: Extension) -> Kernel:
    """Return a kernel that runs the evaluator.

    The kernel raises `DeviceError` if the evaluator fails, or if a result's type differs from the
    model's declaration.
    """
    evaluator = ReferenceEvaluator(ModelProto.FromString(operation.payload))
    types = dict(zip(evaluator.input_names, evaluator.input_types, strict=True))
    declared = list(zip(operation.outputs, evaluator.output_types, strict=True))

    def run(inputs: Sequence[Array | None]) -> tuple[Array, ...]:
        feed = dict(zip(types, map(_read_only, inputs), strict=True))
        for name, value in feed.items():
            if not _fits(value, types[name]):
                raise DeviceError(f"{name!r} is {_brief(value)}, which the model does not take")
        try:
            with np.errstate(all="ignore"):
                results = evaluator.run(None, feed)
        except Exception as error:  # it raises whatever its operators do
            raise DeviceError(f"ONNX's evaluator: {_first_line(error)}") from error
        return tuple(
            _as_declared(output, type_, value)
            for (output, type_), value in zip(declared, results, strict=True)
        )

    return run


def _all_nodes(proto: ModelProto) -> Iterator[tuple[NodeProto, int]]:
    """Yield all nodes with their opsets, including those of functions and subgraphs."""
    pending = [(node, _opset(proto)) for node in proto.graph.node]
    pending += [(node, _opset(function)) for function in proto.functions for node in function.node]
    while pending:
        node, opset = pending.pop()
        yield node, opset
        for attribute in node.attribute:
            pending.extend((inner, opset) for inner in attribute.g.node)


def _opset(proto: ModelProto | FunctionProto) -> int:
    return next((entry.version for entry in proto.opset_import if not entry.domain), 1)


def _wrong(node: NodeProto, opset: int, texts: Collection[str]) -> str:
    """Return the evaluator's known error for a node; empty if there is none.

    Args:
        node: a node of any graph or function of the model.
        opset: the version of the standard operators.
        texts: the names of inputs and constants of strings.
    """
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "OneHot" and node.input[-1] in texts:
        return "has no OneHot of strings"
    if opset < _CHANGED.get(node.op_type, 0):
        return f"has {node.op_type} from opset {_CHANGED[node.op_type]} on"
    if node.op_type == "ImageDecoder" and find_spec("PIL") is None:
        return "decodes pictures with Pillow, which is not installed; pip install pillow"
    if node.op_type == "Optional":
        return "makes a list of an optional value"
    if node.op_type == "Loop" and "body" in attributes:
        if len(node.input) > 1 and not node.input[1]:
            return "makes no trip of a Loop without a condition"
        states = max(0, len(node.input) - 2)
        if len(attributes["body"].g.output) > 1 + states:
            return "does not stack what a Loop collects along a new axis"
    if node.op_type == "Scan" and "num_scan_inputs" in attributes:
        axes = [a for name in _SCAN_AXES if name in attributes for a in attributes[name].ints]
        if "directions" in attributes or any(axes):
            return "scans along the first axis only"
    return ""


_SCAN_AXES = ("scan_input_axes", "scan_output_axes")


def _read_only(value: Any) -> Any:
    """Return a value whose arrays the evaluator cannot modify."""
    if isinstance(value, list):
        return [_read_only(element) for element in value]
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


def _fits(value: Any, type_: TypeProto) -> bool:
    """Return whether a value has a type, apart from shapes."""
    match type_.WhichOneof("value"):
        case "sequence_type":
            inner = type_.sequence_type.elem_type
            return isinstance(value, list) and all(_fits(element, inner) for element in value)
        case "optional_type":
            return value is None or _fits(value, type_.optional_type.elem_type)
        case "map_type":
            return isinstance(value, dict)
    dtype = helper.tensor_dtype_to_np_dtype(type_.tensor_type.elem_type)
    return isinstance(value, np.ndarray) and bool(value.dtype == dtype)


def _as_declared(output: Operand, type_: TypeProto, value: Any) -> Any:
    """Return the evaluator's result in the form that models use.

    Raises:
        DeviceError: its element type or shape differs from the model's declaration.
    """
    plain = _plain(value)
    is_tensor = output.type.element_type is not ElementType.OBJECT
    if not _fits(plain, type_) or (is_tensor and not output.type.admits(plain)):
        raise DeviceError(
            f"{output.name!r} is {_brief(plain)}, but the model declares {output.type}; "
            f"correct its declaration"
        )
    return plain


def _plain(value: Any) -> Any:
    """Copy a value; maps get Python numbers and strings."""
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return {_scalar(key): _scalar(element) for key, element in value.items()}
    if value is None:
        return None
    array = np.array(value)
    return array.astype(object) if array.dtype.kind in "UT" else array


def _scalar(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _brief(value: Any) -> str:
    """Describe the type of a value for messages."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, list) and value:
        return f"a list of {', '.join(dict.fromkeys(map(_brief, value)))}"
    return "none" if value is None else type(value).__name__


def _first_line(error: Exception) -> str:
    """Return the first line of an exception's message, or its class name if empty."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
