"""ONNX's protobuf messages and functions that create them, without the rest of the onnx library.

Importing `onnx` takes longer than reading most models, because of schemas and checkers. Here only
its generated module of messages is loaded. The classes are the same as those of `onnx`, because
protobuf has one class per message in a process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from numbers import Integral, Real
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.ir.types import ElementType

if TYPE_CHECKING:
    from onnx import AttributeProto as AttributeProto
    from onnx import FunctionProto as FunctionProto
    from onnx import GraphProto as GraphProto
    from onnx import ModelProto as ModelProto
    from onnx import NodeProto as NodeProto
    from onnx import OperatorSetIdProto as OperatorSetIdProto
    from onnx import SparseTensorProto as SparseTensorProto
    from onnx import StringStringEntryProto as StringStringEntryProto
    from onnx import TensorProto as TensorProto
    from onnx import TensorShapeProto as TensorShapeProto
    from onnx import TypeProto as TypeProto
    from onnx import ValueInfoProto as ValueInfoProto

_GENERATED = "onnx_ml_pb2"


def _messages() -> ModuleType:
    """Return the module with the messages: the generated one, or `onnx` if it has no such file."""
    spec = None if "onnx" in sys.modules else find_spec("onnx")
    if spec is not None and spec.origin is not None:
        generated = Path(spec.origin).with_name(f"{_GENERATED}.py")
        # Under another name, so that a later import of `onnx` loads its own module.
        module_spec = spec_from_file_location(f"{__name__}.{_GENERATED}", generated)
        if generated.is_file() and module_spec is not None and module_spec.loader is not None:
            module = module_from_spec(module_spec)
            module_spec.loader.exec_module(module)
            return module
    return import_module("onnx")


if not TYPE_CHECKING:
    _module = _messages()
    globals().update({name: kind for name, kind in vars(_module).items() if name[-5:] == "Proto"})

ELEMENT_TYPES: dict[int, ElementType] = {
    TensorProto.FLOAT: ElementType.FLOAT32,
    TensorProto.UINT8: ElementType.UINT8,
    TensorProto.INT8: ElementType.INT8,
    TensorProto.UINT16: ElementType.UINT16,
    TensorProto.INT16: ElementType.INT16,
    TensorProto.INT32: ElementType.INT32,
    TensorProto.INT64: ElementType.INT64,
    TensorProto.BOOL: ElementType.BOOL,
    TensorProto.FLOAT16: ElementType.FLOAT16,
    TensorProto.DOUBLE: ElementType.FLOAT64,
    TensorProto.UINT32: ElementType.UINT32,
    TensorProto.UINT64: ElementType.UINT64,
    TensorProto.BFLOAT16: ElementType.BFLOAT16,
    TensorProto.FLOAT8E4M3FN: ElementType.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ: ElementType.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2: ElementType.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ: ElementType.FLOAT8E5M2FNUZ,
    TensorProto.FLOAT8E8M0: ElementType.FLOAT8E8M0,
    TensorProto.FLOAT4E2M1: ElementType.FLOAT4E2M1,
    TensorProto.INT4: ElementType.INT4,
    TensorProto.UINT4: ElementType.UINT4,
    TensorProto.INT2: ElementType.INT2,
    TensorProto.UINT2: ElementType.UINT2,
}
"""The element type for each ONNX data type of numbers that has one."""

OPERAND_TYPES = {**ELEMENT_TYPES, TensorProto.STRING: ElementType.STRING}
"""The same, with strings, which only extension operations read and write."""

CODES = {known: code for code, known in OPERAND_TYPES.items()}
"""The ONNX data type for each element type that has one."""

_SINGLE = (
    (Integral, "i", AttributeProto.INT),
    (Real, "f", AttributeProto.FLOAT),
    (bytes, "s", AttributeProto.STRING),
    (TensorProto, "t", AttributeProto.TENSOR),
    (GraphProto, "g", AttributeProto.GRAPH),
)
_MANY = (
    (Integral, "ints", AttributeProto.INTS),
    (Real, "floats", AttributeProto.FLOATS),
    (bytes, "strings", AttributeProto.STRINGS),
)
"""The Python type of a value or of a list's elements, the field, and the attribute's type."""


def make_attribute(name: str, value: object) -> AttributeProto:
    """Create an attribute: a number, text, tensor, graph, or list of numbers or texts.

    Raises:
        TypeError: the value has another type, or is an empty list.
    """
    value = value.encode() if isinstance(value, str) else value
    for kind, field, code in _SINGLE:
        if isinstance(value, kind):
            # protobuf does not accept bool as an integer.
            return _attribute(name, code, field, int(value) if isinstance(value, bool) else value)
    if isinstance(value, Iterable):
        values = [each.encode() if isinstance(each, str) else each for each in value]
        for kind, field, code in _MANY if values else ():
            if all(isinstance(each, kind) for each in values):
                return _attribute(name, code, field, values)
    raise TypeError(f"{value!r} is no value of the attribute {name!r}")


def _attribute(
    name: str, code: AttributeProto.AttributeType, field: str, value: Any
) -> AttributeProto:
    return AttributeProto(name=name, type=code, **{field: value})


def make_node(
    type: str,
    inputs: Iterable[str],
    outputs: Iterable[str],
    name: str = "",
    domain: str = "",
    **attributes: object,
) -> NodeProto:
    """Create a node; attributes that are `None` are left out."""
    attributes_list = [
        make_attribute(n, value) for n, value in sorted(attributes.items()) if value is not None
    ]
    message = NodeProto(op_type=type, input=inputs, output=outputs, attribute=attributes_list)
    if name:
        message.name = name
    if domain:
        message.domain = domain
    return message


def tensor_type(code: int, shape: Sequence[int | str | None] | None) -> TypeProto:
    """Create the type of a tensor.

    Args:
        code: the ONNX data type of the elements.
        shape: sizes, names of dynamic sizes, and `None` for unnamed ones; `None` for a dynamic
            rank.
    """
    message = TypeProto(tensor_type=TypeProto.Tensor(elem_type=code))
    if shape is not None:
        message.tensor_type.shape.SetInParent()
        for size in shape:
            dim = message.tensor_type.shape.dim.add()
            if isinstance(size, str):
                dim.dim_param = size
            elif size is not None:
                dim.dim_value = size
    return message


def code_of(dtype: np.dtype) -> int:
    """Return the ONNX data type of an array's elements."""
    return CODES[ElementType.of(dtype)]


def operator_sets(versions: Mapping[str, int]) -> list[OperatorSetIdProto]:
    """Create a model's list of operator sets from the versions by domain."""
    return [OperatorSetIdProto(domain=domain, version=v) for domain, v in versions.items()]
