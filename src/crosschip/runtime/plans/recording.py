"""Making the plan of a model that has been compiled."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.hal import Rule
from crosschip.ir.bodies import every_operation
from crosschip.ir.reading import Reading
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
    """Return what makes the plan of a compiled model; `None` if it can have none.

    What takes long is left to whoever calls what is returned: describing the model, and reading the
    files again, to see what is in them. That makes none if one has changed since it was read.

    There is none where a program is not kept, or is compiled for each set of shapes; where the
    runtime runs control flow, or the caller gets constants back; where a device failed to compile
    something (it may not fail again); and where operators or devices are not those of installed
    packages.

    Args:
        compiled: the compiled model.
        reading: what was read when it was compiled.
    """
    placement, devices = compiled.placement, compiled.devices
    programs = compiled.details.programs
    if programs is None or not _is_plain(placement):
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


def _is_plain(placement: Placement) -> bool:
    """Return whether an outline has all that running the placement takes."""
    ends = [*placement.model.inputs.values(), *placement.model.outputs.values()]
    failed = any(
        support.rule is Rule.FAILURE
        for decision in placement.all_decisions()
        for support in decision.refusals
    )
    packaged = any(isinstance(o, PackagedOperator) for o in every_operation(placement.original))
    return not (
        failed
        or packaged
        or any(True for _ in placement.run_bodies())
        or any(operand.is_constant for operand in ends)
        or any(operand.is_constant for part in placement.segments for operand in part.outputs)
    )


def _is_installed(device: GuardedDevice) -> bool:
    """Return whether a device is that of an installed package."""
    device_class = type(device.device)
    value = f"{device_class.__module__}:{device_class.__qualname__}"
    points = entries().get(base_name(device.name).partition(":")[0], ())
    return len(points) == 1 and points[0].dist is not None and points[0].value == value
