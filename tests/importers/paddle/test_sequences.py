"""Sequences (LoD): offsets as inputs, their propagation, and offsets as outputs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.importers.paddle.helpers import import_error, outputs
from tests.importers.paddle.writers import Paddle2Writer

from crosschip.importers import load
from crosschip.ir import Array

OFFSETS = [0, 3, 4, 4, 6]


def writer(
    *operators: tuple[str, dict[str, str], dict[str, str]], levels: int = 1
) -> Paddle2Writer:
    """Return a program with an input `x` [-1, 3] of sequences, operators, and an output `y`."""
    made = Paddle2Writer()
    made.input("x", "float32", [-1, 3])
    made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = levels
    for type_, inputs, results in operators:
        made.operator(type_, inputs, results)
    made.output("y")
    return made


def test_a_model_asks_for_offsets_only_where_they_count(tmp_path: Path) -> None:
    for folder in ("plain", "pooled"):
        (tmp_path / folder).mkdir()
    plain = load(writer(("relu", {"X": "x"}, {"Out": "y"})).save(tmp_path / "plain"))
    assert list(plain.inputs) == ["x"]
    assert list(plain.outputs) == ["y"]
    summed = load(writer(("sequence_pool", {"X": "x"}, {"Out": "y"})).save(tmp_path / "pooled"))
    assert list(summed.inputs) == ["x", "x.lod0"]
    assert list(summed.outputs) == ["y"]


def test_offsets_go_through_what_treats_rows_alike(tmp_path: Path) -> None:
    model = load(
        writer(
            ("relu", {"X": "x"}, {"Out": "a"}),
            ("scale", {"X": "a"}, {"Out": "b"}),
            ("sequence_pool", {"X": "b"}, {"Out": "y"}),
        ).save(tmp_path)
    )
    x = np.arange(-9, 9, dtype=np.float32).reshape(6, 3)
    (result,) = outputs(model, {"x": x, "x.lod0": np.array(OFFSETS)})
    rows = np.maximum(x, 0)
    expected = [rows[:3].mean(0), rows[3], np.zeros(3), rows[4:].mean(0)]
    np.testing.assert_allclose(result, np.array(expected, np.float32), 1e-6)


def test_the_last_of_two_levels_is_of_rows(tmp_path: Path) -> None:
    model = load(writer(("sequence_pool", {"X": "x"}, {"Out": "y"}), levels=2).save(tmp_path))
    assert list(model.inputs) == ["x", "x.lod0", "x.lod1"]
    assert list(model.outputs) == ["y", "y.lod0"]
    levels = {"x.lod0": np.array([0, 1, 4]), "x.lod1": np.array(OFFSETS)}
    x = np.ones((6, 3), np.float32)
    result, offsets = outputs(model, {"x": x, **levels})
    np.testing.assert_array_equal(result[:, 0], [1, 1, 0, 1])
    np.testing.assert_array_equal(offsets, [0, 1, 4])


def test_the_rows_of_greatest_elements(tmp_path: Path) -> None:
    made = Paddle2Writer()
    made.input("x", "float32", [-1, 3])
    made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = 1
    made.operator("sequence_pool", {"X": "x"}, {"Out": "y", "MaxIndex": "i"}, {"pooltype": "MAX"})
    made.output("y")
    made.output("i")
    x = np.random.default_rng(1).permutation(18).reshape(6, 3).astype(np.float32)
    _, result = outputs(load(made.save(tmp_path)), {"x": x, "x.lod0": np.array(OFFSETS)})
    expected = [
        begin + x[begin:end].argmax(0) if end > begin else [-1] * 3
        for begin, end in pairwise(OFFSETS)
    ]
    np.testing.assert_array_equal(result, np.array(expected, np.int32), strict=True)


@pytest.mark.parametrize("between", ["transpose2", "reshape2"])
def test_offsets_that_are_lost_are_missed_by_name(tmp_path: Path, between: str) -> None:
    made = Paddle2Writer()
    made.input("x", "float32", [-1, 3])
    made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = 1
    made.operator(between, {"X": "x"}, {"Out": "z"}, {"axis": [1, 0], "shape": [3, -1]})
    made.operator("sequence_pool", {"X": "z"}, {"Out": "y"})
    made.output("y")
    message = import_error(made.save(tmp_path))
    assert "operator 2 (sequence_pool): X: the LoD of 'z' is unknown" in message
    assert "lod_level" in message


def test_a_damaged_number_of_levels_is_refused(tmp_path: Path) -> None:
    made = writer(("relu", {"X": "x"}, {"Out": "y"}), levels=2**40)
    assert "'x': has 1099511627776 levels" in import_error(made.save(tmp_path))


def gru(x: Array, weight: Array, bias: Array, *, origin_mode: bool) -> Array:
    """Compute a GRU over one sequence, by the documentation of Paddle's `dynamic_gru`."""
    size = weight.shape[0]
    of_gates = weight.ravel()[: 2 * size * size].reshape(size, 2 * size)
    of_candidate = weight.ravel()[2 * size * size :].reshape(size, size)
    hidden, result = np.zeros(size), []
    for row in x + bias:
        gates = 1 / (1 + np.exp(-(row[: 2 * size] + hidden @ of_gates)))
        update, reset = gates[:size], gates[size:]
        new = np.tanh(row[2 * size :] + (reset * hidden) @ of_candidate)
        share = update if origin_mode else 1 - update
        hidden = share * hidden + (1 - share) * new
        result.append(hidden)
    return np.array(result).reshape(-1, size)


