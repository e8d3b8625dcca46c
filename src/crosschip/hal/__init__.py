"""The hardware abstraction layer: the driver contract, version 1, and what makes it easy to keep.

from crosschip.hal import Converters, Device, Kind, Options, Program

`Converters` is imported when it is first used: it needs the operators, and running does not.
"""

from typing import TYPE_CHECKING

from crosschip.hal.buffers import COMPLETED, Buffer, Event, HostBuffer, HostEvent, Submission
from crosschip.hal.capabilities import (
    Capabilities,
    Instance,
    Kind,
    Layout,
    Precision,
    Sizing,
    processor,
)
from crosschip.hal.device import CONTRACT_VERSION, CompileError, Device, DeviceLost
from crosschip.hal.options import Options, Performance, Range, Sizes
from crosschip.hal.profiling import Profiler, Step
from crosschip.hal.program import Program
from crosschip.hal.support import YES, Estimate, Group, Offer, Refusal, Rule, Support
from crosschip.hal.urgency import urgency

if TYPE_CHECKING:
    from crosschip.hal.converters import Converters as Converters

__all__ = [
    "COMPLETED",
    "CONTRACT_VERSION",
    "YES",
    "Buffer",
    "Capabilities",
    "CompileError",
    "Converters",
    "Device",
    "DeviceLost",
    "Estimate",
    "Event",
    "Group",
    "HostBuffer",
    "HostEvent",
    "Instance",
    "Kind",
    "Layout",
    "Offer",
    "Options",
    "Performance",
    "Precision",
    "Profiler",
    "Program",
    "Range",
    "Refusal",
    "Rule",
    "Sizes",
    "Sizing",
    "Step",
    "Submission",
    "Support",
    "processor",
    "urgency",
]


def __getattr__(name: str) -> object:
    if name == "Converters":
        from crosschip.hal.converters import Converters

        return Converters
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
