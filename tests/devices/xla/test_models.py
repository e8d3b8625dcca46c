"""Real models, compared with their framework: dynamic dimensions, other devices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.devices.test_models import FILES, FOLDERS
from tests.devices.xla.conftest import CHIP

import crosschip
from crosschip.devices.xla import XlaDevice
from crosschip.devices.xla.engine import Engine, Executable
from crosschip.hal import Device, Offer, Options, Support
from crosschip.importers import load
from crosschip.ir import Array, Builder, ElementType, Model, TensorType, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.joining import Concat
from crosschip.passes import simplify
from crosschip.runtime.discovery import open_device

SAMPLE = [*FILES, "paddle3/mobilenet_v3_small", "layouts/separate"]


def oracles_of(path: Path) -> list[Path]:
    """Return the files with inputs and outputs of a model, the smallest first."""
    found = path.glob("oracle-*.npz") if path.is_dir() else path.parent.glob(f"{path.stem}.oracle*")
    return sorted(found, key=lambda file: file.stat().st_size)


def assert_close(actual: Array, expected: Array) -> None:
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= 1e-4 * np.abs(expected).max()


@pytest.mark.parametrize("name", [*FOLDERS, *FILES])
def test_all_operations_are_supported(device: Device, models: Path, name: str) -> None:
    placement = crosschip.explain(models / name, [device])
    assert not [decision.reasons for decision in placement.unplaced]


@pytest.mark.parametrize("name", SAMPLE)
def test_outputs_are_those_of_the_framework(device: Device, models: Path, name: str) -> None:
    oracles = oracles_of(models / name)
    assert oracles
    with (
        crosschip.compile(models / name, [device], cache=False) as compiled,
        np.load(oracles[0]) as arrays,
    ):
        outputs = compiled.run({name: arrays[f"input:{name}"] for name in compiled.inputs})
        for index, output in enumerate(outputs.values()):
            assert_close(output, arrays[f"output:{index}"])


class Shy(XlaDevice):
    """A device that does not support some kinds of operations."""

    declined: Collection[str] = ()

    def query(self, model: Model, options: Options) -> Offer:
        pairs = zip(model.operations, super().query(model, options).answers, strict=True)
        return Offer(
            [
                Support.no(op, "", "left to others") if op.type in self.declined else answer
                for op, answer in pairs
            ]
        )


@pytest.mark.parametrize("other", ["onnxruntime", "reference"])
def test_with_another_device(models: Path, other: str) -> None:
    """Every second kind of operation runs on the other device or is decomposed."""
    name = "squeezenet1_1" if other == "reference" else "mobilenet_v3_small"
    model = simplify(load(models / "onnx" / f"{name}.onnx"))
    with np.load(oracles_of(models / "onnx" / f"{name}.onnx")[0]) as arrays:
        inputs = {name: arrays[f"input:{name}"] for name in model.inputs}
        expected = arrays["output:0"]
    with Shy({}, CHIP) as shy:
        kinds = sorted({operation.type for operation in model.operations})
        shy.declined = {*kinds[::2], "CONV_2D"}  # which nothing takes the place of
        with crosschip.compile(model, [shy, open_device(other).device], cache=False) as compiled:
            assert {segment.device for segment in compiled.placement.segments} == {shy.name, other}
            (output,) = compiled.run(inputs).values()
    assert_close(output, expected)


def test_open_sizes_and_a_second_process(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch size is compiled once, also across processes with a cache."""
    path = models / "ocr-onnx/ch_ppocr_mobile_v2.0_cls_infer.onnx"
    counted = []
    original = Engine._executable

    def count(self: Engine, *arguments: Any) -> Executable:
        counted.append(arguments)
        return original(self, *arguments)

    monkeypatch.setattr(Engine, "_executable", count)
    random = np.random.default_rng(0)
    batches = [random.normal(size=(n, 3, 48, 192)).astype(np.float32) for n in (3, 1, 2, 3, 1)]
    first = _outputs(path, batches, tmp_path)
    assert len(counted) == 3
    again = _outputs(path, batches, tmp_path)
    assert len(counted) == 3
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


def _outputs(path: Path, batches: Sequence[Array], cache: Path) -> list[Array]:
    with crosschip.compile(path, f"xla:{CHIP}", cache=cache) as compiled:
        (name,) = compiled.inputs
        return [next(iter(compiled.run({name: batch}).values())) for batch in batches]


def test_outputs_of_open_sizes_come_in_the_order_of_the_model() -> None:
    b = Builder("model")
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("n"), 2)))
    first = b.add(Relu, x)
    second = b.add(Concat, [first, x], 0)
    b.output("second", second)
    b.output("first", first)
    values = np.array([[1, -2], [-3, 4]], np.float32)
    with crosschip.compile(b.build(), ["xla"], cache=False) as compiled:
        made = compiled.run({"x": values})
    np.testing.assert_array_equal(made["first"], np.maximum(values, 0))
    np.testing.assert_array_equal(made["second"], [*np.maximum(values, 0), *values])
