"""Weights of few bits, against the same forms as ONNX Runtime's own quantizers make them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnxruntime.capi import _pybind_state
from onnxruntime.quantization import QuantType, quantize_dynamic
from tests.modelling import float32, model_of, outputs_of

import crosschip
from crosschip.devices.kits.onnx.standalone import Dialect, write
from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.integers import MatMulInteger
from crosschip.ops.standard.matrix import FullyConnected, MatMul, MatMulNBits
from crosschip.ops.standard.quantization import Dequantize, DynamicQuantize
from crosschip.ops.standard.recurrent import LSTM, DynamicQuantizeLSTM
from crosschip.ops.standard.unary import Neg
from crosschip.tuning.low_bits import (
    BLOCK_SIZE,
    convertible,
    packed_blocks,
    symmetric_int8,
    with_low_bit_weights,
)
from crosschip.tuning.variants import BITS, LOW_BIT_FORMS, Form

RANDOM = np.random.default_rng(0)
WEIGHTS = [RANDOM.standard_normal((64, 64)).astype(np.float32) for _ in range(3)]
X = RANDOM.standard_normal((5, 64)).astype(np.float32)


def two_products() -> Model:
    """Two products that read the same tensor, and one that reads their negated product."""

    def make(b: Builder, x: Operand) -> Operand:
        left, right = b.add(MatMul, x, WEIGHTS[0]), b.add(MatMul, x, WEIGHTS[1])
        product = b.add(MatMul, left, right, transpose_y=True)
        rows = b.add(MatMul, product, np.ones((5, 64), np.float32))
        return b.add(Neg, b.add(MatMul, rows, WEIGHTS[2], transpose_y=True))

    return model_of(make, float32(5, 64))


def products_in_a_row() -> Model:
    def make(b: Builder, x: Operand) -> Operand:
        for weight in WEIGHTS:
            x = b.add(Neg, b.add(MatMul, x, weight))
        return x

    return model_of(make, float32(5, 64))


def lstm() -> Model:
    def make(b: Builder, x: Operand) -> Operand:
        weights = [RANDOM.standard_normal((1, 32, n)).astype(np.float32) for n in (6, 8)]
        return b.add_all(LSTM, x, *weights)[0]

    return model_of(make, float32(3, 2, 6))


def written(model: Model, path: Path) -> Path:
    onnx.save(
        write(model, Dialect(types=frozenset(ElementType)), lambda _: None).model.with_constants(),
        path,
    )
    return path


def output_of_file(path: Path, x: Array) -> Array:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def output_of_ours(model: Model, device: str, x: Array) -> Array:
    """The output on a device, and on the reference for what this processor has no kernels of."""
    devices = [device, *(["reference"] if device != "reference" else [])]
    with crosschip.compile(model, devices, cache=False) as compiled:
        return np.asarray(compiled.run({"x0": x})["y0"])


def error(made: Array, exact: Array) -> float:
    return float(np.linalg.norm(made - exact) / np.linalg.norm(exact))


@pytest.mark.parametrize(
    ("make", "kinds", "x"),
    [
        (products_in_a_row, ["MatMul"], X),
        (lstm, ["LSTM"], RANDOM.standard_normal((3, 2, 6)).astype(np.float32)),
    ],
)
def test_dynamic_is_as_exact_as_onnx_runtimes_own(
    tmp_path: Path, make: Callable[[], Model], kinds: list[str], x: Array
) -> None:
    model = make()
    plain, quantized = written(model, tmp_path / "plain.onnx"), tmp_path / "quantized.onnx"
    quantize_dynamic(
        plain, quantized, op_types_to_quantize=kinds, weight_type=QuantType.QInt8, per_channel=True
    )
    exact, theirs = output_of_file(plain, x), output_of_file(quantized, x)
    ours = output_of_ours(with_low_bit_weights(model, Form.DYNAMIC, 8), "onnxruntime", x)
    assert error(theirs, exact) > 1e-3, "it does quantize"
    assert error(ours, exact) <= 1.05 * error(theirs, exact)


@pytest.mark.parametrize("bits", [4, 8])
def test_blocks_are_those_of_onnx_runtimes_quantizer(bits: int) -> None:
    terms, columns = 3 * BLOCK_SIZE, 24
    weight = RANDOM.standard_normal((terms, columns)).astype(np.float32)
    ours, our_scales = packed_blocks(weight, bits)
    packed, scales = np.zeros_like(ours), np.zeros_like(our_scales)
    zeros = np.zeros((columns, ours.shape[1]), np.uint8)
    quantize = getattr(_pybind_state, f"quantize_matmul_{bits}bits")
    quantize(packed, weight, scales, zeros, BLOCK_SIZE, columns, terms, True)
    np.testing.assert_allclose(our_scales, scales, rtol=1e-6)
    assert np.mean(ours != packed) < 0.02, "it rounds ties otherwise"


@pytest.mark.parametrize("device", ["onnxruntime", "openvino", "xla", "reference"])
@pytest.mark.parametrize(("precision", "form"), LOW_BIT_FORMS)
def test_devices_run_each_form(device: str, precision: str, form: Form) -> None:
    """What `accuracy_level` allows a device is one step of a byte in 127."""
    convert = with_low_bit_weights(two_products(), form, BITS[precision])
    wanted = outputs_of(convert, {"x0": X})["y0"]
    assert error(output_of_ours(convert, device, X), wanted) < 3e-2
    assert (
        error(wanted, outputs_of(two_products(), {"x0": X})["y0"])
        < {8: 3e-2, 4: 0.4}[BITS[precision]]
    )


@pytest.mark.parametrize(
    ("form", "bits", "operators"),
    [
        (Form.DYNAMIC, 8, [MatMulInteger, DynamicQuantize]),
        (Form.WEIGHTS, 8, [MatMul, Dequantize]),
        (Form.BLOCKS, 8, [MatMulNBits]),
        (Form.BLOCKS, 4, [MatMulNBits]),
    ],
)
def test_all_products_with_constants_are_converted_and_no_others(
    form: Form, bits: int, operators: list[type[Operator]]
) -> None:
    model = two_products()
    convert = with_low_bit_weights(model, form, bits)
    kinds = [type(operation) for operation in convert.operations]
    counts: dict[type[Operator], int] = {MatMul: 5, MatMulNBits: 4, MatMulInteger: 4}
    assert set(operators) <= set(kinds)
    assert kinds.count(operators[0]) == counts[operators[0]]
    assert kinds.count(DynamicQuantize) == (3 if form is Form.DYNAMIC else 0), "two read the same"
    assert len(convertible(model, form)) == 4
    assert convert.inputs.keys() == model.inputs.keys()
    convert.verify()


def test_what_stays_in_float32_stays_as_it_is() -> None:
    model = two_products()
    names = convertible(model, Form.DYNAMIC)
    assert with_low_bit_weights(model, Form.DYNAMIC, 8, names).operations == model.operations
    one = sorted(names)[0]
    convert = with_low_bit_weights(model, Form.DYNAMIC, 8, [one])
    assert one in {operation.name for operation in convert.operations}


@pytest.mark.parametrize(("precision", "form"), LOW_BIT_FORMS)
@pytest.mark.parametrize("shape", [(5, 64), (5, 2, 32)])
@pytest.mark.parametrize("fuse", [Fuse.NONE, Fuse.RELU6])
def test_fully_connected_with_bias_and_activation(
    precision: str, form: Form, shape: tuple[int, ...], fuse: Fuse
) -> None:
    bias = RANDOM.standard_normal(64).astype(np.float32)
    model = model_of(lambda b, x: b.add(FullyConnected, x, WEIGHTS[0], bias, fuse), float32(*shape))
    convert = with_low_bit_weights(model, form, BITS[precision])
    made, exact = (outputs_of(m, {"x0": X.reshape(shape)})["y0"] for m in (convert, model))
    assert made.shape == exact.shape
    assert 0 < error(made, exact) < {8: 3e-2, 4: 0.3}[BITS[precision]]


def test_an_lstm_is_converted_in_the_dynamic_form_alone() -> None:
    model = lstm()
    assert not convertible(model, Form.BLOCKS)
    (operation,) = with_low_bit_weights(model, Form.DYNAMIC, 8).operations
    assert isinstance(operation, DynamicQuantizeLSTM)


@pytest.mark.parametrize(
    "weight",
    [np.full((4, 4), np.inf, np.float32), np.ones((2, 4, 4), np.float32), np.eye(4)],
    ids=["infinite", "several matrices", "float64"],
)
def test_weights_that_have_no_such_form_stay(weight: Array) -> None:
    type_ = TensorType(ElementType.of(weight.dtype), (4, 4))
    model = model_of(lambda b, x: b.add(MatMul, x, weight), type_)
    assert not convertible(model, Form.DYNAMIC)


@given(st.integers(1, 70), st.integers(1, 5), st.sampled_from([1e-30, 1e-3, 1.0, 1e30]), st.data())
def test_no_weight_is_further_than_half_a_step_from_what_its_integer_stands_for(
    terms: int, columns: int, size: float, data: st.DataObject
) -> None:
    seed = data.draw(st.integers(0, 2**32 - 1))
    weight = np.random.default_rng(seed).standard_normal((terms, columns)).astype(np.float32)
    weight[np.random.default_rng(seed).random(weight.shape) < 0.3] = 0
    weight *= np.float32(size)
    steps, scale = symmetric_int8(weight, axis=0)
    assert np.all(np.abs(steps * scale.astype(np.float64) - weight) <= scale * 0.5001)
    integers, scales = packed_blocks(weight, 8)
    reals = (integers.astype(np.float64) - 128) * scales[..., np.newaxis]
    whole = reals.reshape(columns, -1)[:, :terms].T
    # The largest weight of the other sign may lie one step beyond the greatest integer.
    each = np.repeat(np.abs(scales), BLOCK_SIZE, axis=1)[:, :terms].T
    assert np.all(np.abs(whole - weight) <= each * 1.0001)
