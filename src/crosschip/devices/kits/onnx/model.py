"""Serialized ONNX models with large constants outside of the protocol buffer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crosschip.ir import Array, DeviceError
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.onnx_messages import ModelProto

EXTERNAL_BYTES = 1024
"""Constants of at least this size are stored outside of ONNX models."""

_ALIGNMENT = 64
_MAX_BYTES = 2**31 - 2**20


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A serialized ONNX model, and its external constants by name."""

    proto: bytes
    external: Mapping[str, Array]

    def with_constants(self) -> ModelProto:
        """Return the model with all constants inside."""
        # Imported late: runs do not need it.
        from crosschip.onnx_messages import ModelProto, TensorProto

        model = ModelProto.FromString(self.proto)
        for tensor in model.graph.initializer:
            if tensor.data_location == TensorProto.EXTERNAL:
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                tensor.raw_data = self.external[tensor.name].tobytes()
        return model

    def store(self, path: Path) -> None:
        """Write the model with all constants to a file.

        Raises:
            DeviceError: the model is too large for an ONNX file.
        """
        path.write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the content of a file with all constants.

        Raises:
            DeviceError: the model is too large for an ONNX file.
        """
        if sum(array.nbytes for array in self.external.values()) >= _MAX_BYTES:
            raise DeviceError("the constants take 2 GiB or more, which no ONNX file can hold")
        return self.with_constants().SerializeToString()


def aligned(size: int) -> int:
    """Return the size of a constant with padding."""
    return size + -size % _ALIGNMENT
