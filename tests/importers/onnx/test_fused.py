"""Operators of ONNX Runtime that fuse others, or that ONNX has adopted since, against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from tests.importers.onnx.test_attention import ROOM, Draw, check, file_of, floats

from crosschip.importers import load
from crosschip.ir import Array, Extension, Model, ModelFileError
from crosschip.ops.standard.integers import MatMulInteger

ACTIVATIONS: Sequence[tuple[str, Sequence[float]]] = (
    ("", ()),
    ("Relu", ()),
    ("Tanh", ()),
    ("Sigmoid", ()),
    ("LeakyRelu", (0.2,)),
    ("Clip", (-0.5, 0.75)),
    ("HardSigmoid", (0.3, 0.4)),
)


def one_node(
    kind: str,
    inputs: Mapping[str, Array | None],
    constants: Mapping[str, Array] | None = None,
    outputs: Mapping[str, int] | None = None,
    tolerance: float = 2e-5,
    opens: bool = False,
    **attributes: Any,
) -> Model:
    """Return a model of one node on inputs that are given in order, compared on all devices."""
    held, made = constants or {}, outputs or floats("y")
    given = {name: value for name, value in inputs.items() if value is not None}
    names = [name if value is not None else "" for name, value in inputs.items()]
    fed = {name: value for name, value in given.items() if name not in held}
    node = helper.make_node(kind, names, list(made), domain=ROOM, **attributes)
    return check(file_of([node], fed, made, held, opens), fed, tolerance)


@pytest.mark.parametrize("seed", range(14))
def test_fused_convolution(seed: int) -> None:
    draw = Draw(seed)
    kind, numbers = ACTIVATIONS[seed % len(ACTIVATIONS)]
    group, stride = draw.one(1, 2), draw.one(1, 2)
    weights = {"w": draw.reals(6, 4 // group, 3, 3) / 3}
    if draw.chance(0.6):
        weights["b"] = draw.reals(6)
    size = 7 if stride == 1 else 4
    inputs = {"x": draw.reals(2, 4, 7, 7), "w": weights["w"], "b": weights.get("b")}
    if draw.chance(0.5):
        inputs["z"] = draw.reals(2, 6, size, size)
    named: dict[str, Any] = {"activation": kind, "activation_params": numbers} if kind else {}
    named = {name: value for name, value in named.items() if len(value)}
    if draw.chance(0.5):
        named |= {"kernel_shape": (3, 3), "dilations": (1, 1)}
    one_node(
        *("FusedConv", inputs, weights), group=group, strides=[stride] * 2, pads=[1] * 4, **named
    )


def test_fused_convolution_of_one_group() -> None:
    """ONNX Runtime's operators have defaults, too."""
    draw = Draw(0)
    inputs = {"x": draw.reals(2, 4, 7, 7), "w": draw.reals(6, 4, 3, 3) / 3}
    one_node("FusedConv", inputs, {"w": inputs["w"]}, activation="Relu")


@pytest.mark.parametrize("seed", range(14))
def test_fused_product_with_a_sum(seed: int) -> None:
    draw = Draw(seed)
    kind, numbers = ACTIVATIONS[seed % len(ACTIVATIONS)]
    turned = draw.chance(0.5), draw.chance(0.5)
    a, b = draw.reals(3, 4), draw.reals(4, 5)
    addend = (None, draw.reals(5), draw.reals(3, 5), draw.reals(3, 1))[draw.one(0, 1, 2, 3)]
    inputs = {"a": a.T if turned[0] else a, "b": b.T if turned[1] else b, "c": addend}
    names = ("activation_alpha", "activation_beta")
    named: dict[str, Any] = dict(zip(names, map(float, numbers), strict=False))
    constants = {"b": np.ascontiguousarray(inputs["b"])} if draw.chance(0.5) else {}
    if draw.chance(0.5):
        named |= {"alpha": 0.7, "beta": 1.3}
    if kind in ("", "Clip"):  # which ONNX Runtime does not fuse behind it
        kind, named = "Relu", {}
    named |= {"transA": int(turned[0]), "transB": int(turned[1]), "activation": kind}
    one_node("FusedGemm", inputs, constants, **named)


