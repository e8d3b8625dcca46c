"""A sound file with many operators, several subgraphs, a variable, metadata and labels."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from crosschip.flatbuffer import write
from crosschip.flatbuffer.schemas import tflite_metadata as metadata

_CODES, _TYPES = schema.BuiltinOperator, schema.TensorType
_ELEMENT_TYPES = {
    np.dtype(np.float32): _TYPES.FLOAT32,
    np.dtype(np.int32): _TYPES.INT32,
    np.dtype(np.int8): _TYPES.INT8,
    np.dtype(np.bool_): _TYPES.BOOL,
}

METADATA = metadata.ModelMetadata(
    name="classifier",
    description="Tells cats from dogs",
    version="7",
    author="A. Thor",
    subgraph_metadata=[
        metadata.SubGraphMetadata(
            input_tensor_metadata=[
                metadata.TensorMetadata(
                    name="picture",
                    content=metadata.Content(
                        content_properties=metadata.ImageProperties(
                            color_space=1, default_size=metadata.ImageSize(width=8, height=8)
                        )
                    ),
                    process_units=[
                        metadata.ProcessUnit(
                            options=metadata.NormalizationOptions(
                                mean=np.array([127.5]), std=np.array([128.0])
                            )
                        )
                    ],
                )
            ],
            output_tensor_metadata=[
                metadata.TensorMetadata(
                    name="probability",
                    associated_files=[metadata.AssociatedFile(name="labels.txt", type=2)],
                )
            ],
        )
    ],
)


class Writer:
    """Builds a file with LiteRT's own classes of the schema."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.description = b"written by a test"
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes, self.model.subgraphs = [], []
        self.model.metadata, self.model.signatureDefs = [], []

    def subgraph(self) -> None:
        """Begin a subgraph, to which tensors and operators are added."""
        graph = schema.SubGraphT()
        graph.tensors, graph.operators, graph.inputs, graph.outputs = [], [], [], []
        self.model.subgraphs.append(graph)

    def tensor(
        self, shape: Sequence[int], dtype: Any = np.float32, *, scales: Sequence[float] = ()
    ) -> int:
        """Add a tensor and return its index."""
        return self._tensor(shape, _ELEMENT_TYPES[np.dtype(dtype)], scales)

    def handle(self) -> int:
        """Add the handle of a variable and return its index."""
        return self._tensor((), _TYPES.RESOURCE, ())

    def constant(self, array: np.ndarray, *, scales: Sequence[float] = ()) -> int:
        """Add a constant and return its index."""
        index = self._tensor(array.shape, _ELEMENT_TYPES[array.dtype], scales)
        self._graph.tensors[index].buffer = self._buffer(array.tobytes())
        return index

    def operator(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: str = "",
        version: int = 1,
        **fields: Any,
    ) -> None:
        """Add an operator; `fields` are those of its options."""
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(_CODES, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), version
        self.model.operatorCodes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self.model.operatorCodes) - 1
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        if options:
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, options)
            operator.builtinOptions = getattr(schema, f"{options}T")()
            vars(operator.builtinOptions).update(fields)
        self._graph.operators.append(operator)

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Declare the inputs and outputs of the subgraph."""
        self._graph.inputs, self._graph.outputs = list(inputs), list(outputs)

    def add_metadata(self, name: str, content: bytes) -> None:
        """Add metadata."""
        entry = schema.MetadataT()
        entry.name, entry.buffer = name, self._buffer(content)
        self.model.metadata.append(entry)

    def file(self) -> bytes:
        """Return the file."""
        return packed(self.model)

    @property
    def _graph(self) -> Any:
        return self.model.subgraphs[-1]

    def _tensor(self, shape: Sequence[int], type_: int, scales: Sequence[float]) -> int:
        tensor = schema.TensorT()
        tensor.name = f"tensor{len(self._graph.tensors)}"
        tensor.shape, tensor.type, tensor.buffer = list(shape), type_, 0
        if scales:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale = np.array(scales, np.float32)
            tensor.quantization.zeroPoint = np.zeros(len(scales), np.int64)
        self._graph.tensors.append(tensor)
        return len(self._graph.tensors) - 1

    def _buffer(self, content: bytes) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(content, np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1


def packed(model: Any) -> bytes:
    """Return the file of a model of LiteRT's classes."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def sample() -> Writer:
    """Return the file, without labels."""
    w, rng = Writer(), np.random.default_rng(0)

    def weights(*shape: int) -> int:
        return w.constant(rng.standard_normal(shape).astype(np.float32))

    def integers(*values: int) -> int:
        return w.constant(np.array(values, np.int32))

    w.subgraph()
    x, y = w.tensor((1, 8, 8, 3)), w.tensor((1, 4, 4, 4))
    w.operator("CALL_ONCE", [], [], "CallOnceOptions", initSubgraphIndex=3)
    strides: dict[str, Any] = {"strideW": 2, "strideH": 2}
    w.operator("CONV_2D", [x, weights(4, 3, 3, 3), weights(4)], [y], "Conv2DOptions", **strides)
    z = w.tensor((1, 4, 4, 4))
    unit: dict[str, Any] = {"strideW": 1, "strideH": 1, "depthMultiplier": 1}
    depthwise = "DepthwiseConv2DOptions"
    w.operator("DEPTHWISE_CONV_2D", [y, weights(1, 3, 3, 4), weights(4)], [z], depthwise, **unit)
    p = w.tensor((1, 2, 2, 4))
    windows = strides | {"filterWidth": 2, "filterHeight": 2}
    w.operator("MAX_POOL_2D", [z], [p], "Pool2DOptions", **windows)
    r = w.tensor((1, 4, 4, 4))
    w.operator("RESIZE_BILINEAR", [p, integers(4, 4)], [r], "ResizeBilinearOptions")
    a = w.tensor((1, 4, 4, 4))
    w.operator("ADD", [r, z], [a], "AddOptions", fusedActivationFunction=1)
    c = w.tensor((1, 4, 4, 8))
    w.operator("CONCATENATION", [a, z], [c], "ConcatenationOptions", axis=3)
    s = w.tensor((1, 2, 4, 4))
    ends = [integers(0, 0, 0, 0), integers(1, 4, 4, 8), integers(1, 2, 1, 2)]
    w.operator("STRIDED_SLICE", [c, *ends], [s], "StridedSliceOptions", beginMask=1)
    m = w.tensor((1, 4))
    w.operator("MEAN", [s, integers(1, 2)], [m], "ReducerOptions")
    h = w.handle()
    w.operator("VAR_HANDLE", [], [h], "VarHandleOptions", sharedName=b"state")
    past, sum_ = w.tensor((1, 4)), w.tensor((1, 4))
    w.operator("READ_VARIABLE", [h], [past], "ReadVariableOptions")
    w.operator("ADD", [past, m], [sum_], "AddOptions")
    w.operator("ASSIGN_VARIABLE", [h, sum_], [], "AssignVariableOptions")
    f = w.tensor((1, 4))
    w.operator("FULLY_CONNECTED", [sum_, weights(4, 4), weights(4)], [f], "FullyConnectedOptions")
    q, qd = w.tensor((1, 4), np.int8, scales=[0.1]), w.tensor((1, 2), np.int8, scales=[0.2])
    w.operator("QUANTIZE", [f], [q], "QuantizeOptions")
    stored = w.constant(rng.integers(-127, 127, (2, 4)).astype(np.int8), scales=[0.05])
    bias = w.constant(np.array([3, -4], np.int32), scales=[0.005])
    w.operator("FULLY_CONNECTED", [q, stored, bias], [qd], "FullyConnectedOptions", version=4)
    d, most, limit = w.tensor((1, 2)), w.tensor((1,)), w.tensor((1,), np.bool_)
    w.operator("DEQUANTIZE", [qd], [d], "DequantizeOptions", version=2)
    w.operator("REDUCE_MAX", [d, integers(1)], [most], "ReducerOptions")
    zero = w.constant(np.zeros((1,), np.float32))
    w.operator("GREATER", [most, zero], [limit], "GreaterOptions")
    i = w.tensor((1, 2))
    w.operator("IF", [limit, d], [i], "IfOptions", thenSubgraphIndex=1, elseSubgraphIndex=2)
    o = w.tensor((1, 2))
    w.operator("SOFTMAX", [i], [o], "SoftmaxOptions", beta=1.0)
    w.finish([x], [o])
    for name in ("TANH", "LOGISTIC"):
        w.subgraph()
        before, after = w.tensor((1, 2)), w.tensor((1, 2))
        w.operator(name, [before], [after])
        w.finish([before], [after])
    w.subgraph()
    begun, first = w.handle(), w.constant(np.array([[1, 2, 0, -1]], np.float32))
    w.operator("VAR_HANDLE", [], [begun], "VarHandleOptions", sharedName=b"state")
    w.operator("ASSIGN_VARIABLE", [begun, first], [], "AssignVariableOptions")
    w.finish([], [])
    w.add_metadata("min_runtime_version", b"2.9.0\0\0\0")
    w.add_metadata("TFLITE_METADATA", write(METADATA, metadata.IDENTIFIER))
    return w


def with_labels(data: bytes) -> bytes:
    """Return a file with labels, in a zip archive at its end."""
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("labels.txt", "cat\ndog\n")
    return stream.getvalue()
