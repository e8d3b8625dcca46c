"""What notebooks show of each result: escaped, folded where it is long, and with its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.modelling import float32

import crosschip as cc
from crosschip.bench import benchmark
from crosschip.bisect import find_failing_operators
from crosschip.conformance import all_cases, run_cases
from crosschip.conformance.comparison import Comparison
from crosschip.drawing.tables import Table, to_html
from crosschip.ir import Builder, Model
from crosschip.ops.standard.activation import Relu, Sigmoid
from crosschip.tuning.search import Trial
from crosschip.tuning.tuning import Tuning
from crosschip.tuning.variants import Variant

HOSTILE = "<script>alert('x')</script>\x1b[31m\"><img src=x>"
TAGS = {"div", "p", "b", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "wbr"}


class Checker(HTMLParser):
    """Checks that tags are among `TAGS`, closed in order, and have no attributes but a few."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        assert {name for name, _ in attributes} <= {"style", "open"}
        if tag != "wbr":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def checked_text(value: Any) -> str:
    """The text of a value's HTML, which is well-formed and has no markup of names."""
    html: str = value._repr_html_()
    assert "\x1b" not in html
    return "\n".join(Checker(html).texts)


@pytest.fixture
def model() -> Model:
    b = Builder(HOSTILE)
    x = b.input(f"in {HOSTILE}", float32(2, 3))
    b.output(f"out {HOSTILE}", b.add(Sigmoid, b.add(Relu, x, name=f"relu {HOSTILE}")))
    return b.build()


@pytest.fixture
def compiled(model: Model) -> Iterator[cc.CompiledModel]:
    with cc.compile(model, "onnxruntime", cache=False) as compiled:
        yield compiled


ESCAPED = "<script>alert('x')</script>\\x1b[31m\"><img src=x>"


def test_models_and_placements(model: Model, compiled: cc.CompiledModel) -> None:
    for value in (model, model.summary(), compiled, compiled.placement, cc.explain(model)):
        text = checked_text(value)
        assert ESCAPED in text
        assert f"in {ESCAPED}" in text
        assert "SIGMOID" in text
    assert "2 operations in 1 segments: onnxruntime runs 2" in checked_text(compiled)


def test_times(model: Model, compiled: cc.CompiledModel) -> None:
    with cc.compile(model, "reference", cache=False) as reference:
        result = benchmark(compiled, against={f"other {HOSTILE}": reference}, runs=5)
    text = checked_text(result)
    assert f"other {ESCAPED}" in text
    assert f"{result.timings['crosschip'].median_ms:.3f}" in text
    assert str(result) == repr(result)
    compiled.run({name: np.zeros((2, 3), np.float32) for name in compiled.inputs})
    assert "onnxruntime" in checked_text(compiled.statistics())
    profile = compiled.profile(runs=2)
    assert f"{profile.seconds * 1e3:.3f} ms a run" in checked_text(profile)


def test_comparisons(model: Model) -> None:
    result = cc.compare(model, ["onnxruntime", "reference"], runs=2, cache=False)
    text = checked_text(result)
    for each in result.timed:
        assert each.timing is not None
        assert f"{each.timing.median_ms:.3f}" in text
    assert f"in {ESCAPED} [2, 3]" in text
    assert str(result) == repr(result)
    assert "<script>" not in result.to_svg()


def test_reports(model: Model, tmp_path: Path) -> None:
    report = find_failing_operators(model, "onnxruntime", isolate=False)
    assert "nothing wrong found among 2 operations" in checked_text(report)
    kit = run_cases("reference", list(all_cases("RELU", quick=True)))
    assert f"{len(kit.entries)} cases: " in checked_text(kit)
    changed = {"fail -> pass": [f"case {HOSTILE}"]}
    comparison = Comparison(changed, ["new"], [], ["worse"])
    assert f"case {ESCAPED}" in checked_text(comparison)
    trials = (
        Trial(Variant("openvino"), 0.0, 1.0),
        Trial(Variant("openvino", "bfloat16"), 0.02, 1.5),
        Trial(Variant("openvino", "float16"), reason=f"failed {HOSTILE}"),
    )
    none: Any = None
    text = checked_text(Tuning(HOSTILE, 0.01, trials, trials[0], False, none))
    assert "too far off" in text
    assert f"failed {ESCAPED}" in text


def test_long_tables_are_folded_and_end() -> None:
    rows = [(str(index), index) for index in range(1000)]
    html = to_html("heading", [Table("long", ("a", "b"), rows, ("b",))], ["note"])
    assert "<details><summary>long (1,000)</summary>" in html
    assert "and 600 more" in html
    assert html.count("<tr>") == 401
    assert "<details open><summary>short</summary>" in to_html(
        "", [Table("short", ("a",), [("1",)])]
    )
    Checker(html)
