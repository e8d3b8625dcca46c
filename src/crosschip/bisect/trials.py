"""Trials: a model is compiled for a device and run once, and crashes and hangs are outcomes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import crosschip
from crosschip.hal import Device, DeviceLost
from crosschip.hal.conditions import OutOfRange
from crosschip.ir import DeviceError, Model, UnsupportedError
from crosschip.progress import Task, task
from crosschip.runtime.placement.sources import line_of, origins_of


class Failure(StrEnum):
    """The kinds of failures without a result."""

    CRASH = "crash"
    HANG = "hang"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a trial.

    Attributes:
        outputs: the outputs, by name; empty after a failure.
        failure: the failure; `None` if there are outputs.
        detail: the device's message about the failure.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure | None = None
    detail: str = ""


class Exhausted(Exception):
    """No more trials are allowed."""


@dataclass(slots=True)
class Trials:
    """Runs models on a device and counts the runs.

    Attributes:
        device: the tested device, as a name for a driver process or as an instance.
        against: the trusted device, which runs operations that `device` does not.
        options: arguments of `crosschip.compile`.
        all: whether the device runs the whole model.
        seconds: the most seconds of all trials; `None` for no limit.
        limit: the most trials; `None` for no limit.
        in_float32: the names of operations that the device computes in float32.
        runs: the number of trials so far.
        progress: the task that says which trial runs.
    """

    device: str | Device
    against: str | Device
    options: Mapping[str, Any]
    all: bool
    seconds: float | None = None
    limit: int | None = None
    in_float32: frozenset[str] = frozenset()
    runs: int = 0
    progress: Task = field(default_factory=lambda: task("bisecting"))
    _begin: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """The seconds since the creation."""
        return time.monotonic() - self._begin

    def run(
        self,
        model: Model,
        inputs: Mapping[str, Any],
        words: str,
        pin: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Compile a model for the device, and run it once.

        Args:
            model: the model.
            inputs: its inputs.
            words: the description of the trial.
            pin: the devices of operations that run on the trusted device.

        Raises:
            Exhausted: the limit of trials or seconds is reached.
        """
        if self.limit is not None and self.runs >= self.limit:
            raise Exhausted(f"{self.limit} runs were allowed")
        if self.seconds is not None and self.elapsed >= self.seconds:
            raise Exhausted(f"{self.seconds:g} seconds were allowed")
        self.runs += 1
        self.progress.describe(f"run {self.runs}: {words}")
        alone, both = [self.device], [self.device, self.against]
        try:
            return self._outcome(model, inputs, both if pin else alone, pin)
        except (OutOfRange, UnsupportedError):
            # The device declines some operation of the part; the trusted device runs it.
            return self._outcome(model, inputs, both, pin)

    def _outcome(
        self,
        model: Model,
        inputs: Mapping[str, Any],
        devices: Sequence[str | Device],
        pin: Mapping[str, str] | None,
    ) -> Outcome:
        try:
            try:
                return Outcome(self._outputs(model, inputs, devices, pin))
            except DeviceLost as lost:
                # The driver's deaths in earlier trials count; retry after the pause.
                time.sleep(min(lost.seconds, _LONGEST_PAUSE))
                return Outcome(self._outputs(model, inputs, devices, pin))
        except (OutOfRange, UnsupportedError):
            raise
        except DeviceError as error:
            message = str(error).removeprefix(f"{getattr(self.device, 'name', self.device)}: ")
            return Outcome(failure=_failure(error), detail=message.rpartition(_LAST_WORDS)[2])

    def _outputs(
        self,
        model: Model,
        inputs: Mapping[str, Any],
        devices: Sequence[str | Device],
        pin: Mapping[str, str] | None,
    ) -> Mapping[str, Any]:
        deaths: list[str] = []
        in_float32 = [o for o in model.operations if o.name in self.in_float32]
        lines = [line_of(origin) for operation in in_float32 for origin in origins_of(operation)]
        with crosschip.compile(
            model,
            devices,
            placement=crosschip.PlacementOptions(
                pin=pin,
                strict=bool(pin) and self.all,
                mixed_precision="\n".join(lines) if lines else None,
            ),
            cache=False,
            **self.options,
        ) as compiled:
            end = compiled.on_death(deaths.append)
            outputs = compiled.run(inputs)
            end()
        if deaths and len(devices) > 1:  # the trusted device may have taken over
            raise DeviceLost(f"the driver died: {deaths[-1]}")
        return outputs


_LONGEST_PAUSE = 10.0

_LAST_WORDS = "runs it once more. Last: "
"""The text before the last reason in the message about a model that was not run again."""


def _failure(error: DeviceError) -> Failure:
    """Return the kind of a failure from the driver's message."""
    message = str(error)
    if any(words in message for words in ("has been at a run for", "has been compiling for")):
        return Failure.HANG
    if isinstance(error, DeviceLost) or "driver died" in message or "killed the driver" in message:
        return Failure.CRASH
    return Failure.ERROR
