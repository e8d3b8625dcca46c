"""The passes for ONNX: equal results, and equal names."""

from __future__ import annotations

import pytest

from crosschip.conformance.cases import all_cases
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge
from crosschip.devices.kits.onnx import control
from crosschip.devices.kits.onnx.lowering import PASSES, WORKAROUNDS, lower
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Options, Program, Support
from crosschip.ir import Model, Operation
from crosschip.passes import run

ALL_PASSES = (*PASSES, *WORKAROUNDS)
OPERATORS = sorted({operator.type for each in ALL_PASSES for operator in each.operators})


class LoweredReference(ReferenceDevice):
    """The reference device on models after the passes."""

    def supports(self, operation: Operation, options: Options) -> Support:
        return control.supports(operation)

    def compile(self, model: Model, options: Options) -> Program:
        for operation in model.operations:
            assert {part.name for part in lower(operation)} == {operation.name}
        return ReferenceProgram(run(model, ALL_PASSES))


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_passes_compute_what_operators_mean(operator: str) -> None:
    """On all conformance cases of an operator."""
    device, claims = LoweredReference(), Claims()
    cases = [case for case in all_cases(operator, quick=True) if not case.loaded]
    results = [judge(case, device, claims) for case in cases]
    failed = [f"{r.id}: {r.detail}" for r in results if r.verdict is Verdict.FAIL]
    assert not failed, failed[0]
    assert any(r.verdict is Verdict.PASS for r in results)
