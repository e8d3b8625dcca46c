"""The page of an SVG picture: its colours, on light and on dark screens."""

from __future__ import annotations

from collections.abc import Iterable

FONT = "Helvetica, Arial, sans-serif"
INK, MUTED, LINE, TRANSFER, GRID = "#1c2733", "#51606e", "#8896a4", "#d9480f", "#dde3e9"

_STYLE = """
@media (prefers-color-scheme: dark) {
.crosschip .page { fill: #14181d }
.crosschip .ink { fill: #e6ebf0 }
.crosschip .quiet { fill: #aab6c2 }
.crosschip .frame { fill: #1d232a; stroke: #5d6b79 }
.crosschip .pill { fill: #2b343e }
.crosschip .heading { fill: #2b343e }
.crosschip .grid { stroke: #323b45 }
.crosschip .transfer { stroke: #ff8a4c }
.crosschip .hot { fill: #ff8a80 }
.crosschip .halo { stroke: #14181d }
.crosschip .ring { stroke: #ffffff }
}
"""
"""The colours on dark screens, by class; elements have those of light screens as attributes."""


def page(width: float, height: float, elements: Iterable[str]) -> str:
    """Return an SVG picture.

    Args:
        width: the width in pixels.
        height: the height in pixels.
        elements: the elements.
    """
    size = f'width="{width:.0f}" height="{height:.0f}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="crosschip" {size} '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}">'
    )
    background = f'<rect class="page" {size} fill="#ffffff"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", background, *elements, "</svg>\n"])
