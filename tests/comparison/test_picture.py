"""The picture of a comparison: nothing overlaps or leaves it, and it says what was measured."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.drawing.pictures import SVG, check_picture, text_areas

from crosschip.bench.timing import Timing
from crosschip.comparison import Comparison, Measurement
from crosschip.comparison.picture import picture
from crosschip.drawing.raster import to_png
from crosschip.ir import InputError

NAMES = st.sampled_from(["openvino", "auto", "a + b", "npu@" + "host" * 40, "<&>\x00概率"])
ERRORS = st.none() | st.floats(0) | st.just(math.nan)
TIMES = st.lists(st.floats(1e-6, 1e4), min_size=1, max_size=5).map(Timing.of)
MEASUREMENTS = st.builds(
    Measurement,
    NAMES,
    st.booleans(),
    st.sampled_from([(), ("openvino",), ("openvino", "npu" * 40)]),
    st.none() | TIMES,
    ERRORS,
    ERRORS,
    st.text(),
)


def comparison_of(*measurements: Measurement, model: str = "net", exact: str = "x") -> Comparison:
    ordered = sorted(
        measurements, key=lambda each: each.timing.median_ms if each.timing else math.inf
    )
    return Comparison(model, tuple(ordered), exact, {"x": (1, 3), "s": ()}, 7, 2, "bfloat16", {})


def timed(name: str, milliseconds: float, *, engine: bool = False) -> Measurement:
    return Measurement(name, engine, (), Timing.of([milliseconds / 1e3]), 1e-7, 1e-6)


@given(st.lists(MEASUREMENTS, max_size=12), st.text(), st.text())
@settings(deadline=None)
def test_rows_and_notes(measurements: list[Measurement], title: str, exact: str) -> None:
    comparison = comparison_of(*measurements, exact=exact)
    root = check_picture(picture(comparison, title))
    texts = [area.what for area in text_areas(root)]
    assert sum(text.endswith(" ms") for text in texts) == len(comparison.timed)
    assert sum("did not run" in text for text in texts) == len(comparison.failed)
    assert any("medians of 7 runs" in text and "bfloat16" in text for text in texts)
    assert "x 1×3, s scalar" in texts


def test_bars_are_as_long_as_the_times() -> None:
    comparison = comparison_of(timed("a", 1.0, engine=True), timed("b", 2.0), timed("c", 100.0))
    root = check_picture(picture(comparison))
    bars = [rect for rect in root.iter(f"{SVG}rect") if rect.get("height") == "22"]
    widths = [float(bar.get("width", "")) for bar in bars]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)
    assert widths[1] < widths[2] < 4 * widths[1], "a long bar is cut"
    texts = [area.what for area in text_areas(root)]
    assert {"1.00 ms", "2.00 ms", "100 ms", "0.50×", "0.01×", "fastest engine"} <= set(texts)


def test_png_shows_the_bars(tmp_path: Path) -> None:
    comparison = comparison_of(timed("a", 1.0, engine=True), timed("b", 2.0))
    comparison.save(tmp_path / "times.png")
    comparison.save(tmp_path / "times.svg", "Another title")
    assert "Another title" in (tmp_path / "times.svg").read_text("utf-8")
    root = check_picture(comparison.to_svg())
    pixels = np.asarray(Image.open(tmp_path / "times.png").convert("RGB"))
    assert pixels.shape[:2] == (int(root.get("height", "")) * 2, int(root.get("width", "")) * 2)
    for bar in root.iter(f"{SVG}rect"):
        if bar.get("height") == "22":
            x, y, colour = float(bar.get("x", "")), float(bar.get("y", "")), bar.get("fill", "")
            shown = pixels[int(y + 3) * 2, int(x + 10) * 2]
            assert f"#{bytes(shown).hex()}" == colour
    for area in (area for area in text_areas(root) if area.what):
        rows = slice(math.floor(area.top) * 2, math.ceil(area.bottom) * 2)
        columns = slice(math.floor(area.left) * 2, math.ceil(area.right) * 2)
        assert pixels[rows, columns].min() < 150, f"{area.what} is drawn"


def test_shapes_in_png() -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">'
        '<circle cx="10" cy="10" r="5" fill="#ff0000"/>'
        '<line x1="20" y1="10" x2="40" y2="10" stroke="#0000ff" stroke-width="4" '
        'stroke-dasharray="5 5"/></svg>'
    )
    pixels = np.asarray(Image.open(io.BytesIO(to_png(svg, 1))).convert("RGB"))
    assert pixels.shape == (20, 40, 3)
    assert tuple(pixels[10, 10]) == (255, 0, 0)
    assert tuple(pixels[3, 3]) == (255, 255, 255)
    assert [tuple(pixels[10, x]) == (0, 0, 255) for x in (22, 27, 32, 37)] == [True, False] * 2


@pytest.mark.parametrize("name", ["times.pdf", "times", "no/such/folder/times.svg"])
def test_files_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=name):
        comparison_of(timed("a", 1.0)).save(tmp_path / name)


def test_png_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crosschip.drawing.raster.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'pip install "crosschip\[pictures\]"'):
        comparison_of(timed("a", 1.0)).save(tmp_path / "times.png")
    comparison_of(timed("a", 1.0)).save(tmp_path / "times.svg")
