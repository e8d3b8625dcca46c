"""Special files, and files that change while they are in use."""

from __future__ import annotations

import gc
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper, save_model
from tests.modelling import float32

import crosschip
from crosschip.ir import ModelFileError, Operand
from crosschip.ir.files import DataFile, Held, Stored, Window, open_regular

WEIGHTS = np.arange(2**16, dtype=np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(b"head" + WEIGHTS.tobytes())
    return path


def stored(path: Path) -> Operand:
    elements = DataFile(path).elements(WEIGHTS.dtype, WEIGHTS.size, 4)
    assert isinstance(elements, Stored)
    return Operand("w", float32(2**16), elements)


@contextmanager
def ends() -> Iterator[None]:
    """Time limit for reads that block."""
    signal.alarm(20)
    try:
        yield
    finally:
        signal.alarm(0)


def test_elements_are_read_when_asked_for_and_let_go_of(file: Path) -> None:
    operand = stored(file)
    assert operand.is_constant
    first = operand.value
    assert first is not None
    assert operand.value is first
    np.testing.assert_array_equal(first, WEIGHTS)
    held = weakref.ref(first)
    del first
    gc.collect()
    assert held() is None
    np.testing.assert_array_equal(np.asarray(operand.value), WEIGHTS)


def truncate(path: Path) -> None:
    os.truncate(path, 100)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(1000)
        file.write(b"other")
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


@pytest.mark.parametrize("change", [truncate, overwrite, append])
def test_a_file_that_changes_is_noticed(file: Path, change: Callable[[Path], None]) -> None:
    operand = stored(file)
    change(file)
    with pytest.raises(ModelFileError, match="weights: has changed since it was loaded; load it"):
        _ = operand.value


def remove(path: Path) -> None:
    path.unlink()


def rename(path: Path) -> None:
    path.rename(path.with_name("other"))


def replace(path: Path) -> None:
    path.with_name("other").write_bytes(b"other")
    path.with_name("other").replace(path)


@pytest.mark.parametrize("change", [remove, rename, replace])
def test_a_file_that_goes_away_is_still_read(file: Path, change: Callable[[Path], None]) -> None:
    operand = stored(file)
    change(file)
    np.testing.assert_array_equal(np.asarray(operand.value), WEIGHTS)


def test_many_threads_read_the_same(file: Path) -> None:
    source = DataFile(file)
    parts = [source.elements(WEIGHTS.dtype, 2**14, 4 + 2**16 * i) for i in range(4)]
    wrong: list[int] = []

    def read(index: int) -> None:
        for _ in range(20):
            part = parts[index]
            assert isinstance(part, Stored)
            if not np.array_equal(part.read(), WEIGHTS[index * 2**14 :][: 2**14]):
                wrong.append(index)

    threads = [threading.Thread(target=read, args=(index % 4,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@given(st.binary(max_size=300), st.lists(st.tuples(st.integers(0, 299), st.integers(1, 40))))
def test_a_window_shows_the_bytes(content: bytes, places: list[tuple[int, int]]) -> None:
    window = Window(Held(content))
    for place, count in places:
        held, index = window.at(min(place, len(content)), count)
        assert held[index : index + count] == content[min(place, len(content)) :][:count]


@pytest.mark.parametrize(("count", "stays"), [(0, False), (3, False), (2**14, True)])
def test_a_window_copies_few_elements_and_leaves_many(file: Path, count: int, stays: bool) -> None:
    found = Window(DataFile(file)).elements(np.dtype(np.float32), count, 4 + 4 * 5)
    assert isinstance(found, Stored) is stays
    elements = found.read() if isinstance(found, Stored) else found
    np.testing.assert_array_equal(elements, WEIGHTS[5 : 5 + count], strict=True)
    assert not elements.flags.writeable


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ends():
        for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
            with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
                open_regular(path)


@pytest.mark.parametrize("name", ["model.onnx", "model.pdmodel", "model.json", "__model__"])
def test_a_pipe_is_no_model(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with ends(), pytest.raises(ModelFileError, match=name):
        crosschip.load(tmp_path / name)


@pytest.mark.parametrize("layout", ["pdmodel", "combined", "separate", "json"])
def test_a_pipe_is_no_parameters(tmp_path: Path, models: Path, layout: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    for source in (models / "layouts" / layout).iterdir():
        if source.suffix in (".pdmodel", ".json") or source.name == "__model__":
            (folder / source.name).write_bytes(source.read_bytes())
        else:
            os.mkfifo(folder / source.name)
    with ends(), pytest.raises(ModelFileError, match="is not a regular file"):
        crosschip.load(folder)


def onnx_model(folder: Path, *, external: bool) -> Path:
    node = helper.make_node("Add", ["x", "w"], ["y"])
    values = [helper.make_tensor_value_info(name, 1, [2**16]) for name in "xy"]
    weights = numpy_helper.from_array(WEIGHTS, "w")
    graph = helper.make_graph([node], "g", values[:1], values[1:], [weights])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path = folder / "model.onnx"
    save_model(proto, path, save_as_external_data=external, location="w.bin", size_threshold=0)
    return path


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("change", [truncate, overwrite])
def test_a_model_whose_file_changes_before_it_is_compiled(
    tmp_path: Path, device: str, external: bool, change: Callable[[Path], None]
) -> None:
    path = onnx_model(tmp_path, external=external)
    model = crosschip.load(path)
    weights = tmp_path / "w.bin" if external else path
    change(weights)
    for cache in (False, tmp_path / "cache"):
        with pytest.raises(ModelFileError, match=f"{weights.name}: has changed since it was"):
            crosschip.compile(model, [device], cache=cache)


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("change", [truncate, overwrite, remove])
def test_a_compiled_model_does_not_depend_on_its_file(
    tmp_path: Path, device: str, change: Callable[[Path], None]
) -> None:
    path = onnx_model(tmp_path, external=False)
    with crosschip.compile(crosschip.load(path), device, cache=False) as compiled:
        change(path)
        np.testing.assert_array_equal(compiled(np.zeros_like(WEIGHTS)), WEIGHTS)
