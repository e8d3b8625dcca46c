"""Who runs what, and why.

Each operation goes to the first device, in the caller's order, that supports it, or supports all
parts of its decomposition. What goes to one device is then cut into segments. Control flow goes
whole to a device that supports it, unless devices before that one run all of its bodies; else the
runtime runs it, and its bodies are placed like any model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crosschip.hal import Rule, Support
from crosschip.ir import Model, Operation, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.passes import verifying
from crosschip.runtime.asking import Ask, Verdict, Verdicts, broken_group, verdicts
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.measuring import Choice
from crosschip.runtime.segments import Segment, segments_of

Refusals = dict[str, dict[str, Support]]
"""Answers that take the place of a device's own, by device and operation name."""

_NOBODY = ""  # no device has this name


@dataclass(frozen=True, slots=True)
class Decision:
    """Where an operation of the model went.

    Attributes:
        operation: the operation.
        device: who runs it; `None` if nobody does.
        verdicts: what each device that was asked does about it, in the order of preference.
        bodies: where the bodies of control flow went that the runtime runs.
    """

    operation: Operation
    device: str | None
    verdicts: Mapping[str, Verdict]
    bodies: Sequence[Placement] = ()

    @property
    def name(self) -> str:
        """The operation's name."""
        return self.operation.name

    @property
    def type(self) -> str:
        """The name of its operator."""
        return self.operation.type

    @property
    def parts(self) -> Sequence[Operation]:
        """The operations that run: the operation itself, or those of its decomposition."""
        if self.device is None:
            return ()
        return self.verdicts[self.device].simpler or (self.operation,)

    @property
    def reasons(self) -> Mapping[str, str]:
        """What each device that was asked had to say."""
        return {device: verdict.text for device, verdict in self.verdicts.items()}

    @property
    def refusals(self) -> Sequence[Support]:
        """The answers of the devices that would have come before the one that runs it.

        Control flow that the runtime runs was refused by none: its bodies are where it wanted to.
        """
        if self.device == RUNTIME:
            return []
        asked = list(self.verdicts)
        before = asked if self.device is None else asked[: asked.index(self.device)]
        return [self.verdicts[name].support for name in before]


@dataclass(frozen=True, slots=True)
class Placement:
    """A model cut into segments, each for one device, in an order in which they can run.

    Attributes:
        model: the operations that run, and those that no device runs.
        segments: the parts of it that devices run.
        decisions: about each operation of the model as it was given.
        choice: how the devices did that `"auto"` means; `None` if the caller named them, or nobody
            has compiled the model for `"auto"` yet.
    """

    model: Model
    segments: tuple[Segment, ...]
    decisions: tuple[Decision, ...]
    choice: Choice | None = None

    @property
    def unplaced(self) -> Sequence[Decision]:
        """The decisions about operations that no device runs."""
        return [decision for decision in self.decisions if decision.device is None]

    def check(self) -> None:
        """Make sure that all of the model runs.

        Raises:
            UnsupportedError: no device runs some operation; the message lists all, with reasons.
        """
        if self.unplaced:
            raise UnsupportedError(_unplaced_text(self.model, self.unplaced))

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
        return next(d.bodies for d in self.decisions if d.name == operation.name)

    def summary(self) -> str:
        """One line: how much went where, and the main reason why not all to the first device."""
        decisions = list(self.every_decision())
        counts = Counter(decision.device or "nobody" for decision in decisions)
        shares = ", ".join(f"{device} runs {count}" for device, count in counts.most_common())
        segments = sum(1 for _ in self.every_segment())
        total = f"{len(decisions)} operations in {segments} segments: {shares}"
        refusals = Counter(
            refusal.detail if refusal.rule is Rule.FAILURE else refusal.reason
            for decision in decisions
            for refusal in decision.refusals
        )
        if not refusals:
            return total
        reason, count = refusals.most_common(1)[0]
        return f"{total}; main reason ({count}): {reason}"


def place(
    model: Model,
    devices: Mapping[str, Ask],
    refusals: Refusals | None = None,
    *,
    ask_all: bool = False,
    partial: bool = False,
) -> Placement:
    """Give every operation of a model to a device.

    Args:
        model: what to place.
        devices: how to ask each device, by name, in the order of preference.
        refusals: what is known not to work although the device says yes.
        ask_all: ask every device about every operation, for their reasons.
        partial: leave out what no device runs, rather than raise an error.

    Raises:
        ModelError: two operations of the model have one name.
        UnsupportedError: no device runs some operation; the message lists all, with reasons.
    """
    if len({operation.name for operation in model.operations}) < len(model.operations):
        model.verify()
    known: Refusals = {name: dict((refusals or {}).get(name, {})) for name in devices}
    inside = {
        operation.name: _Inside.of(operation, devices, known, ask_all=ask_all)
        for operation in model.operations
        if operation.bodies
    }
    while True:
        asked, chosen = _choose(model, devices, known, ask_all=ask_all)
        owners = dict(chosen)
        for name, bodies in inside.items():
            if bodies.go_before(owners.get(name), list(devices)):
                owners[name] = RUNTIME
        decisions, placed, owner_of = _decide(model, asked, owners, inside)
        every = segments_of(placed, owner_of, _dialects(decisions))
        segments = tuple(segment for segment in every if segment.device != _NOBODY)
        placement = Placement(placed, segments, decisions)
        if not partial:
            placement.check()
        split = _split_groups(asked, owners, segments)
        if not split:
            return placement
        for name, operation, why in split:
            known[name][operation.name] = broken_group(operation, why)


