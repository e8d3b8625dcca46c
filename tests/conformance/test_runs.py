"""Runs that crash, hang, are slow, are interrupted, or go on where another one ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crosschip.conformance import Result, Verdict, all_cases, case_of, run_cases
from crosschip.conformance.journal import Journal
from crosschip.conformance.selection import chosen_cases
from crosschip.ir import InputError


def test_a_crash_shows_the_last_words() -> None:
    report = run_cases("tests.conformance.defects:crash", [case_of("COS/0/plain")])
    (entry,) = report.failed
    assert "signal 6" in entry.detail
    assert "its last words" in entry.detail
    assert "the bus does not answer" in entry.detail


def test_the_cases_of_a_slow_operator_end_with_its_budget() -> None:
    cases = [case for case in all_cases("SIGMOID") if case.id.endswith("/plain")]
    cases += [case_of("ABS/0/plain"), case_of("ABS/1/plain")]
    report = run_cases("tests.conformance.defects:hang", cases, timeout=1, budget=0.5)
    (hangs,) = report.failed
    assert "hangs: no answer after 1 seconds" in hangs.detail
    left = [entry for entry in report.entries if entry.verdict is Verdict.NOT_RUN]
    assert len(left) == len([case for case in cases if case.operator == "SIGMOID"]) - 1
    assert "budget of 0.5 seconds for SIGMOID is spent" in left[0].detail
    assert all(e.verdict is Verdict.PASS for e in report.entries if e.operator == "ABS")


def test_results_are_taken_over() -> None:
    cases = [case_of("ABS/0/plain"), case_of("ABS/1/plain")]
    old = {cases[0].id: Result(cases[0].id, Verdict.FAIL, "as it was")}
    ran = []
    report = run_cases("reference", cases, done=old, on_result=lambda case, _: ran.append(case.id))
    assert ran == ["ABS/1/plain"]
    assert [entry.detail for entry in report.failed] == ["as it was"]


def test_a_journal_keeps_results_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first, second = case_of("ABS/0/plain"), case_of("ABS/1/plain")
    with Journal(path, "npu", 3) as journal:
        assert journal.done == {}
        journal.add(first, Result(first.id, Verdict.FAIL, "wrong", "smaller"))
        journal.add(second, Result(second.id, Verdict.NOT_RUN, "not yet"))
    with path.open("a") as file:
        file.write('{"id": "ABS/2/plain", "verdi')  # as a killed process leaves it
    with Journal(path, "npu", 3) as journal:
        assert journal.done == {first.id: Result(first.id, Verdict.FAIL, "wrong", "smaller")}
        journal.add(second, Result(second.id, Verdict.PASS))
    with Journal(path, "npu", 3) as journal:
        assert set(journal.done) == {first.id, second.id}


@pytest.mark.parametrize(
    ("device", "seed", "content"),
    [
        ("other", 3, None),
        ("npu", 4, None),
        ("npu", 3, "[]\n"),
        ("npu", 3, "no JSON\n"),
        ("npu", 3, '{"device": "npu", "seed": 3}\n{"id": 1}\n'),
    ],
)
def test_what_is_no_journal_of_the_run_is_refused(
    tmp_path: Path, device: str, seed: int, content: str | None
) -> None:
    path = tmp_path / "journal"
    Journal(path, "npu", 3).close()
    if content is not None:
        path.write_text(content)
    before = path.read_bytes()
    with pytest.raises(InputError, match="journal"):
        Journal(path, device, seed)
    assert path.read_bytes() == before


def test_ctrl_c_keeps_what_was_run(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    command = [
        *(sys.executable, "-m", "crosschip", "conformance", "reference"),
        *("--operator", "ADD", "--operator", "LSTM", "--resume", str(journal), "--json"),
    ]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not journal.exists() or journal.read_text("utf-8").count("\n") < 20:
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate()
    assert running.returncode == 130, err
    assert "Traceback" not in err
    document = json.loads(out)
    assert document["whole"] is False
    assert document["pass"] >= 19
    assert document["not_run"] > 0
    assert document["fail"] == 0


def test_cases_are_chosen_by_pattern_type_and_chance() -> None:
    assert [case.id for case in chosen_cases(case="ADD/0/plain")] == ["ADD/0/plain"]
    ids = [case.id for case in chosen_cases(case="CONV_*/0/float16", quick=True)]
    assert ids == [
        f"CONV_{rank}D{kind}/0/float16" for rank in (1, 2, 3) for kind in ("", "_TRANSPOSE")
    ]
    assert {case.element_type for case in chosen_cases("CONV_2D", "int8", quick=True)} == {
        "quantized int8"
    }
    assert {case.element_type for case in chosen_cases("ABS", "int8")} == {"int8", "quantized int8"}
    assert {c.element_type for c in chosen_cases("ABS", "quantized int8")} == {"quantized int8"}
    assert {case.operator for case in chosen_cases("ABS", random=7)} == {"ABS"}
    assert {case.element_type for case in chosen_cases("ABS", "int8", random=200)} <= {
        *("int8", "quantized int8")
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"operators": "NO_SUCH"}, "no such case, 'NO_SUCH'"),
        ({"case": "ADD/0/no"}, "no case 'ADD/0/no'"),
        ({"case": "ADD/0/no*"}, "no case 'ADD/0/no*'"),
        ({"operators": "CONV_2D", "element_type": "int7"}, "but of bfloat16, float16, float32"),
    ],
)
def test_what_chooses_nothing_says_what_there_is(arguments: dict[str, str], message: str) -> None:
    with pytest.raises(InputError) as refusal:
        chosen_cases(**arguments)  # type: ignore[arg-type]
    assert message in str(refusal.value)
