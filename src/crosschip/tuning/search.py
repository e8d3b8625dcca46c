"""The search for the fastest variant of a model whose error is within a bound."""

from __future__ import annotations

import logging
import math
import statistics
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from textwrap import shorten

from crosschip.accuracy.error import UNIT, Outputs, error_of
from crosschip.accuracy.rounding import RoundingProbe
from crosschip.bench.timing import interleave
from crosschip.hal import Precision
from crosschip.ir import Error, Model, Operation
from crosschip.runtime.compiled import CompiledModel
from crosschip.tuning.groups import Group, best_run, best_subset, combined_error, groups_of
from crosschip.tuning.quantized_forms import QuantizedForms
from crosschip.tuning.samples import Sample
from crosschip.tuning.variants import FLOAT32, Variant

GROUPS, GROUPS_OF_QUANTIZED = 8, 12
"""The maximum number of groups that are tried.

There may be more for quantized forms, since these groups are in one segment; for other precisions,
each change of precision begins a segment.
"""

ATTEMPTS = 4
"""The maximum number of mixtures of a variant that are measured."""

MIN_SPEEDUP = 1.05
"""The minimum speed-up over the best trial so far for mixtures of a variant to be tried."""

RUNS, BURST = 12, 4

_LONGEST_REASON = 120
"""The maximum number of characters of a reason in one line."""

_ROUNDING_ERROR = 1e-3
"""The error between float32 results of two devices that rounding explains."""

logger = logging.getLogger("crosschip")

Compile = Callable[[Model, Variant], CompiledModel]
"""Compiles a model for a variant; the model is in the variant's form already."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of trying a variant.

    Attributes:
        variant: the variant.
        error: the error, in `crosschip.accuracy.error.UNIT`; `None` if the variant did not run.
        speed: the speed relative to the fastest float32 variant; `None` if not timed.
        reason: the error message if the variant did not run; otherwise empty.
    """

    variant: Variant
    error: float | None = None
    speed: float | None = None
    reason: str = ""

    @property
    def short_reason(self) -> str:
        """The first reason why the variant did not run, in one line."""
        head, *reasons = [line.strip() for line in self.reason.splitlines() or [""]]
        if not reasons:
            return shorten(head, _LONGEST_REASON, placeholder="…")
        others = " (and others)" if len(reasons) > 1 else ""
        first = reasons[0].partition(f"{self.variant.device}: ")[2] or reasons[0]
        return f"{shorten(first, _LONGEST_REASON, placeholder='…')}{others}"


