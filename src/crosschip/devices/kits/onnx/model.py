"""ONNX models with their large constants beside them, instead of inside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from crosschip.ir import Array, DeviceError
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from crosschip.onnx_messages import ModelProto

EXTERNAL_BYTES = 1024
"""Constants of at least so many bytes are kept outside of ONNX models."""

_ALIGNMENT = 64
_MOST_BYTES = 2**31 - 2**20


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A serialized ONNX model, and the constants that are outside of it, by name."""

    proto: bytes
    external: Mapping[str, Array]

    def whole(self) -> ModelProto:
        """The model with all constants inside."""
        # Running needs none of it.
        from crosschip.onnx_messages import ModelProto, TensorProto

        model = ModelProto.FromString(self.proto)
        for tensor in model.graph.initializer:
            if tensor.data_location == TensorProto.EXTERNAL:
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                tensor.raw_data = self.external[tensor.name].tobytes()
        return model

    def store(self, path: Path) -> None:
        """Write the model to a file, with all constants inside.

        Raises:
            DeviceError: it is larger than such a file can be.
        """
        if sum(array.nbytes for array in self.external.values()) >= _MOST_BYTES:
            raise DeviceError("the constants take 2 GiB or more, which no ONNX file can hold")
        path.write_bytes(self.whole().SerializeToString())


def aligned(size: int) -> int:
    """The number of bytes that a constant takes, with the padding behind it."""
    return size + -size % _ALIGNMENT