@pytest.mark.parametrize("origin_mode", [False, True])
@pytest.mark.parametrize("is_reverse", [False, True])
def test_gru_over_sequences(tmp_path: Path, origin_mode: bool, is_reverse: bool) -> None:
    """Paddle 2.6 cannot run a saved one: it does not save outputs that it requires."""
    random = np.random.default_rng(3)
    weight, bias = random.normal(size=(2, 6)).astype(np.float32), random.normal(size=(1, 6))
    made = Paddle2Writer()
    made.input("x", "float32", [-1, 6])
    made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = 1
    made.parameter("w", weight)
    made.parameter("b", bias.astype(np.float32))
    made.operator(
        "gru",
        {"Input": "x", "Weight": "w", "Bias": "b"},
        {"Hidden": "y"},
        {"origin_mode": origin_mode, "is_reverse": is_reverse},
    )
    made.output("y")
    x = random.normal(size=(6, 6)).astype(np.float32)
    (result,) = outputs(load(made.save(tmp_path)), {"x": x, "x.lod0": np.array(OFFSETS)})
    step = -1 if is_reverse else 1
    parts = [
        gru(x[low:high][::step], weight, bias, origin_mode=origin_mode)[::step]
        for low, high in pairwise(OFFSETS)
    ]
    np.testing.assert_allclose(result, np.concatenate(parts), 1e-4, 1e-5)


def test_what_a_network_over_sequences_does_not_make_is_refused(tmp_path: Path) -> None:
    made = Paddle2Writer()
    made.input("x", "float32", [-1, 8])
    made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = 1
    made.parameter("w", np.zeros((2, 8), np.float32))
    made.parameter("b", np.zeros((1, 14), np.float32))
    made.operator("lstm", {"Input": "x", "Weight": "w", "Bias": "b"}, {"Hidden": "h", "Cell": "y"})
    made.output("y")
    assert "operator 1 (lstm): Cell: only the hidden values" in import_error(made.save(tmp_path))


def var_conv(image: Array, weight: Array, strides: tuple[int, int]) -> Array:
    """Return the columns [channels * kernel, windows] of an image, in Paddle Lite's order."""
    (height, width), kernel = image.shape[1:], weight.shape[2:]
    pads = [(0, 0), *((size // 2, size) for size in kernel)]
    padded = np.pad(image, pads)
    windows = [
        padded[:, y : y + kernel[0], x : x + kernel[1]].ravel()
        for y in range(0, height, strides[0])
        for x in range(0, width, strides[1])
    ]
    return np.array(windows, np.float32).reshape(len(windows), weight[0].size).T


@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
@pytest.mark.parametrize("kernel", [(3, 3), (4, 5), (1, 2)])
@pytest.mark.parametrize("of_paddle_lite", [False, True])
def test_a_convolution_of_images_of_different_sizes(
    tmp_path: Path, of_paddle_lite: bool, kernel: tuple[int, int], strides: tuple[int, int]
) -> None:
    random = np.random.default_rng(4)
    weight = random.normal(size=(5, 2, *kernel)).astype(np.float32)
    sizes = [(4, 6), (1, 3), (0, 2), (7, 5)]
    images = [random.normal(size=(2, *size)).astype(np.float32) for size in sizes]
    offsets = [
        np.cumsum([0, *lengths]) for lengths in ([i.size for i in images], *np.array(sizes).T)
    ]
    made = Paddle2Writer()
    made.input("x", "float32", [-1, 1])
    made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = 3 if of_paddle_lite else 1
    for name in () if of_paddle_lite else ("rows", "columns"):
        made.input(name, "float32", [-1, 1])
        made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = 1
    made.parameter("w", weight.reshape(5, -1))
    made.operator(
        "var_conv_2d",
        {"X": "x", "W": "w"} | ({} if of_paddle_lite else {"ROW": "rows", "COLUMN": "columns"}),
        {"Out": "y", "Col": "c"},
        dict(
            zip(
                ("OutputChannel", "InputChannel", "KernelH", "KernelW", "StrideH", "StrideW"),
                (5, 2, *kernel, *strides),
                strict=True,
            )
        ),
    )
    made.output("y")
    made.output("c")
    x = np.concatenate([image.ravel() for image in images]).reshape(-1, 1)
    names = (
        ("x.lod0", "x.lod1", "x.lod2")
        if of_paddle_lite
        else ("x.lod0", "rows.lod0", "columns.lod0")
    )
    inputs = {"x": x, **dict(zip(names, offsets, strict=True))}
    for name, level in zip(("rows", "columns"), offsets[1:], strict=True):
        inputs[name] = np.zeros((level[-1], 1), np.float32)
    result = outputs(load(made.save(tmp_path)), inputs)
    columns = [var_conv(image, weight, strides) for image in images]
    results = [weight.reshape(5, -1) @ column for column in columns]
    for actual, lod, expected in ((result[0], result[2], results), (result[1], result[3], columns)):
        whole = np.concatenate([part.ravel() for part in expected]).reshape(-1, 1)
        np.testing.assert_allclose(actual, whole, 1e-4, 1e-5)
        np.testing.assert_array_equal(lod, np.cumsum([0, *(part.size for part in expected)]))


def test_images_of_no_known_sizes_are_refused(tmp_path: Path) -> None:
    made = Paddle2Writer()
    made.input("x", "float32", [-1, 1])
    made.program.blocks[0].vars[-1].type.lod_tensor.lod_level = 1
    made.parameter("w", np.zeros((2, 9), np.float32))
    made.operator("var_conv_2d", {"X": "x", "W": "w"}, {"Out": "y", "Col": "c"})
    made.output("y")
    assert "neither ROW and COLUMN nor two further levels" in import_error(made.save(tmp_path))
