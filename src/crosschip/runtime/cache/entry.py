"""The description of what is kept under a key or a token."""

from __future__ import annotations

from crosschip.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """The model, device and options that an entry is for.

    Attributes:
        key: what it is found by (see `crosschip.runtime.cache.key`), or the token of a whole model.
        device: who compiled the program; several with commas between them, for a whole model.
        device_version: the version of the device that did; of crosschip, for a whole model.
        model: the name of the model that the program is a part of.
        operations: how many operations it runs.
        whole: whether it is a whole compiled model.
    """

    key: str
    device: str
    device_version: str
    model: str
    operations: int
    whole: bool = False
