"""Pages of text, drawn: what readers of pictures are compared on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from crosschip.ir import Array


@dataclass(frozen=True)
class Page:
    """A page, white or of a colour, with lines of text one below the other.

    Attributes:
        lines: the text.
        width: pixels from side to side.
        letter: the size of the letters in pixels.
        ink: their colour, red, green and blue.
        paper: the colour behind them.
        columns: how many columns the lines are in.
    """

    lines: Sequence[str]
    width: int = 640
    letter: int = 28
    ink: tuple[int, int, int] = (0, 0, 0)
    paper: tuple[int, int, int] = (255, 255, 255)
    columns: int = 1

    def draw(self) -> Array:
        """The page [height, width, 3] in uint8, as OpenCV has pictures: blue, green and red."""
        rows = -(-len(self.lines) // self.columns)
        step = self.letter * 2
        image = Image.new("RGB", (self.width, step * (rows + 1)), self.paper)
        pen = ImageDraw.Draw(image)
        font = ImageFont.load_default(self.letter)
        for number, line in enumerate(self.lines):
            column, row = divmod(number, rows)
            place = self.letter + column * self.width // self.columns, step * row + self.letter
            pen.text(place, line, self.ink, font)
        return np.ascontiguousarray(np.asarray(image)[:, :, ::-1])


PAGES: Mapping[str, Page] = {
    "letter": Page(
        [
            "Dear Ms Fontaine,",
            "thank you for your order of May 14.",
            "The parcel left our house today",
            "and will reach you on Friday.",
            "Yours sincerely, R. Okafor",
        ]
    ),
    "invoice": Page(
        [
            "Invoice 2024-0815",
            "Paper A4",
            "Ink black",
            "Total",
            "Due May 9",
            "12.50",
            "48.00",
            "60",
        ],
        columns=2,
    ),
    "sign": Page(
        ["WET FLOOR", "Please wait", "until it is dry"], 480, 48, (250, 250, 80), (20, 20, 90)
    ),
    "note": Page(
        ["Call Maria back", "room 204, before 5 pm"], 420, 22, (60, 60, 60), (235, 225, 200)
    ),
    "list": Page(
        ["apples", "bread", "coffee", "dates", "eggs", "flour", "ginger", "honey", "ice", "jam"],
        560,
        26,
        columns=2,
    ),
    "measurements": Page(
        ["Height 1724 mm", "Width 896 mm", "Depth 305 mm", "Mass 48.7 kg", "Power 230 V"],
        520,
        30,
        (10, 70, 20),
    ),
}
"""Pages by name."""
