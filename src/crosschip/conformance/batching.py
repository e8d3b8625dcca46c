"""Running several cases in one program, and single cases where the joint result is inconclusive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from crosschip.conformance.joint_programs import CaseWrong, ProgramBroken, ProgramStarted
from crosschip.conformance.judge import Result, Verdict
from crosschip.conformance.runner import Died, Runner


@dataclass(frozen=True, slots=True)
class BatchRunner:
    """Runs cases in programs of several operations.

    A program that does not run is split in halves. A case with wrong outputs is run again in a
    program of its own; if it passes there, it is reported as failing only in a program with other
    cases.

    Attributes:
        runner: the worker process.
        together: the maximum number of operations of one program; 1 for a program per case.
        alone: runs one case in a program of its own.
    """

    runner: Runner
    together: int
    alone: Callable[[str], Result]

    def results(self, ids: Sequence[str]) -> Iterator[Result]:
        """Yield the result of each case, in the order in which they become known."""
        broken: list[ProgramBroken] = []
        wrong: list[CaseWrong] = []
        known: set[str] = set()
        died = self.together > 1 and len(ids) > 1
        while died:
            died, current = False, ProgramStarted(())
            left = [id for id in ids if id not in known]
            for event in self.runner.run_jointly(left, self.together):
                if isinstance(event, Result):
                    known.add(event.id)
                    yield event
                elif isinstance(event, ProgramStarted):
                    current = event
                elif isinstance(event, CaseWrong):
                    wrong.append(event)
                    known.add(event.case)
                else:
                    if isinstance(event, Died):
                        died = bool(current.cases)
                        event = ProgramBroken(current.cases, event.detail, refused=False)
                    broken.append(event)
                    known.update(event.cases)
        for program in broken:
            yield from self._in_halves(program)
        for fault in wrong:
            result = self.alone(fault.case)
            yield _to_joint_failure(result, fault.others, fault.detail)
        for id in ids:
            if id not in known:
                yield self.alone(id)

    def _in_halves(self, program: ProgramBroken) -> Iterator[Result]:
        """Yield the results of the cases of a failed program, from programs half its size."""
        middle = len(program.cases) // 2
        halves = program.cases[:middle], program.cases[middle:]
        results = [result for half in halves for result in self.results(half)]
        if not program.refused and all(r.verdict is not Verdict.FAIL for r in results):
            results[:1] = [
                _to_joint_failure(r, len(program.cases) - 1, program.detail) for r in results[:1]
            ]
        yield from results


def _to_joint_failure(result: Result, others: int, detail: str) -> Result:
    """Return the result of a case that was wrong in a program with others and then ran alone.

    A pass becomes a failure of the joint program; other results are unchanged.
    """
    if result.verdict is not Verdict.PASS:
        return result
    cases = "case" if others == 1 else "cases"
    sentence = f"right alone, but not in one program with {others} other {cases}: {detail}"
    return replace(result, verdict=Verdict.FAIL, detail=sentence)
