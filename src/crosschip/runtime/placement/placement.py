"""Placement of a model: the device of each operation, the segments, and the reasons.

Devices are queried, a device is chosen for each operation, and the operations of each device are
cut into segments, which are merged as the constraints demand. An operation of control flow runs as
a whole on a device that supports it, unless preferred devices support all of its bodies; otherwise
the runtime runs the operation, and its bodies are placed like models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from crosschip.hal import YES, Rule, Support
from crosschip.hal.conditions import Condition
from crosschip.ir import Model, Operation, UnsupportedError
from crosschip.ir.dataclass import dataclass
from crosschip.lowering.decomposition import Ask
from crosschip.passes import verifying
from crosschip.runtime.choice import Choice, Move
from crosschip.runtime.control import RUNTIME
from crosschip.runtime.placement.assignment import Assignment, Refusals, choose, overruling_answers
from crosschip.runtime.placement.constraints import Constraints, unmet_constraint
from crosschip.runtime.placement.costs import PlacementCosts
from crosschip.runtime.placement.decision import Decision
from crosschip.runtime.placement.memory import over_limit
from crosschip.runtime.placement.queries import Answers, ModelQueries, Verdict, broken_group_refusal
from crosschip.runtime.placement.segment_merge import merge_segments
from crosschip.runtime.placement.segments import Segment, segments_of

if TYPE_CHECKING:
    from crosschip.runtime.profiling.profile import Profile

EngineSettings = Mapping[str, Mapping[str, str | None]]
"""Settings of engines by name, by device."""

_NO_DEVICE = ""  # no device has this name


class Placement:
    """A model cut into segments, each for one device, in an executable order.

    Attributes:
        original: the model that was placed.
        model: the operations that run, and those that no device runs.
        segments: the segments.
        devices: the devices in the order of preference.
        problem: the constraint that is not met, in words; empty if all are met.
        shape_strategies: how each segment treats dynamic shapes, without the segments of bodies.
        choice: the measurements for `"auto"`; `None` if the caller named the devices, or the model
            has not been compiled for `"auto"` yet.
        moves: the moves to faster devices that led to this placement, after `compile` with
            `wait=False`.
        settings: the settings of each engine by name, by device; `performance` is `None` if the
            engine has no setting for the requested mode.
        assignment: the device of each operation.
        inside: the placements of bodies of control flow, by the operation's index.
        conditions: the conditions on the inputs of a run under which the devices' results hold.
        quirks: what engines compute wrong and the devices avoid, in sentences by device and type of
            operator; only `explain` has it.
        in_float: the names of the operations that compute in float32 because the mixed-precision
            configuration lists them.
    """

    def __init__(
        self,
        original: Model,
        assignment: Assignment,
        inside: Mapping[int, BodyPlacements],
        devices: Sequence[str],
    ) -> None:
        """Cut a model into segments by an assignment.

        Args:
            original: the model.
            assignment: the device of each operation; `RUNTIME` for control flow that the runtime
                runs.
            inside: the placements of bodies of control flow, by the operation's index.
            devices: the devices in the order of preference.
        """
        self.original = original
        self.devices = tuple(devices)
        self.problem = ""
        self.shape_strategies: tuple[str, ...] = ()
        self.choice: Choice | None = None
        self.moves: tuple[Move, ...] = ()
        self.settings: EngineSettings = {}
        self.conditions: Sequence[Condition] = ()
        self.in_float: Sequence[str] = ()
        self.quirks: Mapping[str, Mapping[str, Sequence[str]]] = {}
        self.assignment = assignment
        self.inside = inside
        self.model, assigned_devices, dialects = _executed_model(original, assignment)
        all_segments = segments_of(
            self.model, assigned_devices, dialects, _groups(original, self.model, assignment)
        )
        self.segments = tuple([segment for segment in all_segments if segment.device != _NO_DEVICE])

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """The decision about each operation of the original model."""
        answers_by_device, assigned_devices = self.assignment.answers, self.assignment.devices
        alike: dict[tuple[tuple[int, int], ...], dict[str, Verdict]] = {}
        decisions = []
        for index, operation in enumerate(self.original.operations):
            # Most operations have the same verdicts, which are kept once.
            key = tuple(
                [
                    (id(a.supports[index]), id(a.simpler.get(index)))
                    for a in answers_by_device.values()
                ]
            )
            verdicts = alike.get(key)
            if verdicts is None:
                verdicts = alike[key] = _verdicts(answers_by_device, index)
            device, bodies = assigned_devices[index], self.inside.get(index)
            if bodies is not None:
                verdicts = {**verdicts, **bodies.verdict(operation, device)}
            placed = bodies.bodies if bodies is not None and device == RUNTIME else ()
            decisions.append(Decision(operation, device, verdicts, placed))
        return tuple(decisions)

    @property
    def costs(self) -> PlacementCosts | None:
        """The costs of the placement; `None` if they were not measured."""
        return None if self.choice is None else self.choice.costs

    @property
    def unplaced(self) -> Sequence[Decision]:
        """The decisions about operations that no device runs."""
        if None not in self.assignment.devices:
            return []
        return [decision for decision in self.decisions if decision.device is None]

    @property
    def fallbacks(self) -> Sequence[Decision]:
        """The decisions about operations that a preferred device declined, including bodies."""
        if not self.inside and self.assignment.devices.count(self.devices[0]) == len(
            self.assignment.devices
        ):
            return []
        return [decision for decision in self.all_decisions() if decision.falls_back]

    def check(self) -> None:
        """Raise unless the whole model runs and the constraints are met.

        Raises:
        UnsupportedError: no device runs some operation, or a constraint is not met; the message
                    lists those operations, with reasons.
        """
        if self.unplaced:
            from crosschip.runtime.placement.descriptions import unplaced_text

            raise UnsupportedError(unplaced_text(self.model, self.unplaced))
        if self.problem:
            raise UnsupportedError(f"{self.model.name}: {self.problem}")

    def all_decisions(self) -> Iterator[Decision]:
        """Return the decisions about all operations, each followed by those of its bodies."""
        for decision in self.decisions:
            yield decision
            for body in decision.bodies:
                yield from body.all_decisions()

    def all_segments(self) -> Iterator[Segment]:
        """Return the segments of the model and of its bodies."""
        yield from self.segments
        for body in self.run_bodies():
            yield from body.all_segments()

    def all_shape_strategies(self) -> Iterator[str]:
        """Return how each segment of `all_segments` treats dynamic shapes, in words."""
        yield from self.shape_strategies
        for body in self.run_bodies():
            yield from body.all_shape_strategies()

    def clusters(self) -> dict[Operation, str]:
        """Return a label for each placed operation: the device and the number of the segment."""
        return {
            operation: f"{segment.device} {number}"
            for number, segment in enumerate(self.segments)
            for operation in segment.operations
        }

    def bodies(self, operation: Operation) -> Sequence[Placement]:
        """Return the placements of an operation's bodies that the runtime runs."""
        operations = self.original.operations
        return next(i.bodies for index, i in self.inside.items() if operations[index] is operation)

    def summary(self) -> str:
        """Return one line: the share of each device, and the main reason for fallbacks."""
        counts = self._counts()
        on_first = Counter({self.devices[0]: counts.total()})
        shares = ", ".join(f"{device} runs {count}" for device, count in counts.most_common())
        segments = sum(1 for _ in self.all_segments())
        total = f"{counts.total()} operations in {segments} segments: {shares}"
        refusals = Counter(
            refusal.detail if refusal.rule is Rule.FAILURE else refusal.reason
            for decision in (self.all_decisions() if counts - on_first else ())
            for refusal in decision.refusals
        )
        if not refusals:
            return total
        reason, count = refusals.most_common(1)[0]
        return f"{total}; main reason ({count}): {reason}"

    def to_html(self, path: str | Path | None = None, profile: Profile | None = None) -> str | None:
        """Write an interactive page of the placement in one file, or return it if `path` is `None`.

        Args:
            path: the file.
            profile: the profile of runs, for measured times and a time line.

        Raises:
            InputError: the file cannot be written.
        """
        from crosschip.runtime.placement.page import placement_page

        return placement_page(self, path, profile)

    def _repr_html_(self) -> str:
        # Imported late, as drawings are: few placements are shown in notebooks.
        from crosschip.runtime.placement.descriptions import placement_html

        return placement_html(self, f"Placement of {self.model.name}")

    def _counts(self) -> Counter[str]:
        """Return the number of operations that each device runs, including bodies."""
        counts = Counter(owner or "nobody" for owner in self.assignment.devices)
        for body in self.run_bodies():
            counts += body._counts()
        return counts

    def run_bodies(self) -> Iterator[Placement]:
        """Return the placements of the bodies that the runtime runs."""
        for index, inside in self.inside.items():
            if self.assignment.devices[index] == RUNTIME:
                yield from inside.bodies


