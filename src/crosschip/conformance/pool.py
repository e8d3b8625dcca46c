"""Running cases in worker processes, so that crashes and hangs do not end the run."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

from crosschip.conformance.batching import BatchRunner
from crosschip.conformance.cases import RANDOM, Case, use_at
from crosschip.conformance.judge import Result, Verdict, manner
from crosschip.conformance.report import Report
from crosschip.conformance.runner import COMPILE_TIMEOUT, TIMEOUT, Runner, Timeouts
from crosschip.conformance.shrinking import followed, shrink
from crosschip.hal import Options
from crosschip.progress import task

OnResult = Callable[[Case, Result], None]

_BATCH = 250
"""The number of cases that a process takes at a time."""

_HOPELESS = 20
"""After how many cases of an operator, none of which the device took, no more are tried."""

_SHRUNK = 3
"""The number of an operator's failures of one manner that are shrunk."""


def run_cases(
    device: str,
    cases: Iterable[Case],
    *,
    jobs: int = 1,
    seed: int = 0,
    timeout: float = TIMEOUT,
    compile_timeout: float = COMPILE_TIMEOUT,
    together: int = 1,
    budget: float | None = None,
    tries: int = 300,
    claims: Path | None = None,
    options: Options | None = None,
    properties: Mapping[str, str] | None = None,
    done: Mapping[str, Result] | None = None,
    on_result: OnResult | None = None,
    limit: int | None = None,
) -> Report:
    """Run cases on a device in worker processes.

    Ctrl-C ends the run; the report then holds the results so far and is not `whole`.

    Args:
        device: the name of the device, or its class as `module:Class`.
        cases: the cases; an iterator is read while cases run.
        jobs: the number of worker processes.
        seed: the seed of random elements.
        timeout: seconds after which a run counts as hanging.
        compile_timeout: seconds after which a compilation counts as hanging.
        together: the most operations that are compiled as one program, for slow compilers; 1
            compiles each case separately.
        budget: the most seconds for the cases of one operator; the remaining ones are not run. The
            time of a program of several cases counts for the first of them.
        tries: the most smaller uses that are tried for a random case that fails.
        claims: the device's claims file, if it is not beside its module.
        options: the compile options; `None` for the default.
        properties: the device's properties.
        done: results of an earlier run, which are not run again.
        on_result: called with each result, one at a time.
        limit: the number of cases that the device must support; further cases are not run.

    Raises:
        DeviceError: the device does not open.
    """
    results = dict(done or {})
    runners = [
        Runner(
            device,
            seed=seed,
            timeouts=Timeouts(timeout, compile_timeout),
            claims=claims,
            options=options,
            properties=properties,
        )
        for _ in range(jobs)
    ]
    description = runners[0].device_info
    work = _Work(cases, results, budget, tries, together, on_result, limit)
    total = len(cases) if limit is None and isinstance(cases, Collection) else limit
    with task(f"testing {device}", total) as work.progress, ThreadPoolExecutor(jobs) as threads:
        running = [threads.submit(work.run, runner) for runner in runners]
        try:
            wait(running, return_when=FIRST_EXCEPTION)
        except KeyboardInterrupt:
            work.stop()
            for runner in runners:
                runner.kill()
        else:
            for each in running:
                each.result()
    return Report.of(
        description["device"],
        description["version"],
        list(cases) if limit is None and isinstance(cases, Collection) else work.begun,
        results,
        seed,
        options=options,
        properties=properties,
        whole=not work.stopped,
    )


