"""`Reader`: the text in a picture, by three models; `draw`: the picture with the lines found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from crosschip.demo.detection import detect
from crosschip.demo.picture import Model, Picture, Quad
from crosschip.demo.recognition import crop, recognize, upside_down

Point: TypeAlias = tuple[float, float]
"""x from the left and y from the top, in pixels."""

MIN_SCORE = 0.5
"""The minimum score of a line of text."""

MAX_SIDE = 16384
"""The maximum number of pixels of a picture's side.

OpenCV 4 warps at most twice as many, and the quad of a line that fills a picture is up to 1.9 times
as large as the picture.
"""

COLOUR = "#0a6cff"
TURNED_COLOUR = "#d6336c"

Font: TypeAlias = ImageFont.FreeTypeFont | ImageFont.ImageFont


@dataclass(frozen=True)
class Line:
    """A line of text in a picture."""

    box: tuple[Point, Point, Point, Point]
    """Its corners in the picture, clockwise from the one at its top left."""

    text: str
    """The text."""

    score: float
    """The certainty of that, from 0 to 1."""

    turned: bool
    """True if it is upside down in the picture."""


class Reader:
    """Read the text in pictures with three PP-OCRv4 models."""

    def __init__(
        self, detect: Model, classify: Model, recognize: Model, characters: Sequence[str]
    ) -> None:
        """Join the models.

        Args:
            detect: Finds text: 1 x 3 x height x width to 1 x 1 x height x width.
            classify: Detects lines that are upside down: lines x 3 x 48 x 192 to lines x 2.
            recognize: Reads lines: lines x 3 x 48 x width to lines x steps x characters.
            characters: The characters of `recognize`, from `recognition.load_characters`.
        """
        self._detect = detect
        self._classify = classify
        self._recognize = recognize
        self._characters = characters

    def read(self, picture: Picture) -> list[Line]:
        """Read a picture.

        Args:
            picture: Height x width x 3 uint8 in RGB order, as `picture.load` returns it.

        Returns:
            The lines of text in reading order; none if the picture is empty.

        Raises:
            ValueError: The picture has another shape or element type, or is too large.
        """
        _check(picture)
        if picture.size == 0:
            return []
        quads = detect(self._detect, picture)
        crops = [crop(picture, quad) for quad in quads]
        turned = upside_down(self._classify, crops)
        upright = [np.rot90(c, 2) if t else c for c, t in zip(crops, turned, strict=True)]
        readings = recognize(self._recognize, upright, self._characters)
        return [
            Line(_box(quad), text, score, turn)
            for quad, turn, (text, score) in zip(quads, turned, readings, strict=True)
            if score >= MIN_SCORE
        ]


def draw(picture: Picture, lines: Sequence[Line]) -> Image.Image:
    """Draw the outlines of lines on a picture, numbered from 1, upside-down ones in red.

    Args:
        picture: Height x width x 3 uint8 in RGB order.
        lines: The lines of text in the picture.

    Returns:
        A new image of the same size.
    """
    image = Image.fromarray(picture)
    canvas = ImageDraw.Draw(image)
    size = max(12, min(image.size) // 32)
    font = ImageFont.load_default(size)
    for number, line in enumerate(lines, start=1):
        colour = TURNED_COLOUR if line.turned else COLOUR
        canvas.line([*line.box, *line.box[:2]], colour, max(2, size // 6), joint="curve")
        _draw_tag(canvas, line, str(number), font, colour)
    return image


def _check(picture: Picture) -> None:
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
        raise ValueError(
            f"a picture is height x width x 3 uint8 in RGB order, not {picture.dtype} "
            f"{list(picture.shape)}: convert it, for example with PIL.Image.convert('RGB')"
        )
    if max(picture.shape) > MAX_SIDE:
        height, width = picture.shape[:2]
        raise ValueError(
            f"a picture of {width} x {height} pixels is too large: "
            f"cut it into pieces of at most {MAX_SIDE} x {MAX_SIDE}"
        )


def _box(quad: Quad) -> tuple[Point, Point, Point, Point]:
    (a, b), (c, d), (e, f), (g, h) = quad.tolist()
    return (a, b), (c, d), (e, f), (g, h)


def _draw_tag(canvas: ImageDraw.ImageDraw, line: Line, text: str, font: Font, colour: str) -> None:
    """Draw a number before the start of a line, where a page is most likely to be blank."""
    (x0, y0), _, _, (x1, y1) = line.box
    _, _, text_width, text_height = canvas.textbbox((0, 0), text, font, anchor="lt")
    width, height = text_width + text_height, 2 * text_height
    left, top = max(0, min(x0, x1) - width), max(0, (y0 + y1 - height) / 2)
    canvas.rectangle((left, top, left + width, top + height), colour)
    canvas.text((left + width / 2, top + height / 2), text, "white", font, anchor="mm")