def place(
    model: Model,
    devices: Mapping[str, Ask],
    refusals: Refusals | None = None,
    *,
    constraints: Constraints | None = None,
    requested: Sequence[str | None] = (),
    ask_all: bool = False,
    partial: bool = False,
) -> Placement:
    """Assign each operation of a model to a device.

    Args:
        model: the model.
        devices: the function that queries each device, by name, in the order of preference.
        refusals: operations that failed on a device although it claimed support.
        constraints: the caller's constraints.
        requested: a device for each operation, which runs it if it supports it; empty for the first
            device that does.
        ask_all: whether to query every device about every operation, for their reasons.
        partial: whether to leave out operations that no device runs, and ignore unmet constraints,
            instead of raising an error.

    Raises:
        ModelError: two operations of the model have the same name.
        UnsupportedError: no device runs some operation, or a constraint is not met; the message
            lists those operations, with reasons.
    """
    if len({operation.name for operation in model.operations}) < len(model.operations):
        model.verify()
    constraints, refusals = constraints or Constraints(), refusals or {}
    queries = ModelQueries(model, devices)
    order = list(devices)
    allowed = constraints.allowed_devices
    overruling = overruling_answers(model.operations, order, refusals, allowed)
    inside = {
        index: BodyPlacements.of(operation, devices, refusals, constraints, ask_all)
        for index, operation in enumerate(model.operations)
        if operation.bodies
    }
    while True:
        assignment = choose(
            queries, order, overruling, requested, ask_all=ask_all or constraints.joins
        )
        for index, bodies in inside.items():
            if bodies.precede(assignment.devices[index], order):
                assignment.devices[index] = RUNTIME
        placement = Placement(model, assignment, inside, order)
        split = _split_groups(assignment, placement.segments, model)
        for name, index, why in split:
            overruling[name][index] = broken_group_refusal(model.operations[index], why)
        excess = [] if split else over_limit(model, assignment.devices, constraints.memory)
        for name, index, refusal in excess:
            overruling[name][index] = refusal
        if not split and not excess:
            break
    if constraints.joins:
        placement = _merge(placement, model, assignment, inside, constraints)
    placement.conditions = queries.conditions(placement.assignment.devices)
    placement.problem = unmet_constraint(placement, constraints)
    if not partial:
        placement.check()
    return placement


