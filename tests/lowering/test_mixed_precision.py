"""Mixed precision of quantized models, against ONNX's evaluator and formulas."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tests.modelling import outputs_of

import crosschip
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    InputError,
    Model,
    Quantization,
    TensorType,
)
from crosschip.lowering.mixed_precision import InFloat
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.passes import simplify, verified

RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.integers(-128, 128, (4, 3, 3, 3)).astype(np.int8)
LAST = RANDOM.integers(-128, 128, (5, 4, 1, 1)).astype(np.int8)
BIAS = RANDOM.integers(-3000, 3000, 4).astype(np.int32)
PER_CHANNEL = RANDOM.uniform(0.005, 0.02, 4).astype(np.float32)
SCALES = {"x": 0.02, "a": 0.2, "b": 0.3, "y": 0.5}
ZEROS = {"x": 120, "a": 125, "b": 131, "y": 128}
LAST_SCALE = np.float32(0.01)
MATRIX = RANDOM.integers(-128, 128, (4, 4)).astype(np.int8)
MATRIX_SCALE = np.float32(0.008)
NAMES = ["first", "mixed", "second"]


def image(seed: int) -> Array:
    return np.random.default_rng(seed).uniform(-2.4, 2.6, (1, 3, 6, 6)).astype(np.float32)


def _scalars(*names: str) -> list[onnx.TensorProto]:
    found = []
    for name in names:
        found.append(numpy_helper.from_array(np.asarray(np.float32(SCALES[name])), f"{name}_s"))
        found.append(numpy_helper.from_array(np.asarray(np.uint8(ZEROS[name])), f"{name}_z"))
    return found


CONSTANTS = [
    *_scalars(*SCALES),
    numpy_helper.from_array(WEIGHTS, "w"),
    numpy_helper.from_array(PER_CHANNEL, "w_s"),
    numpy_helper.from_array(np.zeros(4, np.int8), "w_z"),
    numpy_helper.from_array(BIAS, "bias"),
    numpy_helper.from_array((PER_CHANNEL * np.float32(SCALES["x"])).astype(np.float32), "bias_s"),
    numpy_helper.from_array(np.zeros(4, np.int32), "bias_z"),
    numpy_helper.from_array(LAST, "v"),
    numpy_helper.from_array(np.asarray(LAST_SCALE), "v_s"),
    numpy_helper.from_array(np.asarray(np.int8(0)), "v_z"),
    numpy_helper.from_array(MATRIX, "m"),
    numpy_helper.from_array(np.asarray(MATRIX_SCALE), "m_s"),
    numpy_helper.from_array(np.asarray(np.int8(0)), "m_z"),
]


def _proto(nodes: list[onnx.NodeProto], extra: list[onnx.TensorProto]) -> onnx.ModelProto:
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 6, 6]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 5, 4, 4]),
    ]
    graph = helper.make_graph(nodes, "quantized", ends[:1], ends[1:], [*CONSTANTS, *extra])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _convert(type: str, input: str, output: str, of: str) -> onnx.NodeProto:
    axis: dict[str, Any] = {"axis": 0} if of in ("w", "bias") else {}
    return helper.make_node(
        type, [input, f"{of}_s", f"{of}_z"], [output], f"{type}_{output}", **axis
    )


def pairs(in_float: Collection[str] = ()) -> onnx.ModelProto:
    """Return float operations between conversions: convolution, matrix product, convolution.

    Args:
        in_float: the operations without conversions around them. Their outputs are rounded for
            other operations; their weights are dequantized.
    """
    reads = {"first": "x", "mixed": "a", "second": "b"}
    makes = {"first": "a", "mixed": "b", "second": "y"}
    nodes = [_convert("QuantizeLinear", "x", "x_q", "x")]
    if "first" not in in_float:
        nodes.append(_convert("DequantizeLinear", "x_q", "x_d", "x"))
    real = {"x": "x"}
    for name in NAMES:
        value, made = reads[name], makes[name]
        source = real[value] if name in in_float and value in real else f"{value}_d"
        weights = {"first": ["w", "bias"], "mixed": ["m"], "second": ["v"]}[name]
        nodes += [_convert("DequantizeLinear", w, f"{w}_d", w) for w in weights]
        inputs = [source, *(f"{w}_d" for w in weights)]
        operator = "MatMul" if name == "mixed" else "Conv"
        nodes.append(helper.make_node(operator, inputs, [f"{made}_r"], name))
        if name in in_float:
            real[made] = f"{made}_r"
        nodes.append(_convert("QuantizeLinear", f"{made}_r", f"{made}_q", made))
        last = "y" if made == "y" else f"{made}_d"
        nodes.append(_convert("DequantizeLinear", f"{made}_q", last, made))
    return _proto(nodes, [])


def operands() -> Model:
    """Return the same network with operations on quantized tensors."""

    def of(name: str) -> Quantization:
        return Quantization((SCALES[name],), (ZEROS[name],))

    b = Builder("quantized")
    x = b.input("x", TensorType(ElementType.FLOAT32, (1, 3, 6, 6)))
    settings: dict[str, Any] = {"scale": (SCALES["x"],), "zero_point": (float(ZEROS["x"]),)}
    x = b.add(Quantize, x, dtype=ElementType.UINT8, outputs=["x_q"], **settings)
    weights = b.constant(WEIGHTS, "w", Quantization(tuple(PER_CHANNEL.tolist()), axis=0))
    scales = tuple((PER_CHANNEL * np.float32(SCALES["x"])).tolist())
    bias = b.constant(BIAS, "bias", Quantization(scales, axis=0))
    a = b.add(Conv2D, x, weights, bias, quantization=of("a"), name="first", outputs=["a_q"])
    matrix = b.constant(MATRIX, "m", Quantization((float(MATRIX_SCALE),)))
    mixed = b.add(MatMul, a, matrix, quantization=of("b"), name="mixed", outputs=["b_q"])
    last = b.constant(LAST, "v", Quantization((float(LAST_SCALE),)))
    y = b.add(Conv2D, mixed, last, quantization=of("y"), name="second", outputs=["y_q"])
    b.output("y", b.add(Dequantize, y))
    return b.build()


FORMS = {"pairs": pairs(), "operands": operands()}
LINES = {
    "pairs": {"first": "Conv::a_r", "mixed": "MatMul", "second": "Conv:b_d"},
    "operands": {"first": "CONV_2D:x_q", "mixed": "MAT_MUL", "second": "CONV_2D::y_q"},
}
SUBSETS = [[name for bit, name in enumerate(NAMES) if number >> bit & 1] for number in range(8)]


def model_of(form: str) -> Model:
    given_ = FORMS[form]
    return given_ if isinstance(given_, Model) else crosschip.load(given_)


def oracle(in_float: Collection[str], x: Array) -> Array:
    """Return the output of ONNX's evaluator, with these operations in float32."""
    (y,) = ReferenceEvaluator(pairs(in_float)).run(None, {"x": x})
    return np.asarray(y)


