"""Measurement of the blocks of a model on devices, within a budget, the most promising first."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import inf

from crosschip.ir import BudgetError, Error
from crosschip.ir.dataclass import dataclass
from crosschip.progress import task
from crosschip.runtime.compile.failures import SegmentCompileError
from crosschip.runtime.compile.segments import Compilation
from crosschip.runtime.costs.blocks import Block
from crosschip.runtime.costs.parts import Values, compile_part
from crosschip.runtime.costs.records import BlockRecord, Records
from crosschip.runtime.costs.timing import Run, Timing, time_in_turns
from crosschip.runtime.placement.queries import Answers

_BATCH = 24
"""The maximum number of programs of a device that are compiled at once."""

_COMPILE_SECONDS = 0.1
"""The assumed duration of the compilation of a block, until one has been compiled."""

_LEAST_RUNS = 3
"""The number of runs of a block for which there must be time."""

_IDLE_SECONDS = 0.1
"""The time for the end of the engines' idle threads before the runs on each device."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block to measure on a device.

    Attributes:
        block: the block.
        device: the name of the device.
        seconds: the expected duration of a run.
    """

    block: Block
    device: str
    seconds: float


class Measurement:
    """The measurement of blocks.

    Args:
        values: the values that blocks read.
        answers: the devices' answers about the operations, by device.
        compilation: the devices and options.
        records: the records to which durations are added.
        whole_runs: functions that run the whole model, by device. They are timed together with the
            blocks, so that other load disturbs both alike.

    Attributes:
        problems: why a block has no duration on a device, by signature and device.
        whole_seconds: the durations of `whole_runs`, by device.
    """

    def __init__(
        self,
        values: Values,
        answers: Mapping[str, Answers],
        compilation: Compilation,
        records: Records,
        whole_runs: Mapping[str, Run],
    ) -> None:
        self._values = values
        self._answers = answers
        self._compilation = compilation
        self._records = records
        self._whole_runs = whole_runs
        self._compile_seconds: dict[str, list[float]] = {}
        self.problems: dict[tuple[str, str], str] = {}
        self.whole_seconds: dict[str, float] = {}

    def run(self, candidates: Sequence[Candidate], deadline: float) -> None:
        """Measure blocks until the deadline, the first candidates first.

        Durations that were measured before an interruption are recorded.
        """
        pending = list(candidates)
        name = self._values.sized.model.name
        with task(f"measuring blocks of {name}", len(pending), measures=True) as measuring:
            while pending and time.perf_counter() < deadline:
                batch = self._next_batch(pending)
                done = self._measure(batch, deadline)
                measuring.advance(len(done))
                pending = [each for each in pending if each not in done]
                if len(done) < len(batch):
                    return

    def _next_batch(self, pending: Sequence[Candidate]) -> list[Candidate]:
        """Return the first candidates of which no device has too many."""
        counts: dict[str, int] = {}
        batch: list[Candidate] = []
        for candidate in pending:
            count = counts[candidate.device] = counts.get(candidate.device, 0) + 1
            if count > _BATCH:
                break
            batch.append(candidate)
        return batch

    def _measure(self, batch: Sequence[Candidate], deadline: float) -> list[Candidate]:
        """Compile and time candidates; return those for which there was time."""
        done: list[Candidate] = []
        try:
            self._values.prepare([candidate.block for candidate in batch])
        except BudgetError:
            raise
        except (Error, SegmentCompileError) as error:
            reason = f"the values that it reads cannot be computed: {error}"
            self.problems |= {(each.block.signature, each.device): reason for each in batch}
            return list(batch)
        with ExitStack() as programs:
            parts: dict[str, list[tuple[Candidate, Run]]] = {}
            reserved = 0.0
            for candidate in batch:
                reserve = _LEAST_RUNS * candidate.seconds
                reserve += 0.0 if candidate.device in parts else _IDLE_SECONDS
                if self._lacks_time(candidate.device, deadline - reserved - reserve):
                    continue
                reserved += reserve
                done.append(candidate)
                run = self._compile(candidate, programs)
                if run is not None:
                    parts.setdefault(candidate.device, []).append((candidate, run))
            self._time(parts, deadline)
        return done

    def _time(self, parts: Mapping[str, Sequence[tuple[Candidate, Run]]], deadline: float) -> None:
        """Time the whole model and the parts on each device, and record the durations."""
        whole_runs = {name: run for name, run in self._whole_runs.items() if name in parts}
        groups: list[list[Run]] = [[run] for run in whole_runs.values()]
        groups += [[run for _, run in pairs] for pairs in parts.values()]
        timings = time_in_turns(groups, deadline)
        for device, (whole,) in zip(whole_runs, timings, strict=False):
            if not whole.problem:
                best = self.whole_seconds.get(device, inf)
                self.whole_seconds[device] = min(best, whole.seconds)
        for pairs, results in zip(parts.values(), timings[len(whole_runs) :], strict=True):
            for (candidate, _), timing in zip(pairs, results, strict=True):
                self._record(candidate, timing)

    def _lacks_time(self, device: str, end: float) -> bool:
        """Return whether a compilation is not expected to end in time."""
        before = self._compile_seconds.get(device, [])
        expected = sum(before) / len(before) if before else _COMPILE_SECONDS
        return time.perf_counter() + expected > end

    def _compile(self, candidate: Candidate, programs: ExitStack) -> Run | None:
        """Compile a block and return its run; record the problem if that fails."""
        device, begin = candidate.device, time.perf_counter()
        try:
            part = compile_part(
                self._values.sized.model,
                self._values.original(candidate.block),
                device,
                self._answers[device],
                self._compilation,
            )
            programs.callback(part.close)
            return part.run_on(self._values.of(candidate.block))
        except BudgetError:
            raise
        except (Error, SegmentCompileError) as error:
            self.problems[candidate.block.signature, device] = f"does not compile: {error}"
            return None
        finally:
            self._compile_seconds.setdefault(device, []).append(time.perf_counter() - begin)

    def _record(self, candidate: Candidate, timing: Timing) -> None:
        block, device = candidate.block, candidate.device
        if timing.problem:
            self.problems[block.signature, device] = f"does not run: {timing.problem}"
            return
        work = block.work
        description = (
            f"{work.operations} operations, {work.multiply_adds} multiply-adds, {work.bytes} bytes"
        )
        record = BlockRecord(timing.seconds, timing.uncertainty, description)
        self._records.add_block(device, block.signature, record)
