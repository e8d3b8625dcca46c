"""Running one case on a device, and saying how it went."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from crosschip.conformance.cases import DEVICE, Case
from crosschip.conformance.checks import CHECKS, Declined, Failed
from crosschip.conformance.claims import Claims
from crosschip.conformance.tolerance import difference, sensitivity, tolerance
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Device, Options, Program
from crosschip.ir import Array, DeviceError, Model, ModelError
from crosschip.ir.types import FLOATS
from crosschip.ops import operator_named
from crosschip.ops.definition.examples import arrays_for, examples_of, model_of, samples


class Verdict(Enum):
    """How a case went."""

    PASS = "pass"
    UNSUPPORTED = "unsupported"
    FAIL = "fail"
    EXCLUDED = "excluded"
    NOT_RUN = "not_run"


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a case.

    Attributes:
        detail: why it is not `PASS`; empty if it is.
    """

    id: str
    verdict: Verdict
    detail: str = ""


def judge(case: Case, device: Device, claims: Claims, seed: int = 0) -> Result:
    """Run a case on a device and compare with the reference.

    Args:
        case: what to try.
        device: who is tried; asked for nothing but this case's operation.
        claims: what the device's own file excludes, and the accuracy that it claims.
        seed: what random elements are made from.
    """
    reason = claims.exclusion(case.id)
    if reason:
        return Result(case.id, Verdict.EXCLUDED, reason)
    try:
        detail = _trial(case, device, claims, seed)
    except Declined as declined:
        return Result(case.id, Verdict.UNSUPPORTED, str(declined))
    except Failed as failed:
        detail = str(failed)
    except Exception as error:  # whatever a device raises is a failure of the device
        detail = f"{type(error).__name__}: {error}"
    return Result(case.id, Verdict.FAIL if detail else Verdict.PASS, detail)


def _trial(case: Case, device: Device, claims: Claims, seed: int) -> str:
    """What is wrong with the device; empty if nothing is."""
    if case.operator == DEVICE:
        CHECKS[case.id.partition("/")[2]](device)
        return ""
    if case.invalid:
        return _refusal(case, device)
    assert case.variation is not None, "only checks have none"
    operator, arguments = operator_named(case.operator), case.variation.arguments
    model = model_of(operator, arguments, named=case.variation.named)
    (operation,) = model.operations
    answer = device.supports(operation, Options())
    if not answer:
        if not answer.reason.startswith(case.operator):
            return f"says no without naming the operator: {answer.reason!r}"
        raise Declined(answer.reason)
    arrays = arrays_for(arguments, case.seed(seed))
    inputs = [arrays[name] for name in model.inputs]
    try:
        expected = ReferenceProgram(model).run(inputs)
    except DeviceError:
        with suppress(DeviceError):
            _survive(device.compile(model, Options()), inputs)
        return ""
    program = device.compile(model, Options())
    if case.loaded:
        program = reloaded(program, device, model)
    claimed = claims.accuracy(case.operator, case.element_type)
    random = {name for name, sample in samples(arguments) if sample.value is None}
    return wrong_outputs(program, model, inputs, expected, claimed, random)


def wrong_outputs(
    program: Program,
    model: Model,
    inputs: Sequence[Array],
    expected: Sequence[Array],
    claimed: float | None = None,
    random: Collection[str] = (),
) -> str:
    """What is wrong with a program's outputs for inputs, or with how it treats the inputs."""
    before = [array.copy() for array in inputs]
    try:
        actual = list(program.run(inputs))
    finally:
        program.close()
    for name, given, kept in zip(model.inputs, inputs, before, strict=True):
        if given.tobytes() != kept.tobytes():
            return f"input {name}: was written to"
    if len(actual) != len(expected):
        return f"makes {len(actual)} outputs, not {len(expected)}"
    for index, (name, operand) in enumerate(model.outputs.items()):
        made, wanted = actual[index], expected[index]
        allowed = tolerance(operand.type, inputs) if claimed is None else claimed
        wrong = difference(made, wanted, operand.type, allowed)
        if wrong and operand.type.element_type in FLOATS:
            moved = sensitivity(model, inputs, random, expected)[index]
            wrong = difference(made, wanted, operand.type, allowed, moved)
        if wrong:
            return f"{name}: {wrong}"
    return ""


def reloaded(program: Program, device: Device, model: Model) -> Program:
    """The program as it is loaded from its saved form.

    Raises:
        Declined: the device does not save programs.
    """
    saved = program.save()
    program.close()
    if saved is None:
        raise Declined("DEVICE: does not save programs")
    return device.load(bytes(saved), model, Options())


def _refusal(case: Case, device: Device) -> str:
    """How validation errs about a use that is invalid; empty if it refuses it as it should.

    Raises:
        Declined: the device does not run the use that this one was made from.
    """
    assert case.variation is not None, "only checks have none"
    operator = operator_named(case.operator)
    example = examples_of(operator)[int(case.id.split("/")[1])]
    answer = device.supports(model_of(operator, example).operations[0], Options())
    if not answer:
        raise Declined(answer.reason)
    try:
        model_of(operator, case.variation.arguments)
    except ModelError as error:
        if case.invalid not in str(error):
            return f"is refused without naming {case.invalid}: {error}"
        return ""
    return f"{case.invalid}: is wrong, but not refused"


def _survive(program: Program, inputs: Sequence[Array]) -> None:
    """Run a program on what the reference refuses: it may fail in its own way, but not crash."""
    try:
        with suppress(DeviceError):
            program.run(inputs)
    finally:
        program.close()
