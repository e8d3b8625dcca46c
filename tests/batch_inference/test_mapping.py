"""Files become outputs: in order, in batches where rows are independent, and read ahead."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from PIL import Image
from tests.batch_inference.conftest import (
    CENTERED,
    assert_expected,
    save,
    write_pictures,
)
from tests.modelling import close

import crosschip
from crosschip.batch_inference.mapping import Mapper
from crosschip.ir import InputError
from crosschip.preprocessing import pictures
from crosschip.runtime.compiled import CompiledModel


@pytest.mark.parametrize("batch_size", [1, 3, 16, 100])
def test_outputs_in_order_without_the_batch_axis(
    means: CompiledModel, tmp_path: Path, batch_size: int
) -> None:
    paths = write_pictures(tmp_path, 41)
    results = list(crosschip.map_files(means, tmp_path, batch_size=batch_size, readers=3))
    assert [path for path, _ in results] == paths
    for path, outputs in results:
        assert_expected(path, outputs)


def test_pictures_of_a_size_share_runs(means: CompiledModel, tmp_path: Path) -> None:
    write_pictures(tmp_path, 48, sizes=[6])
    means.forget_runs()
    assert len(list(crosschip.map_files(means, tmp_path, batch_size=16))) == 48
    assert means.statistics().calls == 3


def test_rows_that_depend_on_others_run_one_by_one(tmp_path: Path) -> None:
    for index in range(5):
        np.save(tmp_path / f"{index}.npy", np.full(4, index, np.float32))
    model = save(CENTERED, tmp_path / "centered.onnx")
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        for _, outputs in crosschip.map_files(compiled, tmp_path):
            np.testing.assert_array_equal(outputs["y"], np.zeros(4, np.float32))


def test_a_model_without_an_open_batch(tmp_path: Path) -> None:
    text = CENTERED.replace("N, 4] x", "1, 4] x").replace("N, 4] y", "1, 4] y")
    model = save(text, tmp_path / "model.onnx")
    rows = np.random.default_rng(0).random((3, 4), np.float32)
    for index, row in enumerate(rows):
        np.save(tmp_path / f"{index}.npy", row[None])
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        results = [outputs["y"] for _, outputs in crosschip.map_files(compiled, tmp_path)]
    np.testing.assert_array_equal(results, np.zeros((3, 4)))


def test_constants_for_other_inputs(tmp_path: Path) -> None:
    model = save(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[N, 3] x, float[3] shift) => (float[N, 3] y) { y = Add(x, shift) }",
        tmp_path / "model.onnx",
    )
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    for index, row in enumerate(rows):
        np.save(tmp_path / f"{index}.npy", row)
    shift = np.array([1, 2, 3], np.float32)
    with crosschip.compile(model, "onnxruntime", cache=False) as compiled:
        outputs = [
            o["y"] for _, o in crosschip.map_files(compiled, tmp_path, constants={"shift": shift})
        ]
        assert compiled.statistics().calls == 1
        with pytest.raises(InputError, match="files are one input"):
            crosschip.map_files(compiled, tmp_path)
    np.testing.assert_array_equal(outputs, rows + shift)


def test_preprocessed_pictures_of_any_size_share_runs(models: Path, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 10, sizes=[90, 200, 301])
    preprocess = crosschip.Preprocess(
        resize=256, fit="shorter", crop=224, mean=(124, 116, 104), scale=(0.017, 0.018, 0.0175)
    )
    file = models / "onnx" / "mobilenet_v3_small.onnx"
    direct = onnxruntime.InferenceSession(file)
    with crosschip.compile(file, "onnxruntime", cache=False) as compiled:
        results = dict(crosschip.map_files(compiled, paths, preprocess, batch_size=8))
        assert compiled.statistics().calls == 2
    for path in paths:
        pixels = np.asarray(Image.open(path))
        (scores,) = direct.run(None, {"x": preprocess.apply(pixels)})
        close(results[path]["fetch_name_0"], scores[0])


def test_reading_ahead_is_bounded(means: CompiledModel, tmp_path: Path) -> None:
    paths = write_pictures(tmp_path, 60)
    results = Mapper(means, batch_size=4, readers=2).batches(paths)
    read = [result.path for result in next(results)]
    time.sleep(0.5)  # time enough to read all, if nothing kept the threads from it
    for path in paths[10:]:
        Path(path).unlink()
    outputs = [result.outputs for batch in results for result in batch]
    errors = [isinstance(each, InputError) for each in outputs]
    assert len(read) == 4
    assert errors == [False] * 6 + [True] * 50


@pytest.mark.parametrize("content", [b"", b"no picture", b"\x89PNG\r\n\x1a\n cut"])
def test_a_bad_file_stops_or_is_skipped(
    means: CompiledModel, tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    paths = write_pictures(tmp_path, 9)
    bad = Path(paths[4])
    bad.write_bytes(content)
    results = crosschip.map_files(means, paths, batch_size=4)
    assert [next(results)[0] for _ in range(4)] == paths[:4]
    with pytest.raises(InputError) as error:
        next(results)
    assert str(error.value).startswith(f"{bad}: ")
    readers = [t for t in threading.enumerate() if t.name.startswith("crosschip reader")]
    for reader in readers:
        reader.join(10)
    assert not any(reader.is_alive() for reader in readers), "the error ends them"
    results = crosschip.map_files(means, paths, batch_size=4, on_error="skip")
    assert [path for path, _ in results] == paths[:4] + paths[5:]
    assert caplog.messages == [f"skipped {error.value}"]


@pytest.mark.parametrize("batch_size", [1, 2, 16])
def test_a_picture_that_the_device_fails_for_fails_alone(
    means: CompiledModel, tmp_path: Path, batch_size: int
) -> None:
    paths = write_pictures(tmp_path, 6, sizes=[7])
    Image.fromarray(np.zeros((1, 7, 3), np.uint8)).save(paths[2])  # has no second row
    results = dict(crosschip.map_files(means, paths, batch_size=batch_size, on_error="skip"))
    assert list(results) == [*paths[:2], *paths[3:]]
    for path, outputs in results.items():
        assert_expected(path, outputs)


def test_arrays_of_several_rows_are_refused(tmp_path: Path) -> None:
    model = save(CENTERED.replace("axes = [0]", "axes = [1]"), tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.zeros((2, 4), np.float32))
    with (
        crosschip.compile(model, "onnxruntime", cache=False) as compiled,
        pytest.raises(InputError, match=r"x\.npy: is float32 \[2, 4\], .* holds one row"),
    ):
        list(crosschip.map_files(compiled, tmp_path))


def test_pictures_for_a_model_that_takes_none(tmp_path: Path) -> None:
    write_pictures(tmp_path, 2)
    model = save(CENTERED, tmp_path / "centered.onnx")
    with (
        crosschip.compile(model, "onnxruntime", cache=False) as compiled,
        pytest.raises(InputError, match=r"takes no pictures; say how .*00000\.png becomes"),
    ):
        list(crosschip.map_files(compiled, tmp_path))


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("batch_size", 0, "batch_size is 0, but must be at least 1"),
        ("readers", -1, "readers is -1, but must be at least 1"),
        ("on_error", "skp", "on_error is 'skp' (did you mean 'skip'?); choose one of skip, stop"),
    ],
)
def test_wrong_arguments(
    means: CompiledModel, tmp_path: Path, argument: str, value: Any, message: str
) -> None:
    write_pictures(tmp_path, 1)
    with pytest.raises(InputError) as error:
        crosschip.map_files(means, tmp_path, **{argument: value})
    assert str(error.value) == message


def test_pictures_without_pillow(
    means: CompiledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pictures(tmp_path, 2)
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"00000\.png: reading pictures needs Pillow; pip install"):
        list(crosschip.map_files(means, tmp_path, on_error="skip"))
