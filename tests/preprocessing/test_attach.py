"""Preprocessing as a part of models: on devices, and in the model's interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from tests.preprocessing.oracles import cases

import crosschip
from crosschip import Builder, InputError, Model, Preprocess
from crosschip.ir import ElementType, Quantization, Shape, TensorType, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.conversion import Assign, Cast

DEVICES = ("reference", "onnxruntime", "openvino", "xla")

FLOAT32 = ElementType.FLOAT32


def model_of(shape: Shape | None, element_type: ElementType = FLOAT32, **others: Shape) -> Model:
    """Return a model that outputs its inputs, of which `x` is the first."""
    b = Builder("mirror")
    for name, size in {"x": shape, **others}.items():
        operand = b.input(name, TensorType(element_type, size))
        b.output(f"{name} itself", b.add(Assign, operand))
    return b.build()


def open_model(settings: Preprocess) -> Model:
    """Return a model that takes pictures of all sizes."""
    layout = settings.layout.replace("C", str(settings.channels))
    sizes = (int(c) if c.isdigit() else symbol(c) for c in layout)
    return settings.attach(model_of(tuple(sizes)))


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fixed", [False, True], ids=["open", "fixed"])
def test_devices_agree_with_the_definition(device: str, fixed: bool) -> None:
    for case in cases(100 + fixed, 12):
        pictures = np.stack([case.picture, 255 - case.picture])
        shapes = {"x": pictures.shape} if fixed else {}
        model = open_model(case.settings)
        with crosschip.compile(model, device, shapes=shapes, cache=False) as compiled:
            (result,) = compiled.run({"x": pictures}).values()
        expected = case.settings.apply(pictures)
        assert result.shape == expected.shape, case.settings
        # Sums in another order may be rounded to another whole number, a step away, at a half.
        step = np.max(case.settings.scale)
        differs = np.abs(result - expected) > 1e-3 * step
        assert differs.mean() < 0.02, case.settings
        assert np.abs(result - expected).max(initial=0) <= 1.001 * step, case.settings


@pytest.mark.parametrize("device", DEVICES)
def test_one_program_for_pictures_of_all_sizes(device: str) -> None:
    settings = Preprocess(resize=(9, 12), fit="longer", pad_value=114)
    generator = np.random.default_rng(0)
    with crosschip.compile(open_model(settings), device, cache=False) as compiled:
        for size in ((1, 1), (7, 3), (9, 12), (40, 41), (1, 300), (301, 2)):
            picture = generator.integers(0, 256, (1, *size, 3), np.uint8)
            (result,) = compiled.run({"x": picture}).values()
            np.testing.assert_allclose(result, settings.apply(picture), atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(1, 0, 4, 3), (1, 4, 0, 3)])
def test_a_picture_without_pixels_is_an_error(device: str, shape: tuple[int, ...]) -> None:
    settings = Preprocess(resize=(2, 2), antialias=True)
    with (
        crosschip.compile(open_model(settings), device, cache=False) as compiled,
        pytest.raises(crosschip.DeviceError, match=r"GATHER|Gather"),
    ):
        compiled.run({"x": np.zeros(shape, np.uint8)})


def test_a_huge_picture() -> None:
    picture = np.zeros((1, 9000, 11000, 3), np.uint8)
    picture[:, :, 5500:] = 200
    settings = Preprocess(resize=(2, 4), layout="NHWC")
    with crosschip.compile(open_model(settings), "onnxruntime", cache=False) as compiled:
        (result,) = compiled.run({"x": picture}).values()
    np.testing.assert_array_equal(result[0, :, :, 0], [[0, 0, 200, 200]] * 2)


def test_the_interface_of_the_model() -> None:
    model = model_of((symbol("N"), 3, symbol("height"), symbol("W")), size=(symbol("W"),))
    attached = Preprocess(resize=(8, 6)).attach(model, "x")
    assert list(attached.inputs) == ["x", "size"]
    assert str(attached.inputs["x"].type) == "uint8[N, picture_height, width, 3]"
    assert str(attached.inputs["size"].type) == "float32[6]"
    assert attached.outputs["x itself"].type.shape == (symbol("N"), 3, 8, 6)
    attached.verify()


def test_the_size_of_the_model_is_the_default() -> None:
    settings = Preprocess()
    assert settings.attach(model_of((1, 3, 8, 6))).outputs["x itself"].type.shape == (1, 3, 8, 6)
    (operand,) = settings.attach(model_of((1, 3, symbol("H"), symbol("W")))).outputs.values()
    assert str(operand.type) == "float32[1, 3, height, width]"


def test_a_model_of_unknown_rank() -> None:
    attached = Preprocess(resize=4).attach(model_of(None))
    assert attached.outputs["x itself"].type.shape == (symbol("N"), 3, 4, 4)


def test_an_input_that_is_an_output() -> None:
    b = Builder()
    operand = b.input("x", TensorType(FLOAT32, (1, 3, 4, 4)))
    b.output("y", operand)
    attached = Preprocess().attach(b.build())
    with crosschip.compile(attached, "reference", cache=False) as compiled:
        result = compiled.run({"x": np.full((1, 5, 5, 3), 7, np.uint8)})["y"]
    np.testing.assert_array_equal(result, np.full((1, 3, 4, 4), 7))


def test_two_inputs_that_take_pictures() -> None:
    model = model_of((1, 3, 4, 4), y=(1, 1, 2, 2))
    model = Preprocess().attach(model, "x")
    model = Preprocess(color="GRAY").attach(model, "y")
    assert [str(operand.type) for operand in model.inputs.values()] == [
        "uint8[1, height, width, 3]",
        "uint8[1, picture_height, picture_width, 3]",
    ]
    model.verify()


@pytest.mark.parametrize(
    ("element_type", "scale", "expected"),
    [
        (ElementType.UINT8, 1.0, [0, 100, 255]),
        (ElementType.UINT8, 2.0, [0, 200, 255]),
        (ElementType.INT8, 1.0, [0, 100, 127]),
        (ElementType.FLOAT16, 0.5, [0, 50, 127.5]),
        (ElementType.FLOAT64, 0.5, [0, 50, 127.5]),
    ],
)
def test_element_types(element_type: ElementType, scale: float, expected: list[float]) -> None:
    model = Preprocess(scale=scale, color="GRAY").attach(model_of((1, 1, 1, 3), element_type))
    picture = np.array([0, 100, 255], np.uint8).repeat(3).reshape(1, 1, 3, 3)
    with crosschip.compile(model, "onnxruntime,reference", cache=False) as compiled:
        (result,) = compiled.run({"x": picture}).values()
    assert result.dtype == element_type.dtype
    np.testing.assert_array_equal(result.ravel(), expected)


def test_mean_and_scale_are_in_the_order_of_the_model() -> None:
    settings = Preprocess(color="BGR", mean=(1, 2, 3), scale=(10, 100, 1000))
    result = settings.apply(np.array([[[30, 20, 10]]], np.uint8))
    np.testing.assert_allclose(result.ravel(), [90, 1800, 27000])


def test_padding_is_normalized() -> None:
    settings = Preprocess(crop=(1, 3), pad_value=(5, 6, 7), mean=1, color="BGR", layout="NHWC")
    result = settings.apply(np.array([[[30, 20, 10]]], np.uint8))
    np.testing.assert_allclose(result[0, 0], [[4, 5, 6], [9, 19, 29], [4, 5, 6]])


@pytest.mark.parametrize(
    ("model", "settings", "input", "message"),
    [
        (model_of((1, 3, 4, 4), y=(1,)), {}, None, "say which of the inputs x, y takes pictures"),
        (model_of((1, 3, 4, 4)), {}, "X", "no input 'X' .did you mean 'x'"),
        (model_of((1, 4, 4, 3)), {}, None, "4 channels in the layout NCHW.*set layout or color"),
        (model_of((1, 1, 4, 4)), {}, None, "color RGB has 3; set layout or color"),
        (model_of((3, 4)), {}, None, "pictures have four axes, NCHW"),
        (model_of((1, 3, 4, 4)), {"resize": 5}, None, "set resize, or crop, to the size"),
        (model_of((1, 3, 4, 4)), {"resize": 4, "fit": "shorter"}, None, "set resize, or crop"),
        (model_of((1, 3, 4, 4)), {"element_type": "float16"}, None, "is float16; leave it out"),
        (model_of((1, 3, 4, 4), ElementType.BOOL), {}, None, "become plain numbers"),
    ],
)
def test_models_that_do_not_fit(
    model: Model, settings: Mapping[str, Any], input: str | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Preprocess(**settings).attach(model, input)


def test_quantized_inputs_do_not_fit() -> None:
    b = Builder()
    type_ = TensorType(ElementType.UINT8, (1, 3, 4, 4), Quantization((0.5,)))
    b.output("y", b.add(Relu, b.input("x", type_)))
    with pytest.raises(InputError, match="plain numbers"):
        Preprocess().attach(b.build())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"resize": 0}, "resize is 0; give a height and a width in pixels, or one number"),
        ({"resize": 2.5}, "resize is 2.5; give"),
        ({"resize": (1, 2, 3)}, "give a height and a width"),
        ({"crop": "8x8"}, "crop is '8x8'; give"),
        ({"crop": 10**9}, "crop is 1000000000; give"),
        ({"fit": "longest"}, "fit is 'longest' .did you mean 'longer'.*stretch, shorter, longer"),
        ({"color": "rgb"}, "color is 'rgb'.*choose one of RGB, BGR, GRAY"),
        ({"interpolation": "lanczos"}, "choose one of linear, nearest, cubic, area"),
        ({"layout": "CHW"}, "choose one of NCHW, NHWC"),
        ({"position": "end"}, "choose one of center, start"),
        ({"antialias": 1}, "antialias is 1; give True or False"),
        ({"mean": (1, 2)}, r"mean is \(1, 2\); give one number or 3 for color RGB"),
        ({"mean": (1, 2, 3), "color": "GRAY"}, "give one number for color GRAY"),
        ({"scale": float("nan")}, "scale is nan"),
        ({"scale": "1/255"}, "scale is '1/255'; give"),
        ({"element_type": "float31"}, "element_type is 'float31'.*choose one of"),
    ],
)
def test_invalid_settings(settings: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Preprocess(**settings)


@pytest.mark.parametrize("shape", [(4, 4), (4, 4, 1), (4, 4, 4), (0, 4, 3), (1, 1, 4, 4, 3)])
def test_arrays_that_are_no_pictures(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"pictures are uint8 \[height, width, 3\]"):
        Preprocess().apply(np.zeros(shape, np.uint8))
    with pytest.raises(InputError, match="not float32"):
        Preprocess().apply(np.zeros((4, 4, 3), np.float32))


def test_settings_are_values() -> None:
    settings = Preprocess(resize=4, mean=[1, 2, 3])
    assert settings == Preprocess(resize=(4, 4), mean=np.array([1.0, 2.0, 3.0]))
    assert hash(settings) == hash(Preprocess(resize=(4, 4), mean=(1, 2, 3)))
    with pytest.raises((FrozenInstanceError, AttributeError)):
        settings.resize = 5  # type: ignore[misc]


def test_pictures_in_a_model_that_computes() -> None:
    b = Builder()
    first = b.input("x", TensorType(FLOAT32, (symbol("N"), 3, 4, 4)))
    b.output("y", b.add(Add, b.add(Cast, first, FLOAT32), 1.0))
    picture = np.random.default_rng(0).integers(0, 256, (2, 9, 5, 3), np.uint8)
    settings = Preprocess(scale=1 / 255)
    model = settings.attach(b.build())
    with crosschip.compile(model, "openvino", cache=False) as compiled:
        result = compiled.run({"x": picture})["y"]
    expected = Preprocess(resize=4, scale=1 / 255).apply(picture) + 1
    np.testing.assert_allclose(result, expected, atol=1e-5)
