"""Writer of Paddle Lite's format version 0.

Source: lite/model_parser/naive_buffer/proto/framework.nb.h and naive_buffer.h of Paddle Lite 2.14.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from tests.importers.paddle.writers import CODES, Paddle2Writer

from crosschip.ir import Array

TYPES = [
    *("BOOL", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "SIZE_T", "UINT8", "INT8"),
    *("LOD_TENSOR", "SELECTED_ROWS", "FEED_MINIBATCH", "FETCH_LIST", "STEP_SCOPES"),
    *("LOD_RANK_TABLE", "LOD_TENSOR_ARRAY", "PLACE_LIST", "READER", "RAW", "TUPLE"),
]
"""`VarDataType`, in its order."""

OF_PADDLE = {
    0: "BOOL", 1: "INT16", 2: "INT32", 3: "INT64", 4: "FP16", 5: "FP32", 6: "FP64",
    7: "LOD_TENSOR", 9: "FEED_MINIBATCH", 10: "FETCH_LIST", 20: "UINT8", 21: "INT8",
}  # fmt: skip
"""The same types by the numbers that Paddle's framework.proto has for them."""


def file(writer: Paddle2Writer, tool: str = "v2.6.0") -> bytes:
    """Encode a file with a program and its parameters."""
    topology = program(writer.program)
    head = struct.pack("<H16sQ", 0, tool.encode(), len(topology))
    params = [parameter(name, value) for name, value in writer.parameters.items()]
    return head + topology + encode_list(params, bytes)


def encode_list(values: Iterable[Any], write: Callable[[Any], bytes]) -> bytes:
    encoded = [write(value) for value in values]
    return struct.pack("<Q", len(encoded)) + b"".join(encoded)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def number(form: str) -> Callable[[Any], bytes]:
    return lambda value: struct.pack(f"<{form}", value)


def program(message: Any) -> bytes:
    return encode_list(message.blocks, block) + struct.pack("<q", 0)


def block(message: Any) -> bytes:
    variables, operators = encode_list(message.vars, variable), encode_list(message.ops, operator)
    return struct.pack("<ii", 0, -1) + variables + operators + struct.pack("<i", -1)


def tensor(code: int, sizes: Iterable[int]) -> bytes:
    return struct.pack("<i", TYPES.index(OF_PADDLE[code])) + encode_list(sizes, number("q"))


def variable(message: Any) -> bytes:
    dense = message.type.lod_tensor
    none = tensor(0, [])
    return (
        text(message.name)
        + struct.pack("<i", TYPES.index(OF_PADDLE[message.type.type or 7]))
        + none
        + tensor(dense.tensor.data_type, dense.tensor.dims)
        + struct.pack("<i", dense.lod_level)
        + none + struct.pack("<i", 0)
        + encode_list([], bytes) + encode_list([], bytes)
        + struct.pack("<?", message.persistable)
    )  # fmt: skip


def slot(message: Any) -> bytes:
    return text(message.parameter) + encode_list(message.arguments, text)


def operator(message: Any) -> bytes:
    return (
        text(message.type)
        + encode_list(message.inputs, slot)
        + encode_list(message.outputs, slot)
        + encode_list(message.attrs, attribute)
        + b"\0"
    )


def attribute(message: Any) -> bytes:
    return (
        text(message.name)
        + struct.pack("<iif", message.type, message.i, message.f)
        + text(message.s)
        + encode_list(message.ints, number("i"))
        + encode_list(message.floats, number("f"))
        + encode_list(message.strings, text)
        + struct.pack("<?", message.b)
        + encode_list(message.bools, number("?"))
        + struct.pack("<iq", message.block_idx, message.l)
        + encode_list([], bytes)
        + encode_list(message.longs, number("q"))
    )


def parameter(name: str, value: Array) -> bytes:
    return (
        text(name.encode())
        + struct.pack("<IQ", 0, 0)
        + encode_list([], bytes)
        + struct.pack("<I", 0)
        + tensor(CODES[str(value.dtype)], value.shape)
        + text(value.tobytes())
    )
