"""Draws the map of the packages, docs/architecture.svg, from the import contract."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

WIDTH, HEIGHT, GAP, BOX = 880, 34, 8, 146
_FRAME = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    ' viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14">\n'
    '<rect width="100%" height="100%" fill="white"/>\n{body}</svg>\n'
)
_BOX = (
    '<rect x="{x}" y="{y}" width="{box}" height="{height}" rx="4"'
    ' fill="#e8eef7" stroke="#35507a"/>\n'
    '<text x="{middle}" y="{base}" text-anchor="middle" fill="#1b2b45">{name}</text>\n'
)


def layers(project: Path) -> list[list[str]]:
    """The packages of each layer of the import contract, from the top one."""
    tools = tomllib.loads(project.read_text("utf-8"))["tool"]
    (contract,) = (c for c in tools["importlinter"]["contracts"] if c["type"] == "layers")
    rows = [row.replace(":", "|").replace(" ", "").split("|") for row in contract["layers"]]
    return [[name for name in row if not name.startswith("_")] for row in rows]


def draw(rows: Sequence[Sequence[str]]) -> str:
    """The map as SVG: a row for each layer; a package imports only packages of rows below it."""
    filled = [row for row in rows if row]
    body = "".join(text for index, row in enumerate(filled) for text in _row(index, row))
    height = len(filled) * (HEIGHT + GAP) + GAP
    return _FRAME.format(width=WIDTH, height=height, body=body)


def _row(index: int, row: Sequence[str]) -> Iterator[str]:
    y = GAP + index * (HEIGHT + GAP)
    start = (WIDTH - len(row) * (BOX + GAP) + GAP) // 2
    for column, name in enumerate(row):
        x = start + column * (BOX + GAP)
        yield _BOX.format(
            x=x, y=y, box=BOX, height=HEIGHT, middle=x + BOX // 2, base=y + 22, name=name
        )
