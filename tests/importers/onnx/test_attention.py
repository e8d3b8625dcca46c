"""Transformers' operators of ONNX Runtime, in random combinations, against that itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from scipy.special import erf
from tests.exact_onnxruntime import exact_session

import crosschip
from crosschip.importers import load
from crosschip.ir import Array, DeviceError, Extension, Model

ROOM = "com.microsoft"
DEVICES = (["onnxruntime"], ["openvino", "reference"], ["reference"])


class Draw:
    """Random choices of one case."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def reals(self, *shape: int, dtype: type = np.float32) -> Array:
        """Normally distributed reals."""
        return self.generator.normal(size=shape).astype(dtype)

    def one(self, *options: int) -> int:
        """Return one of several numbers."""
        return options[self.generator.integers(len(options))]

    def chance(self, part: float) -> bool:
        """True in that part of all cases."""
        return bool(self.generator.random() < part)

    def seen(self, *shape: int) -> Array:
        """Return a mask of integers, whose first key is always seen."""
        mask = self.generator.integers(0, 2, shape).astype(np.int32)
        mask[..., 0] = 1
        return mask


def file_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, int],
    constants: Mapping[str, Array],
    opens: bool = False,
) -> ModelProto:
    """Return a model of nodes; with sizes left open if asked for."""

    def sizes(name: str, array: Array) -> list[Any]:
        return [f"{name}{axis}" if opens and not axis else n for axis, n in enumerate(array.shape)]

    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), sizes(name, array)
            )
            for name, array in inputs.items()
        ],
        [helper.make_tensor_value_info(name, code, None) for name, code in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid(ROOM, 1)]
    return helper.make_model(graph, ir_version=10, opset_imports=imports)


