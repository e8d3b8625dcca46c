"""Who runs what, and why.

Each operation goes to the first device, in the caller's order, that supports it, or supports all
parts of its decomposition. What goes to one device is then cut into segments. Control flow goes
whole to a device that supports it, unless devices before that one run all of its bodies; else the
runtime runs it, and the bodies are placed like any model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from crosschip.hal import Support
from crosschip.ir import Builder, Model, Operand, Operation, UnsupportedError
from crosschip.ir.garbage import collection_paused
from crosschip.ops import Operator
from crosschip.ops.standard.conversion import Assign
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.segments import Segment, segments_of

Supports = Callable[[Operation], Support]
Refusals = Mapping[tuple[str, str], str]
"""Reasons not to give an operation to a device, by (device name, operation name)."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Where an operation of the model went.

    Attributes:
        name: the operation's.
        type: its operator's.
        device: who runs it.
        reasons: what each device that was asked had to say.
        parts: the operations that run: the operation itself, or those of its decomposition.
        bodies: where the bodies of control flow went that the runtime runs.
    """

    name: str
    type: str
    device: str
    reasons: Mapping[str, str]
    parts: Sequence[Operation]
    bodies: Sequence[Placement] = ()

    @property
    def refusals(self) -> Sequence[str]:
        """The reasons of the devices that would have come before the one that runs it."""
        if self.device == RUNTIME:
            return []
        before = list(self.reasons).index(self.device)
        return list(self.reasons.values())[:before]


@dataclass(frozen=True, slots=True)
class Placement:
    """A model cut into segments, each for one device, in an order in which they can run."""

    model: Model
    segments: tuple[Segment, ...]
    decisions: tuple[Decision, ...]

    def every_decision(self) -> Iterator[Decision]:
        """The decisions about the model's operations and, after each, those about its bodies'."""
        for decision in self.decisions:
            yield decision
            for body in decision.bodies:
                yield from body.every_decision()

    def every_segment(self) -> Iterator[Segment]:
        """The segments of the model, and those of bodies."""
        yield from self.segments
        for decision in self.decisions:
            for body in decision.bodies:
                yield from body.every_segment()

    def bodies(self, operation: Operation) -> Sequence[Placement]:
        """Where the bodies of an operation went that the runtime runs."""
        return next(d.bodies for d in self.decisions if d.bodies and operation in d.parts)

    def summary(self) -> str:
        """One line: how much went where, and the main reason why not all to the first device."""
        decisions = list(self.every_decision())
        counts = Counter(decision.device for decision in decisions)
        shares = ", ".join(f"{device} runs {count}" for device, count in counts.most_common())
        segments = sum(1 for _ in self.every_segment())
        total = f"{len(decisions)} operations in {segments} segments: {shares}"
        refusals = Counter(
            _without_instance(reason) for decision in decisions for reason in decision.refusals
        )
        if not refusals:
            return total
        reason, count = refusals.most_common(1)[0]
        return f"{total}; main reason ({count}): {reason}"


@collection_paused()
def place(
    model: Model,
    devices: Mapping[str, Supports],
    refusals: Refusals | None = None,
    *,
    ask_all: bool = False,
) -> Placement:
    """Give every operation of a model to a device.

    Args:
        model: what to place.
        devices: how to ask each device, by name, in the order of preference.
        refusals: what is known not to work although the device said yes.
        ask_all: ask every device about every operation, for their reasons.

    Raises:
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
    """
    decisions: list[Decision] = []
    operations: list[Operation] = []
    owner: dict[Operation, str] = {}
    unplaced: list[tuple[Operation, dict[str, str]]] = []
    for operation in model.operations:
        bodies, used, missing = _bodies(operation, devices, refusals, ask_all)
        reasons: dict[str, str] = {}
        chosen: tuple[str, Sequence[Operation]] | None = None
        for name, supports in devices.items():
            if used and used <= reasons.keys() and chosen is None:
                chosen = RUNTIME, (operation,)  # devices before this one run it
            if chosen is not None and not ask_all:
                break
            refusal = (refusals or {}).get((name, operation.name), "")
            parts, reasons[name] = _parts(operation, supports, refusal)
            if parts is not None and chosen is None:
                chosen = name, parts
        if chosen is None and bodies:
            chosen = RUNTIME, (operation,)
        if chosen is None:
            unplaced.append((operation, {**reasons, **missing}))
            continue
        device, parts = chosen
        inside = bodies if device == RUNTIME else ()
        decisions.append(Decision(operation.name, operation.type, device, reasons, parts, inside))
        operations.extend(parts)
        owner.update(dict.fromkeys(parts, device))
    if unplaced:
        raise UnsupportedError(_unplaced_text(model, unplaced))
    placed = Model(model.name, model.inputs, operations, model.outputs)
    return Placement(placed, segments_of(placed, owner), tuple(decisions))


def _bodies(
    operation: Operation,
    devices: Mapping[str, Supports],
    refusals: Refusals | None,
    ask_all: bool,
) -> tuple[Sequence[Placement], Set[str], Mapping[str, str]]:
    """Where the bodies of an operation would go, the devices that run some of them, or why not."""
    try:
        placed = [place(body, devices, refusals, ask_all=ask_all) for body in operation.bodies]
    except UnsupportedError as error:
        return (), set(), {RUNTIME: str(error)}
    used = {d.device for body in placed for d in body.every_decision()} - {RUNTIME}
    return placed, used, {}


def _parts(
    operation: Operation, supports: Supports, refusal: str
) -> tuple[Sequence[Operation] | None, str]:
    """The operations that a device runs in place of one, or `None`; and what to say about it."""
    if refusal:
        return None, refusal
    answer = supports(operation)
    if answer:
        return (operation,), answer.reason or "supported"
    parts = _decomposed(operation, supports)
    if parts is None:
        return None, answer.reason
    types = ", ".join(f"{part.type}" for part in parts)
    return parts, f"decomposed into {types}, since {answer.reason}"


def _decomposed(operation: Operation, supports: Supports) -> Sequence[Operation] | None:
    """The operation as simpler ones that the device supports; `None` if there is no such way."""
    if not isinstance(operation, Operator):
        return None
    builder = Builder(prefix=f"{operation.name}.")
    results = operation.decomposition(builder)
    if results is None:
        return None
    parts: list[Operation] = []
    for part in _making(operation.outputs, results, builder):
        if supports(part):
            parts.append(part)
        else:
            smaller = _decomposed(part, supports)
            if smaller is None:
                return None
            parts.extend(smaller)
    return parts


def _making(
    outputs: Sequence[Operand], results: Sequence[Operand], builder: Builder
) -> Sequence[Operation]:
    """The builder's operations, so that they make the outputs in place of the results."""
    made = {operand for operation in builder.operations for operand in operation.outputs}
    renamed: dict[Operand, Operand] = {}
    for output, result in zip(outputs, results, strict=True):
        if result not in made or result in renamed:
            result = builder.add(Assign, renamed.get(result, result))
        renamed[result] = output
    return [
        operation.with_inputs(
            tuple(None if o is None else renamed.get(o, o) for o in operation.inputs),
            tuple(renamed.get(o, o) for o in operation.outputs),
        )
        for operation in builder.operations
    ]


def _unplaced_text(model: Model, unplaced: Sequence[tuple[Operation, dict[str, str]]]) -> str:
    by_reasons = Counter(
        "; ".join(f"{device}: {reason}" for device, reason in reasons.items())
        for _, reasons in unplaced
    )
    lines = [f"  {count} x {reasons}" for reasons, count in by_reasons.most_common(10)]
    if len(by_reasons) > 10:
        lines.append(f"  and {len(by_reasons) - 10} more kinds")
    return (
        f"{model.name}: none of the devices runs {len(unplaced)} of its operations; "
        f"add a device that does (`reference` runs every standard operator):\n" + "\n".join(lines)
    )


def _without_instance(reason: str) -> str:
    """A reason without what follows its first sentence, so that like ones are counted together."""
    return reason.split(", since ")[-1]
