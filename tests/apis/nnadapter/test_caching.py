"""Models compiled earlier through NNAdapter, kept in the three ways that its document names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.apis.nnadapter.programs import (
    Code,
    context,
    done,
    given,
    relu,
    run,
    types_of,
    wrong,
)

from crosschip.apis.nnadapter import (
    NNAdapterCompilation,
    NNAdapterCompilation_create,
    NNAdapterCompilation_finish,
    NNAdapterModel,
    NNAdapterModel_create,
    calls,
)
from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops.standard.unary import Abs

TOKEN = "0123456789abcdef0123456789abcdef"
SIGNED = np.array([[-1, 2, -3]], np.float32)
POSITIVE, WITHOUT = np.array([[1, 2, 3]], np.float32), np.array([[0, 2, 0]], np.float32)


def absolute() -> NNAdapterModel:
    """Another model than RELU, of the same inputs and outputs."""
    b = Builder()
    b.output("y", b.add(Abs, b.input("x", TensorType(ElementType.FLOAT32, (1, 3)))))
    return calls(b.build()).replay()


def begun(
    model: NNAdapterModel | None, buffer: Any, folder: Path | None, device: str
) -> NNAdapterCompilation:
    where = None if folder is None else str(folder)
    token = TOKEN if buffer is not None or folder is not None else None
    return given(NNAdapterCompilation_create(model, token, buffer, where, context(device)))


def answer(
    model: NNAdapterModel | None,
    buffer: Any = None,
    folder: Path | None = None,
    device: str = "google_xnnpack",
) -> Array:
    """The outputs of a compilation for numbers of both signs."""
    made = begun(model, buffer, folder, device)
    done(NNAdapterCompilation_finish(made))
    (found,) = run(made, [SIGNED])
    return found


def test_a_folder_is_written_to_and_then_comes_before_the_model(tmp_path: Path) -> None:
    np.testing.assert_array_equal(answer(relu(1, 3), folder=tmp_path), WITHOUT)
    assert [path.name for path in tmp_path.glob("*.nnc")] == [f"{TOKEN}.nnc"]
    np.testing.assert_array_equal(answer(absolute(), folder=tmp_path), WITHOUT)
    np.testing.assert_array_equal(answer(None, folder=tmp_path), WITHOUT)


def test_a_buffer_comes_before_the_model(tmp_path: Path) -> None:
    answer(relu(1, 3), folder=tmp_path)
    made = begun(relu(1, 3), None, tmp_path, "google_xnnpack")
    done(NNAdapterCompilation_finish(made))
    assert made.compiled is not None
    content = made.compiled.model.to_bytes()
    for model in (None, absolute(), given(NNAdapterModel_create())):
        np.testing.assert_array_equal(answer(model, bytearray(content)), WITHOUT)


def test_a_buffer_with_the_content_of_a_file(tmp_path: Path) -> None:
    answer(relu(1, 3), folder=tmp_path)
    content = (tmp_path / f"{TOKEN}.nnc").read_bytes()
    np.testing.assert_array_equal(answer(None, content), WITHOUT)
    for changed in (content[:-1], content[:40], content[:90] + bytes(8) + content[98:]):
        wrong(
            NNAdapterCompilation_finish(begun(None, changed, None, "google_xnnpack")),
            *(Code.NNADAPTER_INVALID_PARAMETER, "the file in memory: "),
        )


def test_without_a_token_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSCHIP_CACHE_DIR", str(tmp_path))
    np.testing.assert_array_equal(answer(relu(1, 3)), WITHOUT)
    np.testing.assert_array_equal(answer(absolute()), POSITIVE)
    assert not list(tmp_path.rglob("*.nnc"))
    alone = NNAdapterCompilation_create(absolute(), TOKEN, None, "", context("builtin_device"))
    done(NNAdapterCompilation_finish(given(alone)))


def test_what_is_damaged_is_compiled_again(tmp_path: Path) -> None:
    answer(relu(1, 3), folder=tmp_path)
    path = tmp_path / f"{TOKEN}.nnc"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    wrong(
        NNAdapterCompilation_finish(begun(None, None, tmp_path, "google_xnnpack")),
        *(Code.NNADAPTER_INVALID_PARAMETER, TOKEN),
    )
    np.testing.assert_array_equal(answer(absolute(), folder=tmp_path), POSITIVE)
    np.testing.assert_array_equal(answer(absolute(), bytes(100)), POSITIVE)
    wrong(
        NNAdapterCompilation_finish(begun(None, bytes(100), None, "google_xnnpack")),
        *(Code.NNADAPTER_INVALID_PARAMETER, ""),
    )


def test_what_was_compiled_for_other_devices_is_not_used(tmp_path: Path) -> None:
    answer(relu(1, 3), folder=tmp_path)
    made = begun(None, None, tmp_path, "builtin_device")
    finished = NNAdapterCompilation_finish(made)
    wrong(finished, Code.NNADAPTER_INVALID_PARAMETER, "was compiled for onnxruntime")
    found = answer(absolute(), folder=tmp_path, device="builtin_device")
    np.testing.assert_array_equal(found, POSITIVE)


def test_types_are_those_of_what_was_compiled(tmp_path: Path) -> None:
    model = relu(-65535, 3, dynamic=[[1, 3], [4, 3]])
    first = begun(model, None, tmp_path, "google_xnnpack")
    done(NNAdapterCompilation_finish(first))
    again = begun(None, None, tmp_path, "google_xnnpack")
    done(NNAdapterCompilation_finish(again))
    assert types_of(first) == types_of(again)
    (type_,), _ = types_of(again)
    assert type_.dimensions.dynamic_data == [[1, 3], [4, 3]]


@pytest.mark.parametrize(
    ("token", "buffer", "folder", "text"),
    [
        (None, bytes(8), None, "needs a token"),
        ("", None, "/tmp", "needs a token"),
        (TOKEN, 7, None, "no contiguous buffer"),
        (TOKEN, None, None, "neither a model"),
        (None, None, None, "neither a model"),
        (7, None, None, "must be text"),
    ],
)
def test_ways_that_there_are_not(token: Any, buffer: Any, folder: Any, text: str) -> None:
    made = NNAdapterCompilation_create(None, token, buffer, folder, context("builtin_device"))
    wrong(made, Code.NNADAPTER_INVALID_PARAMETER, text)


def test_a_token_is_a_name(tmp_path: Path) -> None:
    devices = context("builtin_device")
    made = given(NNAdapterCompilation_create(relu(1, 3), "../x", None, str(tmp_path), devices))
    wrong(NNAdapterCompilation_finish(made), Code.NNADAPTER_INVALID_PARAMETER, "token is '../x'")
