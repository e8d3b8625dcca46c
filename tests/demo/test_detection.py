import numpy as np
import pytest

from crosschip.demo.detection import (
    clockwise,
    detect,
    input_size,
    mean_inside,
    quads,
    reading_order,
    unclip,
)
from crosschip.demo.picture import Floats, Quad


def level(left: float, top: float, width: float, height: float) -> Quad:
    right, bottom = left + width, top + height
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)])


def turned(quad: Quad, degrees: float) -> Quad:
    """Turns a quad about its centre, clockwise as seen in a picture."""
    cosine, sine = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    centre = quad.mean(axis=0)
    result: Quad = (quad - centre) @ np.array([(cosine, sine), (-sine, cosine)]) + centre
    return result


def probability_map(*cores: Quad, probability: float = 0.9) -> Floats:
    """Returns a map of 200 x 400 in which only the pixels with their centre in a core are text."""
    result = np.zeros((200, 400), np.float32)
    for core in cores:
        centre, along, across = core.mean(axis=0), core[1] - core[0], core[3] - core[0]
        offsets = np.stack(np.meshgrid(np.arange(400), np.arange(200)), axis=2) - centre
        ends = np.abs(offsets @ along) / (along @ along)
        sides = np.abs(offsets @ across) / (across @ across)
        result[(ends <= 0.5) & (sides <= 0.5)] = probability
    return result


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1000, 736), (992, 736)),
        ((900, 600), (1088, 736)),
        ((600, 900), (736, 1088)),
        ((1, 1), (736, 736)),
        ((1600, 1200), (1600, 1216)),
        ((4000, 3000), (1984, 1472)),
        ((30000, 1), (1984, 32)),
    ],
)
def test_input_size(size: tuple[int, int], expected: tuple[int, int]) -> None:
    assert input_size(*size) == expected


@pytest.mark.parametrize("degrees", [-80, -45, -25, 0, 10, 25, 60, 80])
def test_clockwise_from_the_left_end(degrees: float) -> None:
    quad = turned(level(100, 100, 300, 20), degrees)
    for permutation in ([0, 1, 2, 3], [2, 3, 0, 1], [3, 2, 1, 0], [1, 3, 0, 2]):
        np.testing.assert_array_equal(clockwise(quad[permutation]), quad)


def test_unclip_moves_each_side_by_ratio_times_area_over_perimeter() -> None:
    offset = 1.8 * (100 * 20) / (100 + 20 + 100 + 20)
    centre, size, angle = unclip(((50, 40), (100, 20), 30))
    assert centre == (50, 40)
    assert size == pytest.approx((100 + 2 * offset, 20 + 2 * offset))
    assert angle == 30


@pytest.mark.parametrize("degrees", [0, -25, 25, 60])
def test_quads_grow_back_from_their_cores(degrees: float) -> None:
    core = turned(level(120, 90, 150, 16), degrees)
    offset = 1.8 * (150 * 16) / (150 + 16 + 150 + 16)
    expected = turned(level(120 - offset, 90 - offset, 150 + 2 * offset, 16 + 2 * offset), degrees)
    (found,) = quads(probability_map(core), 400, 200)
    # Joining widens a core by a pixel, and the result is rounded.
    np.testing.assert_allclose(found, expected, atol=3)


def test_quads_are_in_pixels_of_the_picture() -> None:
    core = level(120, 90, 150, 16)
    (in_map,) = quads(probability_map(core), 400, 200)
    (in_picture,) = quads(probability_map(core), 1200, 400)
    np.testing.assert_allclose(in_picture, in_map * (3, 2), atol=2)


def test_specks_and_doubtful_cores_are_no_text() -> None:
    assert quads(probability_map(), 400, 200) == []
    assert quads(probability_map(level(50, 50, 1, 1)), 400, 200) == []
    assert quads(probability_map(level(50, 50, 100, 20), probability=0.45), 400, 200) == []


def test_mean_inside_counts_only_what_the_quad_covers() -> None:
    quad = turned(level(50, 80, 100, 20), 30)
    # Its sides run through pixels, which count too.
    probability = probability_map(turned(level(48, 78, 104, 24), 30), probability=0.8)
    assert mean_inside(probability, quad) == pytest.approx(0.8, abs=1e-6)
    assert mean_inside(np.ones_like(probability), level(-30, -30, 60, 60)) == pytest.approx(1)


def test_reading_order_is_by_row_then_from_left_to_right() -> None:
    first = [level(10, 12, 100, 20), level(150, 8, 80, 20), level(300, 14, 50, 20)]
    second = [level(5, 40, 100, 20), turned(level(150, 40, 100, 20), 3)]
    shuffled = [second[1], first[2], first[0], second[0], first[1]]
    for found, expected in zip(reading_order(shuffled), first + second, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_detect_passes_the_model_one_picture_and_sorts_what_it_finds() -> None:
    shapes: list[tuple[int, ...]] = []

    def model(x: Floats) -> Floats:
        shapes.append(x.shape)
        result = np.zeros((1, 1, *x.shape[2:]), np.float32)
        for top, left in ((500, 100), (100, 600), (100, 100)):
            result[0, 0, top : top + 20, left : left + 200] = 0.9
        return result

    found = detect(model, np.full((736, 1024, 3), 255, np.uint8))
    assert shapes == [(1, 3, 736, 1024)]
    centres = [quad.mean(axis=0) for quad in found]
    np.testing.assert_allclose(centres, [(200, 110), (700, 110), (200, 510)], atol=2)
