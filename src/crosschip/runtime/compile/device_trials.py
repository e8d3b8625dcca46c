"""Trials of further devices in the background, while a compiled model runs on the first one.

One thread compiles the model for the other devices, one after the other, and measures all on copies
of the inputs of recent calls. If another device is faster, the model moves there. Threads do not
run at a low priority: the engines' threads, which they start, would keep it after the move, and a
thread of low priority that holds the interpreter's lock delays all others. Instead, measurements
wait for moments without calls, and the interpreter's threads take shorter turns.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from weakref import finalize, ref

from crosschip.ir import Error
from crosschip.runtime.call_samples import CallSamples, ShapeKey, shape_key
from crosschip.runtime.choice import Choice, Move, Trial
from crosschip.runtime.compile.candidates import Candidates
from crosschip.runtime.compile.first_ready import Built, FirstReady
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.device_timing import measure
from crosschip.runtime.executable import Executable
from crosschip.runtime.lifetime import start_engine_thread
from crosschip.runtime.placement.log_messages import SLOWEST
from crosschip.runtime.short_turns import short_turns

FASTER = 0.97
"""The factor by which another device's time must be smaller for a move."""

MOST_ROUNDS = 4
"""The maximum number of times that devices are measured, for calls with other shapes."""

_FIRST_CALL_SECONDS = 1.0
"""The time to wait for the first call before other devices are compiled for."""

_SAMPLE_SECONDS = 10.0
"""The time to wait for a call to measure on, for a model with dynamic sizes."""

_GIVE_WAY_SECONDS = 0.02
"""The time that a run of a measurement waits for a moment without calls."""

_RELEASE_SECONDS = 1.0
"""The time to wait until no run uses the previous device; later it is closed with the model."""

_COMPILES_SHAPES = (
    "compiles for each set of shapes, which would delay calls; pass `shapes` to have it measured"
)

_LOOK_SECONDS = 0.0005
_POLL_SECONDS = 0.01

logger = logging.getLogger("crosschip")


class Stopped(Exception):
    """The end of the trials, because the model is being closed or does not exist any more."""


