"""Running once more what has killed a driver, in one that nobody else uses."""

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
from crosschip.drivers.client.policy import Policy
from crosschip.drivers.client.program import RemoteProgram
from crosschip.drivers.client.stopping import stop
from crosschip.drivers.client.timeouts import Timeouts
from crosschip.drivers.endpoint import Endpoint
from crosschip.hal import DeviceLost
from crosschip.ir import DeviceError

_ONCE = Policy(deaths=1, pause=1e9, longest=1e9)
_END_SECONDS = 10.0


class Outcome(StrEnum):
    """What came of a run."""

    RAN = "ran"
    FAILED = "failed"
    DIED = "died"


@dataclass(frozen=True, slots=True)
class Replay:
    """A run that was run once more.

    Attributes:
        outcome: what came of it.
        problem: why it failed, or how the driver died; empty if it ran.
        outputs: in the order of the model's; empty if it did not run.
        seconds: how long the run took, without compiling.
    """

    outcome: Outcome
    problem: str = ""
    outputs: Sequence[Any] = ()
    seconds: float = 0.0


def replay(run: FatalRun, device: str, properties: Mapping[str, str], run_seconds: float) -> Replay:
    """Run once more, in a fresh driver, what was kept.

    Args:
        run: what.
        device: on which device.
        properties: the device's.
        run_seconds: after how many seconds it counts as hanging.

    Raises:
        DeviceError: the driver does not start.
    """
    with tempfile.TemporaryDirectory(prefix="crosschip-", dir="/tmp") as folder:
        path = Path(folder, "replay.sock")
        endpoint = Endpoint(device, path, tuple(sorted(properties.items())))
        driver = Driver(endpoint, device, _ONCE, Timeouts(run_seconds=run_seconds))
        driver.link()
        try:
            return _ran(driver, run)
        except DeviceLost:
            return Replay(Outcome.DIED, driver.record.reason)
        except DeviceError as error:
            return Replay(Outcome.FAILED, str(error))
        finally:
            driver.close()
            with suppress(DeviceError):  # it has ended already
                stop(path, _END_SECONDS)


def _ran(driver: Driver, run: FatalRun) -> Replay:
    program = RemoteProgram(driver, run.model, run.options, None)
    begin = time.perf_counter()
    outputs = driver.run(program, run.inputs, ())
    return Replay(Outcome.RAN, "", outputs, time.perf_counter() - begin)
