"""A placement as plain data and models, and back: who runs what, and why, without asking again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosschip.hal import YES, Support
from crosschip.ir import Model, Operand, Operation
from crosschip.ir.bodies import every_constant
from crosschip.ir.dimension import name_of
from crosschip.ir.encoding import Fresh, decode_size, encode_shape
from crosschip.lowering.decomposition import model_of_parts
from crosschip.runtime.artifact.conditions import condition_from, describe_condition
from crosschip.runtime.choice import Choice
from crosschip.runtime.control import RUNTIME, ControlProgram
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.placement.asking import Answers
from crosschip.runtime.placement.choosing import Assignment
from crosschip.runtime.placement.placing import EngineSettings, Inside, Placement
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.plain import from_plain, to_plain
from crosschip.runtime.programs import SegmentProgram

LARGE = 2**12
"""The bytes from which on a constant is worth leaving out."""


def describe(placement: Placement, models: list[Model]) -> dict[str, Any]:
    """A placement as JSON can say it.

    Args:
        placement: what to describe; the model that it is of is not part of it.
        models: where decompositions are added, which are referred to by their place.
    """
    assignment = placement.assignment
    return {
        "devices": list(placement.devices),
        "owners": assignment.owners,
        "asked": {
            device: _described_answers(answers, placement.given, models)
            for device, answers in assignment.asked.items()
        },
        "inside": [
            [index, [describe(body, models) for body in inside.bodies], sorted(inside.used)]
            for index, inside in placement.inside.items()
            if assignment.owners[index] == RUNTIME
        ],
        "problem": placement.problem,
        "ways": list(placement.ways),
        "choice": to_plain(placement.choice),
        "settings": to_plain(placement.settings),
        "in_float": list(placement.in_float),
        "conditions": [
            describe_condition(condition, named=True) for condition in placement.conditions
        ],
        "shapes": _shapes(placement) if placement.conditions else [],
    }


def restore(plain: Mapping[str, Any], given: Model, models: Sequence[Model]) -> Placement:
    """The placement that was described.

    Args:
        plain: what `describe` returned.
        given: the model that was placed.
        models: what `describe` added.

    Raises:
        LookupError, TypeError, ValueError: it is something else.
        ModelError: a decomposition breaks a rule of the model.
        UnsupportedError: there are operations that no device runs.
    """
    asked = {
        str(device): _answers(answers, given, models) for device, answers in plain["asked"].items()
    }
    owners = [None if owner is None else str(owner) for owner in plain["owners"]]
    inside = {
        int(index): _inside(given.operations[index], bodies, used, models)
        for index, bodies, used in plain["inside"]
    }
    for index, (owner, _) in enumerate(zip(owners, given.operations, strict=True)):
        if (owner == RUNTIME) != (index in inside):
            raise ValueError(f"the bodies of operation {index} go nowhere")
        if owner == RUNTIME:
            continue
        if owner is not None and not asked[owner].takes(index):
            raise ValueError(f"operation {index} goes to a device that does not run it")
    assignment = Assignment(asked, owners)
    placement = Placement(given, assignment, inside, list(map(str, plain["devices"])))
    placement.problem = str(plain["problem"])
    placement.ways = from_plain(tuple[str, ...], plain["ways"])
    placement.choice = from_plain(Choice | None, plain["choice"])  # type: ignore[arg-type]
    placement.settings = from_plain(EngineSettings, plain["settings"])  # type: ignore[type-abstract]
    placement.in_float = from_plain(tuple[str, ...], plain["in_float"])
    fresh = _renamed(plain["shapes"], given)
    placement.conditions = [
        condition_from(condition, given, fresh) for condition in plain["conditions"]
    ]
    placement.check()
    if any(answers.simpler for answers in asked.values()):
        placement.model.verify()
    return placement


def programs_by_segment(
    placement: Placement, programs: Sequence[SegmentProgram]
) -> Iterator[tuple[Segment, SegmentProgram]]:
    """The segments that devices run, those in bodies too, each with its program."""
    for segment, program in zip(placement.segments, programs, strict=True):
        if segment.device != RUNTIME:
            yield segment, program
            continue
        (operation,) = segment.model.operations
        assert isinstance(program, GuardedProgram), "the runtime has no others"
        assert isinstance(program.program, ControlProgram), "the runtime has no others"
        held = list(program.program.programs)
        for body in placement.bodies(operation):
            count = len(body.segments)
            yield from programs_by_segment(body, held[:count])
            del held[:count]


def left_out(
    placement: Placement, devices: Mapping[str, GuardedDevice], compiled_later: Sequence[Segment]
) -> set[int]:
    """The large constants that no device asks for again, by the `id` of their content.

    Args:
        placement: the placement.
        devices: by name.
        compiled_later: the segments that are compiled for further shapes, and need all they have.

    Integers that stand for themselves are kept: rules of operators may look at them.
    """
    wanted = {id(operand.content) for operand in _wanted(placement, devices)}
    wanted |= {id(o.content) for s in compiled_later for o in every_constant(s.model)}
    every = list(every_constant(placement.given)) + list(every_constant(placement.model))
    return {
        id(operand.content)
        for operand in every
        if operand.content is not None
        and operand.content.nbytes >= LARGE
        and ("float" in operand.type.element_type.value or operand.type.quantization is not None)
    } - wanted


def _wanted(placement: Placement, devices: Mapping[str, GuardedDevice]) -> Iterator[Operand]:
    """The constants that are asked for when the programs are loaded, or when they run."""
    yield from placement.model.outputs.values()
    for decision in placement.decisions:
        if decision.device == RUNTIME:
            yield from (operand for operand in decision.operation.inputs if operand is not None)
            for body in decision.bodies:
                yield from _wanted(body, devices)
        elif decision.device is not None:
            holds = devices[decision.device].capabilities.holds_weights
            yield from () if holds else _constants_of(decision.parts)


def _constants_of(operations: Sequence[Operation]) -> Iterator[Operand]:
    for operation in operations:
        yield from (operand for operand in operation.inputs if operand is not None)
        for body in operation.bodies:
            yield from every_constant(body)
            yield from body.outputs.values()


def _described_answers(answers: Answers, given: Model, models: list[Model]) -> dict[str, Any]:
    kinds: dict[Support, int] = {}
    numbers = [
        None if support is None else kinds.setdefault(support, len(kinds))
        for support in answers.supports
    ]
    simpler = []
    for index, parts in answers.simpler.items():
        simpler.append([index, len(models)])
        models.append(model_of_parts(given.operations[index], parts))
    return {
        "kinds": [to_plain(kind) for kind in kinds],
        "supports": numbers,
        "simpler": simpler,
        "groups": [[why, list(group)] for why, group in answers.groups],
    }


def _answers(plain: Mapping[str, Any], given: Model, models: Sequence[Model]) -> Answers:
    count = len(given.operations)
    kinds = [from_plain(Support, kind) for kind in plain["kinds"]]
    kinds = [YES if kind == YES else kind for kind in kinds]
    answers = Answers([None if n is None else kinds[_place(n, kinds)] for n in plain["supports"]])
    if len(answers.supports) != count:
        raise ValueError(f"there are {len(answers.supports)} answers about {count} operations")
    for index, number in plain["simpler"]:
        operation = given.operations[_place(index, given.operations)]
        answers.simpler[index] = _grafted(operation, models[_place(number, models)])
    for why, group in plain["groups"]:
        members = [_place(index, given.operations) for index in group]
        answers.groups.append((str(why), members))
    return answers


def _grafted(operation: Operation, parts: Model) -> Sequence[Operation]:
    """A decomposition that reads and makes what its operation does."""
    read = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    mine: dict[Operand, Operand] = dict(zip(parts.inputs.values(), read, strict=True))
    mine.update(zip(parts.outputs.values(), operation.outputs, strict=True))
    return [
        part.with_inputs(
            tuple([None if o is None else mine.get(o, o) for o in part.inputs]),
            tuple([mine.get(o, o) for o in part.outputs]),
        )
        for part in parts.operations
    ]


def _shapes(placement: Placement) -> list[object]:
    """The shapes of the inputs, by whose sizes conditions go."""
    return [encode_shape(o.type.shape, named=True) for o in placement.given.inputs.values()]


def _renamed(shapes: Sequence[Any], given: Model) -> Fresh:
    """The sizes of a model about which nothing is known, by the names that they had."""
    fresh: Fresh = {}
    for shape, operand in zip(shapes, given.inputs.values(), strict=bool(shapes)):
        for encoded, size in zip(shape or (), operand.type.shape or (), strict=True):
            name = name_of(decode_size(encoded))
            if name is not None and name.startswith("?"):
                fresh.setdefault(name, size)
    return fresh


def _inside(
    operation: Operation, bodies: Sequence[Any], used: Sequence[Any], models: Sequence[Model]
) -> Inside:
    if not bodies:
        raise ValueError(f"{operation.name!r} has no bodies")
    pairs = zip(bodies, operation.bodies, strict=True)
    placed = [restore(plain, body, models) for plain, body in pairs]
    return Inside(placed, frozenset(map(str, used)))


def _place(index: object, among: Sequence[object]) -> int:
    """An index, if it is one."""
    if type(index) is not int or not 0 <= index < len(among):
        raise ValueError(f"{index!r} is no place among {len(among)}")
    return index
