"""Trials: a model compiled for a device and run once, whatever the device does meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import crosschip
from crosschip.hal import Device, DeviceLost
from crosschip.hal.conditions import OutOfRange
from crosschip.ir import DeviceError, Model, UnsupportedError
from crosschip.runtime.placement.sources import line_of, origins_of


class Failure(StrEnum):
    """The ways in which a device gives no result."""

    CRASH = "crash"
    HANG = "hang"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a trial.

    Attributes:
        outputs: by name; empty if there are none.
        failure: why there are none; `None` if there are.
        detail: the device's words about it.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure | None = None
    detail: str = ""


class Exhausted(Exception):
    """There may be no more trials."""


@dataclass(slots=True)
class Trials:
    """Runs models on a device, and counts.

    Attributes:
        device: the device; a name with its driver, if it is to run in a process of its own.
        against: who runs what the device does not.
        options: arguments of `crosschip.compile`.
        all: whether the device runs all of the model.
        seconds: how long trials may take together; `None` for any time.
        limit: how many there may be; `None` for any number.
        on_trial: is told each before it begins, in words.
        kept: the names of operations that the device computes in float32, whatever it does others
            in.
        runs: how many there were.
    """

    device: str | Device
    against: str | Device
    options: Mapping[str, Any]
    all: bool
    seconds: float | None = None
    limit: int | None = None
    on_trial: Callable[[int, str], None] | None = None
    in_float32: frozenset[str] = frozenset()
    runs: int = 0
    _begin: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        """The seconds since the first trial could begin."""
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
            model: what to run.
            inputs: what it reads.
            words: what the trial is about.
            pin: operations that are to run elsewhere.

        Raises:
            Exhausted: that would be one too many, or there is no time left.
        """
        if self.limit is not None and self.runs >= self.limit:
            raise Exhausted(f"{self.limit} runs were allowed")
        if self.seconds is not None and self.elapsed >= self.seconds:
            raise Exhausted(f"{self.seconds:g} seconds were allowed")
        self.runs += 1
        if self.on_trial:
            self.on_trial(self.runs, words)
        alone, both = [self.device], [self.device, self.against]
        try:
            return self._outcome(model, inputs, both if pin else alone, pin)
        except (OutOfRange, UnsupportedError):
            # As a part it may be more than the device takes: what it says no to is not its doing.
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
                # Its deaths were those of trials before this one.
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
        if deaths and len(devices) > 1:  # the other one may have run it
            raise DeviceLost(f"the driver died: {deaths[-1]}")
        return outputs


_LONGEST_PAUSE = 10.0

_LAST_WORDS = "runs it once more. Last: "
"""What stands between a run's being kept and why it was."""


def _failure(error: DeviceError) -> Failure:
    """The sort of a failure; drivers tell it in words."""
    message = str(error)
    if any(words in message for words in ("has been at a run for", "has been compiling for")):
        return Failure.HANG
    if isinstance(error, DeviceLost) or "driver died" in message or "killed the driver" in message:
        return Failure.CRASH
    return Failure.ERROR
