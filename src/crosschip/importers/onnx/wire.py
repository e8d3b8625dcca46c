"""Parsing an ONNX file without reading the weights in it.

A protobuf message is a sequence of fields: a key (field number and wire type), for most types a
length, and the contents. The weights of a model are the `raw_data` of tensors a few messages deep.
Those fields are found here by their lengths alone, and only what lies between them is parsed.
Source: https://protobuf.dev/programming-guides/encoding and onnx.proto.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from crosschip.ir.files import Source, Window
from crosschip.onnx_messages import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    StringStringEntryProto,
    TensorProto,
)

LARGE = 4096
"""From this many bytes on, `raw_data` stays in the file."""

OWN_FILE = f"\0{os.urandom(16).hex()}"
"""The `location` of elements that are in the model's own file; random, so that no file has it."""

_LONGEST_VARINT = 10
_HEADS = 2 * _LONGEST_VARINT
"""The most bytes that a field's key and length take."""

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5

_FieldPath = Mapping[int, "_FieldPath | None"]
"""The places of large `raw_data` in a message: field numbers, and what lies behind each."""

_TENSOR: _FieldPath = {TensorProto.RAW_DATA_FIELD_NUMBER: None}
_ATTRIBUTE: _FieldPath = {AttributeProto.T_FIELD_NUMBER: _TENSOR}
_NODE: _FieldPath = {NodeProto.ATTRIBUTE_FIELD_NUMBER: _ATTRIBUTE}
_GRAPH: _FieldPath = {
    GraphProto.NODE_FIELD_NUMBER: _NODE,
    GraphProto.INITIALIZER_FIELD_NUMBER: _TENSOR,
}
_MODEL: _FieldPath = {ModelProto.GRAPH_FIELD_NUMBER: _GRAPH}


class _Field(NamedTuple):
    """The places where a delimited field, its length and its contents begin, and where it ends."""

    number: int
    begin: int
    length: int
    contents: int
    end: int


def without_weights(file: Source) -> bytes:
    """The model in a file, with its large `raw_data` declared external data of the file itself.

    Such a tensor has the `location` `OWN_FILE`, and `offset` and `length` say where in the file its
    elements are. A file that breaks the rules of the wire format is passed on as it is from there,
    for the parser to refuse.

    Raises:
        OSError: it cannot be read.
    """
    return b"".join(_lightened(Window(file), 0, file.size, _MODEL))


def _lightened(window: Window, begin: int, end: int, path: _FieldPath) -> list[bytes]:
    """The message between two places, in pieces."""
    pieces: list[bytes] = []
    references: list[bytes] = []
    read = window.source.read
    done = begin
    for field in _large_fields(window, begin, end):
        if field.number not in path:
            continue
        pieces.append(read(done, field.begin))
        ahead = path[field.number]
        if ahead is None:
            references.append(_reference(field.contents, field.end - field.contents))
        else:
            inner = _lightened(window, field.contents, field.end, ahead)
            pieces += [read(field.begin, field.length), _varint(sum(map(len, inner))), *inner]
        done = field.end
    # They come last: a field that is there twice has its last value, and files may say where the
    # elements are, too.
    return [*pieces, read(done, end), *references]


def _large_fields(window: Window, begin: int, end: int) -> Iterator[_Field]:
    """The large delimited fields of a message, up to where it ends or breaks the wire format."""
    while begin < end:
        held, index = window.at(begin, _HEADS)
        stop = min(len(held), index + end - begin)
        key, after = _read_varint(held, index, stop)
        wire_type = key & 7
        if wire_type == _DELIMITED:
            length, contents = _read_varint(held, after, stop)
            first = begin + contents - index
            if length < 0 or first + length > end:
                return
            if length >= LARGE:
                yield _Field(key >> 3, begin, begin + after - index, first, first + length)
            begin = first + length
        elif wire_type == _VARINT:
            begin += _read_varint(held, after, stop)[1] - index
        elif wire_type in (_FIXED32, _FIXED64):
            begin += after - index + (4 if wire_type == _FIXED32 else 8)
        else:
            return


def _read_varint(held: bytes, begin: int, end: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and where it ends; -1 if it does not."""
    if begin < end and held[begin] < 128:
        return held[begin], begin + 1
    value = 0
    for place in range(begin, min(begin + _LONGEST_VARINT, end)):
        byte = held[place]
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
    place = {"location": OWN_FILE, "offset": str(offset), "length": str(length)}
    return TensorProto(
        data_location=TensorProto.EXTERNAL,
        external_data=[StringStringEntryProto(key=k, value=v) for k, v in place.items()],
    ).SerializeToString()
