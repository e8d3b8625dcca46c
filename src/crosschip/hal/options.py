"""The caller's wishes for a compilation; the same words mean the same on every device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from crosschip.hal.capabilities import Precision
from crosschip.ir.dataclass import dataclass


class Performance(StrEnum):
    """The performance modes of NNRt: from the least power to the greatest speed."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    EXTREME = "extreme"


@dataclass(frozen=True, slots=True)
class Range:
    """The values that an open size takes.

    Attributes:
        name: the size's, as it stands in the shapes of the model's inputs.
        least: the smallest value.
        most: the greatest value.
    """

    name: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """The open sizes of a model.

    Attributes:
        ranges: the values that named sizes take; a size without a range may take any.
        profiles: values of sizes, by name, to compile for at once, sorted by name.
        specializations: for how many sets of input shapes the runtime keeps programs of a device
            that compiles known sizes only; the least recently used is dropped.
    """

    ranges: tuple[Range, ...] = ()
    profiles: tuple[tuple[tuple[str, int], ...], ...] = ()
    specializations: int = 16

    @classmethod
    def of(
        cls,
        ranges: Mapping[str, tuple[int, int]],
        profiles: Sequence[Mapping[str, int]],
        specializations: int = 16,
    ) -> Sizes:
        """Sizes from what people write: `{"N": (1, 8)}` and `[{"N": 1}, {"N": 8}]`."""
        return cls(
            tuple(Range(name, *bounds) for name, bounds in sorted(ranges.items())),
            tuple(tuple(sorted(profile.items())) for profile in profiles),
            specializations,
        )

    @property
    def bounded(self) -> frozenset[str]:
        """The names of the sizes that have a range."""
        return frozenset(entry.name for entry in self.ranges)


@dataclass(frozen=True, slots=True)
class Options:
    """The caller's wishes for compiling.

    Attributes:
        precision: the arithmetic for float32 operations.
        threads: how many processor threads a run may use; `None` leaves it to the device.
        in_flight: how many runs there will be at once. A device that runs on the processor divides
            its cores among them; with 1, each run may have all.
        sizes: the open sizes.
        performance: the balance between speed and power; a wish, which a device keeps as far as
            its engine offers something for it (`Device.modes`). What `threads` and the device's
            properties say comes before it.
    """

    precision: Precision = Precision.FLOAT32
    threads: int | None = None
    in_flight: int = 1
    sizes: Sizes = field(default=Sizes())
    performance: Performance = Performance.NONE

    @property
    def threads_each(self) -> int | None:
        """The number of processor threads of each run; of several, its share of the cores."""
        if self.threads is not None or self.in_flight == 1:
            return self.threads
        return max(1, _cores() // self.in_flight)


def _cores() -> int:
    """The processor's cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