def one_step(found: Array, expected: Array) -> None:
    """Compare outputs, allowing hardly any element to differ by one rounding step."""
    steps = np.abs(found - expected) / SCALES["y"]
    assert steps.max() < 1.5
    assert np.mean(steps > 0.5) < 0.1


@pytest.mark.parametrize("in_float", SUBSETS, ids=lambda names: "+".join(names) or "none")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_what_is_listed_computes_in_float(device: str, form: str, in_float: list[str]) -> None:
    config = "\n".join(LINES[form][name] for name in in_float)
    devices = list(dict.fromkeys([device, "reference"]))
    with crosschip.compile(
        FORMS[form],
        devices,
        placement=crosschip.PlacementOptions(mixed_precision=config),
        cache=False,
    ) as compiled:
        for seed in range(3):
            x = image(seed)
            one_step(compiled(x), oracle(in_float, x))
        assert len(compiled.placement.in_float) == len(in_float)


@pytest.mark.parametrize("form", FORMS)
def test_all_in_float_rounds_nothing_but_the_end(form: str) -> None:
    """By the formula: dequantized weights, and no intermediate rounding."""
    loaded = model_of(form)
    placement = crosschip.explain(
        loaded,
        "reference",
        placement=crosschip.PlacementOptions(mixed_precision="\n".join(LINES[form].values())),
    )
    types = [decision.type for decision in placement.decisions]
    assert types == ["CONV_2D", "MAT_MUL", "CONV_2D", "QUANTIZE", "DEQUANTIZE"]
    assert all(
        constant.type.quantization is None
        for constant in placement.model.constants
        if constant.type.element_type.value == "int8"
    )
    x = image(0)
    weights = WEIGHTS * PER_CHANNEL[:, None, None, None]
    bias = BIAS * PER_CHANNEL * SCALES["x"]
    windows = np.lib.stride_tricks.sliding_window_view(x[0], (3, 3), (1, 2))
    first = np.einsum("chwij,ocij->ohw", windows, weights) + bias[:, None, None]
    mixed = first @ (MATRIX * MATRIX_SCALE)
    expected = np.einsum("chw,oc->ohw", mixed, LAST[:, :, 0, 0] * LAST_SCALE)
    steps = np.clip(np.rint(expected / SCALES["y"]) + ZEROS["y"], 0, 255)
    (found,) = outputs_of(placement.model, {"x": x}).values()
    one_step(found[0], ((steps - ZEROS["y"]) * SCALES["y"]).astype(np.float32))


