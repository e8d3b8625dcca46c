"""The results as a picture."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import latency, scaling
from benchmarks.latency import Latency
from benchmarks.scaling import Scaling
from benchmarks.subject import Row

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
_COLOURS = {".pdmodel": "#1f6fb4", ".json": "#2e9e5b", ".onnx": "#d9822b"}
_MARKERS = {".pdmodel": "o", ".json": "s", ".onnx": "D"}


def draw(rows: Mapping[str, Sequence[Row]]) -> str:
    """An SVG of latency ratios and scaling, as far as they were measured; empty if neither was."""
    ratios = [row for row in rows.get("latency", ()) if isinstance(row, Latency)]
    steps = [row for row in rows.get("scaling", ()) if isinstance(row, Scaling)]
    devices = list(dict.fromkeys(row.device for row in ratios))
    graphs = list(dict.fromkeys(row.graph for row in steps))
    if not devices and not graphs:
        return ""
    columns = max(len(devices), len(graphs))
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(5 * columns, 8.4), layout="constrained", facecolor="white")
        parts: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1])
        upper, lower = parts
        for axes, device in zip(_axes(upper, devices), devices, strict=True):
            _ratios(axes, device, [row for row in ratios if row.device == device])
        for axes, graph in zip(_axes(lower, graphs), graphs, strict=True):
            _scaling(axes, graph, [row for row in steps if row.graph == graph])
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def _axes(figure: Any, names: Sequence[str]) -> list[Axes]:
    if not names:
        return []
    return list(figure.subplots(1, len(names), sharey=True, squeeze=False)[0])


def _ratios(axes: Axes, device: str, rows: Sequence[Latency]) -> None:
    """Each network's ratio, a mark a file format."""
    networks = list(dict.fromkeys(row.network for row in rows))
    formats = [format for format in _COLOURS if any(row.format == format for row in rows)]
    for place, format in enumerate(formats):
        shift = (place - (len(formats) - 1) / 2) * 0.24
        shown = [row for row in rows if row.format == format]
        axes.errorbar(
            [row.ratio.value for row in shown],
            [networks.index(row.network) + shift for row in shown],
            xerr=[row.ratio.error for row in shown],
            fmt=_MARKERS[format],
            color=_COLOURS[format],
            markersize=5,
            elinewidth=1,
            label=format,
        )
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.axvline(latency.LIMIT, color="#c0392b", linewidth=1, linestyle="--")
    axes.set_yticks(range(len(networks)), networks)
    axes.set_ylim(len(networks) - 0.5, -0.5)
    axes.grid(axis="y", color="#eeeeee")
    axes.set_axisbelow(True)
    axes.set_title(f"Latency on {device}")
    axes.set_xlabel(f"engine's time / ours; right of 1: we are faster; dashed: {latency.LIMIT:g}")
    axes.legend(loc="best")


def _scaling(axes: Axes, graph: str, rows: Sequence[Scaling]) -> None:
    """Each step's time per operation over the size of the graph."""
    for row in rows:
        axes.plot(
            list(row.microseconds), list(row.microseconds.values()), marker="o", label=row.step
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(scaling.SIZES, [f"{size:,}" for size in scaling.SIZES])
    axes.minorticks_off()
    ticks = (1, 2, 5, 10, 20, 50)
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(1, 200)
    axes.grid(color="#eeeeee")
    axes.set_title(f"Time per operation: {graph}")
    axes.set_xlabel("operations")
    axes.set_ylabel("µs per operation")
    axes.legend(loc="upper left", fontsize=7.5, ncols=2)
