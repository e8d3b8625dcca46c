"""The order of devices that `"auto"` means for a model: the fastest first, as measured once."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from crosschip.hal import Options
from crosschip.ir import BudgetError, Error, InputError, Model, UnsupportedError
from crosschip.ir.version import VERSION
from crosschip.runtime.cache.entry import Entry
from crosschip.runtime.cache.fingerprints import Fingerprints
from crosschip.runtime.cache.key import automatic_key
from crosschip.runtime.cache.store import Store
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.measuring import Choice, Trial, measure, typical_inputs
from crosschip.runtime.placement.telling import SLOWEST

Build = Callable[[str], CompiledModel]

logger = logging.getLogger("crosschip")


class Automatic:
    """The choice among devices for a model.

    Args:
        model: what is to be compiled.
        devices: all that are available, the most promising first.
        options: how it is to be compiled.
        store: where choices are kept; `None` for nowhere.
        fingerprints: of the model's constants.
    """

    def __init__(
        self,
        model: Model,
        devices: Mapping[str, GuardedDevice],
        options: Options,
        store: Store | None,
        fingerprints: Fingerprints | None = None,
    ) -> None:
        self._model = model
        self._options = options
        self._names = list(devices)
        self._store = store
        self._entry = Entry(
            automatic_key(
                model, list(devices.values()), options, os.cpu_count() or 1, fingerprints
            ),
            "auto",
            VERSION,
            model.name,
            len(model.operations),
        )

    def remembered(self) -> Choice | None:
        """The choice that this or another process has made before; `None` if there is none."""
        saved = None if self._store is None else self._store.read(self._entry)
        if saved is None or self._store is None:
            return None
        try:
            choice = Choice.from_bytes(saved)
        except ValueError as error:
            self._store.discard(self._entry, str(error))
            return None
        return choice if sorted(choice.order) == sorted(self._names) else None

    def choose(
        self, build: Build, count: Callable[[str], int]
    ) -> tuple[Choice, CompiledModel | None]:
        """The remembered choice, or the one that running the model on each device leads to.

        Args:
            build: compiles the whole model on one device.
            count: how many of the model's operations a device runs.

        Returns:
            The choice, and the model on its first device if that runs all of it.
        """
        choice = self.remembered()
        if choice is not None and not choice.trials[0].whole:
            return choice, None
        if choice is not None:
            try:
                return choice, build(choice.order[0])
            except BudgetError:
                raise
            except Error as error:
                logger.warning("%s: %s; measuring again", self._model.name, error)
        choice, compiled = self._measured(build, count)
        if self._store is not None:
            self._store.write(self._entry, choice.to_bytes())
        return choice, compiled

    def _measured(
        self, build: Build, count: Callable[[str], int]
    ) -> tuple[Choice, CompiledModel | None]:
        whole: dict[str, CompiledModel] = {}
        trials: dict[str, Trial] = {}
        try:
            for name in self._names:
                if name == SLOWEST:
                    trials[name] = Trial(name, reason="slower than any engine")
                    continue
                try:
                    whole[name] = build(name)
                except BudgetError:
                    raise
                except UnsupportedError:
                    trials[name] = self._part(name, count(name))
                except Error as error:
                    trials[name] = Trial(name, reason=str(error))
            found, shapes = self._run(whole)
            choice = Choice(tuple(sorted((trials | found).values(), key=self._rank)), shapes)
            return choice, whole.pop(choice.order[0], None)
        finally:
            for unchosen in whole.values():
                unchosen.close()

    def _run(
        self, whole: Mapping[str, CompiledModel]
    ) -> tuple[dict[str, Trial], Mapping[str, tuple[int, ...]]]:
        """Trials of the devices that run the whole model, and the shapes that they were given."""
        if len(whole) < 2:
            return {name: Trial(name, whole=True, reason="no other does") for name in whole}, {}
        try:
            inputs = typical_inputs(self._model, self._options.sizes)
        except InputError as error:
            return {name: Trial(name, whole=True, reason=str(error)) for name in whole}, {}
        runs = {name: compiled.run for name, compiled in whole.items()}
        return measure(runs, inputs), {name: array.shape for name, array in inputs.items()}

    def _part(self, name: str, operations: int) -> Trial:
        told = f"runs {operations} of {len(self._model.operations)} operations"
        return Trial(name, operations=operations, reason=told)

    def _rank(self, trial: Trial) -> tuple[object, ...]:
        measured = trial.milliseconds
        return (
            measured is None,
            measured,
            not trial.whole,
            trial.device == SLOWEST,
            -trial.operations,
            self._names.index(trial.device),
        )
