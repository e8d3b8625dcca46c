"""Pictures of models: Graphviz's DOT language, and SVG without any other program."""

from crosschip.drawing.dot import to_dot
from crosschip.drawing.svg import to_svg

__all__ = ["to_dot", "to_svg"]
