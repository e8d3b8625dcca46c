"""Inputs from files, and made up."""

from __future__ import annotations

import io
import math
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of

from crosschip.ir import Dim, ElementType, InputError, Model, TensorType, symbol, unknown
from crosschip.ir.types import ALL_TYPES
from crosschip.runtime.inputs import random_inputs, read_array, write_value

N, S = symbol("N"), symbol("S")


def model(*types: TensorType) -> Model:
    return model_of(lambda b, *xs: xs, *types)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(1.5),
        np.zeros((0, 3), np.int64),
        np.array([True, False]),
    ],
    ids=["matrix", "scalar", "empty", "flags"],
)
def test_what_was_saved_is_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", array)
    found = read_array(tmp_path / "x.npy")
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)


def test_a_file_is_read_into_the_layout_that_models_take(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    for variant in (np.asfortranarray(array), array.astype(">f4")):
        np.save(tmp_path / "x.npy", variant)
        found = read_array(tmp_path / "x.npy")
        assert found.flags.c_contiguous
        assert found.dtype == np.dtype(np.float32)
        np.testing.assert_array_equal(found, array)


def npy(array: object) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=np.zeros(2))
    return file.getvalue()


BAD_FILES = {
    "empty": b"",
    "text": b"1 2 3\n",
    "archive": npz(),
    "archive, cut": npz()[:20],
    "objects": npy(np.array([{}, None], object)),
    "cut in the header": npy(np.zeros(4))[:30],
    "cut in the data": npy(np.zeros(4))[:-1],
    "huge": npy(np.zeros(4)).replace(b"(4,)", b"(9999999999999,)".ljust(4))[:200],
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_file_that_holds_no_array_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "x.npy").write_bytes(BAD_FILES[kind])
    with pytest.raises(InputError, match=r"x\.npy: cannot be read as an \.npy file: "):
        read_array(tmp_path / "x.npy")


def test_a_file_that_is_not_there_or_a_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.npy", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_array(path)


@given(st.data())
def test_a_damaged_file_is_an_array_or_refused(data: st.DataObject) -> None:
    content = bytearray(npy(np.arange(6, dtype=np.float32).reshape(2, 3)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 127))] = data.draw(st.integers(0, 255))
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.npy")
        path.write_bytes(content)
        with suppress(InputError):
            assert isinstance(read_array(path), np.ndarray)


def test_made_up_strings_are_words() -> None:
    array = random_inputs(model(TensorType(ElementType.STRING, (50, 2))), {})["x0"]
    assert (array.dtype, array.shape) == (np.dtype(object), (50, 2))
    assert all(type(word) is str and word for word in array.flat)
    assert len(set(array.flat)) > 1
    scalar = random_inputs(model(TensorType(ElementType.STRING, ())), {})["x0"]
    assert scalar.shape == ()
    assert isinstance(scalar.item(), str)


def test_strings_are_written_and_read(tmp_path: Path) -> None:
    texts = np.array([["one", ""], ["日本", "a longer one"]], object)
    assert write_value(tmp_path / "x", texts) == tmp_path / "x.npy"
    found = read_array(tmp_path / "x.npy")
    assert (found.dtype.kind, found.tolist()) == ("U", texts.tolist())
    write_value(tmp_path / "x", np.zeros((0, 3), object))
    assert read_array(tmp_path / "x.npy").shape == (0, 3)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ([], "[]"),
        (None, "null"),
        ([{0: 0.5, 1: math.nan}], '[{"0": 0.5, "1": "NaN"}]'),
        ({"é": np.float32(0.25)}, '{"\\u00e9": 0.25}'),
        ([np.array([[1, 2]]), np.array(3)], "[[[1, 2]], 3]"),
        ([np.array(["a", "b"], object)], '[["a", "b"]]'),
        ([np.array([1.5, -np.inf], ml_dtypes.bfloat16)], '[[1.5, "-Infinity"]]'),
        ([np.array([True]), np.array([np.inf], np.float16)], '[[true], ["Infinity"]]'),
    ],
)
def test_what_is_no_tensor_is_written_as_json(tmp_path: Path, value: object, written: str) -> None:
    assert write_value(tmp_path / "x.y", value) == tmp_path / "x.y.json"
    assert (tmp_path / "x.y.json").read_text() == written


