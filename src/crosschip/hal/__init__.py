"""Hardware abstraction layer: the driver contract, version 1, with helpers for drivers.

from crosschip.hal import Converters, Device, Kind, Options, Program

Names are imported at first use, because running a compiled model needs few of them.
"""

from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.hal.buffers import COMPLETED as COMPLETED
    from crosschip.hal.buffers import Buffer as Buffer
    from crosschip.hal.buffers import Event as Event
    from crosschip.hal.buffers import HostBuffer as HostBuffer
    from crosschip.hal.buffers import HostEvent as HostEvent
    from crosschip.hal.buffers import Submission as Submission
    from crosschip.hal.capabilities import SCHEDULING as SCHEDULING
    from crosschip.hal.capabilities import Capabilities as Capabilities
    from crosschip.hal.capabilities import Forking as Forking
    from crosschip.hal.capabilities import Instance as Instance
    from crosschip.hal.capabilities import Kind as Kind
    from crosschip.hal.capabilities import Layout as Layout
    from crosschip.hal.capabilities import Precision as Precision
    from crosschip.hal.capabilities import Sizing as Sizing
    from crosschip.hal.capabilities import processor as processor
    from crosschip.hal.converters import Converters as Converters
    from crosschip.hal.device import CONTRACT_VERSION as CONTRACT_VERSION
    from crosschip.hal.device import CompileError as CompileError
    from crosschip.hal.device import Device as Device
    from crosschip.hal.device import DeviceLost as DeviceLost
    from crosschip.hal.options import Options as Options
    from crosschip.hal.options import Performance as Performance
    from crosschip.hal.options import Range as Range
    from crosschip.hal.options import Sizes as Sizes
    from crosschip.hal.program import Carried as Carried
    from crosschip.hal.program import Profiler as Profiler
    from crosschip.hal.program import Program as Program
    from crosschip.hal.program import ProgramSession as ProgramSession
    from crosschip.hal.program import Step as Step
    from crosschip.hal.support import YES as YES
    from crosschip.hal.support import Estimate as Estimate
    from crosschip.hal.support import Group as Group
    from crosschip.hal.support import Offer as Offer
    from crosschip.hal.support import Refusal as Refusal
    from crosschip.hal.support import Rule as Rule
    from crosschip.hal.support import Support as Support

urgency: ContextVar[int] = ContextVar("urgency", default=2)
"""NNRt's priority of the thread's current run: 0 for none, 1 for low, 2 for medium, 3 for high."""

_MODULES = {
    "buffers": "Buffer COMPLETED Event HostBuffer HostEvent Submission",
    "capabilities": "Capabilities Forking Instance Kind Layout Precision SCHEDULING Sizing "
    "processor",
    "converters": "Converters",
    "device": "CONTRACT_VERSION CompileError Device DeviceLost",
    "options": "Options Performance Range Sizes",
    "program": "Carried Profiler Program ProgramSession Step",
    "support": "Estimate Group Offer Refusal Rule Support YES",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted([*_HOMES, "urgency"])


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return member
