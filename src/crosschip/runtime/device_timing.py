"""Measurement of the run times of a model on several devices."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from crosschip.hal import Sizes
from crosschip.ir import Array, Error, Model
from crosschip.progress import task
from crosschip.runtime.choice import Trial
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.shapes.shape_search import ShapeSearch

TURNS = 2
"""The number of turns of each device."""

RUNS, RUN_SECONDS = 3, 0.03
"""The minimum number of runs and the minimum time of a turn, after a run that does not count."""

SECONDS = 0.5
"""The time after which a turn ends even with fewer runs."""

HOPELESS = 4.0
"""The factor by which a device may be slower than the fastest to get another turn."""

CLOSE, MORE_TURNS, MORE_SECONDS = 1.2, 4, 3.0
"""Devices within the factor `CLOSE` of the fastest have up to `MORE_TURNS` further turns within
`MORE_SECONDS`, because other load may have caused the difference.
"""

PATIENCE_SECONDS, LOOK_SECONDS = 0.5, 0.004
"""The maximum number of seconds to wait for idle threads, and the seconds of one observation."""

Inputs = TypeVar("Inputs")


def _proceed() -> None:
    pass


def measure(
    runs: Mapping[str, Callable[[Inputs], object]],
    *inputs: Inputs,
    before_run: Callable[[], None] = _proceed,
) -> dict[str, Trial]:
    """Run a model on several devices in turns.

    Args:
        runs: for each device, the function that computes the outputs from the inputs.
        inputs: arrays for the model's inputs; if there are several sets, the times are means.
        before_run: called before each run; may wait, or end the measurement by an exception.

    Returns:
        A trial per device: the lower quartile of its run times, or its error.
    """
    times: dict[str, list[float]] = {name: [] for name in runs}
    failed: dict[str, Trial] = {}
    end = time.perf_counter() + MORE_SECONDS
    with task(f"measuring {', '.join(runs)}", measures=True) as measuring:
        for turn in range(TURNS + MORE_TURNS):
            times = {name: seconds for name, seconds in times.items() if name not in failed}
            further = turn >= TURNS
            contenders = _contenders(times, CLOSE if further else HOPELESS)
            if further and (len(contenders) < 2 or time.perf_counter() > end):
                break
            for name in contenders:
                measuring.describe(name)
                try:
                    times[name] += _turn(runs[name], inputs, before_run)
                except Error as error:
                    failed[name] = Trial(name, whole=True, reason=str(error))
    return {
        name: failed.get(name) or Trial(name, typical_seconds(times[name]) * 1e3, whole=True)
        for name in runs
    }


def _contenders(times: Mapping[str, Sequence[float]], most: float) -> list[str]:
    """Return the devices that are within a factor of the fastest so far."""
    typical = {name: typical_seconds(seconds) for name, seconds in times.items() if seconds}
    best = min(typical.values(), default=0.0)
    return [name for name in times if name not in typical or typical[name] <= most * best]


def typical_seconds(seconds: Sequence[float]) -> float:
    """Return the lower quartile: the usual run time even if other load disturbs most runs."""
    return float(np.quantile(seconds, 0.25, method="lower"))


def _turn(
    run: Callable[[Inputs], object], inputs: Sequence[Inputs], before_run: Callable[[], None]
) -> list[float]:
    """Return the times of consecutive runs on one device."""
    wait_for_idle()
    _mean_seconds(run, inputs, before_run)
    seconds: list[float] = []
    start = time.perf_counter()
    while not seconds or time.perf_counter() - start < (
        SECONDS if len(seconds) < RUNS else RUN_SECONDS
    ):
        seconds.append(_mean_seconds(run, inputs, before_run))
    return seconds


def _mean_seconds(
    run: Callable[[Inputs], object], inputs: Sequence[Inputs], before_run: Callable[[], None]
) -> float:
    """Run once on each of several sets of inputs, and return the mean of the times."""
    seconds = 0.0
    for each in inputs:
        before_run()
        begin = time.perf_counter()
        run(each)
        seconds += time.perf_counter() - begin
    return seconds / len(inputs)


def wait_for_idle() -> None:
    """Wait until no thread of this process is busy, up to a limit.

    Some engines keep their threads busy after a run (ONNX Runtime for about 30 ms), which slows
    down the next device.
    """
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline:
        before = time.process_time()
        time.sleep(LOOK_SECONDS)
        if time.process_time() - before < LOOK_SECONDS / 10:
            return


def typical_inputs(model: Model, sizes: Sizes) -> dict[str, Array]:
    """Return random inputs of a model, with shapes that are valid for all operations.

    Sizes with a profile or a range have the value of the first profile, or the largest of the
    range.

    Raises:
        InputError: an input cannot be generated.
    """
    search = ShapeSearch(model, sizes)
    return random_inputs(model, search.first())
