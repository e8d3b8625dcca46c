"""Options of a compilation, which mean the same on all devices."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from crosschip.hal.capabilities import Precision
from crosschip.ir.dataclass import dataclass


class Performance(StrEnum):
    """Performance modes of NNRt, from lowest power to highest speed."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    EXTREME = "extreme"


@dataclass(frozen=True, slots=True)
class Range:
    """Range of a dynamic dimension.

    Attributes:
        name: its name in the shapes of the model's inputs.
        least: the smallest value.
        most: the largest value.
    """

    name: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Dynamic dimensions of a model.

    Attributes:
        ranges: ranges of named dimensions; one without a range may have any value.
        profiles: values of named dimensions to compile for in advance, sorted by name.
        specializations: for how many sets of input shapes the runtime keeps a device's programs if
            it compiles static shapes only; the least recently used one is dropped.
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
        """Return sizes from their form in Python: `{"N": (1, 8)}` and `[{"N": 1}, {"N": 8}]`."""
        return cls(
            tuple(Range(name, *bounds) for name, bounds in sorted(ranges.items())),
            tuple(tuple(sorted(profile.items())) for profile in profiles),
            specializations,
        )

    @property
    def bounded(self) -> frozenset[str]:
        """Return the names of the dimensions that have a range."""
        return frozenset(entry.name for entry in self.ranges)


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a compilation.

    Attributes:
        precision: the arithmetic for float32 operations.
        threads: the number of processor threads per run; `None` leaves it to the device.
        in_flight: the number of concurrent runs. A CPU device divides its cores among them; with 1,
            each run may use all cores.
        sizes: the dynamic dimensions.
        performance: the trade-off between speed and power. A device applies it as far as its engine
            supports it (`Device.modes`); `threads` and the device's properties take precedence.
        alternates: whether programs of other devices run between the runs of a program. Idle
            threads should not wait in loops then, since they would take cores of the others.
    """

    precision: Precision = Precision.FLOAT32
    threads: int | None = None
    in_flight: int = 1
    sizes: Sizes = field(default=Sizes())
    performance: Performance = Performance.NONE
    alternates: bool = False

    @property
    def threads_each(self) -> int | None:
        """Return the number of processor threads per run; concurrent runs share the cores."""
        if self.threads is not None or self.in_flight == 1:
            return self.threads
        return max(1, processor_cores() // self.in_flight)


def processor_cores() -> int:
    """Return the number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