@dataclass(slots=True)
class Search:
    """A search among variants.

    Attributes:
        model: the simplified model with static shapes.
        offered: the precisions of each device, by its name.
        accuracy: the largest allowed error.
        samples: the inputs of the runs.
        compile: compiles the model for a variant.
        forms: the forms of the model with low-bit weights.
        say: called with the name of each variant before its trial.
        trials: all trials, in order.
    """

    model: Model
    offered: Mapping[str, Collection[Precision]]
    accuracy: float
    samples: Sequence[Sample]
    compile: Compile
    forms: QuantizedForms
    say: Say
    trials: list[Trial] = field(default_factory=list)
    _exact: Sequence[Outputs] = ()
    _base: CompiledModel | None = None
    _fastest: Variant | None = None
    _roundings: Sequence[Mapping[str, float]] | None = None

    def run(self) -> Trial:
        """Try variants; return the fastest one within the bound.

        Raises:
            Error: no device runs the model in float32; the first device's error.
        """
        self._find_base()
        try:
            whole = [self._try_variant(variant) for variant in self._whole_variants()]
            for trial in whole:
                if self._worth_mixing(trial):
                    self._mix(trial)
            return self.best
        finally:
            assert self._base is not None, "set by `_find_base`"
            self._base.close()

    @property
    def best(self) -> Trial:
        """The fastest of the trials so far that are within the bound."""
        good = [t for t in self.trials if t.error is not None and t.error <= self.accuracy]
        return max(good, key=lambda trial: trial.speed or 0.0)

    def _find_base(self) -> None:
        """Compile in float32 on each device; the fastest becomes the base of comparisons."""
        with ExitStack() as opened:
            compiled: dict[str, CompiledModel] = {}
            outputs: dict[str, Sequence[Outputs]] = {}
            failures: dict[str, Error] = {}
            for device in self.offered:
                self.say(Variant(device).name)
                try:
                    compiled[device] = opened.enter_context(
                        self.compile(self.model, Variant(device))
                    )
                    outputs[device] = [compiled[device].run(sample) for sample in self.samples]
                except Error as error:
                    failures[device] = error
            if not outputs:
                raise next(iter(failures.values()))
            times = _times({device: compiled[device] for device in outputs}, self.samples[0])
            fastest = min(times, key=lambda device: times[device])
            self._base, self._exact = compiled[fastest], outputs[fastest]
            self._fastest = Variant(fastest)
            opened.pop_all()
        for device, other in compiled.items():
            if device != fastest:
                other.close()
        for device in self.offered:
            variant = Variant(device)
            if device in failures:
                self.trials.append(Trial(variant, reason=str(failures[device])))
                continue
            off = self._error(outputs[device])
            self.trials.append(Trial(variant, off, times[fastest] / times[device]))
            if off > _ROUNDING_ERROR:
                logger.warning(
                    "%s: in float32, the error of %s against %s, from which errors are measured, "
                    "is %.2g (%s); see with `crosschip bisect` which of them is wrong",
                    self.model.name, device, fastest, off, UNIT,
                )  # fmt: skip

    def _whole_variants(self) -> Iterator[Variant]:
        """Return all variants in a single precision other than float32."""
        for device, precisions in self.offered.items():
            for precision in sorted(p.value for p in precisions):
                if precision != FLOAT32:
                    yield Variant(device, precision)
            yield from self.forms.variants(device)

    def _try_variant(self, variant: Variant, *, timed: bool = True) -> Trial:
        """Try a variant; record the trial if it is timed."""
        self.say(variant.name)
        assert self._base is not None, "it has been found"
        try:
            with self.compile(self.forms.convert(variant), variant) as compiled:
                error = self._error([compiled.run(sample) for sample in self.samples])
                speed = None
                if timed:
                    times = _times({"base": self._base, "this": compiled}, self.samples[0])
                    speed = times["base"] / times["this"]
                trial = Trial(variant, error, speed)
        except Error as error:
            trial = Trial(variant, reason=str(error))
        if timed:
            self.trials.append(trial)
        return trial

    def _error(self, results: Sequence[Outputs]) -> float:
        """Return the error of the outputs for all samples.

        If it is too large, differences that rounding explains count as 0. To determine these, the
        model runs once more with the operands of its last operations as outputs.
        """
        error = error_of(results, self._exact)
        if error <= min(self.accuracy, _ROUNDING_ERROR) or math.isinf(error):
            return error
        if self._roundings is None:
            self._roundings = self._probe_roundings()
        return error_of(results, self._exact, self._roundings)

    def _probe_roundings(self) -> Sequence[Mapping[str, float]]:
        """Return the difference of each output that rounding explains, for each sample."""
        probe = RoundingProbe(self.model)
        outputs: list[Outputs] = [{} for _ in self.samples]
        if probe.exposed is not None:
            assert self._fastest is not None, "it has been found"
            try:
                with self.compile(probe.exposed, self._fastest) as compiled:
                    outputs = [compiled.run(sample) for sample in self.samples]
            except Error as error:
                logger.info(
                    "%s: how much rounding explains is not known: %s", self.model.name, error
                )
                return ()
        return [
            probe.roundings(sample, each)
            for sample, each in zip(self.samples, outputs, strict=True)
        ]

    def _worth_mixing(self, trial: Trial) -> bool:
        if trial.error is None or trial.speed is None or trial.error <= self.accuracy:
            return False
        return trial.speed > MIN_SPEEDUP * (self.best.speed or 0.0)

    def _mix(self, whole: Trial) -> None:
        """Try a variant with parts of the model in float32.

        The errors of single groups predict the error of a mixture; each measured mixture corrects
        the scale of the prediction.
        """
        operations = self._mixable_operations(whole.variant)
        quantized = whole.variant.form is not None
        groups = groups_of(operations, GROUPS_OF_QUANTIZED if quantized else GROUPS)
        if len(groups) < 2:
            return
        single_group_variants = [
            self._with_float32_groups(whole.variant, groups, [index])
            for index in range(len(groups))
        ]
        tried = [self._try_variant(variant, timed=False).error for variant in single_group_variants]
        errors = [math.inf if error is None else error for error in tried]
        choose = best_subset if quantized else best_run
        trial, chosen = whole, list(range(len(groups)))
        for _ in range(ATTEMPTS):
            assert trial.error is not None, "it has run"
            predicted = combined_error(errors[index] for index in chosen)
            scale = trial.error / predicted if predicted else 1.0
            before, chosen = chosen, choose(groups, [e * scale for e in errors], self.accuracy)
            if not chosen or chosen == before:
                return
            trial = self._try_variant(self._with_float32_groups(whole.variant, groups, chosen))
            if trial.error is None:
                return

    def _mixable_operations(self, variant: Variant) -> list[Operation]:
        operations = list(self.model.operations)
        if variant.form is None:
            return operations
        names = self.forms.convertible(variant.form)
        return [operation for operation in operations if operation.name in names]

    def _with_float32_groups(
        self, variant: Variant, groups: Sequence[Group], chosen: Collection[int]
    ) -> Variant:
        exact = [
            name
            for index, group in enumerate(groups)
            if index not in chosen
            for name in group.operations
        ]
        return replace(variant, exact=tuple(exact))


def _times(compiled: Mapping[str, CompiledModel], sample: Sample) -> dict[str, float]:
    """Return the median seconds of a run of each model, measured in turns."""
    runs = {name: lambda c=each: c.run(sample) for name, each in compiled.items()}
    return {
        name: statistics.median(seconds)
        for name, seconds in interleave(runs, RUNS, burst=BURST).items()
    }