@dataclass(frozen=True, slots=True)
class _Inside:
    """The bodies of an operation, as they would be placed.

    Attributes:
        bodies: where they would go; none if they cannot be placed.
        used: the devices that would run some of them.
        problem: why they cannot be placed; empty if they can.
    """

    bodies: Sequence[Placement]
    used: frozenset[str]
    problem: str = ""

    @classmethod
    def of(
        cls,
        operation: Operation,
        devices: Mapping[str, Ask],
        refusals: Refusals,
        *,
        ask_all: bool,
    ) -> _Inside:
        """Place the bodies of an operation."""
        try:
            placed = [place(body, devices, refusals, ask_all=ask_all) for body in operation.bodies]
        except UnsupportedError as error:
            return cls((), frozenset(), str(error))
        used = {decision.device or _NOBODY for body in placed for decision in body.every_decision()}
        return cls(placed, frozenset(used - {RUNTIME}))

    def go_before(self, whole: str | None, order: Sequence[str]) -> bool:
        """Whether to run the bodies one by one, rather than all of it on a device."""
        if whole is None or self.problem:
            return not self.problem
        before = order[: order.index(whole)]
        return bool(self.used) and self.used <= set(before)


def _choose(
    model: Model, devices: Mapping[str, Ask], known: Refusals, *, ask_all: bool
) -> tuple[Mapping[str, Verdicts], Mapping[str, str]]:
    """The verdicts of the devices that were asked, and the device for each operation, by name."""
    asked: dict[str, Verdicts] = {}
    owners: dict[str, str] = {}
    wanted = {operation.name for operation in model.operations}
    for name, ask in devices.items():
        if not wanted and asked:
            break
        asked[name] = verdicts(model, ask, wanted, known[name])
        for operation, verdict in asked[name].of.items():
            if verdict:
                owners.setdefault(operation, name)
        if not ask_all:
            wanted = wanted - owners.keys()
    return asked, owners


def _decide(
    model: Model,
    asked: Mapping[str, Verdicts],
    owners: Mapping[str, str],
    inside: Mapping[str, _Inside],
) -> tuple[tuple[Decision, ...], Model, Mapping[Operation, str]]:
    """The decisions, the model of what runs, and the device of each operation of that."""
    decisions: list[Decision] = []
    operations: list[Operation] = []
    owner_of: dict[Operation, str] = {}
    alike: dict[tuple[int, ...], dict[str, Verdict]] = {}
    for operation in model.operations:
        spend()
        about = {
            name: found.of[operation.name]
            for name, found in asked.items()
            if operation.name in found.of
        }
        # Most operations have the same verdicts, which are kept once.
        about = alike.setdefault(tuple(map(id, about.values())), about)
        device = owners.get(operation.name)
        bodies: Sequence[Placement] = ()
        if device == RUNTIME:
            about = {**about, RUNTIME: Verdict(Support(True, detail="runs its bodies"))}
            bodies = inside[operation.name].bodies
        elif device is None and operation.name in inside:
            no = Support.no(operation, "", inside[operation.name].problem)
            about = {**about, RUNTIME: Verdict(no)}
        decision = Decision(operation, device, about, bodies)
        decisions.append(decision)
        for part in decision.parts or (operation,):
            operations.append(part)
            owner_of[part] = device or _NOBODY
    placed = Model(model.name, model.inputs, operations, model.outputs)
    if verifying():
        placed.verify()
    return tuple(decisions), placed, owner_of


def _dialects(decisions: Sequence[Decision]) -> Mapping[Operation, str]:
    """The word for how its device reads an operation, where there is one."""
    return {
        part: decision.verdicts[decision.device].support.dialect
        for decision in decisions
        if decision.device is not None and decision.verdicts[decision.device].support.dialect
        for part in decision.parts
    }


def _split_groups(
    asked: Mapping[str, Verdicts], owners: Mapping[str, str], segments: Sequence[Segment]
) -> list[tuple[str, Operation, str]]:
    """The members of groups that their device does not get whole, in one segment."""
    grouped = [(name, *group) for name, found in asked.items() for group in found.groups]
    if not grouped:
        return []
    segment_of = {o: index for index, s in enumerate(segments) for o in s.model.operations}
    split = []
    for name, why, group in grouped:
        mine = [operation for operation in group if owners.get(operation.name) == name]
        if mine and (len(mine) < len(group) or len({segment_of[o] for o in mine}) > 1):
            split += [(name, operation, why) for operation in mine]
    return split


def _unplaced_text(model: Model, unplaced: Sequence[Decision]) -> str:
    by_reasons = Counter(
        "; ".join(f"{device}: {reason}" for device, reason in decision.reasons.items())
        for decision in unplaced
    )
    lines = [f"  {count} x {reasons}" for reasons, count in by_reasons.most_common(10)]
    if len(by_reasons) > 10:
        lines.append(f"  and {len(by_reasons) - 10} more kinds")
    return (
        f"{model.name}: none of the devices runs {len(unplaced)} of its operations; "
        f"add a device that does (`reference` runs every standard operator):\n" + "\n".join(lines)
    )