@dataclass(frozen=True, slots=True)
class BodyPlacements:
    """The placements of an operation's bodies.

    Attributes:
        bodies: the placements; none if the bodies cannot be placed.
        used: the devices of the operations in the bodies.
        problem: why the bodies cannot be placed; empty if they can.
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
        constraints: Constraints,
        ask_all: bool,
    ) -> BodyPlacements:
        """Place the bodies of an operation."""
        inner = constraints.within_bodies()
        try:
            placed = [
                place(body, devices, refusals, constraints=inner, ask_all=ask_all)
                for body in operation.bodies
            ]
        except UnsupportedError as error:
            return cls((), frozenset(), str(error))
        used = {
            decision.device or _NO_DEVICE for body in placed for decision in body.all_decisions()
        }
        return cls(placed, frozenset(used - {RUNTIME}))

    def precede(self, whole: str | None, order: Sequence[str]) -> bool:
        """Return whether the runtime runs the operation instead of the device `whole`."""
        if whole is None or self.problem:
            return whole is None and not self.problem
        preferred = order[: order.index(whole)]
        return bool(self.used) and self.used <= set(preferred)

    def verdict(self, operation: Operation, device: str | None) -> Mapping[str, Verdict]:
        """Return the runtime's verdict if it runs the operation or no device does."""
        if device == RUNTIME:
            return {RUNTIME: Verdict(Support(True, detail="runs its bodies"))}
        if device is None:
            return {RUNTIME: Verdict(Support.no(operation, "", self.problem))}
        return {}


