"""The kit on devices that are asked to compute float32 in half precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from crosschip.conformance import all_cases, case_of
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Capabilities, Options, Precision, Program
from crosschip.ir import Array, Model

OPERATORS = ("ADD", "CONV_2D", "EXP", "FLOOR", "REDUCE_SUM", "SOFTMAX", "MAT_MUL", "DIV")
HALF = Options(Precision.FLOAT16)


def rounded(arrays: Sequence[Array]) -> list[Array]:
    with np.errstate(over="ignore"):
        return [
            a.astype(np.float16).astype(np.float32) if a.dtype == np.float32 else a for a in arrays
        ]


class HalfProgram(ReferenceProgram):
    """Rounds what goes in and what comes out to float16."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return rounded(super().run(rounded(inputs)))


class NarrowDevice(ReferenceDevice):
    """Offers both precisions."""

    def capabilities(self) -> Capabilities:
        both = frozenset({Precision.FLOAT32, Precision.FLOAT16})
        return replace(super().capabilities(), precisions=both, holds_weights=False)


class HalfDevice(NarrowDevice):
    """Does as it is asked."""

    def compile(self, model: Model, options: Options) -> Program:
        half = options.precision is Precision.FLOAT16
        return HalfProgram(model) if half else ReferenceProgram(model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return self.compile(model, options)


class CoarseDevice(NarrowDevice):
    """Is wrong, whatever it is asked."""

    def compile(self, model: Model, options: Options) -> Program:
        return CoarseProgram(model)


class CoarseProgram(ReferenceProgram):
    """Is off by a tenth."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        made = super().run(inputs)
        return [a * np.float32(1.1) if a.dtype == np.float32 else a for a in made]


@pytest.mark.parametrize("operator", OPERATORS)
def test_rounding_is_allowed_where_it_is_asked_for(operator: str) -> None:
    for case in all_cases(operator, quick=True):
        result = judge(case, HalfDevice(), Claims(), options=HALF)
        assert result.verdict is Verdict.PASS, f"{case.id}: {result.detail}"


def test_rounding_is_a_failure_where_it_is_not_asked_for() -> None:
    class Rounds(HalfDevice):
        def compile(self, model: Model, options: Options) -> Program:
            return HalfProgram(model)

    assert judge(case_of("CONV_2D/0/plain"), Rounds(), Claims()).verdict is Verdict.FAIL


def test_more_than_rounding_is_a_failure_all_the_same() -> None:
    case = case_of("ADD/0/plain")
    found = judge(case, CoarseDevice(), Claims(), options=HALF)
    assert found.verdict is Verdict.FAIL
    assert "elements are wrong" in found.detail


def test_checks_of_the_whole_device_ask_for_it_too() -> None:
    lacking = ("DEVICE/submit/", "DEVICE/session/")
    for case in all_cases("DEVICE"):
        if case.id.startswith(lacking):
            continue
        result = judge(case, HalfDevice(), Claims(), options=HALF)
        assert result.verdict is Verdict.PASS, f"{case.id}: {result.detail}"
