"""Transformers as common exporters write them, compared with onnxruntime on the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnxruntime
import pytest
from tests.devices.transformers import MODELS, WORDS, bert, decoder, inputs_for

import crosschip
from crosschip.hal.conditions import OutOfRange
from crosschip.ir import Array

SIZES = [(1, 5, 0), (2, 9, 4), (3, 17, 8)]


def oracle(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> Sequence[Array]:
    """Return the outputs of onnxruntime."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    outputs: Sequence[Array] = session.run(None, dict(inputs))
    return outputs


def assert_alike(made: Mapping[str, Array], expected: Sequence[Array]) -> None:
    """Assert that integers are equal and floats are close in float32."""
    for output, right in zip(made.values(), expected, strict=True):
        assert (output.dtype, output.shape) == (right.dtype, right.shape)
        if right.dtype.kind == "i":
            np.testing.assert_array_equal(output, right)
        else:
            np.testing.assert_allclose(output, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("devices", [["openvino"], ["openvino", "reference"]], ids=len)
@pytest.mark.parametrize("name", MODELS)
def test_all_of_it_runs_on_openvino(name: str, devices: list[str]) -> None:
    model = MODELS[name]()
    if len(devices) > 1 and os.environ.get("ONEDNN_MAX_CPU_ISA") == "SSE41":
        pytest.skip("openvino declines ARG_MAX under this limit, as the other case asserts")
    with crosschip.compile(model, devices, cache=False) as compiled:
        assert {decision.device for decision in compiled.placement.decisions} == {"openvino"}
        assert len(compiled.placement.segments) == 1
        for sizes in SIZES:
            inputs = inputs_for(model, *sizes)
            assert_alike(compiled.run(inputs), oracle(model, inputs))


def test_tokens_one_by_one() -> None:
    """A decoder that reads its own output and carries keys and values."""
    model = decoder()
    session = onnxruntime.InferenceSession(model.SerializeToString())
    inputs = inputs_for(model, 2, 4)
    with crosschip.compile(model, ["openvino"], cache=False) as compiled:
        for step in range(6):
            made, right = compiled.run(inputs), session.run(None, inputs)
            assert_alike(made, right)
            mask = inputs["attention_mask"]
            inputs = {
                "input_ids": made["next"],
                "attention_mask": np.concatenate([mask, np.ones((2, 1), np.int64)], 1),
                "past_key_values.0.key": made["present.0.key"],
                "past_key_values.0.value": made["present.0.value"],
            }
            assert inputs["past_key_values.0.key"].shape[2] == 4 + step


@pytest.mark.parametrize(
    ("name", "input", "number", "low"),
    [
        ("bert", "attention_mask", 2**31, -(2**31)),
        ("roberta", "input_ids", 2**24, -(2**24)),
        ("opt", "attention_mask", 32, -32),
    ],
)
def test_inputs_that_need_more_bits_are_refused(
    name: str, input: str, number: int, low: int
) -> None:
    model = MODELS[name]()
    inputs = inputs_for(model, 2, 6, 3)
    inputs[input] = inputs[input].copy()
    inputs[input][1, 0] = number
    with (
        crosschip.compile(model, ["openvino"], cache=False) as compiled,
        pytest.raises(OutOfRange, match=rf"openvino: input '{input}': {number} is not from {low}"),
    ):
        compiled.run(inputs)


def test_inputs_that_need_more_bits_go_elsewhere() -> None:
    """A mask beyond int32 is unusual, but computed right."""
    model = bert()
    inputs = inputs_for(model, 2, 6)
    wide = {**inputs, "attention_mask": inputs["attention_mask"] * 2**40}
    with crosschip.compile(model, ["openvino", "reference"], cache=False) as compiled:
        assert_alike(compiled.run(wide), oracle(model, wide))
        assert_alike(compiled.run(inputs), oracle(model, inputs))


def test_tokens_that_are_not_in_the_table_are_refused() -> None:
    model = bert()
    inputs = inputs_for(model, 1, 5)
    for token in (WORDS, -WORDS - 1, 2**32, 2**32 + 3):
        ids = np.array([[2, 3, token, 4, 5]])
        with (
            crosschip.compile(model, ["openvino"], cache=False) as compiled,
            pytest.raises(crosschip.Error, match=f"{token} is not from"),
        ):
            compiled.run({**inputs, "input_ids": ids})


def test_conditions_are_kept_with_a_compiled_model() -> None:
    model = MODELS["opt"]()
    inputs = inputs_for(model, 2, 6, 3)
    with crosschip.compile(model, ["openvino"], cache=False) as compiled:
        content = compiled.to_bytes()
    with crosschip.load_compiled(content) as loaded:
        assert_alike(loaded.run(inputs), oracle(model, inputs))
        with pytest.raises(OutOfRange, match="input 'attention_mask': 1000 is not from -32 to 31"):
            loaded.run({**inputs, "attention_mask": inputs["attention_mask"] * 1000})


@pytest.mark.parametrize("large", [-3.4028235e38, -1e9, -65504.0])
def test_a_mask_does_not_swallow_what_it_is_added_to(large: float) -> None:
    """Quirk `product-beside-sum`."""
    known = np.linspace(-2, 17, 6, dtype=np.float32).reshape(1, 2, 3)
    constants = {"one": np.float32(1), "large": np.float32(large), "known": known}
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("Sub", ["one", "mask"], ["hidden"]),
            onnx.helper.make_node("Mul", ["hidden", "large"], ["minus"]),
            onnx.helper.make_node("Add", ["known", "minus"], ["y"]),
        ],
        "masked",
        [onnx.helper.make_tensor_value_info("mask", onnx.TensorProto.FLOAT, [1, 1, 3])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 2, 3])],
        [onnx.numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    mask = np.array([[[1, 1, 0]]], np.float32)
    with crosschip.compile(model, ["openvino"], cache=False) as compiled:
        made = compiled.run({"mask": mask})["y"]
    np.testing.assert_allclose(made, known + (1 - mask) * np.float32(large), rtol=1e-6)
