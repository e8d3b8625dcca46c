"""Assembly of a compiled model from its programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from crosschip.hal import Options
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.details import CompileReport, Details

if TYPE_CHECKING:
    from crosschip.runtime.choice import Choice
    from crosschip.runtime.guard.devices import GuardedDevice
    from crosschip.runtime.outline import Outline
    from crosschip.runtime.programs import SegmentProgram


def assemble(
    outline: Outline,
    programs: Sequence[SegmentProgram],
    devices: Mapping[str, GuardedDevice],
    options: Options,
    details: Details,
    *,
    source: Callable[[], str],
    choice: Choice | None = None,
    owned: Iterable[GuardedDevice] = (),
    in_flight: int | None = None,
    queue_size: int = 64,
) -> CompiledModel:
    """Assemble a compiled model.

    Args:
        outline: the placement of the programs, or its outline.
        programs: the program of each segment, in order.
        devices: the devices, by name.
        options: the options that the programs were compiled with.
        details: the placement and what else runs do not need, computed on demand.
        source: returns where the programs came from; see `CompileReport.cache`.
        choice: the choice of `"auto"`; `None` if the caller named devices.
        owned: the devices to close with the compiled model.
        in_flight: the number of requests that run at once; `None` for the options' number.
        queue_size: the maximum number of waiting requests.
    """
    report = CompileReport(0.0, source, choice)
    compiled = CompiledModel(
        outline, programs, devices, options, report, details, in_flight, queue_size
    )
    compiled.own(owned)
    return compiled
