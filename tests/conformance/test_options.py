"""Options reach the device in every case, and are part of what the kit leaves behind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from crosschip.conformance import all_cases, case_of, run_cases
from crosschip.conformance.journal import Journal
from crosschip.conformance.junit import to_junit
from crosschip.conformance.page import to_html
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Capabilities, Options, Performance, Precision, Program, Support
from crosschip.ir import DeviceError, InputError, Model, Operation

HERE = "tests.conformance.test_options"
CASES = ("ADD/0/plain", "ADD/0/plain/loaded", "DEVICE/models/chain", "DEVICE/device/second-context")
ASKED = Options(
    precision=Precision.FLOAT16, threads=2, in_flight=3, performance=Performance.EXTREME
)


class Particular(ReferenceDevice):
    """Does nothing for whoever asks in another way than `ASKED`, with its own property."""

    @classmethod
    def known_properties(cls) -> Mapping[str, str]:
        return {"mood": "good, or nothing works"}

    def capabilities(self) -> Capabilities:
        both = frozenset({Precision.FLOAT32, Precision.FLOAT16})
        return replace(super().capabilities(), precisions=both)

    def supports(self, operation: Operation, options: Options) -> Support:
        self._check(options)
        return super().supports(operation, options)

    def compile(self, model: Model, options: Options) -> Program:
        self._check(options)
        return super().compile(model, options)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        self._check(options)
        return super().load(saved, model, options)

    def _check(self, options: Options) -> None:
        if options != ASKED or self.properties != {"mood": "good"}:
            raise DeviceError(f"asked with {options} and {dict(self.properties)}")


class Headstrong(ReferenceDevice):
    """Has as many threads as it likes."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), threads=False)


def test_every_case_asks_as_it_is_told() -> None:
    cases = [case_of(id) for id in CASES]
    device, mood = f"{HERE}:Particular", {"mood": "good"}
    report = run_cases(device, cases, options=ASKED, properties=mood)
    assert not report.failed
    assert report.counts["pass"] == len(cases)
    assert run_cases(device, cases, options=ASKED).counts["fail"] == len(cases)
    otherwise = replace(ASKED, threads=1)
    report = run_cases(device, cases, options=otherwise, properties=mood)
    assert report.counts["fail"] == len(cases)


def test_reports_say_what_was_asked_for() -> None:
    cases = [case_of("ABS/0/plain")]
    mood = {"mood": "good"}
    report = run_cases(f"{HERE}:Particular", cases, options=ASKED, properties=mood)
    words = "precision float16, threads 2, in_flight 3, performance extreme, mood good"
    assert report.title == f"particular {report.version}, {words}"
    document = json.loads(json.dumps(report.document()))
    told = {name: document["options"][name] for name in ("precision", "threads", "performance")}
    assert told == {"precision": "float16", "threads": 2, "performance": "extreme"}
    assert document["properties"] == mood
    assert f"seed 0, {words}</p>" in to_html(report)
    assert ElementTree.fromstring(to_junit(report)).get("name", "").endswith(words)


def test_failures_are_repeated_with_the_same_options() -> None:
    cases = list(all_cases("ROUND", quick=True))
    device = "tests.conformance.defects:ties_rounded_away"
    plain = to_html(run_cases(device, cases))
    assert "CASE</code></p>" in plain
    page = to_html(run_cases(device, cases, options=Options(threads=1)))
    assert "seed 0, threads 1</p>" in page
    assert "CASE</code>, with the options above</p>" in page


def test_threads_that_a_device_cannot_set_are_refused() -> None:
    cases = [case_of("ABS/0/plain")]
    assert run_cases(f"{HERE}:Headstrong", cases).counts["pass"] == 1
    with pytest.raises(DeviceError, match="headstrong cannot set the number of threads"):
        run_cases(f"{HERE}:Headstrong", cases, options=Options(threads=1))


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, precision=Precision.FLOAT32),
        replace(ASKED, threads=None),
        replace(ASKED, in_flight=1),
        replace(ASKED, performance=Performance.NONE),
        None,
    ],
)
def test_a_journal_is_of_one_set_of_options(tmp_path: Path, other: Options | None) -> None:
    path = tmp_path / "run.jsonl"
    Journal(path, "npu", 0, ASKED).close()
    Journal(path, "npu", 0, ASKED).close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="is of another run"):
        Journal(path, "npu", 0, other)
    assert path.read_bytes() == before
