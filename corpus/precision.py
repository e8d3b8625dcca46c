"""The precision that a model file computes with, and gives its answers in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from corpus.entry import Entry

_STORED = ("Cast", "DequantizeLinear")
"""Operators on constants that are stored in another type than is computed with."""

_BYTES = (TensorProto.INT8, TensorProto.UINT8)


def shortest_reals(entry: Entry) -> str:
    """The shortest type of constant reals that the model computes with, by its name in NumPy."""
    if entry.file.suffix == ".tflite":
        return "float32"  # LiteRT's kernels dequantize weights in float16
    graph = _graph(entry)
    read = {name for node in graph.node if node.op_type not in _STORED for name in node.input}
    is_half = any(t.data_type == TensorProto.FLOAT16 and t.name in read for t in graph.initializer)
    return "float16" if is_half else "float32"


def steps(entry: Entry) -> Sequence[float]:
    """For each output, one step of the integers of eight bits that it is dequantized from, or 0."""
    if entry.file.suffix == ".tflite":
        from corpus import litert

        return litert.steps(entry.file)
    graph = _graph(entry)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    found = dict.fromkeys((output.name for output in graph.output), 0.0)
    for node in graph.node:
        if node.op_type == "DequantizeLinear" and node.output[0] in found:
            scale, zero_point = (constants.get(name) for name in (*node.input[1:], "")[:2])
            if scale is not None and zero_point is not None and zero_point.data_type in _BYTES:
                found[node.output[0]] = float(np.max(numpy_helper.to_array(scale)))
    return list(found.values())


def _graph(entry: Entry) -> onnx.GraphProto:
    return onnx.load(entry.file, load_external_data=False).graph
