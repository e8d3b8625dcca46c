"""Qualcomm's compiler: what it gets wrong, and how the device sees to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.chips import interpreter
from onnx import TensorProto, helper

import crosschip
from crosschip.devices.kits.worker import Worker
from crosschip.devices.qualcomm import QualcommDevice
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import CompileError, Options, Rule
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    Model,
    Quantization,
    TensorType,
)
from crosschip.ops import Operator
from crosschip.ops.numerics.resampling import AlignMode
from crosschip.ops.standard.activation import HardSigmoid, Softmax
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.blocks import DepthToSpace
from crosschip.ops.standard.comparison import Equal, GreaterEqual, LessEqual
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.matrix import Det
from crosschip.ops.standard.padding import Pad, PadMode
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.rearranging import Tile
from crosschip.ops.standard.resizing import ResizeCubic, ResizeLinear
from crosschip.ops.standard.unary import IsNaN, Neg, Sqrt

X = np.array([-4, -1, 0, 1, 2, 3, 5, 7], np.float32)
SETTINGS = {"soc_model": "57", "enable_htp_fp16_precision": "1"}


@pytest.fixture(scope="module")
def python() -> str:
    return interpreter("qualcomm")


@pytest.fixture
def device(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[QualcommDevice]:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path))
    with QualcommDevice({"python": python, "precision": "float16"}) as device:
        yield device


def compiled_alone(python: str, nodes: Sequence[tuple[str, list[str], str]], folder: Path) -> Array:
    """The tool's output for nodes as they are, without the device's care."""
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape)
        for name in ("x", nodes[-1][2])
    ]
    # Of nodes without names, it makes something else than of others.
    made = [helper.make_node(type_, read, [out], f"{out}_node") for type_, read, out in nodes]
    if made[0].op_type == "HardSigmoid":
        named = {"alpha": 1 / 6, "beta": 0.5}
        made[0].attribute.extend(helper.make_attribute(*entry) for entry in named.items())
    graph = helper.make_graph(made, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    with Worker("qualcomm", QualcommDevice.script, python) as worker:
        worker.call("compile", str(folder), SETTINGS)
        worker.call("load", str(folder), SETTINGS)
        (output,) = worker.call("run", arrays=[X]).arrays
    return output


def test_a_product_with_a_hard_sigmoid_is_right_in_one_order_only(
    python: str, device: QualcommDevice, tmp_path: Path
) -> None:
    expected = X * np.clip(X / 6 + 0.5, 0, 1)
    gate = ("HardSigmoid", ["x"], "gate")
    right = compiled_alone(python, [gate, ("Mul", ["gate", "x"], "y")], tmp_path)
    np.testing.assert_allclose(right, expected, atol=0.01)
    (tmp_path / "context.onnx").unlink()
    wrong = compiled_alone(python, [gate, ("Mul", ["x", "gate"], "y")], tmp_path)
    assert np.abs(wrong - expected).max() > 0.1, "it is mended: drop QualcommDevice.amend"
    b = Builder("gated")
    x = b.input("x", TensorType(ElementType.FLOAT32, X.shape))
    b.output("y", b.add(Mul, x, b.add(HardSigmoid, x, alpha=1 / 6, beta=0.5)))
    with crosschip.compile(b.build(), [device], cache=False) as compiled:
        np.testing.assert_allclose(compiled(X), expected, atol=0.01)


def test_softplus_is_off_by_more_than_float16_can_be(python: str, tmp_path: Path) -> None:
    made = compiled_alone(python, [("Softplus", ["x"], "y")], tmp_path)
    error = np.abs(made - np.logaddexp(X, 0)) / np.logaddexp(X, 0)
    assert error.max() > 0.01, "it is mended: drop the limit"


def outputs(device: QualcommDevice, model: Model, *inputs: Array) -> list[list[Array]]:
    """The outputs of a model: of the chip, without the device's care, and right ones."""
    found = []
    for runs in (device.compile(model, Options()), ReferenceDevice().compile(model, Options())):
        found.append(list(runs.run(inputs)))
        runs.close()
    return found


