"""Models, written out as NNRt's calls, answer as they do when called directly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from benchmarks.subjects import channels_last
from tests.apis.nnrt.programs import done, run_once
from tests.apis.nnrt.test_translation import CASES, REASONS, defined

import crosschip
from crosschip.apis import nnrt
from crosschip.apis.nnrt import Calls, OH_NN_OperationType, OH_NN_TensorType, calls
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Error,
    Model,
    TensorType,
    UnsupportedError,
    symbol,
)
from crosschip.ops.definition.examples import arrays_for, model_of
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.conversion import Assign
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.quantization import Quantize
from crosschip.ops.standard.unary import Neg
from crosschip.passes import simplify

NETS = {
    "paddle2/mobilenet_v1": (1, 3, 224, 224),
    "onnx/mobilenet_v1.onnx": (1, 3, 224, 224),
    "onnx/shufflenet_v2_x1_0.onnx": (1, 3, 224, 224),
}


@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("net", NETS)
def test_answers_are_those_of_a_direct_call(models: Path, net: str, device: str) -> None:
    model = crosschip.load(models / net)
    found, wanted = both_ways(model, NETS[net], device)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
def test_channels_last_cost_two_transposes(device: str) -> None:
    """One where the image comes in, and a small one where the scores go out."""
    layers = list(channels_last.layers_of_mobilenet())
    first, calls_ = channels_last.standard_model(layers), channels_last.nnrt_calls(layers)
    last = calls_.replay()
    assert last.finished is not None
    parts, others = (
        Counter(operation.type for operation in simplify(model).operations)
        for model in (first, last.finished)
    )
    assert others - parts == {"TRANSPOSE": 2}
    assert not parts - others
    image = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    with crosschip.compile(first, device, cache=False) as compiled:
        (wanted,) = compiled.run({"x": image}).values()
    stored = np.ascontiguousarray(image.transpose(0, 2, 3, 1))
    (found,) = run_once(last, [stored], [wanted.reshape(1, 1, 1, -1)], device)
    np.testing.assert_array_equal(found.ravel(), wanted.ravel())


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_a_slope_that_nnrt_has_not_is_told_in_three_operations(models: Path, device: str) -> None:
    """HARD_SIGMOID has one slope there: another one is written out, and made one again."""
    model = crosschip.load(models / "ocr-paddle/ch_ppocr_mobile_v2_cls_infer")
    shape = (1, 3, 48, 64) if device == "reference" else (2, 3, 48, 192)
    found, wanted = both_ways(model, shape, device)
    np.testing.assert_array_equal(found, wanted)


def both_ways(model: Model, shape: Sequence[int], device: str) -> tuple[Array, Array]:
    """What a model makes of an image when it is written out, and when it is called directly."""
    (name,) = model.inputs
    image = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    with crosschip.compile(model, device, cache=False) as compiled:
        (wanted,) = compiled.run({name: image}).values()
    replayed = calls(model).replay()
    (found,) = run_once(replayed, [image], [wanted], device)
    nnrt.OH_NNModel_Destroy(replayed)
    return found, wanted


USES = {case.split("-", 1)[1].rpartition("-")[0]: parts for case, parts in CASES.items()}


def told(model: Model) -> Calls | str:
    """The calls, or why there are none."""
    try:
        return calls(model)
    except UnsupportedError as error:
        return str(error)


@pytest.mark.parametrize("case", USES)
def test_examples_of_operators_are_written_out(case: str) -> None:
    """What calls say of an example, the functions build again."""
    entry, arguments = USES[case]
    model, arrays = model_of(entry.row.operator, arguments), arrays_for(arguments)
    written = told(model)
    if isinstance(written, str):
        assert REASONS.search(written) or "NNRt has no" in written
        return
    finished = written.replay().finished
    assert finished is not None
    given = dict(zip(finished.inputs, (arrays[name] for name in model.inputs), strict=True))
    with crosschip.compile(finished, "reference", cache=False) as replayed:
        outputs = list(replayed.run(given).values())
    for found, wanted in zip(outputs, defined(model, arrays), strict=True):
        assert found.dtype == wanted.dtype
        near = 4e-3 if found.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found, wanted, rtol=near, atol=near)


def test_what_nnrt_has_not_is_told_as_simpler_operators() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    b.output("y", b.add(Neg, b.add(Assign, x)))
    b.output("again", x)
    b.output("constant", b.constant(np.array([4], np.float32)))
    written = calls(b.build())
    assert OH_NN_OperationType.OH_NN_OPS_CAST in {call.code for call in written.operations}
    image = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    wanted = [-image, image, np.array([4], np.float32)]
    for found, array in zip(run_once(written.replay(), [image], wanted), wanted, strict=True):
        np.testing.assert_array_equal(found, array)


def test_integers_are_handed_out_twice() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))
    integers = b.add(Quantize, x, scale=(0.5,), dtype=ElementType.INT8)
    b.output("y", integers)
    b.output("again", integers)
    written = calls(b.build())
    kept = [tensor.quantParam for tensor, _ in written.tensors if tensor.quantParam is not None]
    assert [tuple(params.scale) for params in kept] == [(0.5,), (0.5,)]
    wanted = [np.array([[2, 4, -6], [0, 1, 127]], np.int8)] * 2
    image = wanted[0] * np.float32(0.5)
    for found, array in zip(run_once(written.replay(), [image], wanted), wanted, strict=True):
        np.testing.assert_array_equal(found, array)


def test_weights_are_written_with_their_channels_last() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (1, 2, 5, 5)))
    filters = np.random.default_rng(0).normal(size=(4, 2, 3, 3)).astype(np.float32)
    b.output("y", b.add(Conv2D, x, b.constant(filters), strides=(2, 2)))
    written = calls(b.build())
    (call,) = (c for c in written.operations if c.code.name == "OH_NN_OPS_CONV2D")
    (type_, weight), (_, bias) = (written.tensors[index] for index in call.inputs[1:])
    assert (tuple(type_.dimensions), type_.type) == ((4, 3, 3, 2), OH_NN_TensorType.OH_NN_TENSOR)
    np.testing.assert_array_equal(weight, filters.transpose(0, 2, 3, 1))
    np.testing.assert_array_equal(bias, np.zeros(4, np.float32))
    told = {written.tensors[index][0].type.name: index for index in call.parameters}
    np.testing.assert_array_equal(written.tensors[told["OH_NN_CONV2D_STRIDES"]][1], [2, 2])


def test_what_cannot_be_told_is_named() -> None:
    b = Builder()
    x = b.input("x", TensorType(ElementType.BFLOAT16, (2, 3)))
    b.output("y", b.add(Add, x, x, name="sum"))
    with pytest.raises(UnsupportedError, match="no tensors of bfloat16"):
        calls(b.build())
    b = Builder()
    b.output("y", b.constant(np.float32(1)))
    with pytest.raises(UnsupportedError, match="without inputs or outputs"):
        calls(b.build())
    b = Builder()
    b.output("y", b.add(Neg, b.input("x", TensorType(ElementType.FLOAT32, (2, 3)))))
    written = calls(b.build())
    written.operations.clear()
    with pytest.raises(Error, match=r"no operations.*FORBIDDEN"):
        written.replay()


def test_a_replayed_model_is_one_of_the_programs() -> None:
    b = Builder()
    b.output("y", b.add(Neg, b.input("x", TensorType(ElementType.FLOAT32, (symbol("n"), 3)))))
    model = calls(b.build()).replay()
    done(nnrt.OH_NNModel_GetAvailableOperations(model, 0)[0])
    x = np.ones((4, 3), np.float32)
    (found,) = run_once(model, [x], [x])
    np.testing.assert_array_equal(found, -x)
