"""That each node computes what the document says, by formulas in NumPy and SciPy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.special import softmax
from tests.apis.nnrt.hdi.v1_0 import oracles
from tests.apis.nnrt.hdi.v1_0.checking import (
    F32,
    I32,
    I64,
    WITH_NUMBERS,
    check,
    const,
    drawn,
    turned,
)
from tests.apis.nnrt.hdi.v1_0.making import NCHW, NHWC, computed, single

from crosschip.apis.nnrt.hdi.v1_0.chip import Chip
from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError
from crosschip.apis.nnrt.hdi.v1_0.types import (
    ActivationType,
    EltwiseMode,
    ModelConfig,
    NodeType,
    PaddingMode,
    QuantParam,
    ReduceMode,
)
from crosschip.devices.reference import ReferenceDevice

ACTIVATIONS = [
    one for one in ActivationType if one.name.removeprefix("ACTIVATION_TYPE_") != "UNKNOWN"
]


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda one: one.name)
def test_activation(activation: ActivationType) -> None:
    x = np.concatenate([drawn(40, low=-8, high=8), np.array([0, -0.5, 1.5, 6, 1, -3, 3], F32)])
    name = activation.name.removeprefix("ACTIVATION_TYPE_")
    named = {"alpha": 0.7, "minVal": -0.5, "maxVal": 1.5}
    wanted = oracles.ACTIVATIONS[name](x.astype(np.float64))
    check("ACTIVATION", [x], wanted, activationType=activation, **named)


def test_the_approximate_gelu() -> None:
    x = drawn(40).astype(np.float64)
    wanted = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    check("ACTIVATION", [x.astype(F32)], wanted, activationType=19, approximate=True)


def test_an_unknown_activation_is_refused() -> None:
    with pytest.raises(HdiError):
        computed("ACTIVATION", [drawn(2)], [(F32, (2,))], activationType=20)


BINARY = {
    "ADD_FUSION": np.add,
    "SUB_FUSION": np.subtract,
    "MUL_FUSION": np.multiply,
    "DIV_FUSION": np.divide,
}


@pytest.mark.parametrize("kind", BINARY)
def test_arithmetic_is_broadcast_and_types_are_promoted(kind: str) -> None:
    x, y = drawn(2, 3, 4), drawn(3, 1, low=1)
    check(kind, [x, y], BINARY[kind](x, y))
    whole = np.arange(1, 7, dtype=I32).reshape(2, 3)
    check(kind, [whole.astype(F32), whole], BINARY[kind](whole, whole).astype(F32))


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda one: one.name)
@pytest.mark.parametrize("kind", ["ADD_FUSION", "MATMUL_FUSION"])
def test_an_activation_follows(kind: str, activation: ActivationType) -> None:
    x, y = drawn(3, 3), drawn(3, 3, seed=1)
    result = (x + y if kind == "ADD_FUSION" else x @ y).astype(np.float64)
    name = activation.name.removeprefix("ACTIVATION_TYPE_")
    if name in WITH_NUMBERS:
        with pytest.raises(HdiError):
            computed(kind, [x, y], [(F32, (3, 3))], activationType=activation)
        return
    wanted = oracles.ACTIVATIONS[name](result)
    check(kind, [x, y], wanted, activationType=activation, tolerance=1e-4)


@pytest.mark.parametrize(
    ("mode", "function"),
    [
        (EltwiseMode.ELTWISE_MODE_PROD, np.multiply),
        (EltwiseMode.ELTWISE_MODE_SUM, np.add),
        (EltwiseMode.ELTWISE_MODE_MAXIMUM, np.maximum),
    ],
)
def test_eltwise(mode: EltwiseMode, function: Any) -> None:
    x, y = drawn(2, 3), drawn(2, 3, seed=1)
    check("ELTWISE", [x, y], function(x, y), mode=mode)


def test_elementwise() -> None:
    x, y = drawn(2, 3), drawn(2, 3, seed=1)
    check("MAXIMUM", [x, y], np.maximum(x, y))
    check("SQUARED_DIFFERENCE", [x, y], (x - y) ** 2)
    check("LESS_EQUAL", [x, np.where(x > 0, x, y).astype(F32)], x <= np.where(x > 0, x, y))
    check("SQRT", [np.abs(x)], np.sqrt(np.abs(x)))
    check("RSQRT", [np.abs(x)], 1 / np.sqrt(np.abs(x)))


def test_power() -> None:
    x, y = drawn(2, 3, low=0.5), drawn(2, 3, seed=1)
    check("POW_FUSION", [x, y], x**y)
    check("POW_FUSION", [x, y], (2 * x + 0.5) ** y, scale=2.0, shift=0.5, tolerance=1e-4)


@pytest.mark.parametrize("format", [NHWC, NCHW], ids=lambda one: one.name)
def test_along_channels(format: Any) -> None:
    x, bias, slope = drawn(2, 3, 4, 5), drawn(5), drawn(5, seed=1)
    lay = turned if format is NCHW else np.asarray
    check("BIAS_ADD", [lay(x), bias], lay(x + bias), order=format)
    check("PRELU_FUSION", [lay(x), slope], lay(np.where(x >= 0, x, x * slope)), order=format)
    one = slope[:1]
    wanted = lay(np.where(x >= 0, x, x * one))
    check("PRELU_FUSION", [lay(x), one], wanted, order=format, channelShared=True)
    mean, variance = drawn(5, seed=2), drawn(5, low=0.5, seed=3)
    wanted = slope * (x - mean) / np.sqrt(variance + 1e-3) + bias
    parts = [lay(x), slope, bias, mean, variance]
    check("FUSED_BATCH_NORM", parts, lay(wanted), order=format, epsilon=1e-3, tolerance=1e-4)


def test_rows_have_their_channels_last_in_any_format() -> None:
    x, bias, slope = drawn(2, 5), drawn(5), drawn(5, seed=1)
    for format in (NHWC, NCHW):
        check("BIAS_ADD", [x, bias], x + bias, order=format)
        check("PRELU_FUSION", [x, slope], np.where(x >= 0, x, x * slope), order=format)


def test_layer_norm() -> None:
    x = drawn(2, 3, 4)
    for axis, gamma, beta in (
        (1, drawn(3, 4), drawn(3, 4, seed=1)),
        (2, drawn(4), drawn(4, seed=1)),
    ):
        axes = tuple(range(axis, 3))
        mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        wanted = (x - mean) / np.sqrt(variance + 1e-5) * gamma + beta
        named = {"beginNormAxis": axis, "beginParamsAxis": axis, "elementwiseAffine": True}
        check("LAYER_NORM_FUSION", [x, gamma, beta], wanted, epsilon=1e-5, tolerance=1e-4, **named)


@pytest.mark.parametrize(("axis", "laid"), [(1, (1, 3, 4)), (-1, (4,)), (1, (3, 1))])
def test_scale(axis: int, laid: tuple[int, ...]) -> None:
    x = drawn(2, 3, 4)
    shape = (3, 4) if laid == (1, 3, 4) else (laid[0],)
    scale, bias = drawn(*shape), drawn(*shape, seed=1)
    wanted = x * scale.reshape(laid) + bias.reshape(laid)
    check("SCALE_FUSION", [x, scale, bias], wanted, axis=axis)
    check("SCALE_FUSION", [x, scale, bias], np.maximum(wanted, 0), axis=axis, activationType=1)


REDUCTIONS: Mapping[str, Any] = {
    "MEAN": np.mean,
    "MAX": np.max,
    "MIN": np.min,
    "PROD": np.prod,
    "SUM": np.sum,
    "SUM_SQUARE": lambda x, axis, keepdims: np.sum(x * x, axis, keepdims=keepdims),
    "ASUM": lambda x, axis, keepdims: np.sum(np.abs(x), axis, keepdims=keepdims),
    "ALL": np.all,
}


@pytest.mark.parametrize("mode", ReduceMode, ids=lambda one: one.name)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [(1,), (0, -1)])
def test_reduction(mode: ReduceMode, keep: bool, axes: tuple[int, ...]) -> None:
    x = drawn(2, 3, 4, 2)
    x[0, 0] = 0
    function = REDUCTIONS[mode.name.removeprefix("REDUCE_MODE_")]
    wanted = function(x, axis=axes, keepdims=keep)
    check("REDUCE_FUSION", [x, const(*axes)], wanted, keepDims=keep, mode=mode)
    to_end = function(x, axis=tuple(range(axes[0] % 4, 4)), keepdims=keep)
    named = {"keepDims": keep, "mode": mode, "reduceToEnd": True}
    check("REDUCE_FUSION", [x, const(*axes)], np.asarray(to_end), constants={1}, **named)


@pytest.mark.parametrize(("coeff", "factor"), [(0.0, 1), (1.0, 1), (2.5, 2.5)])
def test_a_coefficient_counts_for_what_is_reduced_to_the_end(coeff: float, factor: float) -> None:
    x = drawn(2, 3, 4)
    named: dict[str, Any] = {"coeff": coeff, "mode": ReduceMode.REDUCE_MODE_MEAN}
    parts = [x, const(1)]
    wanted = x.mean((1, 2)) * factor
    check("REDUCE_FUSION", parts, wanted, constants={1}, reduceToEnd=True, **named)
    check("REDUCE_FUSION", parts, x.mean(1), constants={1}, **named)


def test_greatest_elements() -> None:
    x = drawn(3, 5)
    order = np.argsort(-x, axis=1)
    places = order[:, :1]
    named = {"axis": 1, "topK": 1}
    check("ARGMAX_FUSION", [x], places.astype(I32), keepDims=True, **named)
    check("ARGMAX_FUSION", [x], places[:, 0].astype(I64), **named)
    check("ARGMAX_FUSION", [x], x.max(1), outMaxValue=True, **named)
    check("ARGMAX_FUSION", [x], order[:, :3].astype(I64), axis=-1, topK=3)
    check("ARGMAX_FUSION", [x], -np.sort(-x, 1)[:, :3], axis=1, topK=3, outMaxValue=True)
    best = [-np.sort(-x, 1)[:, :3], order[:, :3].astype(I32)]
    check("TOPK_FUSION", [x, const(3)], best, axis=1, sorted=True)
    check("TOPK_FUSION", [x, const(3)], [one[:, ::-1] for one in best], axis=1, sorted=False)


def test_softmax() -> None:
    x = drawn(2, 3, 4)
    for axis in (0, -1):
        check("SOFTMAX", [x], softmax(x, axis), axis=[axis])


@pytest.mark.parametrize("turn_a", [False, True])
@pytest.mark.parametrize("turn_b", [False, True])
def test_matrix_product(turn_a: bool, turn_b: bool) -> None:
    a, b = drawn(2, 3, 4), drawn(2, 4, 5, seed=1)
    given = [
        np.ascontiguousarray(np.swapaxes(m, 1, 2)) if t else m
        for m, t in ((a, turn_a), (b, turn_b))
    ]
    check("MATMUL_FUSION", given, a @ b, transposeA=turn_a, transposeB=turn_b)


def test_full_connection() -> None:
    x, weight, bias = drawn(3, 8), drawn(5, 8), drawn(5, seed=1)
    wanted = x @ weight.T
    check("FULL_CONNECTION", [x, weight, bias], wanted + bias, hasBias=True)
    check("FULL_CONNECTION", [x, weight], wanted)
    check("FULL_CONNECTION", [x, weight], np.maximum(wanted, 0), activationType=1)
    deep = x.reshape(3, 2, 4)
    check(
        "FULL_CONNECTION", [deep, weight, bias], wanted + bias, hasBias=True, useAxis=True, axis=1
    )


def test_shapes() -> None:
    x = drawn(2, 1, 3)
    check("RESHAPE", [x, const(3, -1)], x.reshape(3, 2), constants={1})
    check("TRANSPOSE", [x, const(2, 0, 1)], x.transpose(2, 0, 1), constants={1})
    check("SQUEEZE", [x], x[:, 0], axis=[1])
    check("SQUEEZE", [drawn(1, 3, 1)], drawn(1, 3, 1).reshape(3))
    check("UNSQUEEZE", [x], x[:, None, :, :, None], axis=[1, -1])
    check("EXPAND_DIMS", [x, const(-1)], x[..., None], constants={1})
    check("SHAPE", [x], const(2, 1, 3))


def test_joining_and_splitting() -> None:
    x, y = drawn(2, 3), drawn(2, 3, seed=1)
    check("CONCAT", [x, y, x], np.concatenate([x, y, x], 1), axis=1)
    check("STACK", [x, y], np.stack([x, y], -1), axis=-1)
    wide = drawn(2, 6)
    check("SPLIT", [wide], np.split(wide, 3, 1), axis=1, outputNum=3)
    named: dict[str, Any] = {"axis": -1, "outputNum": 2, "sizeSplits": [2, 4]}
    check("SPLIT", [wide], [wide[:, :2], wide[:, 2:]], **named)


def test_slicing() -> None:
    x = drawn(4, 5, 6)
    whole = [x, const(1, 0, 2), const(2, 5, 3)]
    check("SLICE_FUSION", whole, x[1:3, :, 2:5], constants={1, 2})
    one = [x, const(2), const(3)]
    check("SLICE_FUSION", one, x[:, :, 2:5], constants={1, 2}, axes=[2])
    places = [x, const(1, 0, 4), const(3, 9, 1), const(1, 2, -1)]
    check("STRIDED_SLICE", places, x[1:3, 0:9:2, 4:1:-1], constants={1, 2, 3})
    named = {"beginMask": 1, "endMask": 2, "shrinkAxisMask": 4}
    check("STRIDED_SLICE", places, x[:3, 0::2, 4], constants={1, 2, 3}, **named)
    masks = {"ellipsisMask": 2, "newAxisMask": 1}
    check("STRIDED_SLICE", places, x[None, ..., 4:1:-1], constants={1, 2, 3}, **masks)


def test_gathering_and_filling() -> None:
    x = drawn(3, 4)
    check("GATHER", [x, const(2, 0), const(1)], x[:, [2, 0]], constants={2})
    check("FILL", [np.array(2.5, F32), const(2, 3)], np.full((2, 3), 2.5), constants={1})
    check("TILE_FUSION", [x, const(2, 3)], np.tile(x, (2, 3)), constants={1})
    check("TILE_FUSION", [x, const(2, 1, 3)], np.tile(x, (2, 1, 3)), constants={1})
    check("TILE_FUSION", [x], np.tile(x, (1, 2)), dims=[1, 2])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_one_hot(axis: int) -> None:
    indices = const(2, 0, 1, 3).reshape(2, 2)
    wanted = np.moveaxis(np.where(indices[..., None] == np.arange(4), 5.0, -1.0), -1, axis)
    parts = [indices, const(4), np.array(5, F32), np.array(-1, F32)]
    check("ONE_HOT", parts, wanted, constants={1, 2, 3}, axis=axis)


PADDINGS = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}


@pytest.mark.parametrize("mode", PADDINGS)
@pytest.mark.parametrize("as_input", [True, False])
def test_padding(mode: str, as_input: bool) -> None:
    x, pads = np.arange(1, 10, dtype=F32).reshape(3, 3), const(2, 2, 1, 2).reshape(2, 2)
    more: dict[str, Any] = {"constant_values": 0.5} if mode == "CONSTANT" else {}
    wanted = np.pad(x, pads, mode=PADDINGS[mode], **more)  # type: ignore[call-overload]
    named: dict[str, Any] = {
        "paddingMode": PaddingMode[f"PADDING_MODE_{mode}"],
        "constantValue": 0.5,
    }
    if not as_input:
        named["paddings"] = pads.tolist()
    inputs = [x, pads] if as_input else [x]
    check("PAD_FUSION", inputs, wanted, constants={1} if as_input else (), **named)


def test_casts() -> None:
    x = drawn(2, 3, low=-9, high=9)
    for type_, number in ((I32, 34), (I64, 35), (np.float16, 42), (np.bool_, 30)):
        wanted = x.astype(type_)
        check("CAST", [x, const(number)], wanted, constants={1})
        check("CAST", [x], wanted)
        check("QUANT_DTYPE_CAST", [x], wanted, srcT=43, dstT=number)


def test_quantization() -> None:
    x = drawn(2, 3)
    scale, zero = QuantParam(8, 3, 0.02), 3
    stored = np.clip(np.round(x / np.float32(0.02)) + zero, -128, 127).astype(np.int8)
    check("QUANT_DTYPE_CAST", [x], stored, scales={1: [scale]}, srcT=43, dstT=32)
    reals = (stored.astype(F32) - zero) * F32(0.02)
    check("QUANT_DTYPE_CAST", [stored], reals, scales={0: [scale]}, srcT=32, dstT=43)


def test_the_bytes_of_a_model_that_could_not_be_said_are_refused() -> None:
    """NNRt sends what it cannot convert with no bytes of attributes at all."""
    model = single("CONCAT", [drawn(2, 3)], [(F32, (2, 3))], axis=1)
    bare = replace(model, nodes=(replace(model.nodes[0], nodeAttr=b""),))
    with Chip(ReferenceDevice()) as chip:
        assert chip.GetSupportedOperation(bare) == [False]
        with pytest.raises(HdiError, match="nodeAttr is no Concat"):
            chip.PrepareModel(bare, ModelConfig())


def test_every_node_is_computed_in_these_files() -> None:
    files = sorted(Path(__file__).parent.glob("test_*nodes.py"))
    text = "".join(file.read_text("utf-8") for file in files)
    kinds = [node.name.removeprefix("NODE_TYPE_") for node in NodeType if node]
    assert len(kinds) == 48
    missing = [kind for kind in kinds if not re.search(f'"{kind}"(, |: |,\n)', text)]
    assert not missing
