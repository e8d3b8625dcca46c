"""Programs of several cases, for devices that take seconds to compile a program.

A case can share a program if one comparison of outputs decides it: the device supports it, and no
run of it may be refused. All other cases run in programs of their own (`judge`), and so does every
case that fails in a shared program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosschip.conformance.cases import DEVICE, Case
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Result, Verdict
from crosschip.conformance.sized import guard_of, support_of
from crosschip.conformance.trial import (
    Declined,
    Run,
    Unsound,
    build,
    reloaded,
    runs_of,
    wrong_outputs,
)
from crosschip.hal import Device, Options, Program
from crosschip.hal.conditions import OutOfRange
from crosschip.ir import Array, DeviceError, Dim, Model, Operand, symbol
from crosschip.lowering.static_shapes import fix_sizes
from crosschip.ops import operator_named
from crosschip.runtime.shapes.policy import strategy_for
from crosschip.runtime.shapes.strategy import DynamicShapeStrategy


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a program that belongs to one case.

    Attributes:
        case: the case.
        whole: the model of the case.
        runs: the runs of the case, one after the other.
        model: the compiled form of `whole`: the same, or with static shapes.
        reads: for each input of `model`, the index of the input of `whole`.
        makes: for each output of `whole`, the index of the output of `model`, or its elements.
        claimed: the accuracy that the device claims; `None` for the kit's own.
    """

    case: Case
    whole: Model
    runs: Sequence[Run]
    model: Model
    reads: Sequence[int]
    makes: Sequence[int | Array]
    claimed: float | None

    def inputs(self, index: int) -> list[Array]:
        """Return the inputs of a run; those of the last run if there are fewer."""
        run = self.runs[min(index, len(self.runs) - 1)]
        return [run.inputs[place] for place in self.reads]

    def wrong(self, index: int, results: Sequence[Array], options: Options) -> str:
        """Return the fault of the results of a run; empty if they are right."""
        if index >= len(self.runs):
            return ""
        outputs = [results[m] if isinstance(m, int) else m.copy() for m in self.makes]
        fault = wrong_outputs(self.whole, self.runs[index], outputs, options, self.claimed)
        return f"run {index + 1}: {fault}" if fault and index else fault


@dataclass(frozen=True, slots=True)
class ProgramStarted:
    """The event that a program of several cases is about to be compiled and run.

    Attributes:
        cases: the ids of the cases.
    """

    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProgramBroken:
    """The event that a program of several cases did not run to its end.

    Attributes:
        cases: the ids of the cases.
        detail: the reason.
        refused: whether the device raised a DeviceError, as it may for a program that is too large.
    """

    cases: tuple[str, ...]
    detail: str
    refused: bool


@dataclass(frozen=True, slots=True)
class CaseWrong:
    """The event that a case has wrong outputs in a program with others.

    Attributes:
        case: its id.
        detail: the fault.
        others: the number of other cases in the program.
    """

    case: str
    detail: str
    others: int


def judge_jointly(
    cases: Sequence[Case],
    device: Device,
    claims: Claims,
    seed: int,
    options: Options,
    limit: int,
) -> Iterator[Result | ProgramStarted | ProgramBroken | CaseWrong]:
    """Judge cases in programs of several; cases without a result must run in programs of their own.

    Args:
        cases: the cases.
        device: the tested device.
        claims: the device's exclusions and accuracy.
        seed: the seed of random elements.
        options: the compile options.
        limit: the maximum number of operations of one program.
    """
    for loaded in (False, True):
        waiting: list[Part] = []
        for case in cases:
            if case.loaded is not loaded or case.operator == DEVICE or case.invalid:
                continue
            parts = _parts(case, device, claims, seed, options)
            if isinstance(parts, Result):
                yield parts
                continue
            if waiting and len(waiting) + len(parts) > limit:
                yield from _run_parts(waiting, device, options, loaded=loaded)
                waiting = []
            waiting += parts
        if waiting:
            yield from _run_parts(waiting, device, options, loaded=loaded)


def _parts(
    case: Case, device: Device, claims: Claims, seed: int, options: Options
) -> Result | Sequence[Part]:
    """Return the parts of a case; its result if nothing must run; () if it must run alone."""
    reason = claims.exclusion(case.id)
    if reason:
        return Result(case.id, Verdict.EXCLUDED, reason)
    assert case.variation is not None, "only checks have none"
    try:
        model = build(operator_named(case.operator), case.variation)
        answer = support_of(device, model, options)
        if not answer and answer.reason.startswith(case.operator):
            return Result(case.id, Verdict.UNSUPPORTED, answer.reason)
        if not answer:
            return ()
        runs = runs_of(model, case.variation, case.seed(seed), options)
        guard = guard_of(device, model, options)
        for run in runs:
            guard.check(run.inputs)
            if run.expected is None or run.latitude.refusable or run.latitude.everything:
                return ()
        claimed = claims.accuracy(case.operator, case.element_type)
        if (
            strategy_for(device.capabilities(), model, model, options.sizes)
            is not DynamicShapeStrategy.PROGRAM_PER_SHAPE
        ):
            reads, makes = range(len(model.inputs)), range(len(model.outputs))
            return [Part(case, model, runs, model, reads, makes, claimed)]
        return _static_parts(case, model, runs, device, options, claimed)
    except (Unsound, OutOfRange, DeviceError):
        return ()
    except Exception:  # the device's own code answers; judged alone, it is told what it raises
        return ()


