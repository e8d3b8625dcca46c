"""Programs of several cases, for devices whose compiler takes seconds for each program.

A case joins a program with others if its verdict follows from one comparison of outputs: it is
supported, and no run of it is to be refused. Every other case is judged alone (`judge`). What fails
in company is judged alone as well, so that no case is blamed for another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosschip.conformance.cases import DEVICE, Case
from crosschip.conformance.claims import Claims
from crosschip.conformance.judge import Result, Verdict
from crosschip.conformance.sized import border_of, support_of
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
        case: whose part it is.
        whole: the case's model.
        runs: the data that the part is run on, one run after the other.
        model: the case's model as it is compiled: `whole`, or that with all sizes known.
        reads: for each input of `model`, which input of `whole` it is.
        makes: for each output of `whole`, which output of `model` it is, or its elements.
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
        """The inputs of a run; those of the last one where there are not so many."""
        run = self.runs[min(index, len(self.runs) - 1)]
        return [run.inputs[place] for place in self.reads]

    def wrong(self, index: int, made: Sequence[Array], options: Options) -> str:
        """The fault of what a run has computed; empty if there is none."""
        if index >= len(self.runs):
            return ""
        outputs = [made[m] if isinstance(m, int) else m.copy() for m in self.makes]
        fault = wrong_outputs(self.whole, self.runs[index], outputs, options, self.claimed)
        return f"run {index + 1}: {fault}" if fault and index else fault


@dataclass(frozen=True, slots=True)
class Joined:
    """A program of several cases that is about to be compiled and run.

    Attributes:
        cases: the ids of the cases.
    """

    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """A program of several cases that did not run to its end.

    Attributes:
        cases: the ids of the cases.
        detail: why.
        refused: whether the device refused it by an error, as it may where a program is too large.
    """

    cases: tuple[str, ...]
    detail: str
    refused: bool


@dataclass(frozen=True, slots=True)
class Wrong:
    """A case whose outputs are wrong in a program with others.

    Attributes:
        case: its id.
        detail: the fault.
        others: how many other cases the program has.
    """

    case: str
    detail: str
    others: int


def judge_joined(
    cases: Sequence[Case],
    device: Device,
    claims: Claims,
    seed: int,
    options: Options,
    limit: int,
) -> Iterator[Result | Joined | Broken | Wrong]:
    """Judge cases in programs of several; what is not told a result of is to be judged alone.

    Args:
        cases: what to try.
        device: who is tried.
        claims: what the device's own file says.
        seed: what random elements are made from.
        options: how the device is to compile.
        limit: how many operations a program may have.
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
                yield from _judged(waiting, device, options, loaded=loaded)
                waiting = []
            waiting += parts
        if waiting:
            yield from _judged(waiting, device, options, loaded=loaded)


def _parts(
    case: Case, device: Device, claims: Claims, seed: int, options: Options
) -> Result | Sequence[Part]:
    """The parts of a case; its result if nothing needs to run; none if it must run alone."""
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
        border = border_of(device, model, options)
        for run in runs:
            border.check(run.inputs)
            if run.expected is None or run.latitude.refusable or run.latitude.everything:
                return ()
        claimed = claims.accuracy(case.operator, case.element_type)
        if (
            strategy_for(device.capabilities(), model, model, options.sizes)
            is not DynamicShapeStrategy.PROGRAM_PER_SHAPE
        ):
            reads, makes = range(len(model.inputs)), range(len(model.outputs))
            return [Part(case, model, runs, model, reads, makes, claimed)]
        return _sized(case, model, runs, device, options, claimed)
    except (Unsound, OutOfRange, DeviceError):
        return ()
    except Exception:  # the device's own code answers; judged alone, it is told what it raises
        return ()


def _sized(
    case: Case,
    model: Model,
    runs: Sequence[Run],
    device: Device,
    options: Options,
    claimed: float | None,
) -> Sequence[Part]:
    """A part for each run, in which all sizes are known; none if the device declines one."""
    parts = []
    for run in runs:
        sized = fix_sizes(model, [array.shape for array in run.inputs], {}, device.name)
        if len(sized.model.operations) != 1 or not support_of(device, sized.model, options):
            return ()
        parts.append(Part(case, model, [run], sized.model, sized.reads, sized.makes, claimed))
    return parts


def _judged(
    parts: Sequence[Part], device: Device, options: Options, *, loaded: bool
) -> Iterator[Result | Joined | Broken | Wrong]:
    """The results of the cases whose parts are right in one program of all parts."""
    ids = tuple(dict.fromkeys(part.case.id for part in parts))
    if len(ids) < 2:
        return
    yield Joined(ids)
    try:
        faults = _faults(parts, device, options, loaded=loaded)
    except Declined as declined:
        for id in ids:
            yield Result(id, Verdict.UNSUPPORTED, str(declined))
        return
    except _Spoiled as spoiled:
        yield Broken(ids, str(spoiled), refused=False)
        return
    except Exception as error:  # whatever a device raises
        told = f"{type(error).__name__}: {error}"
        yield Broken(ids, told, refused=isinstance(error, DeviceError))
        return
    for id in ids:
        if id in faults:
            yield Wrong(id, faults[id], len(ids) - 1)
        else:
            yield Result(id, Verdict.PASS)


class _Spoiled(Exception):
    """Arrays that are not the program's were written to; the message says which."""


def _faults(
    parts: Sequence[Part], device: Device, options: Options, *, loaded: bool
) -> dict[str, str]:
    """The faults of cases in one program, by id.

    Raises:
        Declined: the program should run from its saved form, and has none.
        Exception: whatever the device raises.
    """
    model = join([part.model for part in parts])
    program: Program = device.compile(model, options)
    if loaded:
        program = reloaded(program, device, model, options)
    faults: dict[str, str] = {}
    kept: list[tuple[Sequence[Array], list[Array]]] = []
    try:
        for index in range(max(len(part.runs) for part in parts)):
            inputs = [array for part in parts for array in part.inputs(index)]
            before = [array.copy() for array in inputs]
            outputs = list(program.run(inputs))
            if len(outputs) != len(model.outputs):
                raise _Spoiled(f"makes {len(outputs)} outputs, not {len(model.outputs)}")
            if not all(map(_is_same, inputs, before)):
                raise _Spoiled("an input was written to")
            made = iter(outputs)
            for part in parts:
                own = [next(made) for _ in part.model.outputs]
                fault = part.wrong(index, own, options)
                if fault:
                    faults.setdefault(part.case.id, fault)
            kept.append((outputs, [array.copy() for array in outputs]))
    finally:
        program.close()
    for made_before, copies in kept:
        if not all(map(_is_same, made_before, copies)):
            raise _Spoiled("an output changed when the program ran again")
    return faults


def _is_same(array: Array, before: Array) -> bool:
    return array.tobytes() == before.tobytes()


def join(models: Sequence[Model]) -> Model:
    """Models side by side in one, in which no two operations, or open sizes, share a name."""
    apart = [_renamed(model, f"case{index}.") for index, model in enumerate(models)]
    inputs = [operand for model in apart for operand in model.inputs.values()]
    outputs = [operand for model in apart for operand in model.outputs.values()]
    return Model(
        "cases",
        {f"input{index}": operand for index, operand in enumerate(inputs)},
        [operation for model in apart for operation in model.operations],
        {f"output{index}": operand for index, operand in enumerate(outputs)},
    )


def _renamed(model: Model, prefix: str) -> Model:
    """A model with a prefix before the names of its operations, operands and sizes."""
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
