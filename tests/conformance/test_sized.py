"""A correct device of known sizes passes, though it declines some sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crosschip.conformance import all_cases, case_of, random_cases
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Verdict, judge
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Capabilities, CompileError, Options, Program, Sizing, Support
from crosschip.ir import Model, Operation


def _has_unfit_axis(operation: Operation) -> bool:
    """Tell whether a tensor has an axis of no elements, or of an unknown number of them."""
    operands = (*operation.inputs, *operation.outputs)
    shapes = [operand.type.static_shape for operand in operands if operand is not None]
    return any(shape is None or 0 in shape for shape in shapes)


class FixedDevice(ReferenceDevice):
    """Compiles known sizes other than 0, says so where it is asked, and fails otherwise."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), sizing=Sizing.FIXED)

    def supports(self, operation: Operation, options: Options) -> Support:
        if _has_unfit_axis(operation):
            return Support.no(operation, "", "takes no axis without elements")
        return super().supports(operation, options)

    def compile(self, model: Model, options: Options) -> Program:
        if any(map(_has_unfit_axis, model.operations)):
            raise CompileError("fixed: an axis has no elements", model.operations)
        return super().compile(model, options)


class RefusingDevice(FixedDevice):
    """Is not asked about sizes, but refuses to compile what it does not run."""

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), compile_names_unsupported=True)


@pytest.mark.parametrize("device", [FixedDevice(), RefusingDevice()])
@pytest.mark.parametrize("operator", ["FULLY_CONNECTED", "CONV_2D", "CONCAT", "RESHAPE", "ADD"])
def test_a_correct_device_of_known_sizes_fails_nothing(
    device: ReferenceDevice, operator: str
) -> None:
    cases = [case for case in all_cases(operator) if not case.invalid]
    cases = [c for c in cases if c.id.endswith(("dynamic", "resized")) or "=0" in c.id]
    cases += [case_of(case.id) for case in random_cases(60, 0, operator)]
    results = [judge(case, device, Claims()) for case in cases]
    assert not [f"{r.id}: {r.detail}" for r in results if r.verdict is Verdict.FAIL]
    assert any(r.verdict is Verdict.PASS for r in results)
