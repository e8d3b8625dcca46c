"""The kit's output: documents, pages, JUnit XML, comparisons, cases written down."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from crosschip.conformance import Report, all_cases, case_of, run_cases
from crosschip.conformance.comparison import compare
from crosschip.conformance.export import export
from crosschip.conformance.junit import to_junit
from crosschip.conformance.page import to_html
from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Array, DeviceError, InputError, Operand
from crosschip.ops.definition.serialization import from_bytes


@pytest.fixture(scope="module")
def report() -> Report:
    """A device that is wrong about ROUND, says no to nothing, and is right about ABS."""
    cases = [*all_cases("ABS"), *all_cases("ROUND")]
    return run_cases("tests.conformance.defects:ties_rounded_away", cases, jobs=2)


def test_counts_add_up(report: Report) -> None:
    document = report.document()
    verdicts = ("pass", "unsupported", "fail", "excluded", "not_run")
    assert sum(document[verdict] for verdict in verdicts) == document["cases"]
    assert set(document["operators"]) == {"ABS", "ROUND"}
    for counts in document["operators"].values():
        assert sum(counts[verdict] for verdict in verdicts) == counts["cases"]
    assert document["operators"]["ABS"]["fail"] == 0
    assert document["fail"] == document["operators"]["ROUND"]["fail"] == len(report.failed) > 0
    assert json.loads(json.dumps(document)) == document


def test_the_page_is_well_formed_and_loads_nothing(report: Report) -> None:
    page = to_html(report)
    open_tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert not {"src", "href"} & {name for name, _ in attrs}
            if tag != "meta":
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

    Reader().feed(page)
    assert not open_tags
    for entry in report.failed:
        assert f"<code>{entry.id}</code>" in page
    assert f"crosschip conformance {report.device} --seed 0 --case" in page


def test_junit(report: Report) -> None:
    root = ElementTree.fromstring(to_junit(report))
    suites = {suite.get("name"): suite for suite in root}
    assert suites["ABS"].get("failures") == "0"
    assert int(suites["ROUND"].get("failures", "0")) == len(report.failed)
    assert len(root.findall("./testsuite/testcase")) == len(report.entries)
    assert len(root.findall("./testsuite/testcase/failure")) == len(report.failed)


def test_comparison(report: Report, tmp_path: Path) -> None:
    document = report.document()
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    before.write_text(json.dumps(document))
    failed = [entry.id for entry in report.failed]
    verdicts = dict.fromkeys(document["verdicts"], "pass")
    gone = next(id for id in verdicts if id.startswith("ABS"))
    del verdicts[gone]
    after.write_text(json.dumps({"verdicts": {**verdicts, "NEW/0/plain": "fail"}}))
    found = compare(before, after)
    assert found.changed == {"fail -> pass": failed}
    assert found.gone == [gone]
    assert found.new == found.worse == ["NEW/0/plain"]
    assert compare(after, before).worse == failed


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"verdicts": 1}'])
def test_what_is_not_a_report_is_not_compared(tmp_path: Path, content: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"report\.json"):
        compare(path, path)


@pytest.mark.parametrize("id", ["CONV_2D/0/plain", "ADD/0/dynamic", "ADD/0/bfloat16"])
def test_a_case_written_down_can_be_run_without_the_kit(id: str, tmp_path: Path) -> None:
    path = tmp_path / "case.zip"
    export(case_of(id), 5, path)
    with zipfile.ZipFile(path) as archive:
        model = from_bytes(archive.read("model.chipm"))

        def read(folder: str, operands: Mapping[str, Operand]) -> list[Array]:
            found = []
            for name, operand in operands.items():
                stored = np.load(BytesIO(archive.read(f"{folder}/{name}.npy")))
                found.append(stored.view(operand.type.element_type.dtype))
            return found

        inputs, expected = read("inputs", model.inputs), read("outputs", model.outputs)
    for made, wanted in zip(ReferenceProgram(model).run(inputs), expected, strict=True):
        np.testing.assert_array_equal(made, wanted)


def test_what_has_no_model_is_not_written_down(tmp_path: Path) -> None:
    case = next(case for case in all_cases("ADD") if case.invalid)
    with pytest.raises(InputError, match="only valid uses"):
        export(case, 0, tmp_path / "case.zip")
    with pytest.raises(InputError, match="cannot be written"):
        export(case_of("ADD/0/plain"), 0, tmp_path / "no" / "case.zip")


@pytest.mark.parametrize("name", ["no_such_device", "no_module:X", "tests.conformance.defects:no"])
def test_a_device_that_does_not_open_is_an_error(name: str) -> None:
    with pytest.raises(DeviceError):
        run_cases(name, all_cases("ABS"))