def _static_parts(
    case: Case,
    model: Model,
    runs: Sequence[Run],
    device: Device,
    options: Options,
    claimed: float | None,
) -> Sequence[Part]:
    """Return a part with static shapes for each run; () if the device declines one."""
    parts = []
    for run in runs:
        sized = fix_sizes(model, [array.shape for array in run.inputs], {}, device.name)
        if len(sized.model.operations) != 1 or not support_of(device, sized.model, options):
            return ()
        parts.append(Part(case, model, [run], sized.model, sized.reads, sized.makes, claimed))
    return parts


def _run_parts(
    parts: Sequence[Part], device: Device, options: Options, *, loaded: bool
) -> Iterator[Result | ProgramStarted | ProgramBroken | CaseWrong]:
    """Run all parts in one program and yield the results."""
    ids = tuple(dict.fromkeys(part.case.id for part in parts))
    if len(ids) < 2:
        return
    yield ProgramStarted(ids)
    try:
        faults = _find_faults(parts, device, options, loaded=loaded)
    except Declined as declined:
        for id in ids:
            yield Result(id, Verdict.UNSUPPORTED, str(declined))
        return
    except _Spoiled as spoiled:
        yield ProgramBroken(ids, str(spoiled), refused=False)
        return
    except Exception as error:  # whatever a device raises
        message = f"{type(error).__name__}: {error}"
        yield ProgramBroken(ids, message, refused=isinstance(error, DeviceError))
        return
    for id in ids:
        if id in faults:
            yield CaseWrong(id, faults[id], len(ids) - 1)
        else:
            yield Result(id, Verdict.PASS)


class _Spoiled(Exception):
    """Inputs or earlier outputs were overwritten; the message names them."""


def _find_faults(
    parts: Sequence[Part], device: Device, options: Options, *, loaded: bool
) -> dict[str, str]:
    """Return the fault of each wrong case of a program, by id.

    Raises:
        Declined: the program must run from its saved form, and the device does not save programs.
        Exception: any error of the device.
    """
    model = join([part.model for part in parts])
    program: Program = device.compile(model, options)
    if loaded:
        program = reloaded(program, device, model, options)
    faults: dict[str, str] = {}
    copied_outputs: list[tuple[Sequence[Array], list[Array]]] = []
    try:
        for index in range(max(len(part.runs) for part in parts)):
            inputs = [array for part in parts for array in part.inputs(index)]
            before = [array.copy() for array in inputs]
            outputs = list(program.run(inputs))
            if len(outputs) != len(model.outputs):
                raise _Spoiled(f"makes {len(outputs)} outputs, not {len(model.outputs)}")
            if not all(map(_is_same, inputs, before)):
                raise _Spoiled("an input was written to")
            remaining = iter(outputs)
            for part in parts:
                own = [next(remaining) for _ in part.model.outputs]
                fault = part.wrong(index, own, options)
                if fault:
                    faults.setdefault(part.case.id, fault)
            copied_outputs.append((outputs, [array.copy() for array in outputs]))
    finally:
        program.close()
    for made_before, copies in copied_outputs:
        if not all(map(_is_same, made_before, copies)):
            raise _Spoiled("an output changed when the program ran again")
    return faults


def _is_same(array: Array, before: Array) -> bool:
    return array.tobytes() == before.tobytes()


def join(models: Sequence[Model]) -> Model:
    """Merge models into one; the names of operations and dynamic dimensions get unique prefixes."""
    renamed_models = [_prefix_names(model, f"case{index}.") for index, model in enumerate(models)]
    inputs = [operand for model in renamed_models for operand in model.inputs.values()]
    outputs = [operand for model in renamed_models for operand in model.outputs.values()]
    return Model(
        "cases",
        {f"input{index}": operand for index, operand in enumerate(inputs)},
        [operation for model in renamed_models for operation in model.operations],
        {f"output{index}": operand for index, operand in enumerate(outputs)},
    )


def _prefix_names(model: Model, prefix: str) -> Model:
    """Prefix the names of a model's operations, operands and dynamic dimensions."""
    names = {
        name
        for operand in model.inputs.values()
        for size in operand.type.shape or ()
        if not isinstance(size, int)
        for name in size.names
    }
    sizes: dict[str, Dim] = {name: symbol(f"{prefix}{name}") for name in names}
    renamed: dict[Operand, Operand] = {}

    def rename(operand: Operand) -> Operand:
        other = Operand(f"{prefix}{operand.name}", operand.type.substitute(sizes))
        return renamed.setdefault(operand, other)

    inputs = {name: rename(operand) for name, operand in model.inputs.items()}
    operations = []
    for operation in model.operations:
        read = tuple(None if o is None else renamed.get(o, o) for o in operation.inputs)
        moved = operation.with_inputs(read, tuple(map(rename, operation.outputs)))
        operations.append(moved.with_name(f"{prefix}{operation.name}"))
    outputs = {name: renamed.get(operand, operand) for name, operand in model.outputs.items()}
    return Model(model.name, inputs, operations, outputs)
