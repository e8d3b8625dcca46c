"""Models as TOSA files, accepted and run by Arm's reference model."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.exporters.examples import Outcome, outcomes
from tests.modelling import ROOT

import crosschip as cc
from crosschip.devices.reference import ReferenceProgram
from crosschip.exporters import export, tosa
from crosschip.flatbuffer import read
from crosschip.flatbuffer.schemas import tosa as schema
from crosschip.hal import CompileError
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
from crosschip.ops.definition.examples import arrays_for, examples_of, model_of
from crosschip.ops.definition.registry import operators
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add, Max, Min, Mul, Pow, Sub
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.ops.standard.quantization import Dequantize, Quantize
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.searching import NonZero
from crosschip.ops.standard.unary import Rsqrt, Sqrt
from crosschip.passes import simplify

TOOLS = ROOT / "build" / "tosa" / "bin"
FLOAT32, INT8, UINT8 = ElementType.FLOAT32, ElementType.INT8, ElementType.UINT8
INTEGERS = {INT8: "INT8", ElementType.INT16: "INT16", ElementType.INT32: "INT32"}
REFUSED = {
    "ASSERT": "fails depending on data",
    "BIT_CAST": "BIT_CAST",
    "DETECTION_POST_PROCESS": "suppressed one by one",
    "GROUP_QUERY_ATTENTION": "GROUP_QUERY_ATTENTION",
    "NON_MAX_SUPPRESSION": "sizes must be known",
    "NON_MAX_SUPPRESSION_INDICES": "sizes must be known",
    "NON_ZERO": "sizes must be known",
    "POLYGON_NON_MAX_SUPPRESSION": "sizes must be known",
    "UNIQUE": "sizes must be known",
}
"""Operators of which no example is written, and a part of the reason."""


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    if not (TOOLS / "tosa_reference_model").exists():
        pytest.skip("`make tosa` installs Arm's tools")
    monkeypatch.setenv("TOSA_TOOLS_BIN_DIR", str(TOOLS))


def test_examples() -> None:
    results = list(outcomes(tosa, {}, every=16, first=2))
    assert [str(result) for result in _faults(results)] == []
    assert sum(not result.refusal for result in results) > 55


@pytest.mark.nightly
def test_all_examples() -> None:
    results = list(outcomes(tosa, {}, every=1))
    assert [str(result) for result in _faults(results)] == []
    written = Counter(result.operator for result in results if not result.refusal)
    assert len(written) >= 187
    assert sum(written.values()) >= 965
    reasons = {
        operator: [result.refusal for result in results if result.operator == operator]
        for operator in operators()
        if operator not in written
    }
    assert reasons.keys() == REFUSED.keys()
    for operator, part in REFUSED.items():
        assert all(part in reason for reason in reasons[operator])


def _faults(results: list[Outcome]) -> list[Outcome]:
    # This example needs 63 bits, and TOSA computes int64 in int32.
    return [result for result in results if result.fault and str(result)[:7] != "CLIP/4:"]


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_verifier_finds_integers_exact(every: int, tmp_path: Path) -> None:
    uses = [(type_, use) for type_ in operators().values() for use in examples_of(type_)]
    verified = 0
    for index, (operator, arguments) in enumerate(uses[3::every]):
        model = model_of(operator, arguments)
        output = next(iter(model.outputs.values())).type
        if output.element_type not in INTEGERS or output.quantization is not None:
            continue
        inputs = [arrays_for(arguments)[name] for name in model.inputs]
        try:
            lowered = tosa.lower(model, {})
            actual = tosa.run(tosa.write(lowered, {}), lowered, inputs)[0]
        except CompileError:
            continue
        expected = ReferenceProgram(model).run(inputs)[0]
        _verify(tmp_path / str(index), next(iter(model.outputs)), expected, actual)
        verified += 1
    assert verified


def _verify(folder: Path, name: str, expected: Array, actual: Array) -> None:
    """Have Arm's verifier compare our reference's output with the reference model's."""
    folder.mkdir()
    np.save(folder / "expected.npy", expected)
    np.save(folder / "actual.npy", actual)
    kind = INTEGERS[ElementType.of(expected.dtype)]
    tensor = {"mode": "EXACT", "data_type": kind, "shape": list(expected.shape)}
    description = {
        "ofm_name": [name],
        "ofm_file": ["actual.npy"],
        "meta": {"compliance": {"version": "1.0", "tensors": {name: tensor}}},
    }
    (folder / "desc.json").write_text(json.dumps(description))
    process = subprocess.run(
        [
            *(str(TOOLS / "tosa_verify"), "--test_desc", "desc.json"),
            *("--imp_result_file", "expected.npy", "--ref_result_file", "actual.npy"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stdout + process.stderr


def test_the_schema_is_that_of_the_tools() -> None:
    text = re.sub("//[^\n]*", "", (TOOLS / "tosa.fbs").read_text())
    for name in ("DType", "NanPropagationMode", "RoundingMode", "ResizeMode", "Op"):
        declared = dict(_numbered(re.search(rf"enum {name}:uint32 {{(.*?)}}", text, re.S)))
        assert declared == {member.name: member.value for member in getattr(schema, name)}
    union = _names(re.search(r"union Attribute {(.*?)}", text, re.S))
    tables = {
        name: [field.split(":")[0].strip() for field in body.split(";") if ":" in field]
        for name, body in re.findall(r"table (\w+) {(.*?)}", text, re.S)
    }
    unwritten = {"CUSTOM", "COND_IF", "WHILE_LOOP", "FFT2D", "RFFT2D"}
    for op, name in zip(list(schema.Op)[1:], union, strict=True):
        if op.name not in unwritten and op.value < schema.Op.CUSTOM.value:
            assert list(schema.ATTRIBUTES[op]._fields) == tables[name]
    for type_ in (
        *(schema.TosaTensor, schema.TosaShape, schema.TosaOperator, schema.TosaBasicBlock),
        *(schema.TosaRegion, schema.TosaGraph, schema.SoftwareVersion),
    ):
        fields = [name.lstrip("_") for name in tables[type_.__name__]]
        assert list(type_._fields) == fields


def _names(match: re.Match[str] | None) -> list[str]:
    assert match
    return [name.strip() for name in match[1].split(",") if name.strip()]


def _numbered(match: re.Match[str] | None) -> list[tuple[str, int]]:
    numbers, value = [], -1
    for name in _names(match):
        stem, _, number = name.partition("=")
        value = int(number) if number else value + 1
        numbers.append((stem.strip(), value))
    return numbers


def _nodes(content: bytes) -> list[schema.TosaOperator]:
    graph = read(schema.TosaGraph, content, "model.tosa")
    return list(graph.regions[0].blocks[0].operators)


def _ops(model: Model) -> Counter[str]:
    content = tosa.write(tosa.lower(simplify(model), {}), {})
    return Counter(schema.Op(node.op).name for node in _nodes(content))


def _convolutions() -> Model:
    b = Builder("convolutions")
    x = b.input("x", TensorType(FLOAT32, (1, 3, 9, 9)))
    random = np.random.default_rng(0)
    y = b.add(Conv2D, x, random.normal(size=(4, 3, 3, 3)).astype(np.float32), pads=(1, 1, 1, 1))
    y = b.add(MaxPool2D, b.add(Relu, y), kernel_shape=(3, 3), strides=(2, 2))
    y = b.add(Conv2D, y, random.normal(size=(4, 1, 3, 3)).astype(np.float32), group=4)
    b.output("y", b.add(Relu, y))
    return b.build()


def test_images_are_transposed_at_the_ends_only(tmp_path: Path) -> None:
    model = _convolutions()
    ops = _ops(model)
    assert ops["TRANSPOSE"] == 2
    assert ops["DEPTHWISE_CONV2D"] == 1
    written = export(model, tmp_path / "model.tosa")
    assert written.verification is not None
    assert written.verification.error < 1e-6


def test_files_name_inputs_and_outputs(tmp_path: Path) -> None:
    b = Builder("model")
    x = b.input("value0", TensorType(FLOAT32, (2,)))
    b.output("constant0", b.add(Add, x, np.ones(2, np.float32)))
    b.output("again", x)
    export(b.build(), tmp_path / "model.tosa")
    block = read(schema.TosaGraph, (tmp_path / "model.tosa").read_bytes(), "").regions[0].blocks[0]
    assert list(block.inputs) == ["value0"]
    assert list(block.outputs) == ["constant0", "again"]


def _binary(operator: type[Operator], scales: tuple[float, float, float], seed: int) -> Model:
    random = np.random.default_rng(seed)
    low, high = (0, 256) if seed % 2 else (-128, 128)
    kind = UINT8 if seed % 2 else INT8
    zeros = random.integers(low, high, 3).tolist()
    first, second, last = (
        Quantization((scale,), (zero,)) for scale, zero in zip(scales, zeros, strict=True)
    )
    b = Builder("binary")
    x = b.input("x", TensorType(kind, (64, 16), first))
    y = b.input("y", TensorType(kind, (16,), second))
    b.output("z", b.add(operator, x, y, quantization=last))
    return b.build()


@pytest.mark.parametrize("operator", [Add, Sub, Mul, Max, Min])
def test_quantized_arithmetic_is_exact_with_ties(operator: type[Operator]) -> None:
    for seed, scales in enumerate([(0.5, 0.25, 1.0), (0.05, 0.1, 0.2), (0.013, 0.7, 0.31)]):
        _check_exact(_binary(operator, scales, seed), seed)


def _check_exact(model: Model, seed: int = 0) -> None:
    lowered = tosa.lower(simplify(model), {})
    inputs = []
    random = np.random.default_rng(seed)
    for operand in model.inputs.values():
        limits = np.iinfo(operand.type.element_type.dtype)
        shape = operand.type.static_shape
        assert shape is not None
        elements = random.integers(limits.min, limits.max + 1, shape)
        inputs.append(elements.astype(operand.type.element_type.dtype))
    actual = tosa.run(tosa.write(lowered, {}), lowered, inputs)
    expected = ReferenceProgram(model).run(inputs)
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_quantized_matrix_products_have_zero_points() -> None:
    b = Builder("product")
    one, other = Quantization((0.5,), (117,)), Quantization((0.25,), (100,))
    x = b.input("x", TensorType(UINT8, (3, 4), one))
    y = b.input("y", TensorType(UINT8, (4, 5), other))
    b.output("z", b.add(MatMul, x, y, quantization=Quantization((128.0,), (99,))))
    _check_exact(b.build())


def test_powers_and_roots_of_all_numbers() -> None:
    numbers = np.array([0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan])
    wide = numbers.astype(np.float32)
    base, exponent = (part.ravel() for part in np.meshgrid(wide, wide))
    b = Builder("powers")
    x, y = (b.input(name, TensorType(FLOAT32, base.shape)) for name in "xy")
    b.output("power", b.add(Pow, x, y))
    b.output("root", b.add(Sqrt, x))
    b.output("inverse", b.add(Rsqrt, x))
    model = b.build()
    lowered = tosa.lower(model, {})
    actual = tosa.run(tosa.write(lowered, {}), lowered, [base, exponent])
    with np.errstate(all="ignore"):
        expected = [base**exponent, np.sqrt(base), 1 / np.sqrt(base)]
    for one, other in zip(actual, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def _weights(*shape: int, axis: int = 0) -> tuple[Array, Quantization]:
    random = np.random.default_rng(1)
    scales = tuple((2.0 ** -random.integers(3, 7, shape[axis])).tolist())
    return random.integers(-127, 128, shape).astype(np.int8), Quantization(scales, axis=axis)


def test_quantized_networks_compute_on_bytes() -> None:
    b = Builder("network")
    image = b.input("x", TensorType(INT8, (2, 3, 8, 8), Quantization((0.5,), (-3,))))
    filters, scales = _weights(4, 3, 3, 3)
    weights = b.constant(filters, quantization=scales)
    steps = Quantization(tuple(0.5 * scale for scale in scales.scale), axis=0)
    bias = b.constant(np.arange(-2, 2, dtype=np.int32) * 1000, quantization=steps)
    half = Quantization((8.0,), (5,))
    y = b.add(Conv2D, image, weights, bias, pads=(1, 1, 1, 1), quantization=half)
    y = b.add(MaxPool2D, y, kernel_shape=(2, 2), strides=(2, 2), quantization=half)
    y = b.add(Tanh, y, quantization=Quantization((1 / 128,)))
    y = b.add(
        AveragePool2D, y, kernel_shape=(2, 2), pads=(0, 1, 0, 1), quantization=Quantization((0.25,))
    )
    units, unit_scales = _weights(5, 64)
    y = b.add(
        FullyConnected,
        y,
        b.constant(units, quantization=unit_scales),
        quantization=Quantization((0.5,), (7,)),
    )
    y = b.add(MatMul, y, y, transpose_y=True, quantization=Quantization((4.0,)))
    b.output("y", b.add(ReduceMean, y, axes=(1,), quantization=Quantization((2.0,), (1,))))
    model = b.build()
    ops = _ops(model)
    assert ops["TABLE"] == 1
    assert not {"EXP", "RECIPROCAL", "REDUCE_SUM"} & ops.keys() - {"REDUCE_SUM"}
    _check_exact(model)


def test_conversions_around_a_convolution_are_fused() -> None:
    b = Builder("around")
    image = b.input("x", TensorType(INT8, (1, 3, 8, 8), Quantization((0.5,))))
    filters, scales = _weights(4, 3, 3, 3)
    weights = b.add(Dequantize, b.constant(filters, quantization=scales))
    y = b.add(Relu, b.add(Conv2D, b.add(Dequantize, image), weights))
    b.output("y", b.add(Quantize, y, scale=(8.0,), zero_point=(-128.0,), dtype=INT8))
    model = b.build()
    assert _ops(model)["CONV2D"] == 1
    content = tosa.write(tosa.lower(simplify(model), {}), {})
    tensors = read(schema.TosaGraph, content, "").regions[0].blocks[0].tensors
    assert schema.DType.FP32 not in {tensor.type for tensor in tensors}
    _check_exact(model)


def test_what_tosa_does_not_express_is_refused_with_the_reason(tmp_path: Path) -> None:
    b = Builder("model")
    x = b.input("x", TensorType(FLOAT32, (2,)))
    b.output("y", b.add(NonZero, x))
    with pytest.raises(cc.UnsupportedError, match=r"NON_ZERO\.output: its sizes must be known"):
        export(b.build(), tmp_path / "model.tosa")
    b = Builder("model")
    b.output("y", b.add(Cast, b.input("x", TensorType(FLOAT32, (2,))), ElementType.FLOAT64))
    with pytest.raises(cc.UnsupportedError, match=r"CAST\.output: float64 is not supported"):
        export(b.build(), tmp_path / "model.tosa")
    b = Builder("model")
    x = b.input("x", TensorType(FLOAT32, (symbol("N"), 2)))
    b.output("y", b.add(Relu, x))
    with pytest.raises(cc.InputError, match=r"input 'x' is .* leaves sizes open"):
        export(b.build(), tmp_path / "model.tosa")
    assert not (tmp_path / "model.tosa").exists()


def test_both_branches_are_computed_and_one_is_selected() -> None:
    branches = []
    for operator in (Relu, Tanh):
        inner = Builder("branch")
        inner.output("y", inner.add(operator, inner.input("x", TensorType(FLOAT32, (4,)))))
        branches.append(inner.build())
    b = Builder("model")
    condition = b.input("condition", TensorType(ElementType.BOOL, (1,)))
    x = b.input("x", TensorType(FLOAT32, (4,)))
    (y,) = b.insert(If.of("if", condition, (x,), branches))
    b.output("z", b.add(Add, y, x))
    model = b.build()
    lowered = tosa.lower(simplify(model), {})
    content = tosa.write(lowered, {})
    for taken in (True, False):
        inputs = [np.array([taken]), np.array([-1.5, 0, 0.5, 3], np.float32)]
        with cc.compile(model, ["reference"], cache=False) as compiled:
            expected = compiled.run(dict(zip(model.inputs, inputs, strict=True)))["z"]
        np.testing.assert_allclose(tosa.run(content, lowered, inputs)[0], expected, rtol=1e-6)


def test_int64_is_int32_in_a_file() -> None:
    b = Builder("model")
    x = b.input("x", TensorType(ElementType.INT64, (2,)))
    b.output("y", b.add(Add, x, np.array(1)))
    lowered = tosa.lower(b.build(), {})
    content = tosa.write(lowered, {})
    (result,) = tosa.run(content, lowered, [np.array([3, -4])])
    np.testing.assert_array_equal(result, np.array([4, -3]))
    assert result.dtype == np.int64
    with pytest.raises(DeviceError, match="input 'x': has elements beyond int32"):
        tosa.run(content, lowered, [np.array([2**40, 0])])
    b = Builder("model")
    x = b.input("x", TensorType(ElementType.INT64, (2,)))
    b.output("y", b.add(Add, x, np.array(2**40)))
    with pytest.raises(
        CompileError, match=r"ADD .*: a constant of int64 has elements beyond int32"
    ):
        tosa.write(tosa.lower(b.build(), {}), {})


def test_without_the_tools_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOSA_TOOLS_BIN_DIR", str(tmp_path))
    with pytest.raises(DeviceError, match="pip install --no-deps tosa-tools"):
        export(_convolutions(), tmp_path / "model.tosa")
    export(_convolutions(), tmp_path / "model.tosa", verification=False)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("onnx/squeezenet1_1.onnx", (1, 3, 224, 224)),
        ("onnx/mobilenet_v3_small.onnx", (1, 3, 224, 224)),
        ("onnx/shufflenet_v2_x1_0.onnx", (1, 3, 224, 224)),
        ("ocr-onnx/ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
        ("ocr-onnx/ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 160)),
        ("ocr-onnx/ch_PP-OCRv4_det_infer.onnx", (1, 3, 160, 160)),
        ("networks/json/hgnet", (1, 3, 64, 64)),
        ("networks/json/reader", (1, 3, 16, 40)),
        ("networks/json/segformer", (1, 3, 64, 64)),
        ("networks/json/uvdoc", (1, 3, 64, 64)),
    ],
)
def test_models(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    model = cc.load(ROOT / "build" / "models" / name)
    (input_name,) = model.inputs
    written = export(model, tmp_path / "model.tosa", shapes={input_name: shape})
    assert written.verification is not None
    assert written.verification.error < 1e-4
