"""The part of Paddle 2's `framework.proto` that inference models use.

Each message is a class whose annotations state the type and number of its fields; the descriptors
for the protobuf library are derived from them. Integers and enumerations are declared as int64,
which has the same encoding. Strings are declared as bytes, because a damaged file can hold invalid
UTF-8.

Source: paddle/fluid/framework/framework.proto of Paddle 2.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError, Message

from crosschip.ir import ModelError

_PACKAGE = "crosschip.paddle"
_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    int: _FIELD.TYPE_INT64,
    bool: _FIELD.TYPE_BOOL,
    bytes: _FIELD.TYPE_BYTES,
    float: _FIELD.TYPE_FLOAT,
}
_DOUBLE = "double"


class Desc:
    """Base class of the messages."""


class TensorDesc(Desc):
    data_type: Annotated[int, 1]
    dims: Annotated[Sequence[int], 2]


class LoDTensorDesc(Desc):
    tensor: Annotated[TensorDesc, 1]
    lod_level: Annotated[int, 2]


class VarType(Desc):
    type: Annotated[int, 1]
    lod_tensor: Annotated[LoDTensorDesc, 3]


class VarDesc(Desc):
    name: Annotated[bytes, 1]
    type: Annotated[VarType, 2]
    persistable: Annotated[bool, 3]


class Variant(Desc):
    type: Annotated[int, 1]
    b: Annotated[bool, 2]
    i: Annotated[int, 3]
    r: Annotated[float, 4, _DOUBLE]


class Attr(Desc):
    name: Annotated[bytes, 1]
    type: Annotated[int, 2]
    i: Annotated[int, 3]
    f: Annotated[float, 4]
    s: Annotated[bytes, 5]
    ints: Annotated[Sequence[int], 6]
    floats: Annotated[Sequence[float], 7]
    strings: Annotated[Sequence[bytes], 8]
    b: Annotated[bool, 10]
    bools: Annotated[Sequence[bool], 11]
    block_idx: Annotated[int, 12]
    l: Annotated[int, 13]  # noqa: E741, the name in framework.proto
    longs: Annotated[Sequence[int], 15]
    float64s: Annotated[Sequence[float], 16, _DOUBLE]
    var_name: Annotated[bytes, 17]
    vars_name: Annotated[Sequence[bytes], 18]
    float64: Annotated[float, 19, _DOUBLE]
    scalar: Annotated[Variant, 20]
    scalars: Annotated[Sequence[Variant], 21]


class OpVar(Desc):
    parameter: Annotated[bytes, 1]
    arguments: Annotated[Sequence[bytes], 2]


class OpDesc(Desc):
    inputs: Annotated[Sequence[OpVar], 1]
    outputs: Annotated[Sequence[OpVar], 2]
    type: Annotated[bytes, 3]
    attrs: Annotated[Sequence[Attr], 4]


class BlockDesc(Desc):
    vars: Annotated[Sequence[VarDesc], 3]
    ops: Annotated[Sequence[OpDesc], 4]


class Version(Desc):
    version: Annotated[int, 1]


class ProgramDesc(Desc):
    blocks: Annotated[Sequence[BlockDesc], 1]
    version: Annotated[Version, 4]


AnyDesc = TypeVar("AnyDesc", bound=Desc)


def parse(kind: type[AnyDesc], data: bytes) -> AnyDesc:
    """Parse a message; missing fields are empty or 0.

    Raises:
        ModelError: the bytes are not a message.
    """
    try:
        return cast(AnyDesc, message_class(kind).FromString(data))
    except DecodeError as error:
        raise ModelError(f"is not a protobuf message ({error})") from None


def message_class(kind: type[Desc]) -> type[Message]:
    """Return the protobuf library's class for a message."""
    return _message_classes()[kind.__name__]


@cache
def _message_classes() -> dict[str, type[Message]]:
    file = descriptor_pb2.FileDescriptorProto(name="paddle.proto", package=_PACKAGE)
    for kind in Desc.__subclasses__():
        message = file.message_type.add(name=kind.__name__)
        for name, annotation in get_type_hints(kind, include_extras=True).items():
            _describe(message.field.add(name=name), *get_args(annotation))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        kind.__name__: message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{_PACKAGE}.{kind.__name__}")
        )
        for kind in Desc.__subclasses__()
    }


def _describe(
    field: descriptor_pb2.FieldDescriptorProto, annotation: Any, number: int, width: str = ""
) -> None:
    repeated = get_origin(annotation) is not None
    element = get_args(annotation)[0] if repeated else annotation
    field.number = number
    field.label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
    if issubclass(element, Desc):
        field.type = _FIELD.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{element.__name__}"
    else:
        field.type = _FIELD.TYPE_DOUBLE if width == _DOUBLE else _SCALARS[element]
