"""Elements of constants that are computed or read on demand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crosschip.ir import Array, ModelFileError, constant
from crosschip.ir.elements import Computed
from crosschip.ir.files import DataFile, Stored

F32 = np.dtype(np.float32)


def test_elements_are_computed_when_they_are_first_asked_for_and_then_kept() -> None:
    made: list[Array] = []

    def compute() -> Array:
        made.append(np.arange(6, dtype=F32))
        return made[-1]

    operand = constant(Computed(F32, (6,), compute), "weights")
    assert not made
    assert operand.content is not None
    assert operand.content.nbytes == 24
    assert str(operand.type) == "float32[6]"
    first = operand.value
    assert first is operand.value is made[0]
    assert len(made) == 1
    assert not first.flags.writeable
    own = Computed(F32, (6,), compute).copy()
    own[0] = 7
    assert made[1][0] == 0


def test_another_shape_is_of_the_same_elements() -> None:
    made: list[int] = []

    def compute() -> Array:
        made.append(1)
        return np.arange(6, dtype=F32)

    flat = Computed(F32, (6,), compute)
    matrix = flat.reshape((2, 3))
    assert not made
    assert matrix.read().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert flat.read().tolist() == [0, 1, 2, 3, 4, 5]
    assert len(made) == 1


def test_what_could_not_be_computed_is_tried_again() -> None:
    times: list[int] = []

    def compute() -> Array:
        times.append(1)
        if len(times) == 1:
            raise ModelFileError("it has changed")
        return np.ones(2, F32)

    elements = Computed(F32, (2,), compute)
    with pytest.raises(ModelFileError):
        elements.read()
    assert elements.read().tolist() == [1, 1]


def test_an_array_of_the_callers_own_shares_nothing_with_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(np.arange(4, dtype="<f4").tobytes())
    stored = Stored(DataFile(path), F32, (2, 2), 0)
    shared = stored.read()
    own = stored.copy()
    own += 1
    assert own.flags.writeable
    assert shared is stored.read()
    assert shared.tolist() == [[0, 1], [2, 3]]
    path.write_bytes(b"")
    with pytest.raises(ModelFileError, match="has changed since it was loaded"):
        stored.copy()
