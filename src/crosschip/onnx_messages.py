"""ONNX's protobuf messages, and how they are made, without the rest of the onnx library.

Importing `onnx` takes longer than most models take to be read: schemas, checkers and other forms of
files come with it. The messages are one generated module in it, which is loaded here alone. Their
classes are those of `onnx`, whichever of the two is imported first: protobuf has one class for each
message of a process.
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
    """The module that has them: the generated one, or `onnx` itself where that has no such file."""
    spec = None if "onnx" in sys.modules else find_spec("onnx")
    if spec is not None and spec.origin is not None:
        generated = Path(spec.origin).with_name(f"{_GENERATED}.py")
        # It has a name of its own here, so that `onnx` finds all its modules as it expects them.
        found = spec_from_file_location(f"{__name__}.{_GENERATED}", generated)
        if generated.is_file() and found is not None and found.loader is not None:
            module = module_from_spec(found)
            found.loader.exec_module(module)
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
"""The same, with that of strings, which only extension operations read and make."""

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
"""The Python type of a value, or of each value of a list, the field for it, and what it says."""


def make_attribute(name: str, value: object) -> AttributeProto:
    """An attribute of a node: a number, a text, a tensor, a graph, or a list of numbers or texts.

    Raises:
        TypeError: the value is something else, or a list with nothing in it.
    """
    value = value.encode() if isinstance(value, str) else value
    for kind, field, code in _SINGLE:
        if isinstance(value, kind):
            # Yes and no are integers, but not to protobuf.
            return _filled(name, code, field, int(value) if isinstance(value, bool) else value)
    if isinstance(value, Iterable):
        values = [each.encode() if isinstance(each, str) else each for each in value]
        for kind, field, code in _MANY if values else ():
            if all(isinstance(each, kind) for each in values):
                return _filled(name, code, field, values)
    raise TypeError(f"{value!r} is no value of the attribute {name!r}")


def _filled(
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
    """A node with attributes, of which those that are `None` are left out."""
    given = [
        make_attribute(n, value) for n, value in sorted(attributes.items()) if value is not None
    ]
    made = NodeProto(op_type=type, input=inputs, output=outputs, attribute=given)
    if name:
        made.name = name
    if domain:
        made.domain = domain
    return made


def tensor_type(code: int, shape: Sequence[int | str | None] | None) -> TypeProto:
    """The type of a tensor.

    Args:
        code: the ONNX data type of its elements.
        shape: its sizes, names for sizes, and `None` for those that have none; `None` if not even
            their number is known.
    """
    made = TypeProto(tensor_type=TypeProto.Tensor(elem_type=code))
    if shape is not None:
        made.tensor_type.shape.SetInParent()
        for size in shape:
            dim = made.tensor_type.shape.dim.add()
            if isinstance(size, str):
                dim.dim_param = size
            elif size is not None:
                dim.dim_value = size
    return made


def code_of(dtype: np.dtype) -> int:
    """The ONNX data type of an array's elements."""
    return CODES[ElementType.of(dtype)]


def operator_sets(versions: Mapping[str, int]) -> list[OperatorSetIdProto]:
    """The versions of operator sets, by domain, as a model lists them."""
    return [OperatorSetIdProto(domain=domain, version=v) for domain, v in versions.items()]
