"""Making the plan of a model that has been compiled."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crosschip.hal import Rule
from crosschip.ir.bodies import every_operation
from crosschip.ir.reading import Reading
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.serialization import many_to_bytes
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.discovery import entries, own_name
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.placing import Placement
from crosschip.runtime.placement.telling import messages
from crosschip.runtime.plain import to_plain
from crosschip.runtime.plans.outlines import describe_outline
from crosschip.runtime.plans.record import Record, Used
from crosschip.runtime.plans.sources import Origin
from crosschip.runtime.saving.identity import Needs
from crosschip.runtime.saving.placements import describe, left_out

Made = tuple[Mapping[str, Any], Sequence[bytes]]
"""The header and the parts of a file."""


def record_of(compiled: CompiledModel, reading: Reading) -> Callable[[], Made | None] | None:
    """Makes the plan of a compiled model, of which it was noted what was read; `None` if none.

    What takes long is left to whoever calls what is returned: describing the model, and reading the
    files again, to see what is in them. That makes none if one has changed since it was read.

    That is so where a program is not kept, or is compiled for each set of shapes; where the runtime
    runs control flow, or the caller gets constants back; where a device failed to compile something
    (it may not fail again); and where operators or devices are not those of installed packages.
    """
    placement, devices = compiled.placement, compiled.devices
    programs = compiled.details.programs
    if programs is None or not _is_plain(placement):
        return None
    names = dict.fromkeys(segment.device for segment in placement.segments)
    used = [_used(devices[name]) for name in names]
    if not all(used) or not all(map(_used, devices.values())):
        return None
    modules = [type(device.device).__module__ for device in devices.values()]
    identify, options = compiled.details.identity, compiled.options

    def made() -> Made | None:
        origin = Origin.of(reading, [__name__, *modules])
        if origin is None:
            return None
        record = Record(
            origin,
            names=tuple(devices),
            devices=tuple([each for each in used if each is not None]),
            programs=tuple(programs),
            options=options,
            identity=identify(),
            told=tuple(messages(placement)),
            choice=placement.choice,
        )
        models = [placement.given]
        described = json.dumps(describe(placement, models), separators=(",", ":")).encode()
        parts = [many_to_bytes(models, left_out(placement, devices, [])), described]
        return {"record": to_plain(record), "outline": describe_outline(placement)}, parts

    return made


def _is_plain(placement: Placement) -> bool:
    """Tell whether an outline says all that running the placement takes."""
    ends = [*placement.model.inputs.values(), *placement.model.outputs.values()]
    failed = any(
        support.rule is Rule.FAILURE
        for decision in placement.every_decision()
        for support in decision.refusals
    )
    packaged = any(isinstance(o, PackagedOperator) for o in every_operation(placement.given))
    return not (
        failed
        or packaged
        or any(True for _ in placement.run_bodies())
        or any(operand.is_constant for operand in ends)
        or any(operand.is_constant for part in placement.segments for operand in part.outputs)
    )


def _used(device: GuardedDevice) -> Used | None:
    """The device as a plan names it; `None` if it is not that of an installed package."""
    kind = type(device.device)
    value = f"{kind.__module__}:{kind.__qualname__}"
    found = entries().get(own_name(device.name).partition(":")[0], ())
    if len(found) != 1 or found[0].dist is None or found[0].value != value:
        return None
    return Used(Needs.of(device), kind.__module__, kind.__qualname__)
