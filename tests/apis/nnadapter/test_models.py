"""Real models, written out as NNAdapter's calls, answer as they do when called directly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.apis.nnadapter.programs import run_once

import crosschip
from crosschip.apis.nnadapter import NNAdapterModel_destroy, calls
from crosschip.ir import Builder, ElementType, If, Model, TensorType, UnsupportedError
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.unary import Neg, Sign

NETS = {
    "paddle2/mobilenet_v1": (1, 3, 224, 224),
    "onnx/mobilenet_v1.onnx": (1, 3, 224, 224),
    "ocr-paddle/ch_ppocr_mobile_v2_cls_infer": (2, 3, 48, 192),
    "ocr-paddle/ch_PP-OCRv4_rec_infer": (1, 3, 48, 160),
}


@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("net", NETS)
def test_answers_are_those_of_a_direct_call(models: Path, net: str, device: str) -> None:
    same_answers(crosschip.load(models / net), NETS[net], device)


def test_answers_of_the_reference_are_those_of_a_direct_call(models: Path) -> None:
    model = crosschip.load(models / "ocr-paddle/ch_ppocr_mobile_v2_cls_infer")
    same_answers(model, (1, 3, 48, 64), "reference")


def same_answers(model: Model, shape: tuple[int, ...], device: str) -> None:
    (name,) = model.inputs
    image = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    replayed = calls(model).replay()
    found = run_once(replayed, [image], device)
    NNAdapterModel_destroy(replayed)
    with crosschip.compile(model, device, cache=False) as compiled:
        expected = list(compiled.run({name: image}).values())
    for own, wanted in zip(found, expected, strict=True):
        assert own.dtype == wanted.dtype
        np.testing.assert_array_equal(own, wanted)


def test_what_nnadapter_has_not_is_told_as_simpler_operators() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    b.output("y", b.add(Neg, x))
    b.output("again", x)
    b.output("constant", b.constant(np.array([4], np.float32)))
    image = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    negated, again, constant = run_once(calls(b.build()).replay(), [image])
    np.testing.assert_array_equal(negated, -image)
    np.testing.assert_array_equal(again, image)
    np.testing.assert_array_equal(constant, np.array([4], np.float32))


def test_what_cannot_be_told_is_named() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.BFLOAT16, (2, 3)))
    b.output("y", b.add(Add, x, x, name="sum"))
    with pytest.raises(UnsupportedError, match="no precision for bfloat16"):
        calls(b.build())
    b = Builder()
    wide = b.input("x", TensorType(ElementType.FLOAT32, (1,) * 9))
    b.output("y", b.add(Sign, wide))
    with pytest.raises(UnsupportedError, match="so many axes"):
        calls(b.build())
    b = Builder()
    choice = b.input("choice", TensorType(ElementType.BOOL, ()))
    branch = Model("branch", {}, [], {"y": b.constant(np.float32(1))})
    (made,) = b.insert(If("branching", (choice,), bodies=(branch, branch)))
    b.output("y", made)
    with pytest.raises(UnsupportedError, match="'branching': NNAdapter has no"):
        calls(b.build())
