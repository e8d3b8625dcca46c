"""Trials of further devices in the background, while a compiled model runs on the first one.

One thread compiles the model for the other devices, one after the other, and measures all on copies
of the inputs of recent calls. If another device is faster, the model moves there. Threads do not
run at a low priority: the engines' threads, which they start, would keep it after the move, and a
thread of low priority that holds the interpreter's lock delays all others. Instead, measurements
wait for moments without calls, and the interpreter's threads take shorter turns.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import finalize, ref

from crosschip.ir import Error
from crosschip.runtime.call_samples import CallSamples, Sample, shape_key
from crosschip.runtime.choice import Choice, Move, ShapeKey, Trial
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.lifetime import start_engine_thread
from crosschip.runtime.measured_runs import between_forks, is_running_at_fork
from crosschip.runtime.short_turns import short_turns

if TYPE_CHECKING:
    from crosschip.runtime.compile.candidates import Candidates
    from crosschip.runtime.compile.first_ready import Built, FirstReady

FASTER = 0.97
"""The factor by which another device's time must be smaller for a move."""

MOST_ROUNDS = 4
"""The maximum number of times that devices are measured, for calls with other shapes."""

_FIRST_CALL_SECONDS = 1.0
"""The time to wait for the first call before other devices are compiled for."""

_SAMPLE_SECONDS = 10.0
"""The time to wait for a call to measure on, for a model with dynamic sizes."""

_SAMPLES_SECONDS = 1.0
"""The time that the runs on all samples may take together on the present device."""

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

_turns = threading.Lock()
"""Held by the model whose devices are tried."""


class Stopped(Exception):
    """The end of the trials, because the model is being closed or does not exist any more."""


