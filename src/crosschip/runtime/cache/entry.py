"""The description of a cache entry."""

from __future__ import annotations

from crosschip.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """The model, device and options that an entry is for.

    Attributes:
        key: the key (see `crosschip.runtime.cache.key`), or the token of a whole compiled model.
        device: the device that compiled the program; several, with commas, for a whole model.
        device_version: the version of the device; of crosschip, for a whole model.
        model: the name of the model.
        operations: the number of operations of the program.
        whole: whether the entry is a whole compiled model.
    """

    key: str
    device: str
    device_version: str
    model: str
    operations: int
    whole: bool = False
