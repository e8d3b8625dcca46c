"""The look of the pictures, and how they are written."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "font.size": 9,
    "legend.frameon": False,
    "svg.hashsalt": "crosschip",
}
_STYLE_OF_LIMITS: Any = {"color": "#c0392b", "linewidth": 1, "linestyle": "--"}


def beside(titles: Sequence[str], height: float) -> tuple[Figure, list[Axes]]:
    """A figure with a system of axes for each title, side by side; `height` is in inches."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5 * len(titles), height), layout="constrained", facecolor="white")
        systems = list(figure.subplots(1, len(titles), sharey=True, squeeze=False)[0])
        for axes, title in zip(systems, titles, strict=True):
            axes.set_title(title)
            axes.set_axisbelow(True)
    return figure, systems


def limit(axes: Axes, value: float) -> None:
    """Mark the required value on the horizontal axis."""
    axes.axvline(value, **_STYLE_OF_LIMITS)


def svg(figure: Figure) -> str:
    """The figure as a document, the same for the same figures."""
    with mpl.rc_context(_STYLE):
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
