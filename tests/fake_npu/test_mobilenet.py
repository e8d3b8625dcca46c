"""MobileNetV1, quantized by ONNX Runtime's own tool, on the NPU with the rest on another device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from mobilenet import KINDS, fitted, pictures, quantized, share
from tests.fake_npu.conftest import SIZE

import crosschip
from crosschip.hal import Device
from fake_npu import FakeNpuDevice

SHARE = 0.9
"""The part of the multiplications and additions that is the NPU's at least."""


def test_the_class_is_that_of_the_reference_on_fifty_pictures(
    network: Path, device: FakeNpuDevice, tmp_path: Path
) -> None:
    model = crosschip.load(network)
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    devices: list[str | Device] = [device, "reference"]
    with (
        crosschip.compile(model, devices, cache=tmp_path) as npu,
        crosschip.compile(model, ["reference"], cache=False) as reference,
    ):
        assert share(npu, device.name) >= SHARE
        seen = set()
        for kind, image in pictures(SIZE, 1000, 50 // KINDS):
            (engine,) = session.run(None, {"x": image})
            made = npu(image)
            seen.add(int(made.argmax()))
            assert made.argmax() == reference(image).argmax() == engine.argmax() == kind
        assert len(seen) == KINDS
    with crosschip.compile(model, devices, cache=tmp_path) as again:
        assert again.report.cache == "hit"
        np.testing.assert_array_equal(again(image), made)


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_in_int8_in_both_forms_of_quantized_files(
    models: Path, device: FakeNpuDevice, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "int8.onnx"
    quantized(models / "onnx" / "mobilenet_v1.onnx", path, SIZE, "int8", form)
    with crosschip.compile(path, [device, "onnxruntime"], cache=False) as compiled:
        assert share(compiled, device.name) >= SHARE
        for kind, image in pictures(SIZE, 2000, 1):
            assert compiled(image).argmax() == kind


def test_in_float16_where_that_is_asked_for(
    models: Path, device: FakeNpuDevice, tmp_path: Path
) -> None:
    """The same network as it is, float32: nothing of it is the NPU's unless the caller says so."""
    path = tmp_path / "float32.onnx"
    onnx.save(fitted(models / "onnx" / "mobilenet_v1.onnx", SIZE), path)
    devices: list[str | Device] = [device, "onnxruntime"]
    with crosschip.compile(path, devices, cache=False) as plain:
        assert share(plain, device.name) == 0
        with crosschip.compile(path, devices, cache=False, precision="float16") as compiled:
            assert share(compiled, device.name) == 1
            for kind, image in pictures(SIZE, 3000, 1):
                made, wanted = compiled(image), plain(image)
                assert made.argmax() == wanted.argmax() == kind
                assert np.abs(made - wanted).max() < 0.05