@pytest.mark.parametrize("form", FORMS)
def test_the_rest_stays_quantized(form: str) -> None:
    loaded = model_of(form)
    before = [d.type for d in crosschip.explain(loaded, "reference").decisions]
    placement = crosschip.explain(
        loaded,
        "reference",
        placement=crosschip.PlacementOptions(mixed_precision=LINES[form]["mixed"]),
    )
    after = {decision.name: decision for decision in placement.decisions}
    (name,) = placement.in_float
    assert after[name].type == "MAT_MUL"
    operation = after[name].operation
    operands = [operand for operand in operation.inputs if operand] + list(operation.outputs)
    assert all(operand.type.quantization is None for operand in operands)
    types = [decision.type for decision in placement.decisions]
    if form == "operands":
        assert sorted(types) == sorted([*before, "DEQUANTIZE", "QUANTIZE"])
    else:
        before.remove("DEQUANTIZE")  # that of the matrix, which is a constant of float32 now
        assert sorted(types) == sorted(before)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_chosen_changes_nothing(form: str) -> None:
    model = simplify(model_of(form))
    assert InFloat(frozenset())(model) is model


@settings(max_examples=20, deadline=None)
@given(chosen=st.sets(st.integers(0, 14)), form=st.sampled_from(sorted(FORMS)))
def test_any_choice_leaves_a_sound_model(chosen: set[int], form: str) -> None:
    """Any chosen operations, conversions too, keep the types of inputs and outputs."""
    model = simplify(model_of(form))
    picked = frozenset(o for index, o in enumerate(model.operations) if index in chosen)
    with verified():
        after = simplify(InFloat(picked)(model))
    x = image(1)
    (found,), (plain,) = (outputs_of(m, {"x": x}).values() for m in (after, model))
    assert found.shape == plain.shape
    assert np.abs(found - plain).max() < 6 * SCALES["y"]


def folder_of(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "mixed.txt"
    path.write_bytes(text.encode())
    return path


def test_a_file_with_comments_and_any_line_ends(tmp_path: Path) -> None:
    path = folder_of("# in float\r\n\r\nConv:x_d  # the first\r\n", tmp_path)
    for given_ in (path, str(path), path.read_bytes()):
        placement = crosschip.explain(
            FORMS["pairs"],
            "reference",
            placement=crosschip.PlacementOptions(mixed_precision=given_),
        )
        assert len(placement.in_float) == 1


def warnings_of(caplog: pytest.LogCaptureFixture, model: Any, config: str) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "crosschip"):
        crosschip.explain(
            model, "reference", placement=crosschip.PlacementOptions(mixed_precision=config)
        )
    return [record.message for record in caplog.records]


def test_lines_without_effect_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    model = FORMS["pairs"]
    (told,) = warnings_of(caplog, model, "\nMatMull")
    assert told == (
        "mixed_precision, line 2: the model has no operator of type 'MatMull'; the nearest is "
        "'MatMul'"
    )
    (told,) = warnings_of(caplog, model, "QuantizeLinear")
    assert told == (
        "mixed_precision, line 1: 'QuantizeLinear' names nothing quantized, and all else computes "
        "in float32 already"
    )
    assert warnings_of(caplog, model, "Conv") == []


def quantized_product(type_: str) -> onnx.ModelProto:
    """Return an integer product between conversions."""
    names = {
        "QLinearMatMul": ["x_q", "x_s", "x_z", "m", "m_s", "m_z", "b_s", "b_z"],
        "MatMulInteger": ["x_q", "m", "x_z", "m_z"],
    }[type_]
    nodes = [
        _convert("QuantizeLinear", "x", "x_q", "x"),
        helper.make_node(type_, names, ["y_q"]),
        _convert("DequantizeLinear", "y_q", "y", "b")
        if type_ == "QLinearMatMul"
        else helper.make_node("Cast", ["y_q"], ["y"], to=TensorProto.FLOAT),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xy"]
    graph = helper.make_graph(nodes, "integers", ends[:1], ends[1:], CONSTANTS)
    opset = helper.make_opsetid("", 21)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def test_arithmetic_on_integers_stays(caplog: pytest.LogCaptureFixture) -> None:
    """ONNX defines this operator by integer arithmetic."""
    (told,) = warnings_of(caplog, quantized_product("MatMulInteger"), "MatMulInteger")
    assert told.endswith("'MatMulInteger' names arithmetic on integers, and stays as it is")


def test_an_operator_with_its_scales_computes_in_float(caplog: pytest.LogCaptureFixture) -> None:
    assert warnings_of(caplog, quantized_product("QLinearMatMul"), "QLinearMatMul") == []


def test_what_is_no_configuration_is_refused() -> None:
    with pytest.raises(InputError, match=r"mixed_precision, line 1: ':x' has no operator type"):
        crosschip.explain(
            FORMS["pairs"],
            "reference",
            placement=crosschip.PlacementOptions(mixed_precision=":x\n"),
        )
    with pytest.raises(InputError, match=r"there is no file 'none\.txt'"):
        crosschip.explain(
            FORMS["pairs"],
            "reference",
            placement=crosschip.PlacementOptions(mixed_precision="none.txt"),
        )
