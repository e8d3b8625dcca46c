"""Culprits planted in a device over the reference: those that are named are those."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.bisect.networks import inputs, network
from tests.bisect.planted import Fault, Planted
from tests.modelling import DelegatingDevice, chain
from tests.runtime.test_mixed_precision import NETWORK, rows

import crosschip
from crosschip.bisect import Report, find_failing_operators
from crosschip.ir import InputError, Model, Operation
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.unary import Exp, Log

TOGETHER, ALONE = 2, 1
EXAMPLES = int(os.environ.get("CROSSCHIP_BISECT_EXAMPLES", 10))


@cache
def placed() -> Model:
    """The network as passes leave it."""
    return crosschip.explain(network(), ["reference"], cache=False).original


def names() -> list[str]:
    return [operation.name for operation in placed().operations]


def found(faults: Sequence[Fault], hides: str = "", **more: Any) -> Report:
    device = Planted(faults=faults, hides=hides)
    report = find_failing_operators(network(), device, inputs=inputs(), **more)
    assert device.compiled >= report.runs - 1, "every run that counts was one"
    return report


def named(report: Report) -> set[frozenset[str]]:
    return {frozenset(culprit.names) for culprit in report.failing_operators}


def bound(faults: Sequence[Fault]) -> float:
    """The runs that so many culprits may take."""
    count = max(1, sum(len(fault.operations) for fault in faults))
    return count * (4 * math.log2(len(names())) + 20)


@st.composite
def planted(draw: st.DrawFn) -> list[Fault]:
    """One to three faults in different operations; some of two, which are wrong only together."""
    sizes = draw(st.lists(st.sampled_from([ALONE, ALONE, TOGETHER]), min_size=1, max_size=3))
    most = sum(sizes)
    chosen = draw(st.lists(st.sampled_from(names()), unique=True, min_size=most, max_size=most))
    faults = []
    for size in sizes:
        group, chosen = tuple(chosen[:size]), chosen[size:]
        kind = draw(st.sampled_from(["shift", "nan"]))
        # Of either sign, so that some make good for others.
        faults.append(Fault(group, kind, draw(st.sampled_from([1e-2, -1e-2, 1e-3]))))
    return faults


@settings(max_examples=EXAMPLES)
@given(planted())
def test_those_that_are_named_are_those_that_are_planted(faults: list[Fault]) -> None:
    report = found(faults)
    assert named(report) == {frozenset(fault.operations) for fault in faults}
    assert report.runs <= bound(faults)
    assert report.whole


PAIRS = (("mat_mul_0", "tanh_1"), ("add_3", "mul_2"), ("add_1", "mul_0"))
"""Without the last two pairs the rest of the network has more outputs than the device takes."""


@settings(max_examples=EXAMPLES)
@given(planted())
@example([Fault(pair, size=1e-2) for pair in PAIRS])
def test_so_are_they_where_the_device_shows_few_results(faults: list[Fault]) -> None:
    report = found(faults, "outputs")
    assert named(report) == {frozenset(fault.operations) for fault in faults}
    assert report.runs <= bound(faults)


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_an_error_that_shows_only_inside_is_found_with_what_reads_it(data: st.DataObject) -> None:
    inner = [
        o for o in placed().operations if not set(o.outputs).intersection(placed().outputs.values())
    ]
    operation = data.draw(st.sampled_from(inner))
    report = found([Fault((operation.name,), size=0.1)], "fusions")
    (group,) = named(report)
    assert operation.name in group
    (other,) = group - {operation.name}
    assert other in {reader.name for reader in readers(operation)}
    assert report.runs <= bound([])


def readers(operation: Operation) -> list[Operation]:
    actual = set(operation.outputs)
    return [other for other in placed().operations if actual.intersection(other.inputs)]


@pytest.mark.parametrize("hides", ["", "outputs", "fusions"])
def test_a_device_that_is_right_is_said_to_be(hides: str) -> None:
    report = found([], hides)
    assert (report.failing_operators, report.explained, report.whole) == ([], True, True)
    assert report.runs <= bound([])


def test_errors_that_make_good_for_each_other_are_found() -> None:
    """The second of two operations takes back what the first one adds."""
    first = next(o for o in placed().operations if [r.type for r in readers(o)] == ["ADD"])
    (second,) = readers(first)
    faults = [Fault((first.name,), size=0.1), Fault((second.name,), size=-0.1)]
    report = found(faults, thorough=True)
    assert report.error is not None
    assert report.error < 1e-6
    assert named(report) == {frozenset(fault.operations) for fault in faults}
    assert not any(culprit.shows is None for culprit in report.failing_operators)


def test_one_setting_of_an_operator_may_be_wrong() -> None:
    report = found([Fault(type="LEAKY_RELU", slot="alpha", value=0.5)])
    (wanted,) = (o.name for o in placed().operations if getattr(o, "alpha", None) == 0.5)
    assert named(report) == {frozenset([wanted])}
    (culprit,) = report.document()["culprits"]
    assert culprit["operations"][0]["slots"]["alpha"] == "0.5"


def test_what_a_report_says() -> None:
    name = names()[4]
    report = found([Fault((name,))])
    (culprit,) = report.failing_operators
    operation = placed().operations[4]
    assert culprit.title == f"{operation.type} {name}"
    assert culprit.manner == "wrong"
    assert culprit.shows is True
    assert culprit.difference is not None
    assert culprit.difference.largest > 10 * culprit.difference.explained
    (actual,), (wanted,) = culprit.actual.values(), culprit.expected.values()
    assert np.abs(actual - wanted).max() == pytest.approx(1e-3, rel=1e-2)
    assert report.mended is not None
    assert report.mended < 1e-6 < (report.error or 0)
    assert report.exposed
    assert set(report.own) == set(report.model.operations) == set(report.sums)
    document = report.document()
    assert document["culprits"][0]["operations"][0]["name"] == name
    assert document["explained"] is True


@pytest.mark.parametrize("limit", [{"runs": 3}, {"seconds": 1e-9}])
def test_what_may_not_go_on_tells_what_it_has(limit: dict[str, Any]) -> None:
    report = found([Fault((names()[4],))], "outputs", **limit)
    assert not report.whole
    assert report.runs <= 3
    assert "the search has not come to its end" in report.notes[-1]


def test_made_up_inputs_are_told_and_those_of_run() -> None:
    report = find_failing_operators(network(), Planted(), seed=3)
    assert report.notes[0].startswith("made-up inputs (seed 3): x")
    other = find_failing_operators(network(), Planted(), inputs=inputs())
    assert other.notes == []


def test_a_device_that_runs_nothing_is_not_to_blame() -> None:
    report = find_failing_operators(chain(Exp), DelegatingDevice(declines=("EXP",)))
    assert (report.failing_operators, report.runs) == ([], 0)
    assert "runs no operation of the model" in report.notes[-1]


def test_only_what_the_device_runs_is_suspected() -> None:
    device = DelegatingDevice(declines=("EXP",))
    report = find_failing_operators(chain(Relu, Exp), device)
    assert [operation.type for operation in report.suspects] == ["RELU"]


def test_numbers_that_should_be_none_are_no_error() -> None:
    """The logarithm of a negative number, by both."""
    report = find_failing_operators(
        chain(Log, Exp), Planted(), inputs={"x0": np.array([-1, 2], "f4")}
    )
    assert report.failing_operators == []


class Failing(DelegatingDevice):
    """A device that says yes to what it then fails to compile."""

    def __init__(self) -> None:
        super().__init__(fails=("TANH",))


def test_what_does_not_compile_is_found() -> None:
    report = find_failing_operators(network(), Failing(), inputs=inputs())
    assert {o.type for culprit in report.failing_operators for o in culprit.operations} == {"TANH"}
    assert {culprit.manner for culprit in report.failing_operators} == {"error"}
    assert len(report.failing_operators) == sum(o.type == "TANH" for o in placed().operations)
    assert "the compiler of test crashed on TANH" in report.failing_operators[0].detail
    assert report.explained


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"tolerance": -1.0}, "tolerance is -1.0, but must be a part of the largest element"),
        ({"timeout": 0}, "timeout is 0, but must be a number of seconds"),
        ({"compile_timeout": -1}, "compile_timeout is -1, but must be a number of seconds"),
        ({"isolate": True}, "'planted' is in this process; isolate needs its name"),
        ({"against": "planted"}, "'planted' cannot be looked at against itself"),
        ({"inputs": {"y": [1]}}, "the model has no input 'y'"),
    ],
)
def test_arguments_that_do_not_fit(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        find_failing_operators(network(), Planted(), **arguments)


@pytest.mark.slow
@pytest.mark.parametrize("listed", [None, "Tanh", "MatMul"])
def test_a_culprit_in_bfloat16(listed: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """It is named, and moved to the trusted device, which computes in float32; listed or not."""
    model = crosschip.load(NETWORK)
    culprit = crosschip.explain(model, "xla", cache=False).original.operations[2].name
    device = Planted(base="xla", faults=[Fault((culprit,), size=20.0)])
    report = find_failing_operators(
        model, device, inputs={"x": rows(3)}, precision="bfloat16", mixed_precision=listed
    )
    device.close()
    assert [each.names for each in report.failing_operators] == [(culprit,)]
    assert report.explained
    assert report.mended is not None
    assert report.mended < 0.05
    assert report.notes == []
    assert "mixed_precision" not in caplog.text
