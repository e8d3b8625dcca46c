"""Running one case on a device, and judging the result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from crosschip.conformance.cases import DEVICE, Case
from crosschip.conformance.checks import CHECKS
from crosschip.conformance.claims import Claims
from crosschip.conformance.sized import support_of
from crosschip.conformance.trial import (
    Declined,
    Failed,
    Unsound,
    attempt,
    build,
    runs_of,
)
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Device, Options
from crosschip.ir import ModelError
from crosschip.ops import operator_named
from crosschip.ops.definition.examples import examples_of, model_of


class Verdict(Enum):
    """The verdicts of a case."""

    PASS = "pass"
    UNSUPPORTED = "unsupported"
    FAIL = "fail"
    EXCLUDED = "excluded"
    NOT_RUN = "not_run"


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict of a case, with its reason.

    Attributes:
        detail: why it is not `PASS`; empty if it is.
        smallest: the smallest use that fails in the same way, with its id; empty if not searched.
    """

    id: str
    verdict: Verdict
    detail: str = ""
    smallest: str = ""


_WATCHED = ("plain", "dynamic")
"""The variations of an operator's first example that are checked for memory growth."""

_MANNERS = (
    *("crashes", "hangs", "is not refused", "elements are wrong", "has shape", "has elements of"),
    *("DeviceError", "crosschip errs: reference", "crosschip errs: inference"),
)


def failure_kind(detail: str) -> str:
    """Return the kind of a failure: a few words of its detail without numbers."""
    return next((words for words in _MANNERS if words in detail), detail[:20])


def judge(
    case: Case,
    device: Device,
    claims: Claims,
    seed: int = 0,
    options: Options | None = None,
) -> Result:
    """Run a case on a device and compare the outputs with the reference.

    Args:
        case: the case.
        device: the tested device.
        claims: the device's exclusions and accuracy.
        seed: the seed of random elements.
        options: the compile options; `None` for the default.
    """
    reason = claims.exclusion(case.id)
    if reason:
        return Result(case.id, Verdict.EXCLUDED, reason)
    try:
        detail = _trial(case, device, claims, seed, options or Options())
    except Declined as declined:
        return Result(case.id, Verdict.UNSUPPORTED, str(declined))
    except Failed as failed:
        detail = str(failed)
    except Unsound as unsound:
        # A defect of crosschip's definitions, not of the device.
        own = isinstance(device, ReferenceDevice)
        verdict = Verdict.FAIL if own else Verdict.NOT_RUN
        return Result(case.id, verdict, f"crosschip errs: {unsound}")
    except Exception as error:  # whatever a device raises is a failure of the device
        detail = f"{type(error).__name__}: {error}"
    return Result(case.id, Verdict.FAIL if detail else Verdict.PASS, detail)


def _trial(case: Case, device: Device, claims: Claims, seed: int, options: Options) -> str:
    """Return the device's fault; empty if there is none."""
    if case.operator == DEVICE:
        CHECKS[case.id.partition("/")[2]](device, options)
        return ""
    if case.invalid:
        return _refusal(case, device, options)
    assert case.variation is not None, "only checks have none"
    operator = operator_named(case.operator)
    model = build(operator, case.variation)
    answer = support_of(device, model, options)
    if not answer:
        if not answer.reason.startswith(case.operator):
            return f"says no without naming the operator: {answer.reason!r}"
        raise Declined(answer.reason)
    runs = runs_of(model, case.variation, case.seed(seed), options)
    claimed = claims.accuracy(case.operator, case.element_type)
    attempt(
        device,
        model,
        runs,
        options,
        loaded=case.loaded,
        claimed=claimed,
        watched=case.variation.words in _WATCHED and "/0/" in case.id,
    )
    return ""


def _refusal(case: Case, device: Device, options: Options) -> str:
    """Return the fault of the error that validation raises for an invalid use; empty if right.

    Raises:
        Declined: the device does not support the valid use from which this one was derived.
    """
    assert case.variation is not None, "only checks have none"
    operator = operator_named(case.operator)
    example = examples_of(operator)[int(case.id.split("/")[1])]
    answer = support_of(device, model_of(operator, example), options)
    if not answer:
        raise Declined(answer.reason)
    try:
        model_of(operator, case.variation.arguments)
    except ModelError as error:
        if case.invalid not in str(error):
            return f"is refused without naming {case.invalid}: {error}"
        return ""
    return f"{case.invalid}: is wrong, but not refused"
