"""TensorFlow Lite files of lowered models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np

from crosschip.devices.kits.tflite.native import Native
from crosschip.devices.kits.tflite.versions import version_of
from crosschip.flatbuffer import Table, write
from crosschip.flatbuffer.schemas import tflite
from crosschip.flatbuffer.schemas.tflite.enumerations import (
    ActivationFunctionType,
    BuiltinOperator,
    MirrorPadMode,
    Padding,
    TensorType,
)
from crosschip.flatbuffer.schemas.tflite.options import BUILTIN_OPTIONS
from crosschip.hal import CompileError
from crosschip.ir import ElementType, Model, Operand, Operation
from crosschip.ir.types import NARROW_INTEGERS

_SCHEMA_VERSION = 3
_MAX_BYTES = 2**31 - 2**20

_OPTIONS_BY_NAME = {type_.__name__: type_ for type_ in BUILTIN_OPTIONS.values()}

_OPTIONS: Mapping[str, str] = {
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "TRANSPOSE_CONV": "TransposeConvOptions",
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "CONCATENATION": "ConcatenationOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "CUMSUM": "CumsumOptions",
    "PADV2": "PadV2Options",
    "SELECT_V2": "SelectV2Options",
    "TOPK_V2": "TopKV2Options",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "ATAN2": "ATan2Options",
    "ARG_MAX": "ArgMaxOptions",
    "ARG_MIN": "ArgMinOptions",
}
"""The options tables whose names do not follow from the operators' names."""

