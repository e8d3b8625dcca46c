"""The driver: quantized models in both forms, precision, memory that stays, and saved programs."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_npu.models import (
    SHAPE,
    Array,
    between_conversions,
    convolved,
    last_layer,
    on_bytes,
    quantization,
    quantize,
    weights,
    with_another_between,
)

import crosschip
from crosschip.hal import HostBuffer, Options, Precision
from crosschip.ir import Builder, DeviceError, ElementType, Model, TensorType
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.quantization import Dequantize
from crosschip.ops.standard.unary import Sin
from fake_npu import FakeNpuDevice
from fake_npu.forms import Form
from fake_npu_ddk.memory import Memory

BYTES = [ElementType.UINT8, ElementType.INT8]


def inputs(model: Model, seed: int = 0) -> dict[str, Array]:
    """Random elements for the inputs of a model."""
    random = np.random.default_rng(seed)
    given: dict[str, Array] = {}
    for name, operand in model.inputs.items():
        shape, dtype = operand.type.static_shape or (), operand.type.element_type.dtype
        whole = (
            random.integers(0, 256, shape).astype(np.uint8).view(np.int8 if dtype == "i1" else "u1")
        )
        given[name] = whole if dtype.itemsize == 1 else random.normal(size=shape).astype(dtype)
    return given


def outputs(model: Model, devices: Any, seed: int = 0, strict: bool = False) -> dict[str, Array]:
    placement = crosschip.PlacementOptions(strict=strict)
    with crosschip.compile(model, devices, placement=placement, cache=False) as compiled:
        return dict(compiled.run(inputs(model, seed)))


@pytest.mark.parametrize("element_type", BYTES)
def test_operations_on_bytes(device: FakeNpuDevice, element_type: ElementType) -> None:
    model = on_bytes(element_type)
    made = outputs(model, [device])["y"].astype(int)
    wanted = outputs(model, ["reference"])["y"].astype(int)
    assert np.abs(made - wanted).max() <= 1
    assert len(np.unique(wanted)) > 50


@pytest.mark.parametrize("element_type", BYTES)
def test_operations_between_conversions(device: FakeNpuDevice, element_type: ElementType) -> None:
    """All of it is the chip's: what enters and leaves is converted by the driver."""
    model = between_conversions(element_type)
    made, wanted = outputs(model, [device], strict=True), outputs(model, ["reference"])
    for name, step in (("fine", 0.025), ("total", 0.05)):
        steps = np.abs(made[name] - wanted[name]) / step
        assert steps.max() <= (1.01 if name == "fine" else 3.01)
        assert made[name].min() < made[name].max()


def test_int8_is_uint8_moved_up(device: FakeNpuDevice) -> None:
    """The same reals in both types: the chip computes the same bytes."""
    signed, unsigned = (on_bytes(element_type) for element_type in reversed(BYTES))
    x = inputs(unsigned)["x"]
    moved = (x ^ 128).view(np.int8)
    with (
        crosschip.compile(signed, [device], cache=False) as one,
        crosschip.compile(unsigned, [device], cache=False) as other,
    ):
        made = one.run({"x": moved})["y"]
        np.testing.assert_array_equal((made.view(np.uint8) ^ 128), other.run({"x": x})["y"])


def float32() -> Model:
    b = Builder("float32")
    b.output("y", b.add(Relu, b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))))
    return b.build()


def test_float32_is_not_computed_in_float16_unasked(device: FakeNpuDevice) -> None:
    model, options = float32(), Options()
    (answer,) = device.query(model, options).answers
    assert answer.reason.startswith("RELU: is float32, which the chip does not compute")
    with pytest.raises(DeviceError, match="float32"):
        device.compile(model, options)
    wish = Options(precision=Precision.FLOAT16)
    assert device.query(model, wish).answers[0]
    with FakeNpuDevice({"precision": "float16"}) as half:
        assert half.query(model, options).answers[0]
        np.testing.assert_array_equal(
            half.compile(model, options).run([np.full((2, 3), 1 / 3, np.float32)])[0],
            np.full((2, 3), np.float16(1 / 3), np.float32),
        )


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"memory": "0"}, "property memory is '0', but must be 1 to 4096"),
        ({"effort": "most"}, "property effort is 'most', but must be 1 to 3"),
        ({"precision": "float32"}, "property precision is 'float32', but can only be float16"),
        ({"efort": "1"}, "did you mean"),
    ],
)
def test_properties_that_are_wrong(properties: dict[str, str], words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        FakeNpuDevice(properties)


def test_conversions_are_taken_beside_what_the_chip_computes_only(device: FakeNpuDevice) -> None:
    b = Builder("conversion")
    stored = TensorType(ElementType.UINT8, (2, 3), quantization(0.1, 3, ElementType.UINT8))
    b.output("y", b.add(Dequantize, b.input("x", stored)))
    (answer,) = device.query(b.build(), Options()).answers
    assert answer.reason.startswith("DEQUANTIZE: stands alone")


def test_functions_of_a_byte_are_tables(device: FakeNpuDevice) -> None:
    """Every byte, exactly as the operator is defined."""
    for element_type in BYTES:
        b = Builder("table")
        stored = TensorType(element_type, (256,), quantization(0.05, 128, element_type))
        meaning = quantization(1 / 256, 0, element_type)
        b.output("y", b.add(Sigmoid, b.input("x", stored), quantization=meaning))
        model = b.build()
        x = np.arange(256, dtype=np.uint8).view(element_type.dtype)
        (made,) = device.compile(model, Options()).run([x])
        with crosschip.compile(model, ["reference"], cache=False) as compiled:
            np.testing.assert_array_equal(made, compiled(x))


SHAPES = st.lists(st.integers(1, 20), max_size=4).map(tuple)


@given(SHAPES, st.sampled_from([ElementType.FLOAT16, ElementType.FLOAT32, *BYTES]), st.integers(0))
def test_forms_bring_back_what_they_took(
    shape: tuple[int, ...], element_type: ElementType, seed: int
) -> None:
    form = Form(element_type, shape)
    array = np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)
    elements = np.asarray(array).astype(element_type.dtype)
    laid = form.to_chip(elements)
    assert laid.shape == form.tensor.shape
    assert laid.dtype == form.tensor.type.dtype
    back = form.from_chip(laid)
    assert back.flags.c_contiguous
    np.testing.assert_array_equal(back, elements, strict=True)


