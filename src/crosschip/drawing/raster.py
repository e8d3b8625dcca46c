"""Charts as PNG: rectangles, circles, lines and texts of an SVG picture, drawn with Pillow."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from crosschip.ir import InputError
from crosschip.ir.errors import install_command

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont
    from PIL.ImageFont import ImageFont as PlainFont

_SMOOTHING = 4
"""The factor by which shapes are drawn larger, so that their edges are smooth."""

_FONTS = (
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    ("arial.ttf", "arialbd.ttf"),
    ("Arial.ttf", "Arial Bold.ttf"),
    ("LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf"),
)
"""The names of the files of common fonts, regular and bold; the first installed one is used."""

_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
"""Pillow's names for the positions of texts."""


def require_pillow_for_png() -> None:
    """Raise InputError if Pillow, which writes PNG, is not installed."""
    if find_spec("PIL") is None:
        raise InputError(f"writing PNG needs Pillow; {install_command('pictures')}")


def to_png(svg: str, scale: int = 2) -> bytes:
    """Return a chart of this package as PNG, in the colours of light screens.

    Args:
        svg: the picture, in which all shapes are `rect`, `circle`, `line` and `text`.
        scale: the pixels of the result for one pixel of the picture.

    Raises:
        InputError: Pillow is not installed.
    """
    require_pillow_for_png()
    from PIL import Image, ImageDraw

    root = ElementTree.fromstring(svg)
    size = int(root.attrib["width"]) * scale, int(root.attrib["height"]) * scale
    large = size[0] * _SMOOTHING, size[1] * _SMOOTHING
    image = Image.new("RGB", large, "#ffffff")
    shapes = ImageDraw.Draw(image)
    for element in _elements(root):
        _draw_shape(shapes, element, scale * _SMOOTHING)
    image = image.resize(size, Image.Resampling.BOX)
    texts = ImageDraw.Draw(image)
    for element in _elements(root):
        if element.tag == "text":
            _draw_text(texts, element, scale)
    buffer = BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _elements(root: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """Yield all elements, with tags without their namespace."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        yield element


def _draw_shape(draw: ImageDraw, element: ElementTree.Element, scale: float) -> None:
    fill, stroke = element.get("fill"), element.get("stroke")
    width = round(float(element.get("stroke-width", 1)) * scale)

    def numbers(*names: str) -> list[float]:
        return [float(element.get(name, 0)) * scale for name in names]

    if element.tag == "rect":
        x, y, across, down, radius = numbers("x", "y", "width", "height", "rx")
        draw.rounded_rectangle((x, y, x + across, y + down), radius, fill)
    elif element.tag == "circle":
        x, y, radius = numbers("cx", "cy", "r")
        draw.circle((x, y), radius, fill, stroke, width)
    elif element.tag == "line":
        x1, y1, x2, y2 = numbers("x1", "y1", "x2", "y2")
        dashes = [float(part) * scale for part in element.get("stroke-dasharray", "").split()]
        for start, end in _dashes(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, dashes):
            ends = [(x1 + (x2 - x1) * at, y1 + (y2 - y1) * at) for at in (start, end)]
            draw.line(ends, stroke, width)


def _dashes(length: float, pattern: list[float]) -> Iterator[tuple[float, float]]:
    """Yield the ends of the dashes of a line, as parts of its length."""
    if not pattern or not length:
        yield 0.0, 1.0
        return
    dash, gap = pattern
    at = 0.0
    while at < length:
        yield at / length, min(at + dash, length) / length
        at += dash + gap


def _draw_text(draw: ImageDraw, element: ElementTree.Element, scale: int) -> None:
    font = _font(float(element.get("font-size", 12)) * scale, element.get("font-weight") == "bold")
    position = float(element.get("x", 0)) * scale, float(element.get("y", 0)) * scale
    anchor = _ANCHORS[element.get("text-anchor", "start")]
    text, fill, halo = element.text or "", element.get("fill", "#000000"), element.get("stroke")
    if halo:
        width = round(float(element.get("stroke-width", 1)) * scale / 2)
        draw.text(position, text, halo, font, anchor, stroke_width=width, stroke_fill=halo)
    draw.text(position, text, fill, font, anchor)


@cache
def _font(size: float, bold: bool) -> FreeTypeFont | PlainFont:
    """Return an installed font, or the one that is part of Pillow, which has no bold letters."""
    from PIL import ImageFont

    for names in _FONTS:
        try:
            return ImageFont.truetype(names[bold], size)
        except OSError:
            continue
    return ImageFont.load_default(size)
