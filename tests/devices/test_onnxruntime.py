"""What only ONNX Runtime does: fusing quantized operations, and its saved programs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from crosschip.devices.onnxruntime import OnnxRuntimeDevice
from crosschip.devices.onnxruntime.saved import read
from crosschip.hal import Options
from crosschip.ir import Builder, DeviceError, ElementType, Model, Operand, Quantization, TensorType
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.ops.standard.quantization import Dequantize, Quantize


def convolution(dtype: ElementType, zero_point: float) -> Model:
    """Quantized in and out, with a pool and a reshape behind."""
    random = np.random.default_rng(0)
    b = Builder()

    def through_integers(reals: Operand, scale: float) -> Operand:
        quantized = b.add(Quantize, reals, 0, (scale,), (zero_point,), dtype)
        return b.add(Dequantize, quantized)

    x = b.input("x", TensorType(ElementType.FLOAT32, (1, 16, 8, 8)))
    stored = random.integers(-100, 100, (32, 16, 3, 3)).astype(np.int8)
    filters = b.add(Dequantize, b.constant(stored, quantization=Quantization((0.02,))))
    y = through_integers(b.add(Conv2D, through_integers(x, 0.05), filters), 0.5)
    pooled = through_integers(b.add(MaxPool2D, y, kernel_shape=(2, 2), strides=(2, 2)), 0.5)
    b.output("y", b.add(Reshape, pooled, (1, -1)))
    return b.build()


@pytest.mark.parametrize(
    ("dtype", "zero_point"),
    [(ElementType.INT8, 0.0), (ElementType.INT8, 3.0), (ElementType.UINT8, 3.0)],
)
def test_quantized_operations_are_fused(dtype: ElementType, zero_point: float) -> None:
    """Although the optimizer is off that moves quantizations past what moves elements."""
    with OnnxRuntimeDevice() as device:
        saved = device.compile(convolution(dtype, zero_point), Options()).save()
    assert saved is not None
    executed = [node.op_type for node in ModelProto.FromString(read(saved).proto).graph.node]
    assert "QLinearConv" in executed
    assert {"Conv", "FusedConv"}.isdisjoint(executed)
    assert executed.count("DequantizeLinear") == 1


def test_a_saved_program_that_was_changed_is_not_loaded() -> None:
    model = convolution(ElementType.UINT8, 3.0)
    with OnnxRuntimeDevice() as device:
        saved = device.compile(model, Options()).save()
        assert saved is not None
        assert len(read(saved).external) > 0
        for place in (0, 9, 40, 64, 1000, len(saved) // 2, len(saved) - 9, len(saved) - 1):
            damaged = bytearray(saved)
            damaged[place] ^= 16
            with pytest.raises(DeviceError, match=r"onnxruntime has not saved .* is damaged"):
                device.load(bytes(damaged), model, Options())