def test_quantized_results_that_come_out_wrong(device: QualcommDevice) -> None:
    b = Builder("m")
    read, made = Quantization((0.03,)), Quantization((0.05,), (7,))
    image = b.input("image", TensorType(ElementType.INT8, (1, 4, 2, 3), read))
    row = b.input("row", TensorType(ElementType.INT8, (1, 6), read))
    b.output("moved", b.add(DepthToSpace, image, block_size=2, quantization=made))
    b.output("softmax", b.add(Softmax, row, quantization=made))
    model = b.build()
    for answer in device.query(model, Options()).answers:
        assert answer.rule is Rule.QUANTIZATION
    random = np.random.default_rng(0)
    inputs = [random.integers(-99, 99, shape).astype(np.int8) for shape in ((1, 4, 2, 3), (1, 6))]
    for wrong, right in zip(*outputs(device, model, *inputs), strict=True):
        assert np.abs(wrong.astype(int) - right).max() > 2, "it is mended: drop the limit"


def one(operator: type[Operator], *types: TensorType, **more: Any) -> Model:
    b = Builder("m")
    inputs = [b.input(f"x{index}", each) for index, each in enumerate(types)]
    b.output("y", b.add(operator, *inputs, **more))
    return b.build()


def real(*shape: int) -> TensorType:
    return TensorType(ElementType.FLOAT32, shape)


