"""Encoding of values that are not numeric tensors: text, sequences, maps and optional values."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np

from crosschip.ir import DeviceError, ElementType

_ARRAY, _TEXTS = 1, 2
"""The MessagePack extension codes of numeric arrays and of text arrays."""


def to_bytes(value: Any) -> bytes:
    """Encode an array of numbers or text, a list, a dictionary, a number or `None`.

    Raises:
        DeviceError: the value is of another type, or nested too deeply.
    """
    try:
        return _ENCODER.encode(value)
    except (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError) as error:
        raise DeviceError(f"a value cannot be sent to another process: {error}") from None


def from_bytes(encoded: bytes | memoryview) -> Any:
    """Decode a value.

    Raises:
        DeviceError: the bytes do not encode a value.
    """
    try:
        return _DECODER.decode(encoded)
    except _DECODING_ERRORS as error:
        raise DeviceError(f"a value is not laid out as one: {error}") from None


def _encode(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            content = [list(value.shape), value.reshape(-1).tolist()]
            return msgspec.msgpack.Ext(_TEXTS, _ENCODER.encode(content))
        header = [ElementType.of(value.dtype).value, list(value.shape)]
        elements = np.ascontiguousarray(value).reshape(-1).view(np.uint8).tobytes()
        return msgspec.msgpack.Ext(_ARRAY, _ENCODER.encode([header, elements]))
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"it is of type {type(value).__name__}")


def _decode(code: int, data: memoryview) -> Any:
    if code == _TEXTS:
        shape, texts = _TEXTS_DECODER.decode(data)
        strings = np.empty(len(texts), object)
        strings[:] = texts
        return strings.reshape(shape)
    if code != _ARRAY:
        raise ValueError(f"there is no extension {code}")
    (element_type, shape), elements = _ARRAY_DECODER.decode(data)
    return np.frombuffer(bytearray(elements), ElementType(element_type).dtype).reshape(shape)


_DECODING_ERRORS = (
    msgspec.MsgspecError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError
)  # fmt: skip
_Shape = tuple[Annotated[int, msgspec.Meta(ge=0)], ...]
_ENCODER = msgspec.msgpack.Encoder(enc_hook=_encode)
_DECODER = msgspec.msgpack.Decoder(ext_hook=_decode)
_TEXTS_DECODER = msgspec.msgpack.Decoder(tuple[_Shape, list[str]])
_ARRAY_DECODER = msgspec.msgpack.Decoder(tuple[tuple[str, _Shape], bytes])
