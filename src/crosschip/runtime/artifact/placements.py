"""Serialization of a placement to plain data and models, and its restoration without queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosschip.hal import YES, Support
from crosschip.ir import Model, Operand, Operation
from crosschip.ir.bodies import walk_constants
from crosschip.ir.dimension import name_of
from crosschip.ir.encoding import Fresh, decode_size, encode_shape
from crosschip.lowering.decomposition import model_of_parts
from crosschip.runtime.artifact.conditions import describe_condition, restore_condition
from crosschip.runtime.choice import Choice
from crosschip.runtime.control import RUNTIME, ControlProgram
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.guard.programs import GuardedProgram
from crosschip.runtime.placement.assignment import Assignment
from crosschip.runtime.placement.placement import BodyPlacements, EngineSettings, Placement
from crosschip.runtime.placement.queries import Answers
from crosschip.runtime.placement.segments import Segment
from crosschip.runtime.plain import from_plain, to_plain
from crosschip.runtime.programs import SegmentProgram

MIN_OMITTED_NBYTES = 2**12
"""The minimum size of a constant that is left out, in bytes."""


def describe(placement: Placement, models: list[Model]) -> dict[str, Any]:
    """Return a placement as plain JSON values.

    Args:
        placement: the placement; its original model is not part of the result.
        models: the list to which decompositions are added; the result refers to their indices.
    """
    assignment = placement.assignment
    return {
        "devices": list(placement.devices),
        "assigned_devices": assignment.devices,
        "answers": {
            device: _describe_answers(answers, placement.original, models)
            for device, answers in assignment.answers.items()
        },
        "bodies": [
            [index, [describe(body, models) for body in inside.bodies], sorted(inside.used)]
            for index, inside in placement.inside.items()
            if assignment.devices[index] == RUNTIME
        ],
        "problem": placement.problem,
        "shape_strategies": list(placement.shape_strategies),
        "choice": to_plain(placement.choice),
        "settings": to_plain(placement.settings),
        "float32_operations": list(placement.in_float),
        "conditions": [
            describe_condition(condition, named=True) for condition in placement.conditions
        ],
        "shapes": _describe_shapes(placement) if placement.conditions else [],
    }


def restore(plain: Mapping[str, Any], model: Model, models: Sequence[Model]) -> Placement:
    """Return the placement that `describe` described.

    Args:
        plain: the result of `describe`.
        model: the placed model.
        models: the list with the decompositions that `describe` added.

    Raises:
        LookupError, TypeError, ValueError: `plain` is malformed.
        ModelError: a decomposition is invalid.
        UnsupportedError: no device runs some operation.
    """
    answers_by_device = {
        str(device): _restore_answers(answers, model, models)
        for device, answers in plain["answers"].items()
    }
    assigned = [None if device is None else str(device) for device in plain["assigned_devices"]]
    bodies_by_operation = {
        int(index): _restore_bodies(model.operations[index], bodies, used, models)
        for index, bodies, used in plain["bodies"]
    }
    for index, (device, _) in enumerate(zip(assigned, model.operations, strict=True)):
        if (device == RUNTIME) != (index in bodies_by_operation):
            raise ValueError(f"the bodies of operation {index} go nowhere")
        if device == RUNTIME:
            continue
        if device is not None and not answers_by_device[device].takes(index):
            raise ValueError(f"operation {index} goes to a device that does not run it")
    assignment = Assignment(answers_by_device, assigned)
    placement = Placement(model, assignment, bodies_by_operation, list(map(str, plain["devices"])))
    placement.problem = str(plain["problem"])
    placement.shape_strategies = from_plain(tuple[str, ...], plain["shape_strategies"])
    placement.choice = from_plain(Choice | None, plain["choice"])  # type: ignore[arg-type]
    placement.settings = from_plain(EngineSettings, plain["settings"])  # type: ignore[type-abstract]
    placement.in_float = from_plain(tuple[str, ...], plain["float32_operations"])
    fresh = _sizes_by_name(plain["shapes"], model)
    placement.conditions = [
        restore_condition(condition, model, fresh) for condition in plain["conditions"]
    ]
    placement.check()
    if any(answers.simpler for answers in answers_by_device.values()):
        placement.model.verify()
    return placement


def programs_by_segment(
    placement: Placement, programs: Sequence[SegmentProgram]
) -> Iterator[tuple[Segment, SegmentProgram]]:
    """Return each segment that a device runs, including those in bodies, with its program."""
    for segment, program in zip(placement.segments, programs, strict=True):
        if segment.device != RUNTIME:
            yield segment, program
            continue
        (operation,) = segment.model.operations
        assert isinstance(program, GuardedProgram), "the runtime has no others"
        assert isinstance(program.program, ControlProgram), "the runtime has no others"
        body_programs = list(program.program.programs)
        for body in placement.bodies(operation):
            count = len(body.segments)
            yield from programs_by_segment(body, body_programs[:count])
            del body_programs[:count]


def omitted_constants(
    placement: Placement, devices: Mapping[str, GuardedDevice], compiled_later: Sequence[Segment]
) -> set[int]:
    """Return the large constants that need not be saved, by the `id` of their content.

    Unquantized integers are kept, because operators' rules may read their values.

    Args:
        placement: the placement.
        devices: the devices, by name.
        compiled_later: the segments that are compiled for further shapes, so need their constants.
    """
    needed = {id(operand.content) for operand in _needed_constants(placement, devices)}
    needed |= {id(o.content) for s in compiled_later for o in walk_constants(s.model)}
    constants = list(walk_constants(placement.original)) + list(walk_constants(placement.model))
    return {
        id(operand.content)
        for operand in constants
        if operand.content is not None
        and operand.content.nbytes >= MIN_OMITTED_NBYTES
        and ("float" in operand.type.element_type.value or operand.type.quantization is not None)
    } - needed


def _needed_constants(
    placement: Placement, devices: Mapping[str, GuardedDevice]
) -> Iterator[Operand]:
    """Return the constants that loading or running the programs needs."""
    yield from placement.model.outputs.values()
    for decision in placement.decisions:
        if decision.device == RUNTIME:
            yield from (operand for operand in decision.operation.inputs if operand is not None)
            for body in decision.bodies:
                yield from _needed_constants(body, devices)
        elif decision.device and not devices[decision.device].capabilities.holds_weights:
            yield from _constants_of(decision.parts)


def _constants_of(operations: Sequence[Operation]) -> Iterator[Operand]:
    for operation in operations:
        yield from (operand for operand in operation.inputs if operand is not None)
        for body in operation.bodies:
            yield from walk_constants(body)
            yield from body.outputs.values()


def _describe_answers(answers: Answers, model: Model, models: list[Model]) -> dict[str, Any]:
    kinds: dict[Support, int] = {}
    numbers = [
        None if support is None else kinds.setdefault(support, len(kinds))
        for support in answers.supports
    ]
    decompositions = []
    for index, parts in answers.simpler.items():
        decompositions.append([index, len(models)])
        models.append(model_of_parts(model.operations[index], parts))
    return {
        "kinds": [to_plain(kind) for kind in kinds],
        "supports": numbers,
        "decompositions": decompositions,
        "groups": [[why, list(group)] for why, group in answers.groups],
    }


def _restore_answers(plain: Mapping[str, Any], model: Model, models: Sequence[Model]) -> Answers:
    count = len(model.operations)
    kinds = [from_plain(Support, kind) for kind in plain["kinds"]]
    kinds = [YES if kind == YES else kind for kind in kinds]
    answers = Answers(
        [None if n is None else kinds[_checked_index(n, kinds)] for n in plain["supports"]]
    )
    if len(answers.supports) != count:
        raise ValueError(f"there are {len(answers.supports)} answers about {count} operations")
    for index, number in plain["decompositions"]:
        operation = model.operations[_checked_index(index, model.operations)]
        answers.simpler[index] = _graft(operation, models[_checked_index(number, models)])
    for why, group in plain["groups"]:
        members = [_checked_index(index, model.operations) for index in group]
        answers.groups.append((str(why), members))
    return answers


def _graft(operation: Operation, parts: Model) -> Sequence[Operation]:
    """Return a decomposition with the inputs and outputs of its operation."""
    read = dict.fromkeys(o for o in operation.inputs if o is not None and not o.is_constant)
    operands: dict[Operand, Operand] = dict(zip(parts.inputs.values(), read, strict=True))
    operands.update(zip(parts.outputs.values(), operation.outputs, strict=True))
    return [
        part.with_inputs(
            tuple([None if o is None else operands.get(o, o) for o in part.inputs]),
            tuple([operands.get(o, o) for o in part.outputs]),
        )
        for part in parts.operations
    ]


def _describe_shapes(placement: Placement) -> list[object]:
    """Return the shapes of the inputs, to whose sizes conditions refer."""
    return [encode_shape(o.type.shape, named=True) for o in placement.original.inputs.values()]


def _sizes_by_name(shapes: Sequence[Any], model: Model) -> Fresh:
    """Return the unnamed sizes of a model, by their names in the saved shapes."""
    fresh: Fresh = {}
    for shape, operand in zip(shapes, model.inputs.values(), strict=bool(shapes)):
        for encoded, size in zip(shape or (), operand.type.shape or (), strict=True):
            name = name_of(decode_size(encoded))
            if name is not None and name.startswith("?"):
                fresh.setdefault(name, size)
    return fresh


def _restore_bodies(
    operation: Operation, bodies: Sequence[Any], used: Sequence[Any], models: Sequence[Model]
) -> BodyPlacements:
    if not bodies:
        raise ValueError(f"{operation.name!r} has no bodies")
    pairs = zip(bodies, operation.bodies, strict=True)
    placed = [restore(plain, body, models) for plain, body in pairs]
    return BodyPlacements(placed, frozenset(map(str, used)))


def _checked_index(index: object, items: Sequence[object]) -> int:
    """Return an index; raise ValueError if it is out of range."""
    if type(index) is not int or not 0 <= index < len(items):
        raise ValueError(f"{index!r} is no index of {len(items)} items")
    return index