_WITHOUT_OPTIONS = frozenset(
    {
        *("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "LOGISTIC", "TANH", "ELU", "PRELU"),
        *(
            "REAL",
            "IMAG",
            "FLOOR",
            "CEIL",
            "ROUND",
            "LOG",
            "SQRT",
            "RSQRT",
            "SIN",
            "SQUARED_DIFFERENCE",
        ),
    }
)

_COMPLEX_OUTPUTS = frozenset({"RFFT2D"})
"""Operators whose outputs are complex numbers; lowered models declare these as float32."""

_ENUMERATIONS: Mapping[str, type[IntEnum]] = {
    "padding": Padding,
    "fused_activation_function": ActivationFunctionType,
    "mode": MirrorPadMode,
}


def options_type(code: str) -> type[Table] | None:
    """Return the type of an operator's options; `None` if it has none."""
    if code in _WITHOUT_OPTIONS:
        return None
    words = "".join(word.capitalize() for word in code.split("_"))
    return _OPTIONS_BY_NAME[_OPTIONS.get(code, f"{words}Options")]


class _File:
    """The tables of a file under construction: subgraphs, operator codes and buffers."""

    def __init__(self) -> None:
        self.subgraphs: list[tflite.SubGraph] = []
        self.buffers: list[tflite.Buffer] = [tflite.Buffer()]
        self.codes: list[tflite.OperatorCode] = []
        self._buffer_of: dict[bytes, int] = {}
        self._code_of: dict[str, int] = {}

    def add(self, model: Model, name: str) -> int:
        """Add a model, and after it the bodies in it, as subgraphs; return the model's index."""
        index = len(self.subgraphs)
        subgraph = tflite.SubGraph(name=name)
        self.subgraphs.append(subgraph)
        tensors = _Tensors(self)
        inputs = [tensors.index(each, key) for key, each in model.inputs.items()]
        subgraph.inputs = np.array(inputs, np.int32)
        # Outputs get their names before operations produce them.
        outputs = [tensors.index(each, key) for key, each in model.outputs.items()]
        subgraph.outputs = np.array(outputs, np.int32)
        subgraph.operators = [self._operator(tensors, each) for each in model.operations]
        subgraph.tensors = tensors.tables
        return index

    def buffer(self, operand: Operand) -> int:
        """Return the index of a constant's buffer; equal ones share it. 0 holds nothing."""
        value = operand.value
        if value is None:
            return 0
        data = _packed(operand, value)
        if data not in self._buffer_of:
            self._buffer_of[data] = len(self.buffers)
            self.buffers.append(tflite.Buffer(data=np.frombuffer(data, np.uint8)))
        return self._buffer_of[data]

    def _operator(self, tensors: _Tensors, operation: Operation) -> tflite.Operator:
        assert isinstance(operation, Native), "the model is lowered"
        type_ = options_type(operation.code)
        options = {name: _number(name, value) for name, value in operation.options.items()}
        if operation.bodies:
            bodies = [self.add(body, body.name) for body in operation.bodies]
            options = {name: bodies[index] for name, index in options.items()}
        return tflite.Operator(
            opcode_index=self._code(operation),
            inputs=[tensors.index(operand) for operand in operation.inputs],
            outputs=[tensors.output_index(operand, operation) for operand in operation.outputs],
            builtin_options=None if type_ is None else type_(**options),
        )

    def _code(self, operation: Native) -> int:
        """Return the index of an operator's code; add it on first use."""
        code = operation.code
        if code not in self._code_of:
            self._code_of[code] = len(self.codes)
            number = BuiltinOperator[code]
            # The byte that held the code before there were more of them than it can tell.
            old = min(number, BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES)
            table = tflite.OperatorCode(builtin_code=number, deprecated_builtin_code=old)
            self.codes.append(table)
        entry = self.codes[self._code_of[code]]
        entry.version = max(entry.version, version_of(operation))
        return self._code_of[code]


class _Tensors:
    """The tensors of a subgraph under construction.

    Args:
        file: the file.
    """

    def __init__(self, file: _File) -> None:
        self.tables: list[tflite.Tensor] = []
        self._file = file
        self._index_of: dict[Operand, int] = {}
        self._names: set[str] = set()

    def index(self, operand: Operand | None, name: str = "") -> int:
        """Return the index of an operand's tensor; add it on first use."""
        if operand is None:
            return -1
        if operand not in self._index_of:
            self._index_of[operand] = len(self.tables)
            self.tables.append(self._table(operand, name))
        return self._index_of[operand]

    def output_index(self, operand: Operand, operation: Native) -> int:
        """Return the index of an operation's output; add it on first use."""
        index = self.index(operand)
        if operation.code in _COMPLEX_OUTPUTS:
            self.tables[index].type = TensorType.COMPLEX64
        return index

    def _table(self, operand: Operand, name: str) -> tflite.Tensor:
        shape = operand.type.static_shape
        assert shape is not None, "the target requires it"
        quantization = operand.type.quantization
        return tflite.Tensor(
            shape=shape,
            type=_type_of(operand.type.element_type),
            buffer=self._file.buffer(operand),
            name=self._unique(name or operand.name),
            has_rank=True,
            quantization=quantization
            and tflite.QuantizationParameters(
                scale=quantization.scale,
                zero_point=quantization.zero_point,
                quantized_dimension=quantization.axis or 0,
            ),
        )

    def _unique(self, name: str) -> str:
        """Return a name that no other tensor has."""
        candidate, number = name, 0
        while candidate in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._names.add(candidate)
        return candidate


def to_bytes(model: Model) -> bytes:
    """Return a lowered model as the content of a file.

    Raises:
        CompileError: the model is too large for a FlatBuffer.
    """
    types = [operand.type for operand in model.constants]
    sizes = (prod(t.static_shape or ()) * t.element_type.dtype.itemsize for t in types)
    if sum(sizes) >= _MAX_BYTES:
        raise CompileError("the constants take 2 GiB or more, which no FlatBuffer can hold", [])
    file = _File()
    main = file.subgraphs[file.add(model, "main")]
    signature = tflite.SignatureDef(
        signature_key="serving_default",
        inputs=_named(model.inputs, main.inputs),
        outputs=_named(model.outputs, main.outputs),
    )
    return write(
        tflite.Model(
            version=_SCHEMA_VERSION,
            description="crosschip",
            operator_codes=file.codes,
            subgraphs=file.subgraphs,
            buffers=file.buffers,
            signature_defs=[signature],
        ),
        tflite.IDENTIFIER,
    )


def _named(names: Iterable[str], tensors: Any) -> list[tflite.TensorMap]:
    return [
        tflite.TensorMap(name=name, tensor_index=tensor)
        for name, tensor in zip(names, tensors, strict=True)
    ]


def _number(name: str, value: Any) -> Any:
    """Return the value of an option: for a name of an enumeration its number."""
    if isinstance(value, ElementType):
        return _type_of(value)
    return _ENUMERATIONS[name][value] if isinstance(value, str) else value


def _type_of(element_type: ElementType) -> TensorType:
    return TensorType[element_type.value.upper()]


def _packed(operand: Operand, value: Any) -> bytes:
    """Return the bytes of a constant; 4-bit integers are packed, the first in the low bits."""
    if operand.type.element_type not in NARROW_INTEGERS:
        return np.ascontiguousarray(value).tobytes()
    halves = np.append(value.ravel().view(np.uint8) & 15, np.zeros(value.size % 2, np.uint8))
    packed: bytes = (halves[::2] | halves[1::2] << 4).astype(np.uint8).tobytes()
    return packed
