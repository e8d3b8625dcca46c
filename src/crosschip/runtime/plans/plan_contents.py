"""Contents of the plan of a compiled model."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.hal import Rule
from crosschip.ir.bodies import walk_operations
from crosschip.ir.file_queries import Reading
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.runtime.artifact.compiled_model import Contents, describe_placement
from crosschip.runtime.artifact.header import (
    DeviceRequirements,
    Header,
    Plan,
    StoredSegment,
)
from crosschip.runtime.artifact.origin import Origin
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.discovery import base_name, entries
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.log_messages import messages
from crosschip.runtime.placement.placement import Placement
from crosschip.runtime.plain import to_plain
from crosschip.runtime.plans.outlines import describe_outline


def plan_of(compiled: CompiledModel, reading: Reading) -> Callable[[], Contents | None] | None:
    """Return a function that creates the plan of a compiled model; `None` if it can have none.

    The function does the slow work: it describes the model and digests the files. It returns `None`
    if a file has changed since it was read.

    A model has no plan if a program is not stored or is compiled for each set of shapes; if the
    runtime runs control flow; if an output is a constant; if a device failed to compile an
    operation, since it may not fail again; or if operators or devices are not from installed
    packages.

    Args:
        compiled: the compiled model.
        reading: the record of the files that were read.
    """
    placement, devices = compiled.placement, compiled.devices
    programs = compiled.details.programs
    if programs is None or not _can_be_restored(placement):
        return None
    used = dict.fromkeys(segment.device for segment in placement.segments)
    if not all(map(_is_installed, devices.values())):
        return None
    modules = [type(device.device).__module__ for device in devices.values()]
    identify, options = compiled.details.identity, compiled.options

    def describe() -> Contents | None:
        origin = Origin.of(reading, [__name__, *modules])
        if origin is None:
            return None
        classes = [type(devices[name].device) for name in used]
        plan = Plan(
            origin,
            candidates=tuple(devices),
            classes=tuple([(each.__module__, each.__qualname__) for each in classes]),
            messages=tuple(messages(placement)),
            choice=placement.choice,
            outline=describe_outline(placement),
        )
        segments = zip(placement.segments, programs, strict=True)
        header = Header(
            placement.model.name,
            identify(),
            tuple(DeviceRequirements.of(devices[name]) for name in used),
            options,
            tuple(StoredSegment(s.device, len(s.operations), entry) for s, entry in segments),
            plan,
        )
        return Contents(to_plain(header), describe_placement(placement, devices))

    return describe


def _can_be_restored(placement: Placement) -> bool:
    """Return whether the placement can be run from its outline (`runtime/outline.py`).

    Its outline does not suffice for failed operations, packaged operators, bodies that the runtime
    runs, and constants as inputs or outputs.
    """
    ends = [*placement.model.inputs.values(), *placement.model.outputs.values()]
    failed = any(
        support.rule is Rule.FAILURE
        for decision in placement.all_decisions()
        for support in decision.refusals
    )
    packaged = any(isinstance(o, PackagedOperator) for o in walk_operations(placement.original))
    return not (
        failed
        or packaged
        or any(True for _ in placement.run_bodies())
        or any(operand.is_constant for operand in ends)
        or any(operand.is_constant for part in placement.segments for operand in part.outputs)
    )


def _is_installed(device: GuardedDevice) -> bool:
    """Return whether a device is from an installed package."""
    device_class = type(device.device)
    value = f"{device_class.__module__}:{device_class.__qualname__}"
    points = entries().get(base_name(device.name).partition(":")[0], ())
    return len(points) == 1 and points[0].dist is not None and points[0].value == value