class DeviceTrials:
    """The trials of other devices for a compiled model.

    Args:
        compiled: the model on the device that was ready first, which holds this object.
        device: the name of that device.
        open_candidates: returns the devices, and the compilations for the others, at the first
            round; `None` if there is nothing to choose from.
        choice: the stored choice that led to the device, if there is one.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        device: str,
        open_candidates: Callable[[], tuple[Candidates, FirstReady] | None],
        choice: Choice | None = None,
    ) -> None:
        self._compiled = ref(compiled)
        self._device = device
        self._open_candidates = open_candidates
        self._candidates: Candidates
        self._others: FirstReady
        self._names: Sequence[str] = ()
        self._failed: dict[str, Trial] = {}
        self._built: dict[str, CompiledModel] = {}
        self._rounds = 0
        self._is_trying = False
        self._is_measuring = False
        self._has_turn = False
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._samples = CallSamples(self._begin)
        self._is_dynamic = any(o.type.static_shape is None for o in compiled.inputs.values())
        self._start = time.monotonic()
        self._reads_choice = choice is None
        if choice is not None:
            self._samples.tested += choice.call_shapes
        compiled.trials = self
        compiled.observe_calls(self._samples.add)
        finalize(compiled, self.release)

    def start(self) -> None:
        """Begin, unless a choice led to the device, which only calls can change."""
        self._start = time.monotonic()
        if self._reads_choice:
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
        """The names of the devices that were compiled for or measured when the process forked."""
        if not self._is_trying:
            return ()
        if self._is_measuring:
            return self._names if is_running_at_fork() else ()
        return [name for name in self._names if name != self._device]

    def after_fork(self) -> None:
        """End the trials in a forked process, which lacks their thread."""
        self._stop = threading.Event()
        self._stop.set()
        self._lock = threading.RLock()
        self._thread = None
        self._is_trying = False
        self._samples.after_fork()

    def _begin(self) -> None:
        """Begin a round of trials, unless one is in progress or there have been enough."""
        with self._lock:
            if self._is_trying or self._stop.is_set() or self._rounds >= MOST_ROUNDS:
                return
            thread = threading.Thread(target=self._work, name="crosschip trials", daemon=True)
            try:
                start_engine_thread(thread)
            except RuntimeError:  # there can be no more threads: the process is ending
                return
            self._is_trying = self._samples.is_open = True
            self._rounds += 1
            self._thread = thread

    def _work(self) -> None:
        with self._lock:  # until the state of the round is set
            pass
        try:
            if self._rounds == 1:
                self._await_call()
            self._take_turn()
            with short_turns():
                self._open()
                self._try_devices()
                while self._has_far_calls() and self._rounds < MOST_ROUNDS:
                    self._rounds += 1
                    self._try_devices()
            self._release_turn()
            self._close_unused()
        except Stopped:
            pass
        except BaseException as error:  # reported, since the model goes on without it
            self._report_failure(error)
        finally:
            self._release_turn()
            self._close_built()
            self._is_trying = False
            if self._names and self._compiled() is None:
                self._candidates.close()

    def _open(self) -> None:
        """Open the candidates, unless an earlier round did.

        Raises:
            Stopped: there is nothing to choose from.
        """
        if self._names:
            return
        opened = self._open_candidates()
        if opened is None:
            self._rounds = MOST_ROUNDS
            raise Stopped
        self._candidates, self._others = opened
        self._names = self._candidates.names
        self._model().own([self._candidates])

    def _has_far_calls(self) -> bool:
        """Return whether there were calls, during a round, with quite different shapes."""
        return self._is_dynamic and self._samples.are_far_from(self._samples.tested)

    def _await_call(self) -> None:
        """Wait until the first call has been answered, up to a limit."""
        end = time.monotonic() + _FIRST_CALL_SECONDS
        while time.monotonic() < end and not self._model().statistics().calls:
            self._pause(_POLL_SECONDS)

    def _try_devices(self) -> None:
        """Compile for the other devices and measure them; move to the fastest."""
        automatic = self._candidates.automatic()
        self._check()
        stored = automatic.stored_choice() if self._reads_choice else None
        self._reads_choice = False
        if stored is not None and (
            not self._is_dynamic
            or (stored.on_calls and not self._samples.are_far_from(stored.call_shapes))
        ):
            first = stored.order[0]
            if first != self._device:
                self._add(first, self._build(first))
            if first not in self._failed:
                self._samples.tested += stored.call_shapes
                self._settle(stored)
                return
        self._compile_others()
        self._release_turn()
        samples = self._await_samples()
        self._take_turn()
        choice = self._measure(samples)
        self._samples.tested += [shapes for shapes, _ in samples]
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

    def _await_samples(self) -> list[Sample]:
        """Return samples of calls.

        For a model with dynamic sizes, wait for a call, up to a limit.
        """
        end = time.monotonic() + _SAMPLE_SECONDS
        while self._is_dynamic and not self._samples.recent() and time.monotonic() < end:
            self._pause(_POLL_SECONDS)
        return self._samples.recent()

    def _measure(self, samples: Sequence[Sample]) -> Choice:
        """Measure the devices on samples of calls, or on random inputs if there are none.

        Raises:
            InputError: there are no samples, and inputs cannot be generated.
        """
        trials = {**self._failed, self._device: Trial(self._device, whole=True)}
        for name in self._candidates.slow_names:
            trials[name] = Trial(name, reason="slower than any engine")
        if not self._built:
            self._rounds = MOST_ROUNDS
            return Choice(tuple(trials.values()), {})
        # Imported late: it includes the operators, which running a stored program does not need.
        from crosschip.runtime.device_timing import measure

        runs = {self._device: between_forks(self._model().executable.execute)}
        for name, built in self._built.items():
            runs[name] = between_forks(built.executable.execute)
        self._is_measuring = True
        try:
            usable = self._usable(samples, runs[self._device])
            inputs = usable or [self._candidates.random_inputs(None)]
            trials |= measure(runs, *inputs, before_run=self._give_way)
        finally:
            self._is_measuring = False
        self._check()
        largest = max(map(shape_key, inputs), key=_elements)
        shapes = dict(zip(self._model().inputs, largest, strict=True))
        call_shapes = tuple(shapes for shapes, _ in samples) if usable else ()
        return Choice(tuple(trials.values()), shapes, call_shapes=call_shapes)

    def _usable(
        self, samples: Sequence[Sample], run: Callable[[list[Any]], None]
    ) -> list[list[Any]]:
        """Return the inputs of the latest samples that together take little time.

        Calls that fail are left out.

        Args:
            samples: the samples, the oldest first.
            run: runs the model on the present device.
        """
        usable, seconds = [], 0.0
        for shapes, values in reversed(samples):
            inputs = values or self._candidates.random_inputs(shapes)
            self._give_way()
            begin = time.perf_counter()
            try:
                run(inputs)
            except Error:
                continue
            usable.append(inputs)
            seconds += time.perf_counter() - begin
            if seconds > _SAMPLES_SECONDS:
                break
        return usable

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
            move = self._move(choice)
            if not model.move_to(winner, choice, move):
                self._built[choice.order[0]] = winner
                raise Stopped
            self._device = choice.order[0]
            logger.info("%s: %s", model.name, move)
        self._samples.is_open = False
        if not self._is_dynamic or self._rounds >= MOST_ROUNDS:
            model.observe_calls(None)
            self._samples.clear()
        self._close_built()
        self._candidates.save_plan(model, choice)

    def _move(self, choice: Choice) -> Move:
        times = {trial.device: trial.milliseconds or 0.0 for trial in choice.trials}
        return Move(
            self._device,
            choice.order[0],
            times[self._device],
            times[choice.order[0]],
            self._model().statistics().calls,
            time.monotonic() - self._start,
        )

    def _close_unused(self) -> None:
        """Close the programs of the previous device when its last run has ended."""
        end = time.monotonic() + _RELEASE_SECONDS
        while not self._model().close_unused() and time.monotonic() < end:
            self._pause(_POLL_SECONDS)

    def _close_built(self) -> None:
        """Close what was compiled and not chosen."""
        built, self._built = self._built, {}
        for compiled in built.values():
            compiled.close()
        if self._names:
            self._others.abandon()
            self._others.join()

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

    def _take_turn(self) -> None:
        """Wait until no other model's devices are tried, since that would disturb the times."""
        while not _turns.acquire(timeout=_POLL_SECONDS):
            self._check()
        self._has_turn = True

    def _release_turn(self) -> None:
        if self._has_turn:
            self._has_turn = False
            _turns.release()

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


def _elements(shapes: ShapeKey) -> int:
    return sum(map(math.prod, shapes))


def _reset_after_fork() -> None:
    """Replace the lock in a forked process, which lacks the thread that may hold it."""
    global _turns
    _turns = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
