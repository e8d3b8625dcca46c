"""The choice of devices by measurement: the time of each, and of the best mixture of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from crosschip.ir.dataclass import dataclass
from crosschip.runtime.placement.costs import PlacementCosts
from crosschip.runtime.plain import from_plain, to_plain
from crosschip.runtime.shapes.formatting import shapes_in_words

ShapeKey = tuple[tuple[int, ...], ...]
"""The shapes of all inputs, in order; empty for those that are no tensors."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The measurement of a device.

    Attributes:
        device: its name.
        milliseconds: the lower quartile of the run times, which other load disturbs little; `None`
            if it was not run or failed.
        whole: whether the device compiles the whole model.
        operations: the number of operations that it runs, if not all.
        reason: why there is no time; empty if there is one or none was needed.
    """

    device: str
    milliseconds: float | None = None
    whole: bool = False
    operations: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """The move of a compiled model to a faster device while it ran.

    Attributes:
        source: the name of the device that ran it before.
        destination: the name of the device that has run it since.
        milliseconds_before: the time of a run on the former.
        milliseconds_after: the time of a run on the latter.
        calls: the number of calls that had been answered before.
        seconds: the time since `compile` returned.
    """

    source: str
    destination: str
    milliseconds_before: float
    milliseconds_after: float
    calls: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"moved from {self.source} to {self.destination} after {self.seconds:.2f} s and "
            f"{self.calls} calls: {self.milliseconds_before:.3g} ms → "
            f"{self.milliseconds_after:.3g} ms a call"
        )


@dataclass(frozen=True, slots=True)
class Mixture:
    """A placement on several devices that is faster than the whole model on one.

    Attributes:
        runs: a device and a number of consecutive operations that it runs, for all operations in
            the model's order. The device is empty for control flow that the runtime runs.
        milliseconds: the time of a run.
        milliseconds_alone: the time of a run without the mixture, measured in turns with it.
        segments: the number of segments.
    """

    runs: tuple[tuple[str, int], ...]
    milliseconds: float
    milliseconds_alone: float
    segments: int

    @property
    def devices(self) -> list[str]:
        """The names of the devices, those first that run most operations."""
        counts = Counter[str]()
        for device, count in self.runs:
            counts[device] += count
        return [device for device, _ in counts.most_common() if device]

    @property
    def requested(self) -> list[str | None]:
        """The device of each operation of the model; `None` for the runtime."""
        return [device or None for device, count in self.runs for _ in range(count)]

    def __str__(self) -> str:
        gain = self.milliseconds_alone / self.milliseconds - 1
        return (
            f"{' + '.join(self.devices)} in {self.segments} segments {self.milliseconds:.3g} ms "
            f"({gain:.0%} faster)"
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The measurements of devices, in the order of preference.

    Attributes:
        trials: one for each device.
        shapes: the shapes of the inputs in the measurements, by name, the largest of several;
            empty if no device was measured.
        problem: why no device was measured although several run the whole model, and what to do;
            empty if there is no such problem.
        call_shapes: the shapes of all inputs in each of the measured calls of the program; empty if
            the inputs were generated.
        mixture: the placement on several devices; `None` if none is faster.
        costs: the costs of the placement; `None` if they were not measured.
        undivided: why no placement on several devices was tried; empty if some were.
    """

    trials: tuple[Trial, ...]
    shapes: Mapping[str, tuple[int, ...]]
    problem: str = ""
    call_shapes: tuple[ShapeKey, ...] = ()
    mixture: Mixture | None = None
    costs: PlacementCosts | None = None
    undivided: str = ""

    @property
    def on_calls(self) -> bool:
        """Whether the inputs were those of the program's calls."""
        return bool(self.call_shapes)

    @property
    def order(self) -> list[str]:
        """The names of the devices, the fastest first."""
        return [trial.device for trial in self.trials]

    @property
    def summary(self) -> str:
        """The origin of the order of the devices, in a few words."""
        if self.problem:
            return "no device was measured"
        times = [f"{t.device} {t.milliseconds:.3g} ms" for t in self.trials if t.milliseconds]
        if times:
            at = f" at {shapes_in_words(self.shapes)}" if self.shapes else ""
            if len(self.call_shapes) > 1:
                at = f"{at} and {len(self.call_shapes) - 1} other shapes"
            times += [str(self.mixture)] if self.mixture else []
            return f"measured{at}: {', '.join(times)}"
        if self.mixture:
            return f"measured: {self.mixture}"
        if self.trials and self.trials[0].whole:
            return f"nothing to measure: only {self.trials[0].device} runs the whole model"
        return "nothing to measure: no device runs the whole model"

    def __str__(self) -> str:
        others = [f"{trial.device} ({trial.reason})" for trial in self.trials if trial.reason]
        text = f"{self.summary}; not measured: {', '.join(others)}" if others else self.summary
        if self.undivided:
            text = f"{text}; no mixture was tried: {self.undivided}"
        return f"{text}; {self.problem}" if self.problem else text

    def to_bytes(self) -> bytes:
        """Return the choice as JSON."""
        return json.dumps(to_plain(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Choice:
        """Parse the result of `to_bytes`.

        Raises:
            ValueError: the content is malformed.
        """
        try:
            return from_plain(cls, json.loads(data))
        except ValueError as error:
            raise ValueError(f"no choice of devices: {error}") from None
