"""Running cases in worker processes, which may crash or hang without harm to the rest."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from crosschip.conformance.cases import Case
from crosschip.conformance.judge import Result, Verdict
from crosschip.conformance.report import Report
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing

STARTUP_SECONDS = 120

OnResult = Callable[[Case, Result], None]


def run_cases(
    device: str,
    cases: Iterable[Case],
    *,
    jobs: int = 1,
    seed: int = 0,
    timeout: float = 60,
    claims: Path | None = None,
    on_result: OnResult | None = None,
) -> Report:
    """Run cases on a device, in processes of the kit's own.

    Args:
        device: the name of its entry point, or its class as `module:Class`.
        cases: what to run.
        jobs: how many processes run cases at once.
        seed: what random elements are made from.
        timeout: after how many seconds a case counts as hanging.
        claims: the device's own file, if it is not beside its module.
        on_result: is told each result as it comes in, one at a time.

    Raises:
        DeviceError: the device does not open.
    """
    chosen = list(cases)
    groups = deque(list(group) for _, group in groupby(chosen, key=lambda case: case.operator))
    results: dict[str, Result] = {}
    lock = threading.Lock()

    def work(runner: Runner) -> None:
        with runner:
            while groups:
                try:
                    group = groups.popleft()
                except IndexError:
                    return
                for case in group:
                    result = runner.run(case)
                    with lock:
                        results[case.id] = result
                        if on_result:
                            on_result(case, result)

    runners = [Runner(device, seed=seed, timeout=timeout, claims=claims) for _ in range(jobs)]
    about = runners[0].about
    threads = [threading.Thread(target=work, args=(runner,)) for runner in runners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Report.of(about["device"], about["version"], chosen, results, seed)


class Runner(Closing):
    """Runs cases one after the other in a process, and in a new one whenever that dies."""

    def __init__(
        self, device: str, *, seed: int = 0, timeout: float = 60, claims: Path | None = None
    ) -> None:
        self._command = [sys.executable, "-m", f"{__package__}.worker", device, f"--seed={seed}"]
        if claims is not None:
            self._command.append(f"--claims={claims}")
        self._timeout = timeout
        self._worker: _Worker | None = None

    @property
    def about(self) -> dict[str, str]:
        """The device's name and version.

        Raises:
            DeviceError: it does not open.
        """
        return self._living().about

    def run(self, case: Case) -> Result:
        """Run a case; a crash or a hang is a failure of the case."""
        try:
            worker = self._living()
        except DeviceError as error:
            return Result(case.id, Verdict.NOT_RUN, str(error))
        return worker.run(case, self._timeout)

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _living(self) -> _Worker:
        if self._worker is not None and self._worker.dead:
            self.close()
        if self._worker is None:
            self._worker = _Worker(self._command)
        return self._worker


class _Worker:
    """A worker process, and the thread that reads from it.

    Attributes:
        about: the device's name and version.
        dead: whether the process has ended.
    """

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.dead = False
        self.about: dict[str, str] = self._answer(STARTUP_SECONDS)
        if self.dead or "error" in self.about:
            self.close()
            raise DeviceError(self.about.get("error") or "the device crashes when it is opened")

    def run(self, case: Case, timeout: float) -> Result:
        """Have a case run."""
        assert self._process.stdin is not None, "it has been asked for"
        with suppress(BrokenPipeError):  # if it has died, that shows when it does not answer
            self._process.stdin.write(f"{case.id}\n")
            self._process.stdin.flush()
        answer = self._answer(timeout)
        if self.dead:
            return Result(case.id, Verdict.FAIL, self._last_words(answer))
        return Result(answer["id"], Verdict(answer["verdict"]), answer["detail"])

    def close(self) -> None:
        """Let the process end, or end it."""
        assert self._process.stdin is not None, "it has been asked for"
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.dead = True

    def _read(self) -> None:
        assert self._process.stdout is not None, "it has been asked for"
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def _answer(self, timeout: float) -> dict[str, Any]:
        """The next document; if none comes, the process is dead or made so."""
        try:
            line = self._lines.get(timeout=timeout)
            answer: dict[str, Any] = json.loads(line) if line else {}
        except queue.Empty:
            self._process.kill()
            answer = {"hangs": timeout}
        self.dead = not answer or "hangs" in answer
        return answer

    def _last_words(self, answer: dict[str, Any]) -> str:
        status = self._process.wait()
        if "hangs" in answer:
            return f"hangs: no answer after {answer['hangs']:g} seconds"
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"crashes: the process ended with {how}"
