"""What lies where in an SVG picture, measured with the glyphs of DejaVu Sans."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
from PIL import ImageFont

SVG = "{http://www.w3.org/2000/svg}"
_UNITS = 200


@dataclass(frozen=True)
class Area:
    """A rectangle with what it shows."""

    what: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Area) -> bool:
        """Return whether two rectangles have more than a border in common."""
        return (
            self.left < other.right - 0.1
            and other.left < self.right - 0.1
            and self.top < other.bottom - 0.1
            and other.top < self.bottom - 0.1
        )

    def contains(self, other: Area) -> bool:
        """Return whether another rectangle is within this one."""
        return (
            self.left <= other.left + 0.1
            and other.right <= self.right + 0.1
            and self.top <= other.top + 0.1
            and other.bottom <= self.bottom + 0.1
        )


@cache
def _font(bold: bool) -> ImageFont.FreeTypeFont:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(mpl.get_data_path(), "fonts", "ttf", name), _UNITS)


def text_areas(root: ElementTree.Element) -> list[Area]:
    """Return the rectangle of each text."""
    areas = []
    for text in root.iter(f"{SVG}text"):
        size, shown = float(text.get("font-size", "")), text.text or ""
        fitted = text.get("textLength")
        bold = text.get("font-weight") == "bold"
        width = float(fitted) if fitted else _font(bold).getlength(shown) / _UNITS * size
        x, y = float(text.get("x", "")), float(text.get("y", ""))
        left = x - {"start": 0, "middle": width / 2, "end": width}[text.get("text-anchor", "start")]
        areas.append(Area(shown, left, y - size * 0.75, left + width, y + size * 0.2))
    return areas


def rect_areas(root: ElementTree.Element, style: str | None = None) -> list[Area]:
    """Return all rectangles, or those of a CSS class."""
    areas = []
    for rect in root.iter(f"{SVG}rect"):
        if style is None or rect.get("class") == style:
            x, y, width, height = (float(rect.get(n, "0")) for n in ("x", "y", "width", "height"))
            areas.append(Area(rect.get("class", ""), x, y, x + width, y + height))
    return areas


def page_of(root: ElementTree.Element) -> Area:
    """Return the rectangle of the whole picture."""
    left, top, width, height = map(float, root.get("viewBox", "").split())
    assert (float(root.get("width", "")), float(root.get("height", ""))) == (width, height)
    return Area("page", left, top, left + width, top + height)


def check_picture(svg: str) -> ElementTree.Element:
    """Check that nothing leaves the picture, and that no two texts overlap; return its root."""
    root = ElementTree.fromstring(svg)
    page, texts = page_of(root), text_areas(root)
    for area in [*texts, *rect_areas(root)]:
        assert page.contains(area), f"{area} leaves {page}"
    by_top = sorted(texts, key=lambda area: area.top)
    for index, area in enumerate(by_top):
        for other in by_top[index + 1 :]:
            if other.top >= area.bottom:
                break
            assert not area.overlaps(other), f"{area} overlaps {other}"
    return root
