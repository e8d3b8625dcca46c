"""Reproductions: files of one operator, written with LiteRT's own schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter

from crosschip.devices.kits.quirks import Quirk, Quirks
from crosschip.ir import Array
from crosschip.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """An operator, whose first inputs are those of the run.

    Attributes:
        code: the operator's name in the schema.
        options: the schema's table of options; `None` for none.
        constants: the inputs after those of the run.
        outputs: the types and shapes of the outputs; by default that of the first input.
        scales: the scales of tensors, inputs before outputs; 0 for tensors without one.
        version: the operator's version.
    """

    code: str
    options: Any = None
    constants: Sequence[Array] = ()
    outputs: Sequence[tuple[type, Sequence[int]]] = ()
    scales: Sequence[float] = ()
    version: int = 1


def options(name: str, **values: Any) -> Any:
    """Return a table of options, such as `Pool2DOptions`, with some fields set."""
    table = getattr(schema, f"{name}T")()
    for field_name, value in values.items():
        setattr(table, field_name, value)
    return table


def _run(reproduction: Callable[[], Node], quirk: Quirk) -> list[Array]:
    node = reproduction()
    interpreter = Interpreter(model_content=_file(node, quirk.inputs))
    interpreter.allocate_tensors()
    for index, array in enumerate(quirk.inputs):
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return [interpreter.get_tensor(detail["index"]) for detail in details]


def _file(node: Node, inputs: Sequence[Array]) -> bytes:
    """Return a file of one operator."""
    import flatbuffers

    arrays = [*inputs, *node.constants]
    outputs = node.outputs or [(inputs[0].dtype.type, inputs[0].shape)]
    model = schema.ModelT()
    model.version = 3
    model.buffers = [schema.BufferT()]
    model.operatorCodes = [_code(node)]
    graph = schema.SubGraphT()
    graph.tensors = [_tensor(array.dtype.type, array.shape) for array in arrays]
    graph.tensors += [_tensor(*output) for output in outputs]
    for tensor, array in zip(graph.tensors[len(inputs) : len(arrays)], node.constants, strict=True):
        tensor.buffer = len(model.buffers)
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(array.tobytes(), np.uint8)
    for tensor, scale in zip(graph.tensors, node.scales, strict=False):
        if scale:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = [scale], [0]
    graph.inputs = list(range(len(inputs)))
    graph.outputs = list(range(len(arrays), len(graph.tensors)))
    operator = schema.OperatorT()
    operator.inputs, operator.outputs = list(range(len(arrays))), graph.outputs
    if node.options is not None:
        name = type(node.options).__name__.removesuffix("T")
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, name)
        operator.builtinOptions = node.options
    graph.operators = [operator]
    model.subgraphs = [graph]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _code(node: Node) -> Any:
    code = schema.OperatorCodeT()
    code.builtinCode = getattr(schema.BuiltinOperator, node.code)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.version = node.version
    return code


def _tensor(type_: type, shape: Sequence[int]) -> Any:
    tensor = schema.TensorT()
    tensor.shape = list(shape)
    tensor.type = getattr(schema.TensorType, np.dtype(type_).name.upper())
    return tensor


quirk = Quirks("litert", "2.3.0", _run)