@given(SHAPES, st.integers(0))
def test_reals_that_are_bytes_on_the_chip_come_back(shape: tuple[int, ...], seed: int) -> None:
    meaning = quantization(0.05, 120, ElementType.UINT8)
    form = Form(ElementType.FLOAT32, shape, meaning)
    stored = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    reals = ((np.asarray(stored).astype(np.float64) - 120) * np.float32(0.05)).astype(np.float32)
    laid = form.to_chip(np.asarray(reals))
    assert laid.shape == form.tensor.shape
    np.testing.assert_array_equal(form.from_chip(laid), reals, strict=True)


@given(st.permutations(range(4)), st.lists(st.integers(1, 4), min_size=4, max_size=4))
def test_shapes_are_those_of_the_model(order: list[int], sizes: list[int]) -> None:
    """Elements are in the model's order, whatever the chip's is."""
    shape = tuple(sizes)
    b = Builder("shapes")
    x = b.input("x", TensorType(ElementType.UINT8, shape))
    b.output("flat", b.add(Reshape, x, (-1,)))
    b.output("image", b.add(Reshape, b.add(Reshape, x, (-1, 1)), tuple(shape[i] for i in order)))
    model = b.build()
    elements = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    with FakeNpuDevice() as device:
        flat, image = device.compile(model, Options()).run([elements])
    np.testing.assert_array_equal(flat, elements.ravel())
    np.testing.assert_array_equal(image.ravel(), elements.ravel())


