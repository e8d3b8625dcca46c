"""The fake NPU from its sources: `examples/fake_npu/src` is on the path of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mobilenet import quantized

from fake_npu import FakeNpuDevice
from fake_npu_ddk import Chip

SIZE = 96
"""Height and width of the pictures: a fifth of the work that 224 by 224 is."""


@pytest.fixture
def device() -> Iterator[FakeNpuDevice]:
    with FakeNpuDevice() as opened:
        yield opened


@pytest.fixture
def chip() -> Iterator[Chip]:
    opened = Chip()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def network(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MobileNetV1 for small pictures, in uint8."""
    path = tmp_path_factory.mktemp("mobilenet") / "uint8.onnx"
    quantized(models / "onnx" / "mobilenet_v1.onnx", path, SIZE, "uint8")
    return path
