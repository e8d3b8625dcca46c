"""Draws the demo picture, `src/crosschip/demo/picture.png`, from the lines in `picture.txt`.

Only needed after a change to the lines or to this layout: the picture is part of the repository.
The Noto CJK fonts must be installed (`apt-get install fonts-noto-cjk`).

    python scripts/draw_demo_picture.py
"""

from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

DEMO = Path(__file__).parents[1] / "src" / "crosschip" / "demo"
FONTS = Path("/usr/share/fonts/opentype/noto")
SIMPLIFIED_CHINESE = 2
"""Index of the font in each of the collections."""

SIZE = (900, 600)
PAPER = "#fbfaf6"
BAND = "#16324f"
BAND_HEIGHT = 130


@dataclass(frozen=True)
class Style:
    """The print of a line: its place, size, font, colour and turn."""

    left: int
    """Its beginning, in pixels from the left."""
    middle: int
    """Height of its middle, in pixels from the top."""
    size: int
    """Of the font, in pixels."""
    font: str = "Sans-Regular"
    colour: str = "#1c1c1c"
    degrees: float = 0
    """The angle it is turned by about its centre, counter-clockwise, in degrees."""


STYLES = [
    Style(60, 62, 60, "Sans-Bold", "#ffffff"),
    Style(510, 66, 36, colour="#ffd166"),
    Style(60, 190, 44, "Serif-Bold"),
    Style(60, 266, 30),
    Style(480, 310, 40, "Sans-Bold", "#b02a37", degrees=25),
    Style(60, 335, 30, "Serif-Regular"),
    Style(60, 405, 36, "Sans-Bold", "#0b6e4f"),
    Style(60, 478, 36, colour="#5a3e9b", degrees=180),
    Style(60, 546, 18),
    Style(510, 546, 30, "Serif-Bold"),
]
"""The lines in reading order."""


def main() -> None:
    """Draws the picture and saves it."""
    picture = Image.new("RGB", SIZE, PAPER)
    picture.paste(BAND, (0, 0, SIZE[0], BAND_HEIGHT))
    texts = (DEMO / "picture.txt").read_text("utf-8").splitlines()
    for text, style in zip(texts, STYLES, strict=True):
        print_line(picture, text, style)
    picture.save(DEMO / "picture.png", optimize=True)


def print_line(picture: Image.Image, text: str, style: Style) -> None:
    """Prints a line of text on a picture."""
    family, weight = style.font.split("-")
    file = FONTS / f"Noto{family}CJK-{weight}.ttc"
    font = ImageFont.truetype(file, style.size, SIMPLIFIED_CHINESE)
    mask = Image.new("L", picture.size)
    canvas = ImageDraw.Draw(mask)
    canvas.text((style.left, style.middle), text, 255, font, anchor="lm")
    centre = (style.left + canvas.textlength(text, font) / 2, style.middle)
    turned = mask.rotate(style.degrees, Image.Resampling.BICUBIC, center=centre)
    picture.paste(style.colour, mask=turned)


if __name__ == "__main__":
    main()
