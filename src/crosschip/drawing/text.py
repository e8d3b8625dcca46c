"""Text in SVG pictures: its width, shortened and escaped, whatever the viewer's fonts are."""

from __future__ import annotations

import unicodedata
from html import escape

from crosschip.ir.text import legible

_WIDTHS = {
    **dict.fromkeys("ijl|.,:;'!()[]I/\\ -`ftr", 0.42),
    **dict.fromkeys('abcdeghknopqsuvxyz0123456789_?*$"', 0.65),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 0.79),
    **dict.fromkeys("+<>=~^#{}×≤≥", 0.84),
    **dict.fromkeys("MWmw@%…", 1.0),
}
"""The widths of usual characters in ems: at least those of DejaVu Sans, the widest usual font."""

_OTHER = 1.05
"""The width of all other characters, such as those of CJK scripts."""

_BOLD = 1.13


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return an upper bound of the width of a text in pixels at a font size."""
    ems = sum(
        0.0 if unicodedata.combining(character) else _WIDTHS.get(character, _OTHER)
        for character in text
    )
    return ems * size * (_BOLD if bold else 1.0)


def shorten(
    text: str, width: float, size: float, *, keep_end: bool = False, bold: bool = False
) -> str:
    """Return a text in printable characters, cut with an ellipsis if it is wider than `width`.

    Args:
        text: the text.
        width: the width in pixels.
        size: the font size.
        keep_end: whether to cut the beginning rather than the end.
        bold: whether the text is bold.
    """
    text = legible(text)
    if width_of(text, size, bold=bold) <= width:
        return text
    ellipsis = width_of("…", size, bold=bold)
    while text and width_of(text, size, bold=bold) + ellipsis > width:
        text = text[1:] if keep_end else text[:-1]
    return f"…{text}" if keep_end else f"{text}…"


def escape_text(text: str) -> str:
    """Return a text for XML, with each unprintable character as an escape sequence."""
    return "\n".join(escape(legible(line)) for line in text.split("\n"))


def text_element(
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    anchor: str = "start",
    fill: str = "",
    bold: bool = False,
    style: str = "",
) -> str:
    """Return an SVG text element; text that may be wider than estimated is fitted to the estimate.

    Args:
        x: the position of the anchor.
        y: the position of the baseline.
        text: the text.
        size: the font size.
        anchor: `start`, `middle` or `end`.
        fill: the colour; black if empty.
        bold: whether the text is bold.
        style: the CSS classes.
    """
    fitted = ""
    if not _WIDTHS.keys() >= set(text):
        length = width_of(text, size, bold=bold)
        fitted = f' textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"'
        + (f' text-anchor="{anchor}"' if anchor != "start" else "")
        + (f' fill="{fill}"' if fill else "")
        + (' font-weight="bold"' if bold else "")
        + (f' class="{style}"' if style else "")
        + f"{fitted}>{escape_text(text)}</text>"
    )