def test_a_tensor_stays_on_the_chip_while_another_device_works(
    device: FakeNpuDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied out once, for the other device, and not in again."""
    copies = Counter[str]()
    for name in ("copy_in", "copy_out"):
        kept = getattr(Memory, name)

        def counted(*given: Any, kept: Any = kept, name: str = name) -> Any:
            copies[name] += 1
            return kept(*given)

        monkeypatch.setattr(Memory, name, counted)
    model = with_another_between()
    made = outputs(model, [device, "reference"])["y"].astype(int)
    assert copies == {"copy_in": 2, "copy_out": 2}  # x and the waves; the tensor and y
    with crosschip.compile(model, [device, "reference"], cache=False) as compiled:
        assert [segment.device for segment in compiled.placement.segments] == [
            device.name, "reference", device.name,
        ]  # fmt: skip
    assert np.abs(made - outputs(model, ["reference"])["y"].astype(int)).max() <= 2


def test_buffers_are_read_and_written_in_place(device: FakeNpuDevice) -> None:
    model = on_bytes(ElementType.UINT8)
    program = device.compile(model, Options())
    x = inputs(model)["x"]
    (expected,) = program.run([x])
    read, made = (device.allocate(ElementType.UINT8, SHAPE) for _ in range(2))
    read.write(x)
    submission = program.submit([read], [made], ())
    assert submission.outputs[0] is made
    assert made.device is device
    assert submission.event.wait(10)
    np.testing.assert_array_equal(made.array(), expected)
    np.testing.assert_array_equal(np.from_dlpack(made), expected)
    place = HostBuffer(np.empty_like(expected))
    again = program.submit([made], [place], (submission.event,))
    assert again.outputs[0] is place
    with pytest.raises(DeviceError, match="is not what a buffer of uint8"):
        read.write(x.astype(np.float32))


def test_memory_comes_back_with_buffers_and_programs() -> None:
    with FakeNpuDevice({"memory": "1"}) as device:
        program = device.compile(on_bytes(ElementType.UINT8), Options())
        for _ in range(1000):
            program.submit([device.allocate(ElementType.UINT8, SHAPE)], [], ()).event.wait()
        program.close()
        device.allocate(ElementType.UINT8, (1 << 14, 60))
        with pytest.raises(DeviceError, match="memory is full"):
            device.allocate(ElementType.UINT8, (1 << 14, 65))


def test_a_model_that_is_too_large_goes_elsewhere() -> None:
    b = Builder("large")
    x = b.input("x", TensorType(ElementType.UINT8, (1, 64, 100, 100)))
    b.output("y", b.add(Reshape, x, (64, 100, 100)))
    model = b.build()
    with (
        FakeNpuDevice({"memory": "1"}) as device,
        crosschip.compile(model, [device, "reference"], cache=False) as compiled,
    ):
        (decision,) = compiled.placement.decisions
        assert decision.device == "reference"
        assert "does not fit the chip's memory" in decision.reasons[device.name]
        elements = inputs(model)["x"]
        np.testing.assert_array_equal(compiled(elements), elements.reshape(64, 100, 100))


def test_a_saved_program_computes_the_same(device: FakeNpuDevice) -> None:
    model = between_conversions(ElementType.INT8)
    given = list(inputs(model).values())
    program = device.compile(model, Options())
    saved = program.save()
    assert saved is not None
    loaded = device.load(saved, model, Options())
    for one, other in zip(program.run(given), loaded.run(given), strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.data())
def test_a_damaged_program_is_a_device_error(data: st.DataObject) -> None:
    model = on_bytes(ElementType.UINT8)
    with FakeNpuDevice() as device:
        whole = device.compile(model, Options()).save()
        assert whole is not None
        damaged = bytearray(whole)
        place = data.draw(st.integers(0, len(whole) - 1))
        damaged[place] ^= data.draw(st.integers(1, 255))
        try:
            program = device.load(bytes(damaged), model, Options())
        except DeviceError:
            return
        # Only what the driver writes before the DDK's bytes has no checksum but the cache's.
        assert place < whole.index(b"FNPU")
        program.close()


def test_the_cache_finds_programs_again(device: FakeNpuDevice, tmp_path: Path) -> None:
    model = on_bytes(ElementType.UINT8)
    words = []
    for _ in range(2):
        with crosschip.compile(model, [device], cache=tmp_path) as compiled:
            words.append(compiled.report.cache)
    assert words == ["miss", "hit"]


def test_two_programs_from_several_threads(device: FakeNpuDevice) -> None:
    models = [on_bytes(ElementType.UINT8), between_conversions(ElementType.UINT8)]
    programs = [device.compile(model, Options()) for model in models]
    expected = {
        (which, seed): programs[which].run(list(inputs(models[which], seed).values()))
        for which in range(2)
        for seed in range(4)
    }

    def work(number: int) -> None:
        which, seed = number % 2, number // 2 % 4
        made = programs[which].run(list(inputs(models[which], seed).values()))
        for one, other in zip(made, expected[which, seed], strict=True):
            np.testing.assert_array_equal(one, other)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))


def test_bytes_that_become_other_bytes_are_never_float16(device: FakeNpuDevice) -> None:
    """A tensor is rounded anew, to steps so fine that float16 would show."""
    b = Builder("anew")
    type_ = ElementType.UINT8
    stored = TensorType(type_, SHAPE, quantization(0.05, 120, type_))
    made = convolved(b, b.input("x", stored), type_)
    fine = quantize(b, b.add(Dequantize, made), quantization(0.0501, 120, type_), type_)
    b.output("y", b.add(Relu, fine, quantization=quantization(0.0501, 120, type_)))
    model = b.build()
    made_by = [outputs(model, [chosen])["y"].astype(int) for chosen in (device, "reference")]
    assert np.abs(made_by[0] - made_by[1]).max() <= 1


def test_weights_that_another_device_reads_too(device: FakeNpuDevice) -> None:
    b = Builder("shared")
    type_ = ElementType.UINT8
    meaning = quantization(0.05, 120, type_)
    x = b.add(Dequantize, b.input("x", TensorType(type_, SHAPE, meaning)))
    filters, bias = (b.add(Dequantize, o) for o in weights(type_))
    b.output("y", quantize(b, b.add(Conv2D, x, filters, bias, pads=(1, 1, 1, 1)), meaning, type_))
    b.output("z", b.add(Sin, bias))
    model = b.build()
    made, wanted = (outputs(model, [*d, "reference"]) for d in ([device], []))
    assert np.abs(made["y"].astype(int) - wanted["y"].astype(int)).max() <= 1
    np.testing.assert_array_equal(made["z"], wanted["z"])


@pytest.mark.parametrize("element_type", BYTES)
def test_a_product_and_its_sum_are_one_operation(
    device: FakeNpuDevice, element_type: ElementType
) -> None:
    model = last_layer(element_type)
    made = outputs(model, [device], strict=True)["y"]
    steps = np.abs(made - outputs(model, ["reference"])["y"]) / 0.5
    assert steps.max() <= 1.01
    assert len(np.unique(made)) > 3
