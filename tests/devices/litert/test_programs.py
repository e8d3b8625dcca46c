"""Programs of the device: shapes, saving, buffers, threads, drivers, chips."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import crosschip
from crosschip.devices.litert.accelerated import AcceleratedProgram
from crosschip.devices.litert.chips import chips
from crosschip.hal import CompileError, Device, Options
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    If,
    Model,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.ops import Operator
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.unary import Abs, Exp

WEIGHTS = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)


def product(rows: int | str = 4) -> Model:
    b = Builder()
    size = symbol(rows) if isinstance(rows, str) else rows
    x = b.input("x", TensorType(ElementType.FLOAT32, (size, 64)))
    b.output("y", b.add(Relu, b.add(MatMul, x, WEIGHTS)))
    return b.build()


def rows(count: int) -> Array:
    return np.random.default_rng(count).normal(size=(count, 64)).astype(np.float32)


def right(array: Array) -> Array:
    return np.maximum(array.astype(np.float64) @ WEIGHTS, 0).astype(np.float32)


def test_what_is_saved_is_a_file_that_litert_runs(device: Device) -> None:
    array, program = rows(4), device.compile(product(), Options())
    saved = program.save()
    assert saved is not None
    interpreter = Interpreter(model_content=saved)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], array)
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(output, right(array), rtol=1e-5, atol=1e-5)
    loaded = device.load(saved, product(), Options(threads=1))
    np.testing.assert_array_equal(loaded.run([array])[0], program.run([array])[0])
    assert loaded.save() == saved


def test_what_was_not_saved_is_refused(device: Device) -> None:
    saved = device.compile(product(), Options()).save()
    assert saved is not None
    for wrong in (b"", b"x", b"\0" * 1000, saved[:20], saved[: len(saved) // 2]):
        with pytest.raises(DeviceError, match="litert"):
            device.load(wrong, product(), Options())
    with pytest.raises(DeviceError, match=r"float32\[4, 64\]"):
        device.load(saved, product(5), Options())


def test_outputs_are_written_to_the_callers_arrays(device: Device) -> None:
    array, place = rows(4), np.empty((4, 8), np.float32)
    (output,) = device.compile(product(), Options()).run_into([array], [place])
    assert output is place
    np.testing.assert_allclose(place, right(array), rtol=1e-5, atol=1e-5)


def test_outputs_outlive_later_runs(device: Device) -> None:
    program = device.compile(product(), Options())
    (first,) = program.run([rows(4)])
    program.run([-rows(4)])
    np.testing.assert_allclose(first, right(rows(4)), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_open_sizes_are_compiled_for_each_shape() -> None:
    with crosschip.compile(product("n"), ["litert"], cache=False) as compiled:
        for count in (1, 5, 0, 3, 5):
            output = compiled(rows(count))
            np.testing.assert_allclose(output, right(rows(count)), rtol=1e-5, atol=1e-5)


def test_threads_run_one_program(device: Device) -> None:
    program = device.compile(product(), Options(threads=1))
    arrays = [rows(4) * scale for scale in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda array: program.run([array])[0], arrays * 8))
    for array, output in zip(arrays * 8, outputs, strict=True):
        np.testing.assert_allclose(output, right(array), rtol=1e-5, atol=1e-4)


@pytest.mark.slow
def test_a_driver_process() -> None:
    with crosschip.compile(product(), ["litert@driver"], cache=False) as compiled:
        np.testing.assert_allclose(compiled(rows(4)), right(rows(4)), rtol=1e-5, atol=1e-5)


def test_tensors_without_elements(device: Device) -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (0, 3)))
    b.output("sum", b.add(Add, x, x))
    b.output("shape", b.add(ShapeOf, x))
    total, shape = device.compile(b.build(), Options()).run([np.empty((0, 3), np.float32)])
    assert total.shape == (0, 3)
    assert shape.tolist() == [0, 3]


@pytest.mark.parametrize("condition", [True, False])
def test_branches_are_chosen_by_litert(device: Device, condition: bool) -> None:
    """The bodies avoid quirks, too: an exponential keeps NaN."""

    def branch(operator: type[Operator]) -> Model:
        inner = Builder(operator.type.lower())
        x = inner.input("x", TensorType(ElementType.FLOAT32, (3,)))
        inner.output("y", inner.add(operator, x))
        return inner.build()

    b = Builder()
    chosen = b.input("condition", TensorType(ElementType.BOOL, ()))
    x = b.input("x", TensorType(ElementType.FLOAT32, (3,)))
    (y,) = b.insert(If.of("choice", chosen, [x], [branch(Exp), branch(Abs)]))
    b.output("y", y)
    array = np.array([np.nan, -1, 2], np.float32)
    (output,) = device.compile(b.build(), Options()).run([np.array(condition), array])
    np.testing.assert_allclose(output, (np.exp if condition else np.abs)(array), rtol=1e-6)


def test_quantized_layers_are_computed_on_integers(device: Device) -> None:
    """A convolution between conversions is one operator of LiteRT, a step off at most."""
    generator = np.random.default_rng(0)
    filters = generator.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)
    b = Builder()
    type_ = TensorType(ElementType.INT8, (1, 3, 8, 8), Quantization((0.02,), (3,)))
    x = b.input("x", type_)
    weights = b.constant(filters, quantization=Quantization((0.01,)))
    sums = b.add(Conv2D, b.add(Dequantize, x), b.add(Dequantize, weights))
    b.output("y", b.add(Quantize, sums, scale=0.3, zero_point=0, dtype=ElementType.INT8))
    integers = generator.integers(-128, 128, (1, 3, 8, 8)).astype(np.int8)
    program = device.compile(b.build(), Options())
    saved = program.save()
    assert saved is not None
    interpreter = Interpreter(model_content=saved)
    kinds = {detail["dtype"] for detail in interpreter.get_tensor_details()}
    assert np.float32 not in kinds
    windows = np.lib.stride_tricks.sliding_window_view((integers - 3.0) * 0.02, (3, 3), (2, 3))
    exact = np.einsum("ncxyij,ocij->noxy", windows, filters * 0.01)
    expected = np.clip(np.rint(exact / np.float32(0.3)), -128, 127)
    assert np.abs(program.run([integers])[0] - expected).max() <= 1


def test_chips_are_listed_with_their_libraries(tmp_path: Path) -> None:
    assert [chip.name for chip in chips(tmp_path)] == ["cpu"]
    for node in ("dri/renderD128", "accel/accel0"):
        (tmp_path / node).parent.mkdir(exist_ok=True)
        (tmp_path / node).touch()
    assert [chip.name for chip in chips(tmp_path)] == ["cpu", "gpu", "npu"]


def test_the_interface_to_accelerators_on_the_processor(device: Device) -> None:
    """There is no accelerator here: its programs run on the processor, as LiteRT allows."""
    saved = device.compile(product(), Options()).save()
    assert saved is not None
    program = AcceleratedProgram(saved, product(), Options(threads=1), "cpu")
    for array in (rows(4), -rows(4)):
        np.testing.assert_allclose(program.run([array])[0], right(array), rtol=1e-5, atol=1e-5)
    assert program.save() == saved


def test_an_accelerator_that_is_missing(device: Device) -> None:
    saved = device.compile(product(), Options()).save()
    assert saved is not None
    with pytest.raises(CompileError, match="does not accelerate"):
        AcceleratedProgram(saved, product(), Options(), "npu")


def test_refusals_have_reasons() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT64, (2,)))
    b.output("y", b.add(Abs, x))
    with pytest.raises(crosschip.UnsupportedError, match="float64"):
        crosschip.compile(b.build(), ["litert"], cache=False)
