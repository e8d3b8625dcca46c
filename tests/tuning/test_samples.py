"""Samples: given, in folders, made up."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.modelling import float32, model_of

from crosschip.ir import InputError, Model
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add
from crosschip.tuning.samples import samples_of


@pytest.fixture
def two() -> Model:
    return model_of(lambda b, x, y: b.add(Add, x, y), float32(2), float32(2), name="two")


@pytest.fixture
def one() -> Model:
    return model_of(lambda b, x: b.add(Relu, x), float32(2), name="one")


def write(folder: Path, **values: float) -> None:
    folder.mkdir(exist_ok=True)
    for name, value in values.items():
        np.save(folder / f"{name}.npy", np.full(2, value, np.float32))


def test_one_and_several(two: Model) -> None:
    sample = {"x0": np.zeros(2, np.float32), "x1": np.ones(2, np.float32)}
    assert samples_of(two, sample, {}) == [sample]
    assert samples_of(two, [sample, sample], {}) == [sample, sample]


def test_a_folder_of_folders(two: Model, tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / str(number), x0=number, x1=-number)
    found = samples_of(two, tmp_path, {})
    assert [float(sample["x0"][0]) for sample in found] == [0, 1, 2]
    assert [float(sample["x1"][0]) for sample in found] == [0, -1, -2]


def test_a_folder_with_a_file_for_each_input(two: Model, tmp_path: Path) -> None:
    write(tmp_path, x0=1, x1=2)
    (found,) = samples_of(two, str(tmp_path), {})
    assert {name: float(value[0]) for name, value in found.items()} == {"x0": 1, "x1": 2}


def test_of_one_input_every_file_is_a_sample(one: Model, tmp_path: Path) -> None:
    write(tmp_path, first=1, second=2)
    assert [float(sample["x0"][0]) for sample in samples_of(one, tmp_path, {})] == [1, 2]


def test_made_up_with_a_warning(one: Model, caplog: pytest.LogCaptureFixture) -> None:
    found = samples_of(one, None, {})
    assert len({float(sample["x0"][0]) for sample in found}) == len(found) > 1
    assert "one: no samples are given" in caplog.text


def test_what_is_missing(two: Model, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two has no input 'x1'"):
        samples_of(two, {"x0": np.zeros(2)}, {})
    with pytest.raises(InputError, match=r"is of type ndarray, but must be arrays .*: x0, x1"):
        samples_of(two, [np.zeros(2)], {})  # type: ignore[list-item]
    with pytest.raises(InputError, match="there are no samples for two"):
        samples_of(two, [], {})
    with pytest.raises(InputError, match="is no folder"):
        samples_of(two, tmp_path / "nowhere", {})
    write(tmp_path, x0=1)
    with pytest.raises(InputError, match=r"x1\.npy: cannot be read"):
        samples_of(two, tmp_path, {})
