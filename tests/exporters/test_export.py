"""The door: formats, settings, refusals, and the check in the engine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import crosschip as cc
from crosschip import exporters
from crosschip.exporters import chipm, export
from crosschip.ir import Builder, ElementType, Model, TensorType, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.searching import NonZero

FLOAT32 = ElementType.FLOAT32


def convolution(batch: int | None = 1) -> Model:
    """A convolution with an activation on an image of known size."""
    b = Builder("small")
    size = symbol("N") if batch is None else batch
    image = b.input("image", TensorType(FLOAT32, (size, 3, 8, 8)))
    weights = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    b.output("map", b.add(Relu, b.add(Conv2D, image, b.constant(weights), pads=(1, 1, 1, 1))))
    return b.build()


def test_formats_are_known_by_suffix_and_by_name(tmp_path: Path) -> None:
    for suffix in (".chipm", ".onnx", ".tflite"):
        result = export(convolution(), tmp_path / f"model{suffix}")
        assert result.format == suffix[1:]
        assert result.size == result.path.stat().st_size
        assert result.verification is not None
        assert result.verification.error < 1e-5
    result = cc.export(convolution(), tmp_path / "model.bin", "onnx", verification=False)
    assert result.verification is None
    assert list(cc.load(result.path.read_bytes()).outputs) == ["map"]


def test_unknown_formats_and_properties_are_errors(tmp_path: Path) -> None:
    with pytest.raises(cc.InputError, match=r"suffix '\.tflit' is that of no format"):
        export(convolution(), tmp_path / "model.tflit")
    with pytest.raises(cc.InputError, match=r"no format 'onx'.*onnx"):
        export(convolution(), tmp_path / "model", "onx")
    with pytest.raises(cc.InputError, match="onnx has no property 'opsets'"):
        export(convolution(), tmp_path / "model.onnx", properties={"opsets": "17"})
    with pytest.raises(cc.InputError, match="opset is '16', not a number from 17 to"):
        export(convolution(), tmp_path / "model.onnx", properties={"opset": "16"})
    assert list(tmp_path.iterdir()) == []


def test_sizes_stay_open_or_are_fixed(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    export(convolution(None), path)
    image = cc.load(path).inputs["image"].type
    assert image.static_shape is None
    with pytest.raises(cc.InputError, match="leaves sizes open; say which, as in --shape N=1"):
        export(convolution(None), tmp_path / "model.tflite")
    export(convolution(None), tmp_path / "model.tflite", shapes={"image": (2, 3, 8, 8)})


def test_refusals_name_operators(tmp_path: Path) -> None:
    b = Builder("data dependent")
    b.output("y", b.add(NonZero, b.input("x", TensorType(FLOAT32, (4,)))))
    with pytest.raises(cc.UnsupportedError, match=r"cannot be written as tflite: .*NON_ZERO"):
        export(b.build(), tmp_path / "model.tflite")


def test_a_file_that_computes_something_else_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_wrongly(*arguments: Any) -> list[Any]:
        return [2 * array for array in chipm.run(*arguments)]

    broken = SimpleNamespace(**{**vars(chipm), "run": run_wrongly})
    monkeypatch.setattr(exporters, "exporters", lambda: {"chipm": broken})
    with pytest.raises(cc.DeviceError, match=r"computes something else .*'map' by 1\.0e\+00"):
        export(convolution(), tmp_path / "model.chipm")
    assert list(tmp_path.iterdir()) == []


def test_exported_models_are_simplified(tmp_path: Path) -> None:
    b = Builder("sums")
    x = b.input("x", TensorType(FLOAT32, (3,)))
    constant = b.add(Add, np.ones(3, np.float32), np.ones(3, np.float32))
    b.output("y", b.add(Add, x, constant))
    assert export(b.build(), tmp_path / "model.onnx").operations == 1