@pytest.mark.parametrize("seed", range(10))
def test_product_of_turned_batches(seed: int) -> None:
    draw = Draw(seed)
    kind = "TransposeMatMul" if draw.chance(0.2) else "FusedMatMul"
    rank = draw.one(3, 4)
    batch = (2, 3)[: rank - 2]
    named: dict[str, Any] = {"alpha": 0.4} if draw.chance(0.5) else {}

    def side(name: str, rows: int, columns: int) -> Array:
        turned = draw.chance(0.5)
        of_batch = kind == "FusedMatMul" and draw.chance(0.6)
        named.update({f"trans{name}": int(turned)})
        if of_batch:
            named[f"transBatch{name}"] = 1
        matrix = (columns, rows) if turned else (rows, columns)
        return draw.reals(*((matrix[0], *batch, matrix[1]) if of_batch else (*batch, *matrix)))

    one_node(kind, {"a": side("A", 4, 5), "b": side("B", 5, 6)}, opens=draw.chance(0.3), **named)


@pytest.mark.parametrize("kind", [0, 1], ids=["fp4", "nf4"])
@pytest.mark.parametrize("shape", [(5, 32), (3, 48)], ids=str)
def test_weights_of_bitsandbytes(kind: int, shape: tuple[int, int]) -> None:
    draw = Draw(kind)
    rows, size = shape
    packed = draw.generator.integers(0, 256, (rows * size + 1) // 2).astype(np.uint8)
    constants = {"w": packed, "m": np.abs(draw.reals(-(-rows * size // 16)))}
    one_node(
        *("MatMulBnb4", {"a": draw.reals(2, 3, size), **constants}, constants),
        K=size,
        N=rows,
        block_size=16,
        quant_type=kind,
    )


def test_too_few_weights_of_bitsandbytes_are_refused() -> None:
    constants: dict[str, Array] = {"w": np.zeros(7, np.uint8), "m": np.ones(1, np.float32)}
    attributes: dict[str, Any] = {"K": 16, "N": 1, "block_size": 16, "quant_type": 0}
    node = helper.make_node(
        *("MatMulBnb4", ["a", "w", "m"], ["y"]),
        domain=ROOM,
        **attributes,
    )
    model = file_of([node], {"a": np.ones((1, 16), np.float32)}, floats("y"), constants)
    with pytest.raises(ModelFileError, match="16 weights need more bytes"):
        load(model.SerializeToString())


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_distances(metric: str, dtype: type) -> None:
    draw = Draw(1)
    inputs = {"a": draw.reals(4, 3, dtype=dtype), "b": draw.reals(5, 3, dtype=dtype)}
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    one_node("CDist", inputs, outputs={"y": code}, metric=metric, opens=True)


@pytest.mark.parametrize("seed", range(4))
def test_maxima_of_channels_last(seed: int) -> None:
    draw = Draw(seed)
    dtype, code = (np.int8, TensorProto.INT8) if seed % 2 else (np.uint8, TensorProto.UINT8)
    limits = np.iinfo(dtype)
    image = draw.generator.integers(limits.min, limits.max, (2, 7, 6, 3), dtype, endpoint=True)
    one_node(
        *("NhwcMaxPool", {"x": image}),
        outputs={"y": code},
        kernel_shape=[3, 2],
        strides=[draw.one(1, 2)] * 2,
        pads=[1, 0, 1, 1] if draw.chance(0.5) else [0] * 4,
        ceil_mode=draw.one(0, 1),
    )


@pytest.mark.parametrize("kind", ["QLinearConv", "QLinearAveragePool", "QLinearGlobalAveragePool"])
@pytest.mark.parametrize("seed", range(3))
def test_images_of_bytes_with_channels_last(kind: str, seed: int) -> None:
    draw = Draw(seed)
    image = draw.generator.integers(0, 255, (2, 6, 5, 4)).astype(np.uint8)
    inputs: dict[str, Array | None] = {"x": image}
    named: dict[str, Any] = {}
    constants: dict[str, Array] = {
        "x.scale": np.array(0.02, np.float32),
        "x.zero": np.array(120, np.uint8),
    }
    if kind == "QLinearConv":
        weights = draw.generator.integers(-127, 128, (6, 4, 3, 2)).astype(np.int8)
        constants |= {"w": weights, "w.scale": np.array(0.01, np.float32)}
        constants["w.zero"] = np.array(0, np.int8)
    constants |= {"y.scale": np.array(0.1, np.float32), "y.zero": np.array(128, np.uint8)}
    if kind == "QLinearConv" and draw.chance(0.5):
        constants["b"] = draw.generator.integers(-999, 999, 6).astype(np.int32)
    if kind != "QLinearGlobalAveragePool":
        named = {"kernel_shape": [3, 2], "strides": [draw.one(1, 2), 1], "pads": [1, 0, 1, 1]}
    outputs = {"y": TensorProto.UINT8}
    step = 0.02  # of numbers around 128: one may be rounded the other way
    one_node(kind, inputs | constants, constants, outputs, step, channels_last=1, **named)


@pytest.mark.parametrize("seed", range(20))
def test_attention_of_bytes(seed: int) -> None:
    draw = Draw(seed)
    entries, heads, places, size = draw.one(1, 2), draw.one(1, 2, 4), draw.one(1, 3, 5), 4
    past, wide = draw.one(1, 4) if draw.chance(0.4) else 0, heads * size
    of_weights = np.int8 if draw.chance(0.6) else np.uint8
    by_column = draw.chance(0.4)

    def bytes_(dtype: type, *shape: int) -> Array:
        limits = np.iinfo(dtype)
        return draw.generator.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    constants = {
        "w": bytes_(of_weights, 10, 3 * wide),
        "b": draw.reals(3 * wide),
        "w_scale": np.abs(draw.reals(*((3 * wide,) if by_column else ()))) / 128 + np.float32(1e-3),
    }
    inputs: dict[str, Array | None] = {"x": bytes_(np.uint8, entries, places, 10)}
    inputs |= {"w": constants["w"], "b": constants["b"]}
    inputs["x_scale"] = constants["x_scale"] = np.array(0.02, np.float32)
    inputs["w_scale"] = constants["w_scale"]
    inputs["mask"] = draw.seen(entries, past + places) if draw.chance(0.5) else None
    inputs |= {"x_zero": None, "w_zero": None}
    if draw.chance(0.7):
        inputs["x_zero"] = constants["x_zero"] = bytes_(np.uint8)
    if draw.chance(0.4):
        inputs["w_zero"] = constants["w_zero"] = bytes_(of_weights, *((3 * wide,) * by_column))
    if past:
        inputs["past"] = draw.reals(2, entries, heads, past, size)
    outputs = floats("y", "present") if past else floats("y")
    model = one_node(
        *("QAttention", inputs, constants, outputs, 2e-4),
        num_heads=heads,
        unidirectional=int(draw.chance(0.4)),
    )
    assert sum(isinstance(operation, MatMulInteger) for operation in model.operations) == 3


@pytest.mark.parametrize("seed", range(6))
def test_embeddings_of_bytes(seed: int) -> None:
    draw = Draw(seed)
    has_segments, has_mask = draw.chance(0.6), draw.chance(0.6)
    words = draw.generator.integers(0, 9, (2, 3)).astype(np.int32)
    segments = draw.generator.integers(0, 2, (2, 3)).astype(np.int32)
    shapes = {"words": (9, 4), "places": (5, 4), "segments": (2, 4), "scale": (4,), "bias": (4,)}
    inputs: dict[str, Array | None] = {"at": words, "kind": segments if has_segments else None}
    constants: dict[str, Array] = {}
    dtype = np.uint8 if draw.chance(0.5) else np.int8
    limits = np.iinfo(dtype)
    fillings: Mapping[str, Callable[[Sequence[int]], Array]] = {
        "": lambda shape: draw.generator.integers(limits.min, limits.max, shape, dtype),
        ".scale": lambda _: np.array(abs(draw.reals()) / 16 + 0.01, np.float32),
        ".zero": lambda _: np.array(draw.generator.integers(0, 100), dtype),
    }
    for ending, fill in fillings.items():
        for name, shape in shapes.items():
            is_there = name != "segments" or has_segments
            if is_there:
                constants[name + ending] = fill(shape)
            inputs[name + ending] = constants.get(name + ending)
        if not ending:
            inputs["mask"] = np.array([[1, 1, 0], [1, 1, 1]], np.int32) if has_mask else None
    outputs = {"y": TensorProto.FLOAT, "count": TensorProto.INT32}
    one_node("QEmbedLayerNormalization", inputs, constants, outputs, 1e-4, epsilon=1e-5)


ADOPTED: Mapping[str, tuple[str, Mapping[str, Array], Mapping[str, int], Mapping[str, Any]]] = {
    "gather": (
        "GatherND",
        {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "at": np.array([[0, 1], [1, -1]])},
        floats("y"),
        {},
    ),
    "upper": ("Trilu", {"x": np.ones((2, 3, 4), np.float32)}, floats("y"), {}),
    "lower": (
        "Trilu",
        {"x": np.ones((3, 4), np.float32), "k": np.array(1)},
        floats("y"),
        {"upper": 0},
    ),
    "pad": (
        "Pad",
        {"x": np.ones((2, 3), np.float32), "pads": np.array([0, 1, 2, -1])},
        floats("y"),
        {},
    ),
    "pad with a number": (
        "Pad",
        {
            "x": np.ones((2, 3), np.float32),
            "pads": np.array([[1, 1, 0, 0]]),
            "value": np.array([2.5], np.float32),
        },
        floats("y"),
        {},
    ),
    "mirrored": (
        "Pad",
        {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "pads": np.array([1, 1, 0, 2])},
        floats("y"),
        {"mode": "reflect"},
    ),
    "range": (
        "Range",
        {"start": np.array(1, np.int32), "end": np.array([5], np.int32)},
        {"y": TensorProto.INT32},
        {},
    ),
    "range in steps": (
        "Range",
        {name: np.array(n, np.float32) for name, n in (("a", 4), ("b", -1), ("c", -1.5))},
        floats("y"),
        {},
    ),
    "one more axis": (
        "ExpandDims",
        {"x": np.ones((2, 3), np.float32), "axis": np.array(1, np.int32)},
        floats("y"),
        {},
    ),
    "one more axis from the end": (
        "ExpandDims",
        {"x": np.ones((2, 3), np.float32), "axis": np.array(-1, np.int32)},
        floats("y"),
        {},
    ),
    "different elements": (
        "Unique",
        {"x": np.array([2, 1, 1, 3, 4, 3], np.float32)},
        {"y": TensorProto.FLOAT, "at": TensorProto.INT64, "count": TensorProto.INT64},
        {},
    ),
    "sampled": (
        "GridSample",
        {
            "x": np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4),
            "grid": Draw(0).generator.uniform(-1.2, 1.2, (1, 3, 3, 2)).astype(np.float32),
        },
        floats("y"),
        {"padding_mode": "border"},
    ),
}
"""What each reads and makes."""


@pytest.mark.parametrize("case", ADOPTED)
def test_what_onnx_has_adopted(case: str) -> None:
    kind, inputs, outputs, attributes = ADOPTED[case]
    held = {name: value for name, value in inputs.items() if name in ("axis", "k", "pads", "value")}
    model = one_node(kind, inputs, held, outputs, **attributes)
    assert not any(isinstance(operation, Extension) for operation in model.operations)
