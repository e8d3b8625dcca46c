"""The hardware abstraction layer: everything that a vendor's device needs to know.

from crosschip.hal import Converters, Device, Kind, Options, Program, Support
"""

from crosschip.hal.converters import Converters
from crosschip.hal.device import Device, Kind, Options, Precision, Program
from crosschip.hal.sealing import seal, unsealed
from crosschip.hal.support import YES, Support

__all__ = [
    "YES",
    "Converters",
    "Device",
    "Kind",
    "Options",
    "Precision",
    "Program",
    "Support",
    "seal",
    "unsealed",
]
