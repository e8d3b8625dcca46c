"""Parsing an ONNX file without copying the weights out of it.

A protobuf message is a sequence of fields: a key (field number and wire type), for most types a
length, and the contents. The weights of a model are the `raw_data` of tensors a few messages deep.
Those fields are found here by their lengths alone, and only what lies between them is parsed.
Source: https://protobuf.dev/programming-guides/encoding and onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    StringStringEntryProto,
    TensorProto,
)

LARGE = 4096
"""From this many bytes on, `raw_data` stays in the file."""

Piece = bytes | memoryview

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5

_Road = Mapping[int, "_Road | None"]
"""Where in a message large `raw_data` can be: field numbers, and what lies behind each."""

_TENSOR: _Road = {TensorProto.RAW_DATA_FIELD_NUMBER: None}
_ATTRIBUTE: _Road = {AttributeProto.T_FIELD_NUMBER: _TENSOR}
_NODE: _Road = {NodeProto.ATTRIBUTE_FIELD_NUMBER: _ATTRIBUTE}
_GRAPH: _Road = {
    GraphProto.NODE_FIELD_NUMBER: _NODE,
    GraphProto.INITIALIZER_FIELD_NUMBER: _TENSOR,
}
_MODEL: _Road = {ModelProto.GRAPH_FIELD_NUMBER: _GRAPH}


class _Field(NamedTuple):
    """Where a delimited field begins, where its length and its contents do, and where it ends."""

    number: int
    begin: int
    length: int
    contents: int
    end: int


def without_weights(file: memoryview) -> bytes:
    """The model in the file, with its large `raw_data` declared external data of the file itself.

    Such a tensor has an empty `location`, and `offset` and `length` say where in the file its
    elements are. A file that breaks the rules of the wire format is passed on as it is from there,
    for the parser to refuse.
    """
    return b"".join(_lightened(file, 0, len(file), _MODEL))


def _lightened(file: memoryview, begin: int, end: int, road: _Road) -> list[Piece]:
    """The message between two places, in pieces."""
    pieces: list[Piece] = []
    done = begin
    for field in _fields(file, begin, end):
        if field.end - field.contents < LARGE or field.number not in road:
            continue
        pieces.append(file[done : field.begin])
        ahead = road[field.number]
        if ahead is None:
            pieces.append(_reference(field.contents, field.end - field.contents))
        else:
            inner = _lightened(file, field.contents, field.end, ahead)
            pieces += [file[field.begin : field.length], _varint(sum(map(len, inner))), *inner]
        done = field.end
    pieces.append(file[done:end])
    return pieces


def _fields(file: memoryview, begin: int, end: int) -> Iterator[_Field]:
    """The delimited fields of a message, up to its end or to where it breaks the wire format."""
    while begin < end:
        key, after = _read_varint(file, begin, end)
        wire_type = key & 7
        if wire_type == _DELIMITED:
            length, contents = _read_varint(file, after, end)
            stop = contents + length
            if length < 0 or stop > end:
                return
            yield _Field(key >> 3, begin, after, contents, stop)
            begin = stop
        elif wire_type == _VARINT:
            _, begin = _read_varint(file, after, end)
        elif wire_type in (_FIXED32, _FIXED64):
            begin = after + (4 if wire_type == _FIXED32 else 8)
        else:
            return


def _read_varint(file: memoryview, begin: int, end: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and where it ends; -1 if it does not."""
    value = 0
    for place in range(begin, min(begin + 10, end)):
        byte = file[place]
        value |= (byte & 127) << 7 * (place - begin)
        if byte < 128:
            return value, place + 1
    return -1, end


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def _reference(offset: int, length: int) -> bytes:
    """The fields of a tensor whose elements are in the model's own file."""
    place = {"location": "", "offset": str(offset), "length": str(length)}
    return TensorProto(
        data_location=TensorProto.EXTERNAL,
        external_data=[StringStringEntryProto(key=k, value=v) for k, v in place.items()],
    ).SerializeToString()