@pytest.mark.parametrize("element_type", sorted(ALL_TYPES, key=str))
def test_made_up_inputs_fit_the_model(element_type: ElementType) -> None:
    inputs = random_inputs(model(TensorType(element_type, (50, 2))), {})
    array = inputs["x0"]
    assert (array.dtype, array.shape) == (element_type.dtype, (50, 2))
    values = array.astype(np.float64)
    assert values.min() >= 0
    assert values.max() <= (9 if "int" in element_type.value else 1)
    assert len(np.unique(values)) > 1


def test_the_same_seed_makes_the_same_inputs() -> None:
    types = (float32(3, 4), TensorType(ElementType.INT32, (5,)))
    first, again, other = (random_inputs(model(*types), {}, seed) for seed in (7, 7, 8))
    for name in first:
        np.testing.assert_array_equal(first[name], again[name])
        assert not np.array_equal(first[name], other[name])


@pytest.mark.parametrize(
    ("types", "given", "expected"),
    [
        ([(N, 3)], {}, [(1, 3)]),
        ([(N, 3)], {"x0": (4, 3)}, [(4, 3)]),
        ([()], {}, [()]),
        ([(N, 3), (N, 2)], {"x0": (4, 3)}, [(4, 3), (4, 2)]),
        ([(N, 3), (N, 2)], {"x1": (4, 2)}, [(4, 3), (4, 2)]),
        ([(N, S), (N, S)], {"x0": (4, 5)}, [(4, 5), (4, 5)]),
        ([(N, 3), (2, N)], {}, [(1, 3), (2, 1)]),
        ([(2, N), (N, 3)], {}, [(2, 1), (1, 3)]),
        ([(N,), (2 * N + 1,)], {"x0": (3,)}, [(3,), (7,)]),
        ([(unknown(), 3)], {}, [(1, 3)]),
        ([(N, 3)], {"x0": (0, 3)}, [(0, 3)]),
    ],
)
def test_open_sizes_are_those_that_were_given_and_a_batch_of_one(
    types: list[tuple[Dim, ...]],
    given: dict[str, tuple[int, ...]],
    expected: list[tuple[int, ...]],
) -> None:
    inputs = random_inputs(model(*(float32(*shape) for shape in types)), given)
    assert [array.shape for array in inputs.values()] == expected


def test_an_input_of_unknown_rank_takes_the_shape_that_is_given() -> None:
    anything = TensorType(ElementType.FLOAT32, None)
    for shape in ((), (2, 3)):
        assert random_inputs(model(anything), {"x0": shape})["x0"].shape == shape


@pytest.mark.parametrize(
    ("types", "given", "message"),
    [
        (
            [float32(1, S)],
            {},
            r"'x0' is float32\[1, S\], which leaves sizes open; .*--shape S=128 ",
        ),
        ([float32(1, S)], {}, r"\(in Python, shapes={'S': 128}\)$"),
        ([float32(N, unknown())], {}, r"--shape x0=1x128 \(in Python, shapes={'x0': \(1, 128\)}"),
        ([TensorType(ElementType.FLOAT32, None)], {}, "open; .* --shape x0=1x128x224x224 "),
        ([float32(N)], {"y": (1,)}, "no input 'y'; its inputs are x0"),
        ([float32(N, 3)], {"x0": (1, 4)}, r"has shape \[1, 4\], but the model takes"),
        ([float32(N), float32(N)], {"x0": (1,), "x1": (2,)}, r"'x1' has shape \[2\]"),
        ([float32(N)], {"x0": (-1,)}, r"\(-1,\) is not a shape"),
        ([float32(N, S)], {"x0": (2**40, 2**40)}, r"'x0' of shape \[1099511627776, 10995"),
    ],
)
def test_what_leaves_inputs_open_or_impossible_is_refused(
    types: list[TensorType], given: dict[str, tuple[int, ...]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        random_inputs(model(*types), given)
