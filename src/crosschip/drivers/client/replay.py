"""Repetition of a run that killed a driver, in a new driver."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from crosschip.drivers.client.driver import Driver
from crosschip.drivers.client.fatal_runs import FatalRun
from crosschip.drivers.client.policy import Policy, Timeouts
from crosschip.drivers.client.process import stop
from crosschip.drivers.client.program import RemoteProgram
from crosschip.drivers.endpoint import Endpoint
from crosschip.hal import DeviceLost
from crosschip.ir import DeviceError

_ONCE = Policy(deaths=1, pause=1e9, longest=1e9)
_STOP_SECONDS = 10.0


class Outcome(StrEnum):
    """The outcome of a run."""

    RAN = "ran"
    FAILED = "failed"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of repeating a run.

    Attributes:
        outcome: the outcome.
        problem: why it failed, or how the driver died; empty if it succeeded.
        outputs: the outputs, in the model's order; empty if it failed.
        seconds: the duration of the run, without compilation.
    """

    outcome: Outcome
    problem: str = ""
    outputs: Sequence[Any] = ()
    seconds: float = 0.0


def replay(run: FatalRun, device: str, properties: Mapping[str, str], run_seconds: float) -> Replay:
    """Repeat a saved run in a new driver.

    Args:
        run: the run.
        device: the device's name.
        properties: the device's properties.
        run_seconds: the time after which the run is considered hanging.

    Raises:
        DeviceError: the driver does not start.
    """
    with tempfile.TemporaryDirectory(prefix="crosschip-", dir="/tmp") as folder:
        path = Path(folder, "replay.sock")
        endpoint = Endpoint(device, path, tuple(sorted(properties.items())))
        driver = Driver(endpoint, device, _ONCE, Timeouts(run_seconds=run_seconds))
        driver.link()
        try:
            return _compile_and_run(driver, run)
        except DeviceLost:
            return Replay(Outcome.DIED, driver.record.reason)
        except DeviceError as error:
            return Replay(Outcome.FAILED, str(error))
        finally:
            driver.close()
            with suppress(DeviceError):  # it has already ended
                stop(path, _STOP_SECONDS)


def _compile_and_run(driver: Driver, run: FatalRun) -> Replay:
    program = RemoteProgram(driver, run.model, run.options, None)
    begin = time.perf_counter()
    outputs = driver.run(program, run.inputs, ())
    return Replay(Outcome.RAN, "", outputs, time.perf_counter() - begin)
