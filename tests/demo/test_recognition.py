from itertools import groupby
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crosschip.demo.picture import Floats, Picture
from crosschip.demo.recognition import (
    crop,
    ctc_decode,
    line_planes,
    load_characters,
    recognize,
    upside_down,
)

CHARACTERS = ["", "a", "b", "c", " "]


def smooth_pattern(width: int, height: int) -> Picture:
    """Returns a picture that is different everywhere but survives interpolation."""
    y, x = np.mgrid[:height, :width]
    waves: list[NDArray[np.float64]] = [
        np.sin(x / 9) + np.cos(y / 5),
        np.cos(x / 13) + np.sin(y / 7),
        np.sin((x + y) / 11),
    ]
    return np.rint(np.stack(waves, axis=2) * 60 + 128).astype(np.uint8)


def one_hot(lines: list[list[int]], classes: int = len(CHARACTERS)) -> Floats:
    """Returns what a recognizer that is certain returns: lines x steps x classes."""
    certain = np.array(lines)[:, :, np.newaxis] == np.arange(classes)
    return np.asarray(certain, np.float32)


@pytest.mark.parametrize("degrees", [-40, -25, 0, 25])
def test_crop_gives_back_a_pattern_drawn_at_an_angle(degrees: float) -> None:
    pattern = smooth_pattern(200, 40)
    placed = cv2.getRotationMatrix2D((100, 20), degrees, 1)
    placed[:, 2] += (100, 130)
    picture = np.asarray(cv2.warpAffine(pattern, placed, (400, 300)), np.uint8)
    corners = np.array([(0, 0, 1), (200, 0, 1), (200, 40, 1), (0, 40, 1)])
    found = crop(picture, np.asarray(corners @ placed.T, np.float64))
    assert found.shape == pattern.shape
    inner = np.s_[3:-3, 3:-3]
    np.testing.assert_allclose(found[inner], pattern[inner].astype(float), atol=4)


def test_crop_at_whole_pixels_is_a_slice() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    quad = np.array([(10.0, 20.0), (80.0, 20.0), (80.0, 50.0), (10.0, 50.0)])
    np.testing.assert_array_equal(crop(picture, quad), picture[20:50, 10:80])


def test_tall_crop_is_turned_counter_clockwise() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
    quad = np.array([(10.0, 5.0), (30.0, 5.0), (30.0, 55.0), (10.0, 55.0)])
    np.testing.assert_array_equal(crop(picture, quad), np.rot90(picture[5:55, 10:30]))


def test_crop_beyond_the_edge_repeats_it() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (20, 40, 3), np.uint8)
    quad = np.array([(-5.0, 0.0), (40.0, 0.0), (40.0, 20.0), (-5.0, 20.0)])
    padded = np.pad(picture, ((0, 0), (5, 0), (0, 0)), mode="edge")
    np.testing.assert_array_equal(crop(picture, quad), padded)


def test_crop_is_never_empty() -> None:
    quad = np.array([(0.0, 0.0), (9.0, 0.0), (9.0, 0.3), (0.0, 0.3)])
    assert crop(np.zeros((1, 9, 3), np.uint8), quad).shape == (1, 9, 3)


def test_line_planes_pad_short_lines_and_squeeze_long_ones() -> None:
    white = np.full((24, 50, 3), 255, np.uint8)
    padded = line_planes(white, 192)
    assert padded.shape == (3, 48, 192)
    assert (padded[:, :, :100] == 1).all()
    assert (padded[:, :, 100:] == 0).all()
    assert (line_planes(white, 64) == np.ones((3, 48, 64))).all()


def test_upside_down_above_the_threshold() -> None:
    probabilities = np.array([0.0, 0.2, 0.89, 0.91, 0.5, 1.0, 0.95, 0.3])
    shapes: list[tuple[int, ...]] = []

    def model(x: Floats) -> Floats:
        done = sum(shape[0] for shape in shapes)
        shapes.append(x.shape)
        turned = probabilities[done : done + len(x)]
        return np.stack([1 - turned, turned], axis=1).astype(np.float32)

    lines = [np.zeros((48, 100, 3), np.uint8)] * len(probabilities)
    assert upside_down(model, lines) == (probabilities > 0.9).tolist()
    assert shapes == [(6, 3, 48, 192), (2, 3, 48, 192)]


def test_recognize_batches_by_width_and_keeps_the_order() -> None:
    widths = [900, 100, 330, 120, 5000, 90, 80, 310]
    shapes: list[tuple[int, ...]] = []

    def model(x: Floats) -> Floats:
        shapes.append(x.shape)
        # Lines are told apart by their grey: it is the number of the character.
        greys = np.rint((x[:, 0, 0, 0] + 1) * 127.5).astype(int)
        return one_hot([[grey] for grey in greys.tolist()], len(widths) + 1)

    lines = [np.full((48, width, 3), i + 1, np.uint8) for i, width in enumerate(widths)]
    assert recognize(model, lines, ["", *"abcdefgh"]) == [(letter, 1.0) for letter in "abcdefgh"]
    assert shapes == [(6, 3, 48, 352), (2, 3, 48, 3200)]


def test_nothing_to_do_needs_no_model() -> None:
    def model(x: Floats) -> Floats:
        raise AssertionError(x.shape)

    assert upside_down(model, []) == []
    assert recognize(model, [], CHARACTERS) == []


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([0, 1, 1, 0, 2, 2, 2], "ab"),
        ([1, 0, 1, 1, 0, 0], "aa"),
        ([1, 4, 4, 2, 0, 3], "a bc"),
        ([0, 0, 0], ""),
        ([3], "c"),
    ],
)
def test_ctc_drops_repeats_then_blanks(steps: list[int], text: str) -> None:
    assert ctc_decode(one_hot([steps]), CHARACTERS) == [(text, 1.0 if text else 0.0)]


@given(st.lists(st.integers(0, len(CHARACTERS) - 1), min_size=1, max_size=30))
def test_ctc_agrees_with_grouping(steps: list[int]) -> None:
    text = "".join(CHARACTERS[i] for i, _ in groupby(steps))
    assert [read for read, _ in ctc_decode(one_hot([steps]), CHARACTERS)] == [text]


def test_ctc_score_is_the_mean_over_the_characters_kept() -> None:
    probabilities = one_hot([[1, 1, 0, 2], [0, 0, 0, 3]])
    probabilities *= np.array([[0.9, 0.1, 0.2, 0.5], [0.3, 0.3, 0.3, 0.6]])[:, :, np.newaxis]
    texts, scores = zip(*ctc_decode(probabilities, CHARACTERS), strict=True)
    assert texts == ("ab", "c")
    assert scores == pytest.approx((0.7, 0.6))


def test_wrong_dictionary_is_told() -> None:
    with pytest.raises(ValueError, match=r"tells 5 characters apart.* has 4 "):
        ctc_decode(one_hot([[1]]), CHARACTERS[:4])


@pytest.mark.parametrize("end", ["", "\n"])
def test_characters_are_blank_file_and_space(end: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.txt"
    file.write_text("疗\n'\n\u3000\n\u2028\nA" + end, "utf-8")
    assert load_characters(file) == ["", "疗", "'", "\u3000", "\u2028", "A", " "]


def test_real_dictionary(models: Path) -> None:
    characters = load_characters(models / "ocr-paddle" / "ppocr_keys_v1.txt")
    assert len(characters) == len(set(characters)) == 6625
