"""Compiled models: ONNX Runtime sessions, and how they are saved.

A saved program is the model as ONNX Runtime optimized it for this processor:

    offset  size  what
    0       8     the mark "ORT" 0D 0A 1A 00 01; its last byte is the version of this layout
    8       8     n, the size of the ONNX model, little-endian
    16      n     the ONNX model
    ...           zeros up to a multiple of 64
    ...           the elements of large constants

In the ONNX model a large constant is external data with an `offset`, which counts from the end of
the zeros, and a `length`.
"""

from __future__ import annotations

import logging
import mmap
import struct
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from crosschip.devices.onnxruntime.converters import converters
from crosschip.devices.onnxruntime.graph import Graph
from crosschip.devices.onnxruntime.session import Settings, failure
from crosschip.hal import Options, Precision, Program
from crosschip.ir import Array, DeviceError, Model

VERSION: str = onnxruntime.__version__

_MARK = b"ORT\r\n\x1a\x00\x01"
_PREAMBLE = struct.Struct("<8sQ")
_ALIGNMENT = 64

logger = logging.getLogger("crosschip")


class OnnxRuntimeProgram(Program):
    """A session; it may be run from many threads at once.

    Args:
        model: a serialized ONNX model.
        external: its constants that are outside of it, by name.
        settings: how sessions are made.
        saved: what the program was loaded from, if it was.
    """

    def __init__(
        self,
        model: bytes,
        external: Mapping[str, Array],
        settings: Settings,
        saved: bytes | None = None,
    ) -> None:
        self._model = model
        self._external = external  # sessions read this memory, but do not hold it
        self._settings = settings
        self._saved = saved
        self._session = settings.session(model, external, optimize=saved is None)
        self._inputs = [value.name for value in self._session.get_inputs()]
        self._outputs = [value.name for value in self._session.get_outputs()]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            outputs: Sequence[Array] = self._session.run(
                self._outputs, dict(zip(self._inputs, inputs, strict=True))
            )
        except Exception as error:
            raise failure("failed while running", error) from error
        return outputs

    def save(self) -> bytes | None:
        if self._saved is not None:
            return self._saved
        try:
            with tempfile.TemporaryDirectory(prefix="crosschip-") as folder:
                written = Path(folder, "model")
                self._settings.session(self._model, self._external, write_to=written)
                return _pack(written)
        except (OSError, DeviceError) as error:
            logger.warning("onnxruntime: the compiled program is not saved: %s", error)
            return None

    def close(self) -> None:
        del self._session


def compile(model: Model, options: Options, *, spinning: bool) -> OnnxRuntimeProgram:
    """Compile a model of operations that there are converters for.

    Raises:
        DeviceError: the options ask for what this device does not do, or ONNX Runtime failed.
    """
    if options.precision is not Precision.FLOAT32:
        raise DeviceError(f"onnxruntime computes in float32, not in {options.precision.value}")
    graph = Graph(model.inputs.values())
    for operation in model.operations:
        graph.label = operation.name
        graph.define(operation, converters.convert(graph, operation))
    proto = graph.finish(model.outputs.values())
    return OnnxRuntimeProgram(proto, graph.external, Settings(options.threads, spinning))


def load(saved: bytes, options: Options, *, spinning: bool) -> OnnxRuntimeProgram:
    """Make a program again from what it was saved as; the bytes are used where they are.

    Raises:
        DeviceError: they are not what `save` returns, or ONNX Runtime failed.
    """
    try:
        model, external = _unpack(saved)
    except Exception as error:  # struct, protobuf and NumPy each have their own
        raise DeviceError(f"onnxruntime: not a saved program: {error}") from error
    return OnnxRuntimeProgram(model, external, Settings(options.threads, spinning), saved)


def _pack(written: Path) -> bytes:
    """A saved program from the files that a session wrote."""
    model, data = written.read_bytes(), Path(f"{written}.data")
    parts: list[bytes | mmap.mmap] = [_PREAMBLE.pack(_MARK, len(model)), model]
    if data.exists():
        parts.append(bytes(-(_PREAMBLE.size + len(model)) % _ALIGNMENT))
        with data.open("rb") as file:
            parts.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    return b"".join(parts)


def _unpack(saved: bytes) -> tuple[bytes, dict[str, Array]]:
    """The ONNX model and its external constants, which are views of what was saved."""
    mark, size = _PREAMBLE.unpack_from(saved)
    end = _PREAMBLE.size + size
    if mark != _MARK or end > len(saved):
        raise ValueError("it starts with something else, or is cut off")
    model = saved[_PREAMBLE.size : end]
    start = end + -end % _ALIGNMENT
    tensors = onnx.ModelProto.FromString(model).graph.initializer
    return model, {
        tensor.name: _elements(tensor, saved, start)
        for tensor in tensors
        if tensor.data_location == TensorProto.EXTERNAL
    }


def _elements(tensor: TensorProto, saved: bytes, start: int) -> Array:
    place = {
        entry.key: int(entry.value) for entry in tensor.external_data if entry.key != "location"
    }
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    count = place["length"] // dtype.itemsize
    array = np.frombuffer(saved, dtype, count, start + place["offset"])
    return array.reshape(tuple(tensor.dims))
