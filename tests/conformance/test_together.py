"""Cases that share a program, and compilers that take longer than cases may."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance.companions import COUNTS
from tests.progress.recorder import Recorder

from crosschip.conformance import Verdict, all_cases, case_of, run_cases
from crosschip.conformance.cases import Case
from crosschip.conformance.joint_programs import join
from crosschip.ops import operators
from crosschip.ops.definition.examples import examples_of, model_of
from crosschip.progress import observe

HERE = "tests.conformance.companions"


def quick(*names: str) -> list[Case]:
    return [case for name in names for case in all_cases(name, quick=True) if not case.invalid]


def compilations(path: Path) -> list[int]:
    return list(map(int, path.read_text().split()))


@pytest.mark.parametrize("device", ["Counting", "Fixed"])
def test_cases_share_programs(device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = quick("ADD", "RELU", "SOFTMAX", "CONV_2D", "CONCAT")
    counts: list[list[int]] = []
    verdicts = []
    for together in (1, 64):
        path = tmp_path / str(together)
        path.touch()
        monkeypatch.setenv(COUNTS, str(path))
        report = run_cases(f"{HERE}:{device}", cases, together=together)
        counts.append(compilations(path))
        verdicts.append(report.document()["verdicts"])
    assert verdicts[0] == verdicts[1]
    assert "fail" not in verdicts[1].values()
    assert len(counts[0]) >= len(cases)
    assert len(counts[1]) * 8 < len(counts[0])
    assert max(counts[1]) > 10


def test_a_program_that_is_refused_is_halved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "counts"
    monkeypatch.setenv(COUNTS, str(path))
    cases = [case for case in quick("ADD", "RELU") if not case.loaded]
    report = run_cases(f"{HERE}:Small", cases, together=16)
    assert report.counts["pass"] == len(cases)
    assert len(compilations(path)) < 2 * len(cases)


def test_a_crash_is_blamed_on_its_own_case() -> None:
    cases = [case_of(f"{name}/0/plain") for name in ("ADD", "RELU", "SOFTMAX", "ABS", "TANH")]
    report = run_cases(f"{HERE}:Crash", cases, together=16)
    assert [entry.id for entry in report.failed] == ["SOFTMAX/0/plain"]
    assert "signal 6" in report.failed[0].detail
    assert report.counts["pass"] == len(cases) - 1


def test_what_is_wrong_in_company_only_fails() -> None:
    cases = [case_of("ADD/0/plain"), case_of("RELU/0/plain")]
    assert not run_cases(f"{HERE}:Crowded", cases).failed
    report = run_cases(f"{HERE}:Crowded", cases, together=2)
    assert {entry.id for entry in report.failed} == {case.id for case in cases}
    for entry in report.failed:
        assert "right alone, but not in one program with 1 other case" in entry.detail


def test_what_is_wrong_alone_is_told_as_it_is_alone() -> None:
    name = "tests.conformance.defects:ties_rounded_away"
    cases = list(all_cases("ROUND", quick=True)) + quick("ADD")
    alone, together = (run_cases(name, cases, together=count) for count in (1, 32))
    assert alone.failed
    assert together.document()["verdicts"] == alone.document()["verdicts"]
    assert [(e.id, e.detail) for e in together.failed] == [(e.id, e.detail) for e in alone.failed]


def test_compiling_does_not_count_for_the_timeout_of_a_case() -> None:
    recorder = Recorder()
    with observe(recorder):
        report = run_cases(f"{HERE}:Sleepy", [case_of("RELU/0/plain")], timeout=1.2)
    assert report.counts["pass"] == 1
    assert "compiling" in recorder.details("running RELU/0/plain")


def test_compiling_has_a_timeout_of_its_own() -> None:
    report = run_cases(f"{HERE}:Sleepy", [case_of("RELU/0/plain")], compile_timeout=0.3)
    (entry,) = report.failed
    assert entry.detail.startswith("hangs: compiling has taken more than 0.3 seconds")


def test_a_device_that_compiles_one_model_at_a_time_is_not_asked_for_more() -> None:
    report = run_cases(f"{HERE}:Serial", [case_of("DEVICE/threads/compiling")])
    (entry,) = report.entries
    assert entry.verdict is Verdict.UNSUPPORTED
    assert "parallel_compile" in entry.detail


def test_models_side_by_side_share_no_name() -> None:
    models = [
        model_of(operator, examples_of(operator)[0], named=named)
        for operator in list(operators().values())[:40]
        for named in (False, True)
    ]
    joined = join(models)
    joined.verify()
    assert len(joined.operations) == sum(len(model.operations) for model in models)
    assert len(joined.outputs) == sum(len(model.outputs) for model in models)
