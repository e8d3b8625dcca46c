"""The choice of devices for a model: the fastest, or a mixture, by one measurement per model."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from crosschip.hal import Options
from crosschip.ir import BudgetError, Error, InputError, Model, UnsupportedError
from crosschip.ir.version import VERSION
from crosschip.progress import task
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.cache.key import automatic_key
from crosschip.runtime.cache.store import Store
from crosschip.runtime.choice import Choice, Trial
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.device_timing import measure
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.placement.log_messages import SLOWEST
from crosschip.runtime.shapes.formatting import as_argument, shapes_in_words, shortest
from crosschip.runtime.shapes.policy import is_open
from crosschip.runtime.shapes.shape_search import Shapes, ShapeSearch

_MOST_SHAPES = 4
"""The maximum number of sets of shapes that are tried until a device runs."""

if TYPE_CHECKING:
    from crosschip.runtime.compile.mixtures import Build, Mixtures

logger = logging.getLogger("crosschip")


class Automatic:
    """The choice among devices for a model.

    Args:
        model: the model.
        devices: the available devices, in the order in which they are tried.
        options: the compile options.
        store: the store of choices; `None` for none.
        fingerprints: the fingerprints of the model's constants.
        placement: the placement options that the choice depends on, as plain values.
        mixtures: returns the search for placements on several devices; `None` for none.
    """

    def __init__(
        self,
        model: Model,
        devices: Mapping[str, GuardedDevice],
        options: Options,
        store: Store | None,
        fingerprints: Fingerprints | None = None,
        placement: object = (),
        mixtures: Callable[[], Mixtures] | None = None,
    ) -> None:
        self._model = model
        self._options = options
        self._names = list(devices)
        self._store = store
        self._mixtures = mixtures
        self._entry = Entry(
            automatic_key(
                model, list(devices.values()), options, os.cpu_count() or 1, fingerprints, placement
            ),
            "auto",
            VERSION,
            model.name,
            len(model.operations),
        )

    def stored_choice(self) -> Choice | None:
        """Return the choice of an earlier compilation in any process; `None` if there is none."""
        saved = None if self._store is None else self._store.read(self._entry)
        if saved is None or self._store is None:
            return None
        try:
            choice = Choice.from_bytes(saved)
        except ValueError as error:
            self._store.discard(self._entry, str(error))
            return None
        fits = sorted(choice.order) == sorted(self._names)
        if choice.mixture is not None:
            fits = fits and len(choice.mixture.requested) == len(self._model.operations)
        return choice if fits else None

    def choose(
        self, build: Build, count: Callable[[str], int]
    ) -> tuple[Choice, CompiledModel | None]:
        """Return the stored choice, or measure the model on each device and on mixtures.

        Args:
            build: compiles the model for some devices, with requested devices of operations.
            count: returns the number of the model's operations that a device runs.

        Returns:
            The choice, and the model on its first device if that device runs all of it, or on its
            mixture.
        """
        choice = self.stored_choice()
        if choice is not None:
            try:
                if choice.mixture is not None:
                    return choice, build(choice.mixture.devices, choice.mixture.requested)
                if not choice.trials[0].whole:
                    return choice, None
                return choice, build(choice.order[:1], ())
            except BudgetError:
                raise
            except Error as error:
                logger.warning("%s: %s; measuring again", self._model.name, error)
        choice, compiled = self._measure_devices(build, count)
        self.store_choice(choice)
        return choice, compiled

    def store_choice(self, choice: Choice) -> None:
        """Store a choice for later compilations."""
        if self._store is not None:
            self._store.write(self._entry, choice.to_bytes())

    def _measure_devices(
        self, build: Build, count: Callable[[str], int]
    ) -> tuple[Choice, CompiledModel | None]:
        whole: dict[str, CompiledModel] = {}
        trials: dict[str, Trial] = {}
        try:
            names = self._names
            with task(f"compiling {self._model.name} for each device", len(names)) as compiling:
                for name in names:
                    if name == SLOWEST:
                        trials[name] = Trial(name, reason="slower than any engine")
                    else:
                        self._build_whole(name, build, count, whole, trials)
                    compiling.advance()
            measured, shapes, problem = self._measure_whole(whole)
            ranked = self.rank((trials | measured).values())
            choice = Choice(tuple(ranked), shapes, problem)
            if self._mixtures is not None:
                return self._mixtures().improve(choice, whole)
            return choice, whole.pop(choice.order[0], None)
        finally:
            for unchosen in whole.values():
                unchosen.close()

    def _build_whole(
        self,
        name: str,
        build: Build,
        count: Callable[[str], int],
        whole: dict[str, CompiledModel],
        trials: dict[str, Trial],
    ) -> None:
        """Add the model compiled on one device to `whole`; a trial if that fails."""
        try:
            whole[name] = build([name], ())
        except BudgetError:
            raise
        except UnsupportedError:
            trials[name] = partial_trial(name, count(name), len(self._model.operations))
        except Error as error:
            trials[name] = Trial(name, reason=str(error))

    def _measure_whole(
        self, whole: Mapping[str, CompiledModel]
    ) -> tuple[dict[str, Trial], Shapes, str]:
        """Measure the devices that run the whole model; return trials, shapes and any problem."""
        unmeasured = {name: Trial(name, whole=True) for name in whole}
        if len(whole) < 2:
            return unmeasured, {}, ""
        search = ShapeSearch(self._model, self._options.sizes)
        runs = {name: compiled.run for name, compiled in whole.items()}
        tried: dict[str, str] = {}
        first: Shapes = {}
        for shapes in islice(search.shapes(), _MOST_SHAPES):
            try:
                inputs = random_inputs(self._model, shapes)
            except InputError as error:
                return unmeasured, {}, f"inputs cannot be made up: {error}"
            trials = measure(runs, inputs)
            if any(trial.milliseconds is not None for trial in trials.values()):
                for compiled in whole.values():
                    compiled.forget_runs()
                return trials, shapes, ""
            unmeasured, first = trials, first or shapes
            tried[shapes_in_words(shapes)] = next(iter(trials.values())).reason
        if not tried and search.mismatch is not None:
            tried[shapes_in_words(search.usual())] = search.mismatch.reason
        return unmeasured, {}, self._problem(tried, first or search.usual())

    def _problem(self, tried: Mapping[str, str], shapes: Shapes) -> str:
        """Return why no device was measured, and what to do."""
        failures = "; ".join(f"{at or 'its inputs'}: {why}" for at, why in tried.items())
        problem = f"the model did not run on made-up inputs ({failures})"
        if not is_open(self._model):
            return problem
        types = {name: operand.type for name, operand in self._model.inputs.items()}
        argument = as_argument(shortest(types, shapes))
        return f"{problem}; compile it with shapes that it runs at, as in {argument}"

    def rank(self, trials: Iterable[Trial]) -> list[Trial]:
        """Return trials in the order of preference."""
        return sorted(trials, key=self._rank)

    def _rank(self, trial: Trial) -> tuple[object, ...]:
        """Order devices that run the whole model by speed, then others by their operations."""
        return (
            not trial.whole,
            trial.milliseconds is None,
            trial.milliseconds or 0.0,
            bool(trial.whole and trial.reason),
            trial.device == SLOWEST,
            -trial.operations,
            self._names.index(trial.device),
        )


def partial_trial(name: str, supported: int, operations: int) -> Trial:
    """Return the trial of a device that runs only some of a model's operations."""
    reason = f"runs {supported} of {operations} operations"
    return Trial(name, operations=supported, reason=reason)
