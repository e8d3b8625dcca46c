"""What the corpus knows about its models, without fetching or making any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from corpus.__main__ import entries
from corpus.entry import Entry, Input

from corpus import made


def _entry(**fields: object) -> Entry:
    return Entry("m", "test", "nowhere", Path("m.onnx"), **fields)  # type: ignore[arg-type]  # of the fields


def test_names_are_unique_and_no_two_models_share_a_file() -> None:
    names = [entry.name for entry in entries()]
    assert len(set(names)) == len(names) == len({entry.path for entry in entries()})


def test_one_name_for_two_makers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_MADE", {})

    def make(path: Path) -> None: ...

    mark = made.maker("twice", family="test", origin="nowhere")
    mark(make)
    with pytest.raises(ValueError, match="two models are made that are called 'twice'"):
        mark(make)


def test_inputs_are_the_same_each_time_and_differ_by_name() -> None:
    entry = _entry(axes={"batch": 3})
    first, again, other = (entry.draw(n, ("batch", 4), np.dtype("f4")) for n in ("a", "a", "b"))
    assert first.shape == (3, 4)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_integers_stay_within_their_bounds() -> None:
    drawn = _entry(inputs={"x": Input(low=5, high=7)}).draw("x", (1000,), np.dtype("i8"))
    assert drawn.dtype == np.int64
    assert set(drawn) == {5, 6}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Input(value=1), [[1, 1, 1], [1, 1, 1]]),
        (Input(counting=True), [[0, 1, 2], [0, 1, 2]]),
        (Input(values=[[9]]), [[9]]),
        (Input(shape=(1, 2), counting=True), [[0, 1]]),
    ],
)
def test_elements_that_are_not_random(rule: Input, expected: list[list[int]]) -> None:
    drawn = _entry(inputs={"x": rule}).draw("x", (2, 3), np.dtype("i4"))
    assert drawn.dtype == np.int32
    assert drawn.tolist() == expected


def test_strings_must_be_given() -> None:
    with pytest.raises(ValueError, match="give `value` or `values`"):
        _entry().draw("x", (1,), np.dtype(object))


def test_letters_are_dark_on_light_and_alike_in_all_colours() -> None:
    drawn = _entry(inputs={"x": Input(letters=True)}).draw("x", (1, 3, 64, 96), np.dtype("f4"))
    assert drawn.shape == (1, 3, 64, 96)
    assert set(np.unique(drawn)) == {-1, 1}
    np.testing.assert_array_equal(drawn[0, 0], drawn[0, 2])
