"""Parameters that only NNRt has do what its document says, held against formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.apis.nnrt.programs import Program, done

import crosschip
from crosschip.ir import Array, Quantization

R = np.random.default_rng(0)
X = R.normal(size=(2, 3)).astype(np.float32)
IMAGE = R.normal(size=(1, 6, 5, 4)).astype(np.float32)


def computed(
    name: str, inputs: Sequence[Array], *outputs: Sequence[int], dtype: str = "float32", **more: Any
) -> list[Array]:
    """The outputs of one operation, of which the first input is the model's and others constant."""
    program = Program()
    first = program.tensor(*inputs[0].shape, dtype=str(inputs[0].dtype))
    others = [program.constant(array) for array in inputs[1:]]
    made = [program.tensor(*shape, dtype=dtype) for shape in outputs]
    done(program.add(name, [first, *others], *made, **more))
    done(program.finish([first], *made))
    model = program.model.finished
    assert model is not None
    with crosschip.compile(model, "reference", cache=False) as compiled:
        return list(compiled.run({"input0": inputs[0]}).values())


def close(found: Sequence[Array], *wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), rtol=1e-5, atol=1e-5)


def windows(image: Array, weight: Array, stride: int) -> Array:
    """A convolution of one image with its channels last, as its formula has it."""
    groups = image.shape[3] // weight.shape[3]
    out = weight.shape[0] // groups
    kernel = weight.shape[1]
    height, width = ((size - kernel) // stride + 1 for size in image.shape[1:3])
    made = np.zeros((1, height, width, weight.shape[0]), np.float32)
    for channel in range(weight.shape[0]):
        first = channel // out * weight.shape[3]
        part = image[0, :, :, first : first + weight.shape[3]]
        for y, x in np.ndindex(height, width):
            window = part[y * stride : y * stride + kernel, x * stride : x * stride + kernel]
            made[0, y, x, channel] = (window * weight[channel]).sum()
    return made


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm(x: Array, w: Array, r: Array, bias: Array, h: Array, c: Array) -> tuple[Array, ...]:
    """One pass of one layer; gates are in the order i, o, f, c."""
    made = []
    for step in x:
        i, o, f, g = np.split(step @ w.T + h @ r.T + np.add(*np.split(bias, 2)), 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.stack(made), h, c


def test_activations_are_those_of_oh_nn_fusetype() -> None:
    y = np.full((2, 3), 5, np.float32)
    for code, bounds in enumerate([(-np.inf, np.inf), (0, np.inf), (0, 6)]):
        close(computed("ADD", [X, y], (2, 3), ACTIVATIONTYPE=code), np.clip(X + y, *bounds))
    product = X @ X.T
    close(
        computed("MATMUL", [X, X], (2, 2), TRANSPOSE_B=True, ACTIVATION_TYPE=2),
        np.clip(product, 0, 6),
    )


@pytest.mark.parametrize(("mode", "wanted"), [(0, X * X), (1, X + X), (2, X)])
def test_eltwise_has_three_modes(mode: int, wanted: Array) -> None:
    close(computed("ELTWISE", [X, X], (2, 3), MODE=mode), wanted)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_images_with_channels_last(mode: int, stride: int) -> None:
    weight = R.normal(size=(6, 3, 3, 2)).astype(np.float32)
    bias = R.normal(size=6).astype(np.float32)
    image = IMAGE
    if mode == 0:
        totals = [max((-(-n // stride) - 1) * stride + 3 - n, 0) for n in (6, 5)]
        pads = [(total // 2, total - total // 2) for total in totals]
        image = np.pad(IMAGE, [(0, 0), *pads, (0, 0)])
    wanted = windows(image, weight, stride) + bias
    found = computed(
        *("CONV2D", [IMAGE, weight, bias], wanted.shape),
        STRIDES=[stride, stride],
        PAD_MODE=mode,
        GROUP=2,
        DILATION=[1, 1],
    )
    close(found, wanted)


def test_a_depthwise_convolution_has_a_group_for_each_channel() -> None:
    weight = R.normal(size=(8, 3, 3, 1)).astype(np.float32)
    bias = np.zeros(8, np.float32)
    wanted = windows(np.pad(IMAGE, [(0, 0), (1, 1), (1, 1), (0, 0)]), weight, 1)
    found = computed(
        *("DEPTHWISE_CONV2D_NATIVE", [IMAGE, weight, bias], wanted.shape),
        STRIDES=[1, 1],
        PAD=[1, 1, 1, 1],
        DILATION=[1, 1],
    )
    close(found, wanted)


@pytest.mark.parametrize("groups", [1, 2])
def test_a_transposed_convolution_has_its_outputs_first(groups: int) -> None:
    """The filter is [C_out, kernel_h, kernel_w, C_in / group], as the document has it."""
    weight = R.normal(size=(6, 3, 3, 4 // groups)).astype(np.float32)
    wanted = np.zeros((1, 13, 11, 6), np.float32)
    for channel in range(6):
        first = channel // (6 // groups) * (4 // groups)
        part = IMAGE[0, :, :, first : first + 4 // groups]
        for y, x in np.ndindex(6, 5):
            added = weight[channel] @ part[y, x]
            wanted[0, 2 * y : 2 * y + 3, 2 * x : 2 * x + 3, channel] += added
    wanted = wanted[:, 1:-1, 1:-1]
    found = computed(
        *("CONV2D_TRANSPOSE", [IMAGE, weight, np.zeros(6, np.float32)], wanted.shape),
        STRIDES=[2, 2],
        PAD=[1, 1, 1, 1],
        GROUP=groups,
    )
    close(found, wanted)


@pytest.mark.parametrize(("name", "reduce"), [("AVG_POOL", np.mean), ("MAX_POOL", np.max)])
def test_a_global_pool_has_one_window(name: str, reduce: Any) -> None:
    found = computed(name, [IMAGE], (1, 1, 1, 4), GLOBAL=True)
    close(found, reduce(IMAGE, axis=(1, 2), keepdims=True))


def test_powers_and_exponents_are_scaled_and_shifted() -> None:
    x = np.abs(X) + 1
    y = np.full(1, 1.5, np.float32)
    close(computed("POW", [x, y], (2, 3), SCALE=2.0, SHIFT=0.5), (2 * x + 0.5) ** 1.5)
    found = computed("EXP", [X], (2, 3), BASE=2.0, SCALE=3.0, SHIFT=0.5)
    close(found, 2 ** (3 * X + 0.5))
    close(computed("EXP", [X], (2, 3), BASE=-1.0), np.exp(X))


def test_reductions_go_to_the_end_and_are_multiplied() -> None:
    x, axes = R.normal(size=(2, 3, 4)).astype(np.float32), np.array([1], np.int32)
    found = computed("REDUCE_SUM", [x, axes], (2,), REDUCE_TO_END=True, COEFF=0.5)
    close(found, x.sum((1, 2)) / 2)
    close(computed("REDUCE_MEAN", [x, axes], (2, 1, 4), KEEP_DIMS=True), x.mean(1, keepdims=True))
    found = computed("ALL", [(x > 0).astype(np.float32), axes], (2, 4), dtype="bool")
    close(found, (x > 0).all(1))


def test_the_greatest_are_found_in_three_ways() -> None:
    x = R.permuted(np.arange(12, dtype=np.float32).reshape(2, 6), axis=1)
    up = np.sort(x, axis=1)
    k = np.array([2], np.int32)
    program = Program()
    given, count = program.tensor(2, 6), program.constant(k)
    values, places = program.tensor(2, 2), program.tensor(2, 2, dtype="int32")
    done(program.add("TOP_K", [given, count], values, places, SORTED=False, AXIS=-1))
    done(program.finish([given], values, places))
    assert program.model.finished is not None
    with crosschip.compile(program.model.finished, "reference", cache=False) as compiled:
        found = list(compiled.run({"input0": x}).values())
    close(found, up[:, -2:], np.argsort(x, axis=1)[:, -2:])
    cases: list[tuple[dict[str, Any], Array]] = [
        ({}, x.argmax(1)),
        ({"TOP_K": 2}, np.argsort(-x, axis=1)[:, :2]),
        ({"OUT_MAX_VALUE": True}, x.max(1)),
        ({"OUT_MAX_VALUE": True, "TOP_K": 2}, -np.sort(-x, axis=1)[:, :2]),
    ]
    for more, wanted in cases:
        dtype = "float32" if "OUT_MAX_VALUE" in more else "int64"
        close(computed("ARG_MAX", [x], wanted.shape, dtype=dtype, AXIS=1, **more), wanted)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_flattening_makes_two_axes(axis: int) -> None:
    x = R.normal(size=(2, 3, 4)).astype(np.float32)
    wanted = x.reshape(int(np.prod(x.shape[:axis])), -1)
    close(computed("FLATTEN", [x], wanted.shape, AXIS=axis), wanted)


def test_tiles_of_some_axes_and_of_new_ones() -> None:
    close(
        computed("TILE", [X, np.array([2], np.int32)], (2, 6), DIMS=[1]),
        np.tile(X, (1, 2)),
    )
    close(computed("TILE", [X, np.array([2, 1, 3], np.int32)], (2, 2, 9)), np.tile(X, (2, 1, 3)))


def test_a_full_connection_flattens_from_an_axis() -> None:
    x, weight = (R.normal(size=shape).astype(np.float32) for shape in ((2, 3, 4), (5, 12)))
    bias = np.ones(5, np.float32)
    product = x.reshape(2, 12) @ weight.T
    close(
        computed("FULL_CONNECTION", [x, weight, bias], (2, 5), AXIS=1, HAS_BIAS=True), product + 1
    )
    close(computed("FULL_CONNECTION", [x, weight], (2, 5), AXIS=1, USE_AXIS=True), product)
    close(computed("FULL_CONNECTION", [x, weight, bias], (2, 5), AXIS=1, HAS_BIAS=False), product)


def test_layers_of_a_network_read_one_another() -> None:
    """Two layers in two directions."""
    steps, batch, size = 5, 2, 3
    x = R.normal(size=(steps, batch, 2 * size)).astype(np.float32)
    shapes = ((4, 12, 6), (4, 12, 3), (4, 24), (4, batch, size), (4, batch, size))
    parts = [R.normal(size=shape).astype(np.float32) for shape in shapes]
    y, states = x, []
    for layer in (0, 2):
        ahead = lstm(y, *(part[layer] for part in parts))
        back = lstm(y[::-1], *(part[layer + 1] for part in parts))
        y = np.concatenate([ahead[0], back[0][::-1]], axis=2)
        states += [ahead[1:], back[1:]]
    h, c = (np.stack(state) for state in zip(*states, strict=True))
    found = computed(
        *("LSTM", [x, *parts], y.shape, h.shape, c.shape),
        BIDIRECTIONAL=True,
        HAS_BIAS=True,
        NUM_LAYERS=2,
    )
    close(found, y, h, c)


def test_a_bias_of_integers_counts_in_products() -> None:
    program = Program()
    unit, scales = Quantization((0.5,), (0,)), Quantization((0.25,), (0,))
    x = program.tensor(1, 2, 2, 1, dtype="int8", quantization=unit)
    weight = program.constant(np.full((1, 1, 1, 1), 2, np.int8), scales)
    bias = program.constant(np.array([8], np.int32))
    y = program.tensor(1, 2, 2, 1, dtype="int8", quantization=unit)
    done(program.add("CONV2D", [x, weight, bias], y, STRIDES=[1, 1], PAD=[0] * 4))
    done(program.finish([x], y))
    assert program.model.finished is not None
    held = np.array([[[[4], [-4]], [[0], [20]]]], np.int8)
    with crosschip.compile(program.model.finished, "reference", cache=False) as compiled:
        (found,) = compiled.run({"input0": held}).values()
    # (held * 0.5) * (2 * 0.25) + 8 * 0.125, over 0.5
    np.testing.assert_array_equal(found, (held * 0.25 + 1) / 0.5)
