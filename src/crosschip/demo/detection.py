"""Text detection: a picture for the DB model, and quads from the probability map it returns.

The model (Differentiable Binarization) gives each pixel the probability that it belongs to the
shrunken core of a line of text. Each connected core becomes its smallest rectangle at any angle,
grown back to the size of the line.
"""

import cv2
import numpy as np
from cv2.typing import RotatedRect

from crosschip.demo.picture import Floats, Model, Picture, Quad, planes

SHORT_SIDE = 736
"""A smaller picture is enlarged until its short side has this many pixels."""

LONG_SIDE = 1984
"""The maximum number of pixels of the long side, which takes precedence over `SHORT_SIDE`."""

STRIDE = 32
"""The factor of both input sides, since the model halves its input five times."""

CORE_PROBABILITY = 0.3
"""The minimum probability of a pixel in a core."""

QUAD_PROBABILITY = 0.5
"""The minimum mean probability of a rectangle of text."""

MIN_CORE_SIDE = 3.0
"""The minimum side of a rectangle of text, in pixels of the map."""

UNCLIP_RATIO = 1.8
"""The distance that a core grows back, in units of its area divided by its perimeter.

With smaller values, the recognizer loses the spaces between words.
"""


def detect(model: Model, picture: Picture) -> list[Quad]:
    """Find the lines of text in a picture.

    Args:
        model: The detector: 1 x 3 x height x width to 1 x 1 x height x width probabilities.
        picture: Height x width x 3 bytes in RGB order, not empty.

    Returns:
        The quads in reading order, in pixels of the picture. Where text touches the edge of the
        picture, corners may lie outside of it.
    """
    height, width = picture.shape[:2]
    probabilities = model(planes(picture, *input_size(width, height))[np.newaxis])
    return reading_order(quads(probabilities[0, 0], width, height))


def input_size(width: int, height: int) -> tuple[int, int]:
    """Return the width and height, in pixels, at which the model sees a picture of this size."""
    scale = max(1.0, SHORT_SIDE / min(width, height))
    scale = min(scale, LONG_SIDE / max(width, height))
    return _whole_strides(width * scale), _whole_strides(height * scale)


def quads(probability: Floats, width: int, height: int) -> list[Quad]:
    """Turn a probability map into quads, in no particular order.

    Args:
        probability: The map, rows x columns float32.
        width: Width in pixels of the picture that the map covers.
        height: Height in pixels of the same.

    Returns:
        The quads, in pixels of the picture.
    """
    core = (probability > CORE_PROBABILITY).astype(np.uint8)
    connected = cv2.dilate(core, np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(connected, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    rows, columns = probability.shape
    scale = (width / columns, height / rows)
    return [
        # Whole pixels avoid resampling of level lines, which would blur them.
        np.rint(clockwise(_corners(unclip(rectangle))) * scale)
        for rectangle in map(cv2.minAreaRect, contours)
        if min(rectangle[1]) >= MIN_CORE_SIDE
        and mean_inside(probability, _corners(rectangle)) >= QUAD_PROBABILITY
    ]


def mean_inside(probability: Floats, quad: Quad) -> float:
    """Return the mean of a map, rows x columns, over the pixels that a quad covers."""
    left, top = np.floor(quad.min(axis=0)).astype(int).clip(min=0).tolist()
    right, bottom = np.ceil(quad.max(axis=0)).astype(int).tolist()
    window = probability[top : bottom + 1, left : right + 1]
    mask = np.zeros(window.shape, np.uint8)
    cv2.fillPoly(mask, [np.rint(quad - (left, top)).astype(np.int32)], 1)
    return float(cv2.mean(window, mask)[0])


def unclip(rectangle: RotatedRect) -> RotatedRect:
    """Grow a core rectangle back to the line of text that it is the core of.

    Args:
        rectangle: Centre, width and height, and angle in degrees, as OpenCV has them.

    Returns:
        The rectangle with each side moved out by `UNCLIP_RATIO` x area / perimeter.
    """
    centre, (width, height), angle = rectangle
    offset = UNCLIP_RATIO * width * height / (2 * (width + height))
    return centre, (width + 2 * offset, height + 2 * offset), angle


def clockwise(corners: Quad) -> Quad:
    """Order the corners of a rectangle, 4 x 2: top left, top right, bottom right, bottom left.

    The ends of the line are left and right, so text that climbs or falls, however steeply, is read
    from the left end to the right one.
    """
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = (end[np.argsort(end[:, 1], kind="stable")] for end in (by_x[:2], by_x[2:]))
    return np.stack([left[0], right[0], right[1], left[1]])


def reading_order(quads: list[Quad]) -> list[Quad]:
    """Sort quads by row from top to bottom, and within a row from left to right.

    Two quads share a row if their centres differ in height by less than half a line.
    """
    rows: list[list[Quad]] = []
    for quad in sorted(quads, key=_centre_y):
        if rows and _centre_y(quad) - _centre_y(rows[-1][0]) < _thickness(quad) / 2:
            rows[-1].append(quad)
        else:
            rows.append([quad])
    return [quad for row in rows for quad in sorted(row, key=_centre_x)]


def _whole_strides(length: float) -> int:
    return max(1, round(length / STRIDE)) * STRIDE


def _corners(rectangle: RotatedRect) -> Quad:
    return np.asarray(cv2.boxPoints(rectangle), np.float64)


def _centre_x(quad: Quad) -> float:
    return float(quad[:, 0].mean())


def _centre_y(quad: Quad) -> float:
    return float(quad[:, 1].mean())


def _thickness(quad: Quad) -> float:
    return float(np.linalg.norm(quad[1:3] - quad[:2], axis=1).min())