class DeviceTrials:
    """The trials of other devices for a compiled model.

    Args:
        compiled: the model on the device that was ready first, which holds this object.
        device: the name of that device.
        candidates: the devices.
        others: the compilations for the other devices.
        choice: the stored choice that led to the device, if there is one.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        device: str,
        candidates: Candidates,
        others: FirstReady,
        choice: Choice | None = None,
    ) -> None:
        self._compiled = ref(compiled)
        self._device = device
        self._candidates = candidates
        self._others = others
        self._failed: dict[str, Trial] = {}
        self._built: dict[str, CompiledModel] = {}
        self._rounds = 0
        self._is_measuring = False
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._samples = CallSamples(self._begin)
        self._is_dynamic = any(o.type.static_shape is None for o in compiled.inputs.values())
        self._start = time.monotonic()
        self._reads_choice = choice is None
        if choice is not None:
            self._samples.add_tested(choice)
        compiled.trials = self
        compiled.observe_calls(self._samples.add)
        finalize(compiled, self.release)

    def start(self) -> None:
        """Begin, unless the device was chosen by measurement for calls like those to come."""
        self._start = time.monotonic()
        if not self._samples.tested:
            self._begin()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until no trial is in progress; return whether that is so."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)
            return not thread.is_alive()
        return True

    def release(self) -> None:
        """End the trials as soon as possible."""
        self._stop.set()

    @property
    def devices_in_use(self) -> Collection[str]:
        """The names of the devices that are compiled for or measured at present."""
        thread = self._thread
        if thread is None or not thread.is_alive():
            return ()
        return [n for n in self._candidates.names if self._is_measuring or n != self._device]

    def after_fork(self) -> None:
        """End the trials in a forked process, which lacks their thread."""
        self._stop = threading.Event()
        self._stop.set()
        self._lock = threading.RLock()
        self._thread = None
        self._samples.after_fork()

    def _begin(self) -> None:
        """Begin a round of trials, unless one is in progress or there have been enough."""
        with self._lock:
            alive = self._thread is not None and self._thread.is_alive()
            if alive or self._stop.is_set() or self._rounds >= MOST_ROUNDS:
                return
            self._rounds += 1
            self._thread = threading.Thread(target=self._work, name="crosschip trials", daemon=True)
            with suppress(RuntimeError):  # there can be no more threads: the process is ending
                start_engine_thread(self._thread)

    def _work(self) -> None:
        try:
            if self._rounds == 1:
                self._await_call()
            with short_turns():
                self._try_devices()
        except Stopped:
            pass
        except BaseException as error:  # reported, since the model goes on without it
            self._report_failure(error)
        finally:
            self._close_built()
            if self._compiled() is None:
                self._candidates.close()

    def _await_call(self) -> None:
        """Wait until the first call has been answered, up to a limit."""
        end = time.monotonic() + _FIRST_CALL_SECONDS
        while time.monotonic() < end and not self._model().calls:
            self._pause(_POLL_SECONDS)

    def _try_devices(self) -> None:
        """Compile for the other devices and measure them; move to the fastest."""
        automatic = self._candidates.automatic()
        self._check()
        stored = automatic.stored_choice() if self._reads_choice else None
        self._reads_choice = False
        if stored is not None and (not self._is_dynamic or self._samples.are_like(stored)):
            first = stored.order[0]
            if first != self._device:
                self._add(first, self._build(first))
            if first not in self._failed:
                self._samples.add_tested(stored)
                self._settle(stored)
                return
        self._compile_others()
        choice = self._measure()
        choice = replace(choice, trials=tuple(automatic.rank(choice.trials)))
        choice = self._prefer_present(choice)
        automatic.store_choice(choice)
        self._settle(choice)

    def _compile_others(self) -> None:
        """Compile for the other devices."""
        if self._rounds > 1:
            names = [n for n in self._candidates.names if n not in (*self._failed, self._device)]
            results: Mapping[str, Built] = {name: self._build(name) for name in names}
        else:
            results = self._others.rest(self._check)
        for name, result in results.items():
            self._add(name, result)

    def _build(self, name: str) -> Built:
        self._check()
        try:
            return self._candidates.build(name)
        except Error as error:
            return error

    def _add(self, name: str, result: Built) -> None:
        """Add what a device was compiled to, or its error."""
        if isinstance(result, CompiledModel):
            if self._is_dynamic and result.executable.compiles_shapes:
                result.close()
                self._failed[name] = Trial(name, whole=True, reason=_COMPILES_SHAPES)
            else:
                self._built[name] = result
        elif isinstance(result, Error):
            logger.info("%s: %s", self._model().name, result)
            self._failed[name] = self._candidates.trial_of(name, result)
        else:
            raise result

    def _measure(self) -> Choice:
        """Measure the devices on samples of the calls, or on random inputs if there are none."""
        names = list(self._model().inputs)
        trials = {SLOWEST: Trial(SLOWEST, reason="slower than any engine")}
        if SLOWEST not in self._candidates.all_names:
            trials.clear()
        if not self._built:
            trials |= {**self._failed, self._device: Trial(self._device, whole=True)}
            return Choice(tuple(trials.values()), {})
        samples, on_calls = self._inputs()
        runs = {self._device: _runner(self._model().executable, self._check)}
        for name, built in self._built.items():
            runs[name] = _runner(built.executable, self._check)
        self._is_measuring = True
        measured = measure(runs, [values for _, values in samples], self._give_way)
        self._is_measuring = False
        self._check()
        count = len(samples)
        for name, trial in measured.items():
            if trial.milliseconds is not None:
                measured[name] = replace(trial, milliseconds=trial.milliseconds / count)
        if on_calls:
            self._samples.tested += [shapes for shapes, _ in samples]
        trials |= {**self._failed, **measured}
        return Choice(
            tuple(trials.values()),
            dict(zip(names, samples[-1][0], strict=True)),
            on_calls=on_calls,
        )

    def _inputs(self) -> tuple[list[tuple[ShapeKey, list[Any]]], bool]:
        """Return samples of calls with their shapes, or random inputs; and whether they are calls.

        Raises:
            InputError: there was no call, and inputs cannot be generated.
        """
        end = time.monotonic() + _SAMPLE_SECONDS
        while self._is_dynamic and not self._samples.recent() and time.monotonic() < end:
            self._pause(_POLL_SECONDS)
        samples = self._samples.recent()
        if samples:
            return samples, True
        _, inputs = self._candidates.made_up_inputs()
        values = [inputs[name] for name in self._model().inputs]
        return [(shape_key(values), values)], False

    def _prefer_present(self, choice: Choice) -> Choice:
        """Put the present device first, unless another is clearly faster."""
        times = {trial.device: trial.milliseconds for trial in choice.trials}
        present, best = times[self._device], times[choice.order[0]]
        if present is not None and best is not None and best <= FASTER * present:
            return choice
        first = [trial for trial in choice.trials if trial.device == self._device]
        rest = [trial for trial in choice.trials if trial.device != self._device]
        return replace(choice, trials=(*first, *rest))

    def _settle(self, choice: Choice) -> None:
        """Move to the first device of a choice if it is another one; store a plan."""
        model, winner = self._model(), self._built.pop(choice.order[0], None)
        if winner is None:
            model.placement.choice = choice
            model.report = replace(model.report, choice=choice)
        else:
            winner.placement.choice = choice
            move = self._move(choice)
            if not model.move_to(winner, choice, move):
                self._built[choice.order[0]] = winner
                raise Stopped
            self._device = choice.order[0]
            logger.info("%s: %s", model.name, move)
        if not self._is_dynamic:
            model.observe_calls(None)
        self._close_built()
        self._candidates.save_plan(model, choice)
        del model
        self._close_unused()

    def _move(self, choice: Choice) -> Move:
        times = {trial.device: trial.milliseconds or 0.0 for trial in choice.trials}
        return Move(
            self._device,
            choice.order[0],
            times[self._device],
            times[choice.order[0]],
            self._model().calls,
            time.monotonic() - self._start,
        )

    def _close_unused(self) -> None:
        """Close the programs of the previous device when its last run has ended."""
        end = time.monotonic() + _RELEASE_SECONDS
        while not self._model().close_unused() and time.monotonic() < end:
            self._pause(_POLL_SECONDS)

    def _close_built(self) -> None:
        built, self._built = self._built, {}
        for compiled in built.values():
            compiled.close()
        self._others.abandon()

    def _report_failure(self, error: BaseException) -> None:
        """Log a failure of the trials, and add it to the report."""
        model = self._compiled()
        if model is None:
            return
        logger.warning("%s: other devices could not be tried: %s", model.name, error)
        problem = f"other devices could not be tried: {error}"
        trials = Trial(self._device, whole=True), *self._failed.values()
        model.report = replace(model.report, choice=Choice(trials, {}, problem))

    def _model(self) -> CompiledModel:
        """Return the compiled model.

        Raises:
            Stopped: it does not exist any more, or is being closed.
        """
        model = self._compiled()
        if model is None or self._stop.is_set():
            raise Stopped
        return model

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise Stopped

    def _check(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def _give_way(self) -> None:
        """Wait for a moment without calls, up to a limit."""
        model = self._model()
        end = time.perf_counter() + _GIVE_WAY_SECONDS
        while model.runs_under_way and time.perf_counter() < end:
            time.sleep(_LOOK_SECONDS)
        self._check()


def _runner(
    executable: Executable, check: Callable[[], None]
) -> Callable[[Sequence[Sequence[Any]]], None]:
    """Return a function that runs an executable on each of several samples."""

    def run(samples: Sequence[Sequence[Any]]) -> None:
        for values in samples:
            check()
            executable.execute(values)

    return run