class _Work:
    """The queue of cases that the worker threads share.

    Attributes:
        stopped: whether the run was interrupted.
        begun: the cases that were run or have earlier results, in order.
        progress: the task that counts the cases.
    """

    def __init__(
        self,
        cases: Iterable[Case],
        results: dict[str, Result],
        budget: float | None,
        tries: int,
        together: int,
        on_result: OnResult | None,
        limit: int | None,
    ) -> None:
        self.stopped = False
        self.begun: list[Case] = []
        self._cases: dict[str, Case] = {}
        self._left = limit
        self._tried: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._batches = _batches(cases, by_operator=together < 2)
        self._together = together
        self._results = results
        self._budget = budget
        self._tries = tries
        self._on_result = on_result
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}
        self._failures: Counter[tuple[str, str]] = Counter()
        self._verdicts: Counter[Verdict] = Counter()
        self.progress = task("testing")

    def run(self, runner: Runner) -> None:
        """Run batches until none are left."""
        clock = _Clock()
        batch_runner = BatchRunner(
            runner, self._together, lambda id: self._alone(runner, clock, id)
        )
        with runner:
            while not self.stopped:
                with self._lock:
                    batch = next(self._batches, None) if self._left != 0 else None
                if batch is None:
                    return
                for cases in self._to_begin(batch):
                    runner.start()
                    clock.lap()
                    for result in batch_runner.results(cases):
                        if self.stopped:
                            return
                        self._take(result, clock.lap())

    def stop(self) -> None:
        """Start no further cases."""
        self.stopped = True

    def _to_begin(self, batch: Sequence[Case]) -> Iterator[Sequence[str]]:
        """Yield the ids of a batch's cases that must run now, in groups that may share programs.

        If a number of supported cases is wanted, groups are small, because results decide what else
        runs.
        """
        size = len(batch) if self._together > 1 and self._left is None else self._together
        for start in range(0, len(batch), size):
            if self.stopped:
                return
            ids = [case.id for case in batch[start : start + size] if self._begins(case)]
            if ids:
                yield ids

    def _take(self, result: Result, seconds: float) -> None:
        """Record a result and the time that it took."""
        case = self._cases[result.id]
        with self._lock:
            self._spent[case.operator] = self._spent.get(case.operator, 0.0) + seconds
            self._results[case.id] = result
            self._count(case, result)
            self._verdicts[result.verdict] += 1
            counts = ", ".join(f"{count} {name.value}" for name, count in self._verdicts.items())
            self.progress.describe(f"{case.operator} ({counts})")
            if self._on_result:
                self._on_result(case, result)

    def _begins(self, case: Case) -> bool:
        """Return whether a case must run now; false if it has an earlier result."""
        with self._lock:
            is_hopeless = (
                self._tried[case.operator] >= _HOPELESS and not self._accepted[case.operator]
            )
            if self._left is not None and (self._left == 0 or is_hopeless):
                return False
            self.begun.append(case)
            self._cases[case.id] = case
            result = self._results.get(case.id)
            if result is not None:
                self._count(case, result)
            return result is None

    def _count(self, case: Case, result: Result) -> None:
        """Count a result as supported by the device, or not."""
        self._tried[case.operator] += 1
        is_accepted = result.verdict in (Verdict.PASS, Verdict.FAIL)
        if is_accepted:
            self._accepted[case.operator] += 1
            if self._left:
                self._left -= 1
        if is_accepted or self._left is None:
            self.progress.advance()

    def _alone(self, runner: Runner, clock: _Clock, id: str) -> Result:
        """Run a case in a program of its own."""
        operator = self._cases[id].operator
        if self._budget is not None and self._spent.get(operator, 0.0) >= self._budget:
            why = f"the budget of {self._budget:g} seconds for {operator} is spent"
            return Result(id, Verdict.NOT_RUN, why)
        runner.start()
        clock.lap()
        result = runner.run(id)
        if result.verdict is Verdict.FAIL and f"/{RANDOM}/" in id and not self.stopped:
            return self._shrunk(runner, self._cases[id], result)
        return result

    def _shrunk(self, runner: Runner, case: Case, result: Result) -> Result:
        """Shrink a failure to the smallest use that fails alike, for the first few of a manner."""
        how = manner(result.detail)
        self._failures[case.operator, how] += 1
        if self._failures[case.operator, how] > _SHRUNK or "~" in case.id:
            return result
        use, smallest = use_at(case.id), result

        def fails(way: Sequence[int]) -> bool:
            nonlocal smallest
            tried = runner.run(_id_of_path(case.id, way))
            alike = tried.verdict is Verdict.FAIL and manner(tried.detail) == how
            smallest = tried if alike else smallest
            return alike and not self.stopped

        way = shrink(use, fails, self._tries)
        return replace(result, smallest=f"{smallest.id}: {followed(use, way)}: {smallest.detail}")


def _id_of_path(id: str, way: Sequence[int]) -> str:
    return f"{id}~{'.'.join(map(str, way))}" if way else id


class _Clock:
    """Measures laps."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def lap(self) -> float:
        """Return the seconds since the last call."""
        last, self._last = self._last, time.monotonic()
        return self._last - last


def _batches(cases: Iterable[Case], *, by_operator: bool) -> Iterator[Sequence[Case]]:
    for _, group in groupby(cases, key=lambda case: case.operator if by_operator else ""):
        while batch := list(islice(group, _BATCH)):
            yield batch
