"""Messages between a worker and its parent: JSON data and arrays.

    size  content, all numbers little-endian
    4     the size of the head
    ...   the head, JSON: {"content": …, "arrays": [[element type, shape], …]}
    ...   the elements of each array, in C order, in native byte order

This file must run with NumPy but without crosschip, on older Python versions too.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import IO, Any

import numpy as np

_SIZE = struct.Struct("<I")


def send(stream: IO[bytes], content: Any, arrays: Sequence[Any] = ()) -> None:
    """Write a message.

    Args:
        stream: the stream.
        content: JSON data.
        arrays: arrays of NumPy's own element types.
    """
    arrays = [np.asarray(array, order="C") for array in arrays]
    described = [[array.dtype.name, list(array.shape)] for array in arrays]
    head = json.dumps({"content": content, "arrays": described}).encode()
    stream.write(_SIZE.pack(len(head)) + head)
    for array in arrays:
        stream.write(array.reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes]) -> tuple[Any, list[Any]] | None:
    """Read a message: its content and its arrays; `None` at the end of the stream.

    Raises:
        EOFError: the stream ends within a message.
    """
    size = stream.read(_SIZE.size)
    if not size:
        return None
    head = json.loads(bytes(_read_exactly(stream, *_SIZE.unpack(size))))
    arrays = []
    for name, shape in head["arrays"]:
        dtype = np.dtype(name)
        elements = _read_exactly(stream, math.prod(shape) * dtype.itemsize)
        arrays.append(np.frombuffer(elements, dtype).reshape(shape))
    return head["content"], arrays


def _read_exactly(stream: IO[bytes], size: int) -> bytearray:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        count = stream.readinto(view)  # type: ignore[attr-defined]  # streams of bytes have it
        if not count:
            raise EOFError("the other process ended in the middle of a message")
        view = view[count:]
    return buffer
