"""The report says what was measured, and whether it meets the requirement."""

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from benchmarks.engines import difference
from benchmarks.report import table, write
from benchmarks.result import Result, keep, kept
from benchmarks.subject import Column, Row
from benchmarks.subjects import names, subject
from benchmarks.subjects.accuracy import Accuracy

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Sample(Row):
    name: Annotated[str, Column("what")]
    figures: Annotated[Mapping[int, float], Column("at {:,}", ".1f")]
    passed: Annotated[bool | None, Column("passed")] = None

    @property
    def met(self) -> bool | None:
        return self.passed


def test_a_mapping_takes_a_column_an_entry() -> None:
    assert Sample("a", {1: 0.25, 1000: 2}, True).cells() == {
        "what": "a",
        "at 1": "0.2",
        "at 1,000": "2.0",
        "passed": "True",
        "met": "yes",
    }


def test_a_table_aligns_numbers_to_the_right() -> None:
    rows = [{"name": "a", "n": "-1.5"}, {"name": "b", "n": ""}]
    assert table(rows).splitlines() == [
        "| name | n |",
        "| --- | ---: |",
        "| a | -1.5 |",
        "| b |  |",
    ]


@pytest.mark.parametrize(
    ("passed", "verdict"),
    [
        ([True, True, None], "yes, by all 2 measurements"),
        ([True, False, None], "**no**, by 1 of 2 measurements"),
        ([False], "**no**, by 0 of 1 measurements"),
    ],
)
def test_the_verdict_counts_the_figures_with_a_requirement(
    passed: list[bool | None], verdict: str
) -> None:
    rows = [Sample("a", {}, one) for one in passed]
    assert Result.of("scaling", {}, rows).verdict == verdict


def test_what_failed_is_no_success() -> None:
    assert Result.of("scaling", {}, [], "no memory").verdict == "**failed**: no memory"


def test_one_result_leaves_the_others_of_a_folder_as_they_are(tmp_path: Path) -> None:
    older = Result.of("scaling", {"date": "2001-02-03"}, [Sample("a", {1: 0.5}, True)])
    keep(older, "<svg/>", tmp_path)
    keep(Result.of("operators", {}, [Sample("b", {})]), "", tmp_path)
    keep(Result.of("overhead", {}, [], "no memory"), "", tmp_path)
    assert kept(tmp_path) == sorted(kept(tmp_path), key=lambda result: result.name)
    assert older in kept(tmp_path)
    assert [path.name for path in write(tmp_path)] == ["coverage.md", "performance.md"]
    text = (tmp_path / "performance.md").read_text()
    assert "Met: yes, by all 1 measurements." in text
    assert "](figures/scaling.svg)" in text
    assert "Measured: date 2001-02-03." in text
    assert "Met: **failed**: no memory." in text


def test_a_result_without_a_picture_takes_the_old_one_away(tmp_path: Path) -> None:
    result = Result.of("scaling", {}, [Sample("a", {}, True)])
    keep(result, "<svg/>", tmp_path)
    keep(result, "", tmp_path)
    write(tmp_path)
    assert "figures" not in (tmp_path / "performance.md").read_text()


@pytest.mark.parametrize("name", names())
def test_a_module_of_the_folder_is_a_subject(name: str) -> None:
    found = subject(name)
    assert found.REQUIREMENT
    assert callable(found.measure)
    assert (found.__doc__ or "").partition("\n")[0].endswith(".")


def test_requirements() -> None:
    within = Accuracy("net", ".onnx", {"a": 1e-4, "b": 0.0})
    beyond = Accuracy("net", ".onnx", {"a": 1.1e-4, "b": 0.0})
    assert (within.met, beyond.met) == (True, False)


def test_a_difference_is_relative_to_the_largest_value() -> None:
    computed = [np.array([1.0, 2.0]), np.array([8.5])]
    expected = [np.array([1.0, 2.25]), np.array([-8.0])]
    assert difference(computed, expected) == 16.5 / 8


def test_a_difference_that_is_no_number_is_beyond_the_bar() -> None:
    ones = np.ones(3, np.float32)
    found = difference([np.array([1, math.nan, 1], np.float32), ones], [ones, ones])
    assert math.isnan(found)
    assert not Accuracy("net", ".onnx", {"a": 0.0, "b": found}).met


def test_an_unknown_name_is_refused_with_those_that_there_are() -> None:
    command = [sys.executable, "-m", "benchmarks", "speed"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"there is no benchmark 'speed'; there are {', '.join(names())}" in done.stderr
