"""TensorFlow Lite files of lowered models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from crosschip.devices.kits.tflite.encoding import (
    CODES,
    OPTIONS,
    Activation,
    MirrorPadMode,
    Padding,
    Type,
    encode,
)
from crosschip.devices.kits.tflite.native import Native
from crosschip.ir import ElementType, Model, Operand, Operation
from crosschip.ir.types import NARROW_INTEGERS

_VERSION = 3
_PLACEHOLDER = 127
"""The code in the byte that held it before there were more operators than it can tell."""

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
        *("RELU", "RELU6", "RELU_N1_TO_1", "LOGISTIC", "TANH", "FLOOR", "CEIL", "ROUND", "LOG"),
        *("SQRT", "RSQRT", "SIN", "PRELU", "ELU", "SQUARED_DIFFERENCE"),
    }
)


_ENUMERATIONS: Mapping[str, type[IntEnum]] = {
    "padding": Padding,
    "fused_activation_function": Activation,
    "mode": MirrorPadMode,
}
_VERSIONS = {"BROADCAST_TO": 2}


def options_table(code: str) -> str:
    """Return the name of an operator's options table; empty if it has none."""
    if code in _WITHOUT_OPTIONS:
        return ""
    words = "".join(word.capitalize() for word in code.split("_"))
    return _OPTIONS.get(code, f"{words}Options")


class _Contents:
    """The tables of a file under construction: operator codes, buffers and tensors."""

    def __init__(self) -> None:
        self.buffers: list[dict[str, Any]] = [{}]
        self.tensors: list[dict[str, Any]] = []
        self.codes: list[dict[str, Any]] = []
        self._tensor_of: dict[Operand, int] = {}
        self._buffer_of: dict[bytes, int] = {}
        self._code_of: dict[str, int] = {}
        self._names: set[str] = set()

    def tensor(self, operand: Operand | None, name: str = "") -> int:
        """Return the index of an operand's tensor; add it on first use."""
        if operand is None:
            return -1
        if operand not in self._tensor_of:
            self._tensor_of[operand] = len(self.tensors)
            self.tensors.append(self._table(operand, name))
        return self._tensor_of[operand]

    def code(self, operation: Native) -> int:
        """Return the index of an operator's code; add it on first use."""
        code = operation.code
        if code not in self._code_of:
            self._code_of[code] = len(self.codes)
            number = CODES[code]
            old = min(number, _PLACEHOLDER)
            self.codes.append(
                {"builtin_code": number, "deprecated_builtin_code": old, "version": 1}
            )
        entry = self.codes[self._code_of[code]]
        entry["version"] = max(entry["version"], version_of(operation))
        return self._code_of[code]

    def _table(self, operand: Operand, name: str) -> dict[str, Any]:
        shape = operand.type.static_shape
        assert shape is not None, "the target requires it"
        table = {
            "shape": shape,
            "type": Type[operand.type.element_type.value.upper()],
            "buffer": self._buffer(operand),
            "name": self._unique(name or operand.name),
            "has_rank": True,
        }
        quantization = operand.type.quantization
        if quantization is not None:
            table["quantization"] = {
                "scale": np.array(quantization.scale, np.float32),
                "zero_point": np.array(quantization.zero_point, np.int64),
                "quantized_dimension": quantization.axis or 0,
            }
        return table

    def _buffer(self, operand: Operand) -> int:
        """Return the index of a constant's buffer; equal ones share it. 0 holds nothing."""
        value = operand.value
        if value is None:
            return 0
        data = _packed(operand, value)
        if data not in self._buffer_of:
            self._buffer_of[data] = len(self.buffers)
            self.buffers.append({"data": data})
        return self._buffer_of[data]

    def _unique(self, name: str) -> str:
        """Return a name that no other tensor has."""
        candidate, number = name, 0
        while candidate in self._names:
            number += 1
            candidate = f"{name}_{number}"
        self._names.add(candidate)
        return candidate


def contents(model: Model) -> dict[str, Any]:
    """Return the fields of a lowered model's file, by the schema's names.

    Codes of operators and names of enumerations are texts.
    """
    tables = _Contents()
    inputs = [tables.tensor(operand, name) for name, operand in model.inputs.items()]
    # Outputs get their names before operations produce them.
    outputs = [tables.tensor(operand, name) for name, operand in model.outputs.items()]
    operators = [_operator(tables, operation) for operation in model.operations]
    maps = {
        "inputs": _named(model.inputs, inputs),
        "outputs": _named(model.outputs, outputs),
    }
    return {
        "version": _VERSION,
        "description": "crosschip",
        "operator_codes": tables.codes,
        "subgraphs": [
            {
                "name": "main",
                "tensors": tables.tensors,
                "inputs": inputs,
                "outputs": outputs,
                "operators": operators,
            }
        ],
        "buffers": tables.buffers,
        "signature_defs": [{"signature_key": "serving_default", "subgraph_index": 0, **maps}],
    }


def _named(names: Iterable[str], tensors: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"name": name, "tensor_index": tensor} for name, tensor in zip(names, tensors, strict=True)
    ]


def _operator(tables: _Contents, operation: Operation) -> dict[str, Any]:
    assert isinstance(operation, Native), "the model is lowered"
    table = options_table(operation.code)
    options = {name: _number(name, value) for name, value in operation.options.items()}
    fields = {
        "opcode_index": tables.code(operation),
        "inputs": [tables.tensor(operand) for operand in operation.inputs],
        "outputs": [tables.tensor(operand) for operand in operation.outputs],
    }
    if table:
        fields |= {"builtin_options_type": OPTIONS[table], "builtin_options": (table, options)}
    return fields


def _number(name: str, value: Any) -> Any:
    """Return the value of an option: for a name of an enumeration its number."""
    if isinstance(value, ElementType):
        return Type[value.value.upper()]
    return _ENUMERATIONS[name][value] if isinstance(value, str) else value


def _packed(operand: Operand, value: Any) -> bytes:
    """Return the bytes of a constant; 4-bit integers are packed, the first in the low bits."""
    if operand.type.element_type not in NARROW_INTEGERS:
        return np.ascontiguousarray(value).tobytes()
    halves = np.append(value.ravel().view(np.uint8) & 15, np.zeros(value.size % 2, np.uint8))
    packed: bytes = (halves[::2] | halves[1::2] << 4).astype(np.uint8).tobytes()
    return packed


def version_of(operation: Native) -> int:
    """Return the version of an operator that its types, ranks and options need."""
    return _VERSIONS.get(operation.code, 1)


def to_bytes(model: Model) -> bytes:
    """Return a lowered model as the content of a file."""
    return bytes(encode(contents(model)))