REFUSED = {
    "means of padding on all sides": (
        one(AveragePool2D, real(1, 1, 6, 7), kernel_shape=(2, 2), strides=(2, 2), pads=4 * (1,)),
        r"AVERAGE_POOL_2D.pads: \[1, 1, 1, 1\], where means come out wrong",
    ),
    "means of padding on one side": (
        one(AveragePool2D, real(1, 1, 5, 6), kernel_shape=(2, 2), pads=(0, 0, 0, 1)),
        r"AVERAGE_POOL_2D.pads: \[0, 0, 0, 1\], where means come out wrong",
    ),
    "means of padding that counts": (
        one(
            AveragePool2D,
            real(1, 1, 4, 4),
            kernel_shape=(3, 3),
            pads=4 * (1,),
            count_include_pad=True,
        ),
        r"AVERAGE_POOL_2D.pads: \[1, 1, 1, 1\], where means come out wrong",
    ),
    "quantized means of padding": (
        one(
            AveragePool2D,
            TensorType(ElementType.INT8, (1, 1, 4, 4), Quantization((0.05,), (3,))),
            kernel_shape=(3, 3),
            pads=4 * (2,),
            quantization=Quantization((0.05,), (3,)),
        ),
        r"AVERAGE_POOL_2D.pads: \[2, 2, 2, 2\], where means come out wrong",
    ),
    "means of what is beyond the image": (
        one(
            AveragePool2D,
            real(1, 1, 5, 4),
            kernel_shape=(2, 2),
            strides=(2, 2),
            ceil_mode=True,
        ),
        "AVERAGE_POOL_2D.ceil_mode: counts what is beyond the image",
    ),
    "maxima of padding on one side": (
        one(MaxPool2D, real(1, 1, 6, 7), kernel_shape=(3, 2), strides=(2, 2), pads=(0, 0, 1, 0)),
        r"MAX_POOL_2D.pads: \[0, 0, 1, 0\] are not the same before and after the image",
    ),
    "maxima of even windows with padding": (
        one(MaxPool2D, real(1, 1, 9, 8), kernel_shape=(2, 2), strides=(2, 2), pads=4 * (1,)),
        r"MAX_POOL_2D.pads: \[1, 1, 1, 1\] with an even window of 2",
    ),
    "repeated edges": (
        one(Pad, real(4), pads=(1, 0), mode=PadMode.EDGE),
        "PAD.mode: EDGE leaves what the memory held before",
    ),
    "quantized edges": (
        one(
            Pad,
            TensorType(ElementType.INT8, (4,), Quantization((0.05,), (3,))),
            pads=(1, 0),
            mode=PadMode.REFLECT,
            quantization=Quantization((0.1,)),
        ),
        "PAD.output: must be quantized like the input",
    ),
    "a single pixel": (
        one(ResizeLinear, real(1, 1, 4, 5), shape=(4, 1), align_mode=AlignMode.PYTORCH_HALF_PIXEL),
        "RESIZE_LINEAR.align_mode: PYTORCH_HALF_PIXEL puts a single pixel in the middle",
    ),
    "pixels outside": (
        one(ResizeCubic, real(1, 1, 1, 4), shape=(1, 8), exclude_outside=True),
        "RESIZE_CUBIC.exclude_outside: is passed over",
    ),
}
"""Models that come out wrong, and why the device declines them."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_comes_out_wrong_is_declined(device: QualcommDevice, case: str) -> None:
    model, why = REFUSED[case]
    (answer,) = device.query(model, Options()).answers
    assert re.match(why, answer.reason), answer.reason
    (type_,) = (operand.type for operand in model.inputs.values())
    reals = np.random.default_rng(0).uniform(-2, -1, type_.static_shape or ())
    x = (reals / 0.02).astype(np.int8) if type_.quantization else reals.astype(np.float32)
    ((wrong, right),) = zip(*outputs(device, model, x), strict=True)
    error = np.abs(wrong.astype(float) - right).max()
    assert error > (2 if type_.quantization else 0.01), "it is mended: drop the limit"


CASTS = [
    (ElementType.INT32, 256, ElementType.UINT8, 255),
    (ElementType.INT32, -1, ElementType.BOOL, False),
    (ElementType.UINT8, 2, ElementType.FLOAT32, 1),
]
"""Types, an element, and what is made of it, which is wrong."""


@pytest.mark.parametrize(("read", "element", "made", "expected"), CASTS)
def test_conversions_that_come_out_wrong(
    device: QualcommDevice, read: ElementType, element: int, made: ElementType, expected: float
) -> None:
    model = one(Cast, TensorType(read, (1,)), dtype=made)
    assert not device.query(model, Options()).answers[0]
    (wrong,), _ = outputs(device, model, np.array([element], read.dtype))
    np.testing.assert_allclose(wrong, [expected], rtol=1e-3, err_msg="it is mended")


def test_there_are_no_infinities_and_no_nan(device: QualcommDevice) -> None:
    x = np.array([np.nan, np.inf, -np.inf], np.float32)
    (negative,), _ = outputs(device, one(Neg, real(3)), x)
    np.testing.assert_allclose(negative, [-131008, -131008, 131008], rtol=1e-3)
    for operator in (Equal, GreaterEqual, LessEqual):
        (same,), _ = outputs(device, one(operator, real(1), real(1)), x[1:2], x[1:2])
        assert same.tolist() == [False], "they are there: drop the exclusions"
    model = one(IsNaN, real(3))
    assert "takes infinities for NaN" in device.query(model, Options()).answers[0].reason
    (told,), _ = outputs(device, model, x)
    assert told.tolist() == [True, True, True], "it is mended: drop the limit"


def test_integers_do_not_wrap_around(device: QualcommDevice) -> None:
    for type_, element, sums in (
        (ElementType.INT32, 2**30, 2**31 - 1),
        (ElementType.INT64, 2**40, 0),
    ):
        one_element = TensorType(type_, (1,))
        x = np.array([element], type_.dtype)
        (wrong,), _ = outputs(device, one(Add, one_element, one_element), x, x)
        assert wrong.tolist() == [sums], "they do: drop the paragraph in docs/qualcomm.md"


def test_lists_of_nothing_are_no_tensors_of_no_elements(device: QualcommDevice) -> None:
    assert device.query(one(Reshape, real(1, 1), shape=()), Options()).answers[0]


def test_tensors_of_no_elements_end_the_compiler(device: QualcommDevice) -> None:
    model = one(Tile, real(2, 3), repeats=(0, 2))
    assert "has no elements" in device.query(model, Options()).answers[0].reason
    with pytest.raises(CompileError, match="SIGFPE"):
        device.compile(model, Options())


def test_the_reason_for_a_refusal_is_the_compilers(device: QualcommDevice) -> None:
    b = Builder("m")
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3, 3)))
    b.output("y", b.add(Sqrt, x))
    b.output("z", b.add(Det, x))
    sqrt, det = device.query(b.build(), Options()).answers
    assert sqrt
    assert det.reason == "DET: Operators of type `Det` are not supported by QNN EP"


def test_nothing_falls_back_to_the_processor(python: str, tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="fallback to CPU EP has been explicitly disabled"):
        compiled_alone(python, [("Sqrt", ["x"], "z"), ("Erf", ["z"], "y")], tmp_path)


def test_saved_programs_are_loaded_by_another_process(
    device: QualcommDevice, tmp_path: Path
) -> None:
    b = Builder("m")
    b.output("y", b.add(Sqrt, b.input("x", TensorType(ElementType.FLOAT32, (3,)))))
    words = []
    for _ in range(2):
        with crosschip.compile(b.build(), [device], cache=tmp_path / "programs") as compiled:
            y = compiled(np.array([1, 4, 9], np.float32))
            np.testing.assert_allclose(y, [1, 2, 3], rtol=2e-3)
            words.append(compiled.report.cache)
    assert words == ["miss", "hit"]
