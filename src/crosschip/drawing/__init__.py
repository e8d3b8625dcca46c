"""Drawings of models in Graphviz's DOT language and SVG, and plain-text tables."""

from crosschip.drawing.columns import columns
from crosschip.drawing.dot import to_dot
from crosschip.drawing.graph import Labels
from crosschip.drawing.svg import to_svg

__all__ = ["Labels", "columns", "to_dot", "to_svg"]
