"""The hardware abstraction layer: the driver contract, version 1, and what makes it easy to keep.

from crosschip.hal import Converters, Device, Kind, Options, Program
"""

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
from crosschip.hal.converters import Converters
from crosschip.hal.device import CONTRACT_VERSION, CompileError, Device, DeviceLost
from crosschip.hal.options import Options, Performance, Range, Sizes
from crosschip.hal.profiling import Profiler, Step
from crosschip.hal.program import Program
from crosschip.hal.sessions import Carried, ProgramSession
from crosschip.hal.support import YES, Estimate, Group, Offer, Refusal, Rule, Support
from crosschip.hal.urgency import urgency

__all__ = [
    "COMPLETED",
    "CONTRACT_VERSION",
    "YES",
    "Buffer",
    "Capabilities",
    "Carried",
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
    "ProgramSession",
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