def _verdicts(answers_by_device: Mapping[str, Answers], index: int) -> dict[str, Verdict]:
    verdicts = {name: answers.verdict(index) for name, answers in answers_by_device.items()}
    return {name: verdict for name, verdict in verdicts.items() if verdict is not None}


def _executed_model(
    original: Model, assignment: Assignment
) -> tuple[Model, Sequence[str], Sequence[str]]:
    """Return the model with decompositions applied, and each operation's device and dialect."""
    assigned_devices = [owner or _NO_DEVICE for owner in assignment.devices]
    words = [""] * len(assigned_devices)
    for index, owner in enumerate(assigned_devices):
        answers = assignment.answers.get(owner)
        support = None if answers is None else answers.supports[index]
        if support is not None and support is not YES:
            words[index] = support.dialect
    if not any(answers.simpler for answers in assignment.answers.values()):
        return original, assigned_devices, words
    operations: list[Operation] = []
    devices: list[str] = []
    dialects: list[str] = []
    for index, operation in enumerate(original.operations):
        answers = assignment.answers.get(assigned_devices[index])
        parts = answers.simpler.get(index) if answers is not None else None
        for part in parts or (operation,):
            operations.append(part)
            devices.append(assigned_devices[index])
            dialects.append(words[index])
    placed = Model(original.name, original.inputs, operations, original.outputs)
    if verifying():
        placed.verify()
    return placed, devices, dialects


def _merge(
    placement: Placement,
    model: Model,
    assignment: Assignment,
    inside: Mapping[int, BodyPlacements],
    constraints: Constraints,
) -> Placement:
    """Merge the placement's segments as the constraints demand; return it with the reasons."""
    assigned_devices = merge_segments(model, assignment.answers, assignment.devices, constraints)
    other = Placement(
        model, Assignment(assignment.answers, assigned_devices), inside, placement.devices
    )
    if _split_groups(other.assignment, other.segments, model):
        return placement
    for index, operation in enumerate(model.operations):
        device = assignment.devices[index]
        if device is not None and device != assigned_devices[index]:
            answers = assignment.answers[device]
            why = f"joins a segment on {assigned_devices[index]}, as the caller asks"
            answers.supports[index] = Support.no(operation, "", why, Rule.CALLER)
            answers.simpler.pop(index, None)
    return other


def _groups(original: Model, placed: Model, assignment: Assignment) -> Sequence[Sequence[int]]:
    """Return the groups that run on their device, as indices of operations of `placed`."""
    groups = [
        group
        for name, answers in assignment.answers.items()
        for _, group in answers.groups
        if all(assignment.devices[index] == name for index in group)
    ]
    if not groups:
        return []
    index_of = {operation: index for index, operation in enumerate(placed.operations)}
    return [[index_of[original.operations[index]] for index in group] for group in groups]


def _split_groups(
    assignment: Assignment, segments: Sequence[Segment], model: Model
) -> list[tuple[str, int, str]]:
    """Return the members of groups that are not in one segment of their device as a whole."""
    grouped = [
        (name, *group) for name, answers in assignment.answers.items() for group in answers.groups
    ]
    if not grouped:
        return []
    segment_of = {o: index for index, s in enumerate(segments) for o in s.operations}
    split = []
    for name, why, group in grouped:
        members = [index for index in group if assignment.devices[index] == name]
        numbers = {segment_of[model.operations[index]] for index in members}
        if members and (len(members) < len(group) or len(numbers) > 1):
            split += [(name, index, why) for index in members]
    return split
