"""Running cases in programs of several, and alone where that does not tell enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from crosschip.conformance.joined import Broken, Joined, Wrong
from crosschip.conformance.judge import Result, Verdict
from crosschip.conformance.runner import Died, Runner


@dataclass(frozen=True, slots=True)
class Company:
    """Runs cases of which several make one program.

    A program that breaks is tried again in halves. A case whose outputs are wrong in company is
    judged alone; where it is right alone, the company is what the device gets wrong, and that is
    the case's failure.

    Attributes:
        runner: has the process in which cases run.
        together: how many operations a program may have; 1 for each case alone.
        alone: runs one case by itself.
    """

    runner: Runner
    together: int
    alone: Callable[[str], Result]

    def results(self, ids: Sequence[str]) -> Iterator[Result]:
        """The result of each case, in the order in which they become known."""
        broken: list[Broken] = []
        wrong: list[Wrong] = []
        known: set[str] = set()
        died = self.together > 1 and len(ids) > 1
        while died:
            died, current = False, Joined(())
            left = [id for id in ids if id not in known]
            for event in self.runner.run_joined(left, self.together):
                if isinstance(event, Result):
                    known.add(event.id)
                    yield event
                elif isinstance(event, Joined):
                    current = event
                elif isinstance(event, Wrong):
                    wrong.append(event)
                    known.add(event.case)
                else:
                    if isinstance(event, Died):
                        died = bool(current.cases)
                        event = Broken(current.cases, event.detail, refused=False)
                    broken.append(event)
                    known.update(event.cases)
        for program in broken:
            yield from self._in_halves(program)
        for fault in wrong:
            result = self.alone(fault.case)
            yield _blamed(result, fault.others, fault.detail)
        for id in ids:
            if id not in known:
                yield self.alone(id)

    def _in_halves(self, program: Broken) -> Iterator[Result]:
        """The results of the cases of a program that broke."""
        middle = len(program.cases) // 2
        halves = program.cases[:middle], program.cases[middle:]
        results = [result for half in halves for result in self.results(half)]
        if not program.refused and all(r.verdict is not Verdict.FAIL for r in results):
            results[:1] = [_blamed(r, len(program.cases) - 1, program.detail) for r in results[:1]]
        yield from results


def _blamed(result: Result, others: int, detail: str) -> Result:
    """A result of a case alone, or the failure that its program with others is."""
    if result.verdict is not Verdict.PASS:
        return result
    cases = "case" if others == 1 else "cases"
    told = f"right alone, but not in one program with {others} other {cases}: {detail}"
    return replace(result, verdict=Verdict.FAIL, detail=told)
