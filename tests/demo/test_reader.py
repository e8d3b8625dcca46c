from pathlib import Path

import numpy as np
import pytest
from numpy.typing import DTypeLike
from PIL import Image

from crosschip.demo.picture import DEMO_PICTURE, DEMO_TEXT, Floats, Picture, load
from crosschip.demo.reader import Line, Reader, draw

PRINTED = DEMO_TEXT.read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def demo() -> Picture:
    return load(DEMO_PICTURE)


@pytest.fixture(scope="module")
def lines(reader: Reader, demo: Picture) -> list[Line]:
    return reader.read(demo)


def unused(x: Floats) -> Floats:
    raise AssertionError(x.shape)


def test_the_demo_picture_is_read_as_printed(lines: list[Line]) -> None:
    assert [line.text for line in lines] == PRINTED
    assert min(line.score for line in lines) > 0.9


def test_only_the_upside_down_line_is_turned(lines: list[Line]) -> None:
    assert [line.text for line in lines if line.turned] == ["这一行上下颠倒"]


def test_the_tilted_line_has_a_tilted_box(lines: list[Line]) -> None:
    (tilted,) = (line for line in lines if line.text == "Tilted by 25 degrees")
    (x0, y0), (x1, y1), *_ = tilted.box
    assert np.degrees(np.arctan2(y0 - y1, x1 - x0)) == pytest.approx(25, abs=1.5)


def test_all_that_is_printed_lies_in_the_boxes(demo: Picture, lines: list[Line]) -> None:
    paper = demo[200, 20]
    # Below the dark band, whatever differs much from the paper is print.
    ys, xs = np.nonzero((np.abs(demo[140:].astype(int) - paper) > 120).any(axis=2))
    points = np.stack([xs, ys + 140], axis=1)
    inside = np.zeros(len(points), bool)
    for line in lines:
        corners = np.array(line.box)
        sides = np.roll(corners, -1, axis=0) - corners
        offsets = points[:, np.newaxis] - corners
        cross = sides[:, 0] * offsets[..., 1] - sides[:, 1] * offsets[..., 0]
        inside |= (cross >= 0).all(axis=1)
    assert inside.mean() > 0.995


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "CMYK"])
def test_other_colour_modes_read_the_same(mode: str, reader: Reader, tmp_path: Path) -> None:
    file = tmp_path / "picture.tiff"
    with Image.open(DEMO_PICTURE) as image:
        image.convert(mode).save(file)
    assert [line.text for line in reader.read(load(file))] == PRINTED


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 400, 3), (400, 1, 3), (300, 200, 3)])
@pytest.mark.parametrize("grey", [0, 128, 255])
def test_blank_pictures_have_no_lines(reader: Reader, shape: tuple[int, ...], grey: int) -> None:
    assert reader.read(np.full(shape, grey, np.uint8)) == []


@pytest.mark.parametrize("shape", [(0, 0, 3), (0, 10, 3), (10, 0, 3)])
def test_empty_pictures_need_no_model(shape: tuple[int, ...]) -> None:
    assert Reader(unused, unused, unused, []).read(np.empty(shape, np.uint8)) == []


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((4, 6), np.uint8, r"not uint8 \[4, 6\]: convert it"),
        ((4, 6, 4), np.uint8, r"not uint8 \[4, 6, 4\]: convert it"),
        ((4, 6, 3), np.float32, r"not float32 \[4, 6, 3\]: convert it"),
        ((1, 20000, 3), np.uint8, r"20000 x 1 pixels is too large"),
    ],
)
def test_what_is_no_picture_is_refused(
    shape: tuple[int, ...], dtype: DTypeLike, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Reader(unused, unused, unused, []).read(np.zeros(shape, dtype))


def test_turns_lines_and_drops_what_scores_low() -> None:
    def detect(x: Floats) -> Floats:
        cores = np.zeros((1, 1, *x.shape[2:]), np.float32)
        for top in (100, 300, 500):
            cores[0, 0, top : top + 20, 100:400] = 0.9
        return cores

    def classify(x: Floats) -> Floats:
        return np.array([(1, 0), (0, 1), (1, 0)], np.float32)

    def recognize(x: Floats) -> Floats:
        # The first and the second line are dark on one side: left of it, or right of it.
        dark_left = x[:, 0, 24, 10] < 0
        scores = np.where(dark_left, 0.8, 0.4)
        return np.stack([np.zeros_like(scores), scores], axis=1)[:, np.newaxis].astype(np.float32)

    picture = np.full((736, 736, 3), 255, np.uint8)
    picture[50:200, :250] = 0
    picture[250:400, 250:] = 0
    found = Reader(detect, classify, recognize, ["", "a"]).read(picture)
    assert [(line.text, line.turned) for line in found] == [("a", False), ("a", True)]
    assert [line.score for line in found] == pytest.approx([0.8, 0.8])


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 16384, 3), (16384, 1, 3), (40, 30, 3)])
@pytest.mark.parametrize("probability", [0.9, 1.0, np.nan])
def test_any_detection_is_survived(shape: tuple[int, ...], probability: float) -> None:
    def everywhere(x: Floats) -> Floats:
        return np.full((1, 1, *x.shape[2:]), probability, np.float32)

    def uncertain(x: Floats) -> Floats:
        return np.full((len(x), 2), 0.5, np.float32)

    def blank(x: Floats) -> Floats:
        return np.array([[(1, 0)]], np.float32)

    reader = Reader(everywhere, uncertain, blank, ["", "a"])
    assert reader.read(np.zeros(shape, np.uint8)) == []


def test_draw_marks_each_line_on_a_copy(demo: Picture, lines: list[Line]) -> None:
    before = demo.copy()
    drawn = np.asarray(draw(demo, lines))
    np.testing.assert_array_equal(demo, before)
    assert drawn.shape == demo.shape
    for line in lines:
        for side in range(4):
            (x0, y0), (x1, y1) = line.box[side - 1], line.box[side]
            x, y = round((x0 + x1) / 2), round((y0 + y1) / 2)
            window = np.s_[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3]
            assert (drawn[window] != demo[window]).any()


def test_draw_keeps_numbers_inside_the_picture() -> None:
    corner = Line(((-9, -9), (20, -9), (20, 5), (-9, 5)), "a", 1, turned=True)
    drawn = np.asarray(draw(np.full((60, 60, 3), 255, np.uint8), [corner]))
    tag = drawn[:16, :12]
    assert (tag == (214, 51, 108)).all(axis=2).any()
    assert (tag > 200).all(axis=2).any()
