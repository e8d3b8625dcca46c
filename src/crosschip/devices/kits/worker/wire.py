"""Messages between a process and a worker: what JSON says, and arrays.

    size  what, all numbers little-endian
    4     the size of the head
    ...   the head, JSON: {"content": …, "arrays": [[element type, sizes], …]}
    ...   the elements of each array, in C order, in the machine's byte order

Whoever reads this file has NumPy, but perhaps neither crosschip nor a recent Python.
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
        stream: where to.
        content: what JSON can say.
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
    """Read a message: its content and its arrays, in memory of their own; `None` at the end.

    Raises:
        EOFError: the stream ends in the middle.
    """
    size = stream.read(_SIZE.size)
    if not size:
        return None
    head = json.loads(bytes(_exactly(stream, *_SIZE.unpack(size))))
    arrays = []
    for name, shape in head["arrays"]:
        dtype = np.dtype(name)
        elements = _exactly(stream, math.prod(shape) * dtype.itemsize)
        arrays.append(np.frombuffer(elements, dtype).reshape(shape))
    return head["content"], arrays


def _exactly(stream: IO[bytes], size: int) -> bytearray:
    room = bytearray(size)
    view = memoryview(room)
    while view:
        count = stream.readinto(view)  # type: ignore[attr-defined]  # streams of bytes have it
        if not count:
            raise EOFError("the other process ended in the middle of a message")
        view = view[count:]
    return room