def check(model: ModelProto, inputs: Mapping[str, Array], tolerance: float = 2e-5) -> Model:
    """Compare all devices with ONNX Runtime; returns the model as it is imported."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    expected = exact_session(model, options).run(None, dict(inputs))
    found = load(model.SerializeToString())
    assert not any(isinstance(operation, Extension) for operation in found.operations)
    for devices in DEVICES:
        with crosschip.compile(found, devices, cache=False) as compiled:
            made = list(compiled.run(dict(inputs)).values())
        for ours, theirs in zip(made, expected, strict=True):
            assert ours.dtype == theirs.dtype, devices
            np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=str(devices))
    return found


def floats(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, TensorProto.FLOAT)


@pytest.mark.parametrize("seed", range(24))
def test_multi_head_attention(seed: int) -> None:
    draw = Draw(seed)
    entries, heads, places, size = draw.one(1, 2), draw.one(1, 2, 4), draw.one(1, 3, 5), 4
    past = draw.one(1, 4) if draw.chance(0.4) else 0
    causal = draw.chance(0.4)
    count = places if past or causal or draw.chance(0.6) else draw.one(2, 6)
    width = size if past or draw.chance(0.7) else 6
    inputs = {
        "query": draw.reals(entries, places, heads * size),
        "key": draw.reals(entries, count, heads * size),
        "value": draw.reals(entries, count, heads * width),
    }
    apart = not past and width == size and draw.chance(0.2)
    if apart:
        inputs |= {name: draw.reals(entries, heads, count, size) for name in ("key", "value")}
    elif draw.chance(0.5):
        inputs["bias"] = draw.reals(heads * (2 * size + width))
    if draw.chance(0.4):
        inputs["padding"] = draw.seen(entries, past + count)
    if draw.chance(0.4):
        shape = (draw.one(1, entries), draw.one(1, heads), places, past + count)
        inputs["addend"] = draw.reals(*shape)
    if past:
        for name in ("old_keys", "old_values"):
            inputs[name] = draw.reals(entries, heads, past, size)
    order = ("query", "key", "value", "bias", "padding", "addend", "old_keys", "old_values")
    names = [name if name in inputs else "" for name in order]
    outputs = ["y", "keys", "values"] if past or (not apart and draw.chance(0.3)) else ["y"]
    node = helper.make_node(
        *("MultiHeadAttention", names, outputs),
        domain=ROOM,
        num_heads=heads,
        unidirectional=int(causal),
        scale=0.3 if draw.chance(0.4) else 0.0,
        mask_filter_value=-3e38 if draw.chance(0.2) else -1e4,
    )
    check(file_of([node], inputs, floats(*outputs), {}, draw.chance(0.3)), inputs)


@pytest.mark.parametrize("seed", range(24))
def test_attention_of_an_input(seed: int) -> None:
    draw = Draw(seed)
    entries, heads, places, size = draw.one(1, 2), draw.one(1, 2, 4), draw.one(1, 3, 5), 4
    past, wide = draw.one(1, 4) if draw.chance(0.4) else 0, heads * size
    attributes: dict[str, Any] = {"num_heads": heads, "unidirectional": int(draw.chance(0.4))}
    width = wide
    if not past and draw.chance(0.3):
        width = heads * 6
        attributes["qkv_hidden_sizes"] = [wide, wide, width]
    inputs = {"x": draw.reals(entries, places, 10)}
    constants = {"w": draw.reals(10, 2 * wide + width) / 3}
    if draw.chance(0.7):
        constants["b"] = draw.reals(2 * wide + width)
    total = past + places
    kind = draw.one(0, 1, 2, 3)
    if kind == 1:
        inputs["mask"] = draw.seen(entries, total)
    elif kind == 2:
        inputs["mask"] = draw.generator.integers(1, total + 1, entries).astype(np.int32)
    elif kind == 3:
        inputs["mask"] = draw.seen(entries, places, total)
    if past:
        inputs["past"] = draw.reals(2, entries, heads, past, size)
    elif draw.chance(0.3):
        inputs["addend"] = draw.reals(draw.one(1, entries), draw.one(1, heads), places, total)
    order = ("x", "w", "b", "mask", "past", "addend")
    names = [name if name in inputs or name in constants else "" for name in order]
    outputs = ["y", "present"] if past else ["y"]
    node = helper.make_node("Attention", names, outputs, domain=ROOM, **attributes)
    check(file_of([node], inputs, floats(*outputs), constants), inputs)


@pytest.mark.parametrize("seed", range(12))
def test_rotary_embedding(seed: int) -> None:
    draw = Draw(seed)
    entries, heads, places, size = draw.one(1, 2), draw.one(1, 3), draw.one(1, 4), 8
    is_flat, half = draw.chance(0.5), draw.one(2, 4)
    shape = (entries, places, heads * size) if is_flat else (entries, heads, places, size)
    inputs: dict[str, Array] = {"x": draw.reals(*shape)}
    positions = draw.generator.integers(0, 9, (entries, places))
    inputs["at"] = np.array([draw.one(0, 3)]) if draw.chance(0.4) else positions
    attributes: dict[str, Any] = {"interleaved": int(draw.chance(0.5))}
    if half == 2:
        attributes |= {"num_heads": heads, "rotary_embedding_dim": 4}
    constants = {name: draw.reals(9, half) for name in ("cos", "sin")}
    node = helper.make_node(
        *("RotaryEmbedding", ["x", "at", "cos", "sin"], ["y"]), domain=ROOM, **attributes
    )
    check(file_of([node], inputs, floats("y"), constants), inputs)


@pytest.mark.parametrize("seed", range(6))
def test_group_query_attention(seed: int) -> None:
    draw = Draw(seed)
    shared, own, size = draw.one(1, 2, 3), draw.one(1, 2), draw.one(16, 32)
    entries, places, past = draw.one(1, 2), draw.one(1, 1, 3), draw.one(0, 4, 6)
    is_new = draw.chance(0.3) or (places > 1 and entries > 1)
    room = draw.chance(0.3) and past > places
    total = places if is_new else past if room else past + places
    least = places if is_new else max(1, places)
    lengths = draw.generator.integers(least - 1, total, entries).astype(np.int32)
    heads = own * shared
    if draw.chance(0.3):
        inputs = {"query": draw.reals(entries, places, (heads + 2 * own) * size)}
    else:
        inputs = {"query": draw.reals(entries, places, heads * size)}
        inputs |= {name: draw.reals(entries, places, own * size) for name in ("key", "value")}
    inputs |= {"lengths": lengths, "total": np.array(total, np.int32)}
    if past or draw.chance(0.5):
        for name in ("old_keys", "old_values"):
            inputs[name] = draw.reals(entries, own, past, size)
    constants: dict[str, Array] = {}
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": own}
    if draw.chance(0.6):
        half = draw.one(8, size // 2)
        constants = {name: draw.reals(16, half) for name in ("cos", "sin")}
        attributes |= {"do_rotary": 1, "rotary_interleaved": int(draw.chance(0.5))}
    if draw.chance(0.4):
        attributes["local_window_size"] = draw.one(1, 2, 4)
    attributes |= {"scale": 0.3} if draw.chance(0.3) else {}
    attributes |= {"softcap": 2.0} if draw.chance(0.3) else {}
    order = ("query", "key", "value", "old_keys", "old_values", "lengths", "total", "cos", "sin")
    names = [name if name in inputs or name in constants else "" for name in order]
    outputs = ["y", "keys", "values"]
    node = helper.make_node(*("GroupQueryAttention", names, outputs), domain=ROOM, **attributes)
    model = file_of([node], inputs, floats(*outputs), constants, draw.chance(0.4))
    check(model, inputs)


@pytest.mark.parametrize(
    ("lengths", "total"), [([4, 5], 5), ([4, -1], 5), ([4, 2], 7)], ids=["beyond", "none", "total"]
)
def test_counts_that_do_not_fit_are_refused(lengths: Sequence[int], total: int) -> None:
    draw = Draw(0)
    inputs = {"query": draw.reals(2, 1, 32), "key": draw.reals(2, 1, 16)}
    inputs |= {"value": draw.reals(2, 1, 16), "lengths": np.array(lengths, np.int32)}
    inputs |= {name: draw.reals(2, 1, 4, 16) for name in ("old_keys", "old_values")}
    inputs["total"] = np.array(total, np.int32)
    names = ["query", "key", "value", "old_keys", "old_values", "lengths", "total"]
    node = helper.make_node(
        *("GroupQueryAttention", names, ["y", "", ""]), domain=ROOM, num_heads=2, kv_num_heads=1
    )
    model = load(file_of([node], inputs, floats("y"), {}).SerializeToString())
    for devices in DEVICES:
        with (
            crosschip.compile(model, devices, cache=False) as compiled,
            pytest.raises(DeviceError),
        ):
            compiled.run(inputs)


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["float32", "float16"])
@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)], ids=str)
@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_skip_normalization(kind: str, skip: tuple[int, ...], dtype: type) -> None:
    draw = Draw(0)
    inputs = {"x": draw.reals(2, 3, 8, dtype=dtype), "skip": draw.reals(*skip, dtype=dtype)}
    constants = {name: draw.reals(8, dtype=dtype) for name in ("scale", "bias", "more")}
    names = ["x", "skip", "scale", "bias", "more"]
    if kind != "SkipLayerNormalization":
        names.remove("bias")
    node = helper.make_node(kind, names, ["y", "", "", "sum"], domain=ROOM, epsilon=1e-5)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    model = file_of([node], inputs, {"y": code, "sum": code}, constants)
    check(model, inputs, 2e-5 if dtype is np.float32 else 1e-2)


@pytest.mark.parametrize("has_segments", [True, False])
@pytest.mark.parametrize("has_places", [True, False])
@pytest.mark.parametrize("has_mask", [True, False])
def test_embed_layer_normalization(has_segments: bool, has_places: bool, has_mask: bool) -> None:
    draw = Draw(0)
    inputs = {"words": draw.generator.integers(0, 9, (2, 3)).astype(np.int32)}
    tables = {"of_words": 9, "of_places": 5, "of_segments": 2}
    constants = {name: draw.reals(count, 4) for name, count in tables.items()}
    constants |= {name: draw.reals(4) for name in ("scale", "bias")}
    if has_segments:
        inputs["segments"] = draw.generator.integers(0, 2, (2, 3)).astype(np.int32)
    else:
        del constants["of_segments"]
    if has_places:
        inputs["places"] = draw.generator.integers(0, 5, (2, 3)).astype(np.int32)
    if has_mask:
        inputs["mask"] = np.array([[1, 1, 0], [1, 1, 1]], np.int32)
    order = ("words", "segments", "of_words", "of_places", "of_segments")
    names = [name if name in inputs or name in constants else "" for name in order]
    names += ["scale", "bias", "mask" if has_mask else "", "places" if has_places else ""]
    node = helper.make_node("EmbedLayerNormalization", names, ["y", "count", "sum"], domain=ROOM)
    outputs = {**floats("y", "sum"), "count": TensorProto.INT32}
    order_of_outputs = {name: outputs[name] for name in ("y", "count", "sum")}
    check(file_of([node], inputs, order_of_outputs, constants), inputs)


PRODUCTS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, tuple[int, ...]]]] = {
    "product": ("FusedMatMul", {"alpha": 0.3}, {"a": (2, 3, 4), "b": (4, 5)}),
    "transposed": (
        "FusedMatMul",
        {"transA": 1, "transB": 1, "alpha": 2.0},
        {"a": (2, 4, 3), "b": (2, 5, 4)},
    ),
    "gelu": ("Gelu", {}, {"a": (2, 5)}),
    "gelu of a sum": ("BiasGelu", {}, {"a": (2, 5), "b": (5,)}),
    "fast gelu": ("FastGelu", {}, {"a": (2, 5)}),
    "fast gelu of a sum": ("FastGelu", {}, {"a": (2, 5), "b": (5,)}),
    "quick gelu": ("QuickGelu", {"alpha": 1.5}, {"a": (2, 5)}),
    "swish": ("QuickGelu", {"alpha": 1.0}, {"a": (2, 5)}),
    "scaled silu": ("ScaledSiLU", {"alpha": 1.5}, {"a": (2, 5)}),
    "silu scaled by an input": ("ScaledSiLU", {}, {"a": (2, 5), "scale": ()}),
    "gated norm": ("GatedRMSNorm", {"epsilon": 1e-3}, {"a": (2, 3), "b": (3,), "c": (2, 3)}),
    "gated norm of groups": (
        "GatedRMSNorm",
        {"activation": "sigmoid"},
        {"a": (2, 4, 6), "b": (3,), "c": (2, 4, 6)},
    ),
}


@pytest.mark.parametrize("case", PRODUCTS)
def test_what_onnxruntime_fuses(case: str) -> None:
    kind, attributes, shapes = PRODUCTS[case]
    draw = Draw(0)
    inputs = {name: draw.reals(*shape) for name, shape in shapes.items()}
    node = helper.make_node(kind, list(inputs), ["y"], domain=ROOM, **attributes)
    check(file_of([node], inputs, floats("y"), {}), inputs)


def test_what_only_other_chips_fuse() -> None:
    draw = Draw(0)
    x, bias, skip = draw.reals(2, 3, 8), draw.reals(8), draw.reals(2, 3, 8)
    nodes = [
        helper.make_node("BiasAdd", ["x", "bias", "skip"], ["sum"], domain=ROOM),
        helper.make_node("BiasSplitGelu", ["x", "bias"], ["gated"], domain=ROOM),
    ]
    inputs = {"x": x, "bias": bias, "skip": skip}
    found = load(file_of(nodes, inputs, floats("sum", "gated"), {}).SerializeToString())
    left, right = np.split(x + bias, 2, -1)
    expected = [x + bias + skip, left * right * (1 + erf(right / np.sqrt(2))) / 2]
    for devices in DEVICES:
        with crosschip.compile(found, devices, cache=False) as compiled:
            made = compiled.run(inputs).values()
        for ours, theirs in zip(made, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, 2e-5, 2e-5)


REFUSED: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, tuple[int, ...]], str]] = {
    "packed": (
        "MultiHeadAttention",
        {"num_heads": 2},
        {"query": (2, 3, 2, 3, 4)},
        "queries, keys and values in one tensor cannot be expressed",
    ),
    "other lengths": (
        "MultiHeadAttention",
        {"num_heads": 2, "unidirectional": 1},
        {"query": (2, 3, 8), "key": (2, 5, 8), "value": (2, 5, 8)},
        "unidirectional, with different numbers of keys and queries",
    ),
    "an attribute nobody knows": (
        "QuickGelu",
        {"sharpness": 2.0},
        {"a": (2, 3)},
        "attribute 'sharpness' is not known in opset 1",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_expressed_stays_as_it_is(case: str) -> None:
    kind, attributes, shapes, reason = REFUSED[case]
    inputs = {name: Draw(0).reals(*shape) for name, shape in shapes.items()}
    node = helper.make_node(kind, list(inputs), ["y"], domain=ROOM, **attributes)
    found = load(file_of([node], inputs, floats("y"), {}).SerializeToString())
    (operation,) = found.operations
    assert isinstance(operation, Extension)
    assert operation.reason == reason
