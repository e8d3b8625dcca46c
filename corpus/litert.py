"""TensorFlow Lite files as LiteRT reads and runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from crosschip.ir import Array

SUFFIX = ".tflite"

_DEQUANTIZE = schema.BuiltinOperator.DEQUANTIZE
_BYTES = (schema.TensorType.INT8, schema.TensorType.UINT8)
_OF_DELEGATES = b"Convolution2DTransposeBias"
"""A custom operator that LiteRT runs in its XNNPACK delegate alone."""


def declared(path: Path) -> Iterator[tuple[str, list[int | str], np.dtype[np.generic]]]:
    """Of each input: its name, its sizes, "" for those left open, and its elements' type."""
    for name, tensor in _inputs(Interpreter(str(path))).items():
        sizes = tensor["shape_signature"].tolist()
        yield name, ["" if size < 0 else size for size in sizes], np.dtype(tensor["dtype"])


def by_tensor(path: Path, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs by the names of their tensors, as engines call them that read no signatures."""
    tensors = _inputs(Interpreter(str(path)))
    return {tensors[name]["name"]: array for name, array in inputs.items()}


def answer(path: Path, inputs: Mapping[str, Array], *, delegated: bool = False) -> list[Array]:
    """The outputs of a first run, in the order of the file.

    Args:
        path: of the file.
        inputs: by name; the sizes of the file's inputs are changed to theirs.
        delegated: by XNNPACK, as far as it takes the operators, instead of the reference kernels.
    """
    of_delegates = _OF_DELEGATES in path.read_bytes()
    resolvers = OpResolverType.AUTO, OpResolverType.BUILTIN_REF
    interpreter = Interpreter(
        str(path),
        experimental_op_resolver_type=resolvers[not delegated and not of_delegates],
        num_threads=1,
    )
    tensors = _inputs(interpreter)
    for name, tensor in tensors.items():
        if tuple(tensor["shape"]) != inputs[name].shape:
            interpreter.resize_tensor_input(tensor["index"], inputs[name].shape)
    interpreter.allocate_tensors()
    for name, tensor in tensors.items():
        interpreter.set_tensor(tensor["index"], inputs[name])
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def steps(path: Path) -> Sequence[float]:
    """For each output, one step of the integers of eight bits that it is dequantized from, or 0."""
    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    graph = model.subgraphs[0]
    result = dict.fromkeys(map(int, graph.outputs), 0.0)
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        if max(code.builtinCode, code.deprecatedBuiltinCode) == _DEQUANTIZE:
            source, output = graph.tensors[operator.inputs[0]], int(operator.outputs[0])
            if output in result and source.type in _BYTES:
                result[output] = float(source.quantization.scale[0])
    return list(result.values())


def _inputs(interpreter: Interpreter) -> dict[str, dict[str, Any]]:
    """The inputs by name: that of the only signature, if there is one, else that of the tensor."""
    signatures = interpreter.get_signature_list()
    if len(signatures) == 1:
        [key] = signatures
        details: dict[str, dict[str, Any]] = interpreter.get_signature_runner(
            key
        ).get_input_details()
        return details
    return {tensor["name"]: tensor for tensor in interpreter.get_input_details()}
