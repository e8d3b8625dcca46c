"""The search for the operations of a model that a device computes wrong.

In each trial, operations read inputs recorded on the trusted device, so that neither errors of
other operations nor accumulated rounding affect them:

1. The model itself runs on the device.
2. All operations run in one program, disconnected, so that each result is an output. If that
   fails, halves run, down to single operations that fail.
3. The remaining operations run connected: as a whole, in pieces, and as prefixes of the model.
   What is wrong is halved (`search`). This finds errors of fused or combined operations.
4. The model runs with the failing operations on the trusted device, to check that it is right then.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from crosschip.bisect.comparison import Difference, loses_finite_elements
from crosschip.bisect.parts import Part
from crosschip.bisect.recording import Recording
from crosschip.bisect.report import FailingOperator, Report
from crosschip.bisect.search import Search, halves
from crosschip.bisect.trials import Exhausted, Failure, Outcome, Trials
from crosschip.ir import InputError, Operation, UnsupportedError

_MAX_FAILED_GROUPS = 7
"""The number of failed groups, without a successful one, after which step 2 is given up."""

_EXTRA_RUNS = 8
"""The runs of step 2 in addition to those that halve all operations twice."""

_MAX_PREFIXES = 16
"""The maximum number of prefixes of the model that are tried."""

_BASE_RUNS, _FINAL_RUNS = 20, 5
"""The runs per failing operation in addition to four times the halvings; the runs of step 4."""


TakePart = Callable[[Sequence[Operation]], Part]
"""Extracts operations from a model, connected or disconnected."""


class Investigation:
    """A search for failing operations.

    Args:
        recording: the trusted results.
        trials: runs models on the device.
        suspects: the operations that run on the device, in order.
        report: the report, which is filled.
        thorough: whether each operation is tested separately, in any number of runs.
    """

    def __init__(
        self,
        recording: Recording,
        trials: Trials,
        suspects: Sequence[Operation],
        report: Report,
        *,
        thorough: bool = False,
    ) -> None:
        self._thorough = thorough
        self._recording = recording
        self._whole = recording.whole
        self._trials = trials
        self._suspects = suspects
        self._report = report
        self._unjudged = set(suspects)
        self._shown = self._refused = False
        self._failing: dict[frozenset[Operation], FailingOperator] = {}
        self._outcomes: dict[tuple[frozenset[Operation], TakePart], tuple[Part, Outcome]] = {}

    def find(self) -> None:
        """Search until all errors are explained, or no more trials are allowed."""
        report = self._report
        try:
            self._find()
        except Exhausted as exhausted:
            report.whole = False
            report.notes.append(f"the search has not come to its end: {exhausted}")
        order = {operation: i for i, operation in enumerate(self._report.model.operations)}
        report.failing_operators = sorted(
            self._failing.values(), key=lambda operator: order[operator.operations[0]]
        )
        report.runs, report.seconds = self._trials.runs, self._trials.elapsed

    def _find(self) -> None:
        report = self._report
        if not self._suspects:
            report.notes.append(f"{report.device} runs no operation of the model")
            return
        is_wrong, report.error = self._run_model(())
        self._shown = is_wrong
        self._judge_independent()
        self._confirm()
        # Without the trusted device, which would cut the program.
        self._search(self._whole.together, pieces=self._piece_count())
        if self._unjudged and any(not operator.actual for operator in self._failing.values()):
            self._judge_independent()
            self._confirm()
        report.exposed = not self._unjudged
        if self._failing:
            is_wrong, report.mended = self._run_model(self._failing_operations())
        report.explained = not is_wrong
        self._measure_effects()
        self._measure_cumulative_errors()
        if self._unjudged:
            report.notes.append(
                f"{report.device} shows few results at once, so {len(self._unjudged)} operations "
                f"were only tried together with others, where errors may hide each other; "
                f"`thorough` tries each one separately"
            )

    def _piece_count(self) -> int:
        """Return the number of pieces, so that runs remain to halve one of them."""
        halving = 2 * math.log2(len(self._suspects))
        runs = self._remaining_runs(1) - halving
        return max(1, min(int(runs), int(halving) + _EXTRA_RUNS))

    def _remaining_runs(self, expected: int) -> float:
        """Return the remaining runs for an expected number of failing operations."""
        runs = 4 * math.log2(len(self._suspects)) + _BASE_RUNS
        return max(1, expected) * runs - self._trials.runs - _FINAL_RUNS

    def _failing_operations(self) -> list[Operation]:
        failing = {operation for group in self._failing for operation in group}
        return [operation for operation in self._suspects if operation in failing]

    def _run_model(self, moves: Sequence[Operation]) -> tuple[bool, float | None]:
        """Return whether the model with operations on the trusted device fails, and its error."""
        against = self._trials.against
        name = against if isinstance(against, str) else against.name
        model, pin = self._whole.pinned(moves, name)
        part = Part(model, dict(model.inputs), dict(model.outputs))
        words = f"the model with {len(moves)} operations on {name}" if pin else "the model"
        try:
            outcome = self._trials.run(model, part.inputs(self._recording.values), words, pin)
        except (InputError, UnsupportedError) as error:
            if not moves:
                raise
            self._report.notes.append(f"the culprits cannot be moved to {name}: {error}")
            return False, None
        if outcome.failure is Failure.ERROR and moves:
            self._report.notes.append(
                f"the model does not run with {len(moves)} operations on {name}: {outcome.detail}"
            )
            return False, None
        self._refused = outcome.failure is Failure.ERROR
        if outcome.failure:
            return True, math.inf
        differences = self._recording.compare(part, outcome.outputs).values()
        return any(each.is_wrong for each in differences), max(
            (d.error for d in differences), default=0.0
        )

    # Disconnected operations

    def _judge_independent(self) -> None:
        """Judge disconnected operations; if that fails, in halves."""
        failing = set(self._failing_operations())
        unjudged = [o for o in self._suspects if o in self._unjudged and o not in failing]
        failure = self._passes(unjudged)
        if failure is None:
            return
        waiting = deque(halves(unjudged))
        if failure is Failure.ERROR:
            size = self._max_independent(unjudged)
            if not size:
                return
            remaining = [operation for operation in unjudged if operation in self._unjudged]
            waiting = deque(remaining[i : i + size] for i in range(0, len(remaining), size))
        failures = passed = 0
        while waiting:
            group = waiting.popleft()
            if self._passes(group) is None:
                passed += 1
            elif len(group) > 1:
                failures += 1
                if failures >= _MAX_FAILED_GROUPS and not passed:
                    return
                waiting.extend(halves(group))

    def _max_independent(self, group: Sequence[Operation]) -> int:
        """Return the most disconnected operations that the device runs; 0 if that is too few."""
        useful = 1 if self._thorough else len(group) / (2 * math.log2(len(group)) + _EXTRA_RUNS)
        passes, fails = 0, len(group)
        while fails - passes > 1 and fails - 1 >= useful:
            middle = (passes + fails) // 2
            if self._passes(group[:middle]) is None:
                passes = middle
            else:
                fails = middle
        return passes if passes >= useful else 0

    def _passes(self, group: Sequence[Operation]) -> Failure | None:
        """Judge disconnected operations; return why that failed, `None` if it did not."""
        if not group:
            return None
        part = self._whole.independent(group)
        outcome = self._run(part, f"{len(group)} operations apart")
        if outcome.failure is None:
            self._judge(group, part, outcome)
        elif len(group) == 1:
            self._record_failure(group[0], part, outcome)
        return outcome.failure

    def _judge(self, group: Sequence[Operation], part: Part, outcome: Outcome) -> None:
        """Compare the result of each disconnected operation."""
        by_operand = {operand: name for name, operand in part.makes.items()}
        for operation in group:
            alone = self._whole.independent([operation])
            outputs = {
                name: outcome.outputs[by_operand[operand]] for name, operand in alone.makes.items()
            }
            differences = self._recording.compare(alone, outputs)
            self._unjudged.discard(operation)
            if differences:
                self._report.own[operation] = max(differences.values(), key=_severity)
            if any(each.is_wrong for each in differences.values()):
                self._record_failing_group(
                    [operation], alone, replace(outcome, outputs=outputs), differences
                )

    def _record_failure(self, operation: Operation, part: Part, outcome: Outcome) -> None:
        """Record a single operation that fails, unless the device only refuses it alone."""
        if outcome.failure is Failure.ERROR and not self._refused:
            return
        self._record_failing_group([operation], part, outcome)
        self._unjudged.discard(operation)

    def _confirm(self) -> None:
        """Run each failing operation alone; for those that pass, find the group that fails."""
        doubtful: list[Operation] = []
        for key, operator in list(self._failing.items()):
            if operator.actual and len(self._suspects) > 1:
                part, outcome = self._trial(operator.operations, self._whole.independent)
                if not self._differs(part, outcome):
                    doubtful += operator.operations
                    del self._failing[key]
        if doubtful:
            self._search(self._whole.independent, doubtful if len(doubtful) > 1 else ())
            if not any(set(doubtful).intersection(key) for key in self._failing):
                self._search(self._whole.independent)

    # Parts of the model

    def _search(self, take: TakePart, among: Sequence[Operation] = (), pieces: int = 1) -> None:
        """Search for failing operations among the others.

        Args:
            take: extracts operations from the model.
            among: the operations to search; all suspects if empty.
            pieces: as for `Search.exhaust`.
        """
        refused = False

        def is_wrong(operations: Sequence[Operation]) -> bool:
            nonlocal refused
            part, outcome = self._trial(operations, take)
            refused = refused or outcome.failure is Failure.ERROR
            return self._differs(part, outcome)

        search: Search[Operation] = Search(is_wrong)
        failing = set(self._failing_operations())
        items = [o for o in among or self._suspects if o not in failing]
        try:
            search.exhaust(items, pieces)
            # Operations that fail only together may be in a part that the device refused.
            if pieces > 1 and (self._unjudged or refused):
                count = len(failing) + sum(map(len, search.groups))
                search.exhaust_prefixes(items, min(int(self._remaining_runs(count)), _MAX_PREFIXES))
        finally:
            for group in search.groups:
                with suppress(Exhausted):
                    part, outcome = self._trial(group, take)
                    failed = outcome.failure is not None
                    differences = {} if failed else self._recording.compare(part, outcome.outputs)
                    self._record_failing_group(group, part, outcome, differences)

    def _trial(self, operations: Sequence[Operation], take: TakePart) -> tuple[Part, Outcome]:
        """Return operations as a model and its outcome, which is cached if they are few."""
        key = frozenset(operations), take
        if key not in self._outcomes:
            part = take(operations)
            trial = part, self._run(part, _describe(operations))
            if len(operations) > _FEW:
                return trial
            self._outcomes[key] = trial
        return self._outcomes[key]

    def _differs(self, part: Part, outcome: Outcome) -> bool:
        """Return whether the outcome of a part is wrong or a failure."""
        if outcome.failure is not None:
            # A part that the device refuses is not wrong if it accepts the whole model.
            return self._refused or outcome.failure is not Failure.ERROR
        differences = self._recording.compare(part, outcome.outputs)
        if part.depth == 1 and differences:
            operation = self._whole.model.producers[next(iter(part.makes.values()))]
            self._report.own[operation] = max(differences.values(), key=_severity)
        return any(each.is_wrong for each in differences.values())

    def _run(self, part: Part, words: str) -> Outcome:
        return self._trials.run(part.model, part.inputs(self._recording.values), words)

    # Reports about failing operations

    def _record_failing_group(
        self,
        group: Sequence[Operation],
        part: Part,
        outcome: Outcome,
        differences: Mapping[str, Difference] | None = None,
    ) -> None:
        """Record operations that fail together.

        Args:
            group: the operations.
            part: the operations as a model.
            outcome: the outcome of running it.
            differences: the difference of each output, if there are any.
        """
        values = self._recording.values
        expected = {name: values[operand] for name, operand in part.makes.items()}
        manner, detail, worst = str(outcome.failure), outcome.detail, None
        if outcome.failure is None:
            worst = max((differences or {}).values(), key=_severity)
            nan = any(
                loses_finite_elements(outcome.outputs[name], expected[name]) for name in expected
            )
            manner, detail = "nan" if nan else "wrong", worst.detail
        self._failing[frozenset(group)] = FailingOperator(
            tuple(group),
            manner,
            detail,
            worst,
            part,
            part.inputs(values),
            expected,
            outcome.outputs,
        )

    def _measure_effects(self) -> None:
        """Record the effect of each failing operation alone on the model's outputs."""
        whole = self._report.error
        for key, operator in self._failing.items():
            if operator.actual and len(self._failing) > 1:
                others = [o for o in self._failing_operations() if o not in key]
                shows, effect = self._run_model(others)
            else:
                shows, effect = math.isinf(whole or 0) or self._shown, whole
            self._failing[key] = replace(operator, effect=effect, shows=shows)

    def _measure_cumulative_errors(self) -> None:
        """Record how errors accumulate along the model, if the device shows all operands."""
        alive = all(operator.actual for operator in self._failing.values())
        if not self._report.exposed or not alive:
            return
        part = self._whole.exposed()
        outcome = self._run(part, "the model with all that it computes as outputs")
        if outcome.failure is None:
            errors = part.by_operand(self._recording.errors(part, outcome.outputs))
            for operation in self._whole.model.operations:
                output_errors = [errors[output] for output in operation.outputs]
                self._report.sums[operation] = max(output_errors, default=0.0)


_FEW = 8


def _severity(difference: Difference) -> tuple[bool, float]:
    return difference.is_wrong, difference.error


def _describe(operations: Sequence[Operation]) -> str:
    if len(operations) == 1:
        return f"{operations[0].type} {operations[0].name} alone"
    return f"{len(operations)} operations together"
