"""Parser of ONNX files that does not read the weights.

A protobuf message is a sequence of fields: a key (field number and wire type), for most types a
length, and the content. The weights of a model are the `raw_data` of tensors a few messages deep.
They are located by the lengths of fields alone, and only the bytes between them are parsed. Source:
https://protobuf.dev/programming-guides/encoding and onnx.proto.
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
"""The `location` of elements in the model's own file; random, so that no model contains it."""

_LONGEST_VARINT = 10
_HEADS = 2 * _LONGEST_VARINT
"""The maximum size of a field's key and length."""

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5

_FieldPath = Mapping[int, "_FieldPath | None"]
"""The fields that lead to large `raw_data`, by number, each with those of its message."""

_TENSOR: _FieldPath = {TensorProto.RAW_DATA_FIELD_NUMBER: None}
_ATTRIBUTE: _FieldPath = {AttributeProto.T_FIELD_NUMBER: _TENSOR}
_NODE: _FieldPath = {NodeProto.ATTRIBUTE_FIELD_NUMBER: _ATTRIBUTE}
_GRAPH: _FieldPath = {
    GraphProto.NODE_FIELD_NUMBER: _NODE,
    GraphProto.INITIALIZER_FIELD_NUMBER: _TENSOR,
}
_MODEL: _FieldPath = {ModelProto.GRAPH_FIELD_NUMBER: _GRAPH}


class _Field(NamedTuple):
    """Delimited field: its number, and the offsets of key, length, content and end."""

    number: int
    begin: int
    length: int
    contents: int
    end: int


def without_weights(file: Source) -> bytes:
    """Return a model file's content with large `raw_data` replaced by references to the file.

    Such a tensor has the `location` `OWN_FILE`; its `offset` and `length` locate the elements in
    the file. Bytes from the first violation of the wire format on are passed to the parser
    unchanged.

    Raises:
        OSError: the file cannot be read.
    """
    return b"".join(_remove_weights(Window(file), 0, file.size, _MODEL))


def _remove_weights(window: Window, begin: int, end: int, path: _FieldPath) -> list[bytes]:
    """Return a message without large `raw_data`, in pieces."""
    pieces: list[bytes] = []
    references: list[bytes] = []
    read = window.source.read
    copied_until = begin
    for field in _large_fields(window, begin, end):
        if field.number not in path:
            continue
        pieces.append(read(copied_until, field.begin))
        ahead = path[field.number]
        if ahead is None:
            references.append(_reference(field.contents, field.end - field.contents))
        else:
            inner = _remove_weights(window, field.contents, field.end, ahead)
            pieces += [read(field.begin, field.length), _varint(sum(map(len, inner))), *inner]
        copied_until = field.end
    # References come last: of repeated fields the last one counts, and a file may have its own.
    return [*pieces, read(copied_until, end), *references]


def _large_fields(window: Window, begin: int, end: int) -> Iterator[_Field]:
    """Yield the large delimited fields of a message; stop at a violation of the wire format."""
    while begin < end:
        buffer, index = window.at(begin, _HEADS)
        stop = min(len(buffer), index + end - begin)
        key, after = _read_varint(buffer, index, stop)
        wire_type = key & 7
        if wire_type == _DELIMITED:
            length, contents = _read_varint(buffer, after, stop)
            first = begin + contents - index
            if length < 0 or first + length > end:
                return
            if length >= LARGE:
                yield _Field(key >> 3, begin, begin + after - index, first, first + length)
            begin = first + length
        elif wire_type == _VARINT:
            begin += _read_varint(buffer, after, stop)[1] - index
        elif wire_type in (_FIXED32, _FIXED64):
            begin += after - index + (4 if wire_type == _FIXED32 else 8)
        else:
            return


def _read_varint(buffer: bytes, begin: int, end: int) -> tuple[int, int]:
    """Return a base-128 number, lowest bits first, and the offset after it; -1 if incomplete."""
    if begin < end and buffer[begin] < 128:
        return buffer[begin], begin + 1
    value = 0
    for index in range(begin, min(begin + _LONGEST_VARINT, end)):
        byte = buffer[index]
        value |= (byte & 127) << 7 * (index - begin)
        if byte < 128:
            return value, index + 1
    return -1, end


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    return bytes([*encoded, value])


def _reference(offset: int, length: int) -> bytes:
    """Return the tensor fields that refer to elements in the model's own file."""
    location = {"location": OWN_FILE, "offset": str(offset), "length": str(length)}
    return TensorProto(
        data_location=TensorProto.EXTERNAL,
        external_data=[StringStringEntryProto(key=k, value=v) for k, v in location.items()],
    ).SerializeToString()
