"""The form that compiled ONNX models are saved in, with their large constants beside them.

    offset  size  what
    0       8     the mark "ORT" 0D 0A 1A 00 03; its last byte is the version of this layout
    8       8     where the ONNX model starts, little-endian like all numbers here
    16      8     its size
    64            the elements of the large constants, each at a multiple of 64
    ...           the ONNX model

In the ONNX model a large constant is external data with a `length` and an `offset`, which counts
from byte 64. What lies between these parts is 0.
"""

from __future__ import annotations

import struct

import numpy as np
import onnx
from onnx import TensorProto, helper

from crosschip.hal.onnx.model import OnnxModel, aligned
from crosschip.ir import Array

_MARK = b"ORT\r\n\x1a\x00\x03"
_PREAMBLE = struct.Struct("<8sQQ")
_ALIGNMENT = 64


def write(model: OnnxModel) -> bytes:
    """The saved form of a model whose constants are at the offsets that their order gives."""
    elements: list[bytes | memoryview] = []
    for array in model.external.values():
        padding = bytes(aligned(array.nbytes) - array.nbytes)
        elements += [array.reshape(-1).view(np.uint8).data, padding]
    start = _ALIGNMENT + sum(map(len, elements))
    preamble = _PREAMBLE.pack(_MARK, start, len(model.proto))
    parts = [preamble.ljust(_ALIGNMENT, b"\0"), *elements, model.proto]
    return b"".join(parts)


def read(saved: bytes) -> OnnxModel:
    """The model that was saved; its external constants are views of the bytes.

    Raises:
        Exception: it is something else; struct, protobuf and NumPy each raise their own.
    """
    content = memoryview(saved)
    mark, start, size = _PREAMBLE.unpack_from(content)
    if mark != _MARK or start + size != len(content):
        raise ValueError("it starts with something else")
    proto = bytes(content[start:])
    tensors = onnx.ModelProto.FromString(proto).graph.initializer
    external = [tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL]
    return OnnxModel(proto, {tensor.name: _elements(tensor, saved) for tensor in external})


def _elements(tensor: TensorProto, saved: bytes) -> Array:
    place = {entry.key: entry.value for entry in tensor.external_data}
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    count, start = int(place["length"]) // dtype.itemsize, _ALIGNMENT + int(place["offset"])
    return np.frombuffer(saved, dtype, count, start).reshape(tuple(tensor.dims))
