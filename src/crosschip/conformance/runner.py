"""A worker process that runs cases, and its replacement when it dies."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosschip.conformance.joint_programs import CaseWrong, ProgramBroken, ProgramStarted
from crosschip.conformance.judge import Result, Verdict
from crosschip.hal import Options
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing
from crosschip.progress import task
from crosschip.runtime.plain import to_plain

STARTUP_SECONDS = 120
TIMEOUT, COMPILE_TIMEOUT = 60.0, 600.0
"""The default time limits in seconds of a case without compilation, and of its compilation."""

_LAST_WORDS = 600
"""The number of characters of standard error that are shown after a crash."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds after which a device counts as hanging.

    Attributes:
        run: the limit of a run.
        compile: the limit of a compilation or of a `supports` query.
    """

    run: float = TIMEOUT
    compile: float = COMPILE_TIMEOUT


class Runner(Closing):
    """Runs cases one after the other in a worker process, which is restarted whenever it dies.

    Args:
        device: the name of the device, or its class as `module:Class`.
        seed: the seed of random elements.
        timeouts: the time limits.
        claims: the device's claims file, if it is not beside its module.
        options: the compile options; `None` for the default.
        properties: the device's properties.
    """

    def __init__(
        self,
        device: str,
        *,
        seed: int = 0,
        timeouts: Timeouts | None = None,
        claims: Path | None = None,
        options: Options | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", f"{__package__}.worker", device, f"--seed={seed}"]
        if options is not None:
            self._command.append(f"--options={json.dumps(to_plain(options))}")
        if claims is not None:
            self._command.append(f"--claims={claims}")
        if properties:
            self._command.append(f"--properties={json.dumps(dict(properties))}")
        self._timeouts = timeouts or Timeouts()
        self._worker: _Worker | None = None

    @property
    def device_info(self) -> dict[str, str]:
        """The device's name and version.

        Raises:
            DeviceError: it does not open.
        """
        return self._living().device_info

    def start(self) -> None:
        """Start the process if there is none; if the device does not open, the next run raises."""
        with suppress(DeviceError):
            self._living()

    def run(self, id: str) -> Result:
        """Run the case with an id; a crash or a hang is a failure of the case."""
        try:
            worker = self._living()
        except DeviceError as error:
            return Result(id, Verdict.NOT_RUN, str(error))
        result = Result(id, Verdict.NOT_RUN, "the process gave no result")
        for event in worker.events([id], 1):
            if isinstance(event, Result):
                result = event
            elif isinstance(event, Died):
                return Result(id, Verdict.FAIL, event.detail)
        return result

    def run_jointly(self, ids: Sequence[str], together: int) -> Iterator[Event]:
        """Run cases in programs of several; those without a result must run on their own.

        Args:
            ids: the ids of the cases.
            together: the maximum number of operations of one program.
        """
        try:
            worker = self._living()
        except DeviceError:
            return  # each case, run alone, says so
        yield from worker.events(ids, together)

    def kill(self) -> None:
        """Kill the process."""
        if self._worker is not None:
            self._worker.kill()

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _living(self) -> _Worker:
        if self._worker is not None and self._worker.dead:
            self.close()
        if self._worker is None:
            self._worker = _Worker(self._command, self._timeouts)
        return self._worker


@dataclass(frozen=True, slots=True)
class Died:
    """The event that the worker process ended while cases ran.

    Attributes:
        detail: the signal or exit status, with the last lines of standard error.
    """

    detail: str


Event = Result | ProgramStarted | ProgramBroken | CaseWrong | Died


class _Worker:
    """A worker process, and the thread that reads its answers.

    Attributes:
        about: the device's name and version.
        dead: whether the process has ended.
    """

    def __init__(self, command: list[str], timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._compiles = False
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        # In a separate session, so that Ctrl-C reaches only the kit, which ends the process itself.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.dead = False
        self.device_info: dict[str, str] = self._answer(STARTUP_SECONDS)
        if self.dead or "error" in self.device_info:
            words = self._last_words(0)
            self.close()
            raise DeviceError(
                self.device_info.get("error") or f"the device crashes when it is opened{words}"
            )

    def events(self, ids: Sequence[str], together: int) -> Iterator[Event]:
        """Send cases to the worker and yield its events."""
        assert self._process.stdin is not None, "it has been asked for"
        before = self._stderr.seek(0, 2)
        with suppress(BrokenPipeError):  # if it has died, that shows when it does not answer
            request = {"cases": list(ids), "together": together}
            self._process.stdin.write(f"{json.dumps(request)}\n")
            self._process.stdin.flush()
        while True:
            answer = self._next(self._timeouts, "".join(ids[:1]))
            if self.dead:
                yield Died(self._end(answer) + self._last_words(before))
            if self.dead or "done" in answer:
                return
            yield _event(answer)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def close(self) -> None:
        """Let the process end, and kill it if it does not."""
        assert self._process.stdin is not None, "it has been asked for"
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
        self.dead = True

    def _read(self) -> None:
        assert self._process.stdout is not None, "it has been asked for"
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def _next(self, timeouts: Timeouts, case: str) -> dict[str, Any]:
        """Return the next event; `compiling` events only choose the time limit."""
        begin = time.monotonic()
        with task(f"running {case}") as running:
            while True:
                running.describe("compiling" if self._compiles else "")
                limit = timeouts.compile if self._compiles else timeouts.run
                answer = self._answer(limit, begin)
                if "compiling" not in answer:
                    return answer
                self._compiles, begin = bool(answer["compiling"]), time.monotonic()

    def _answer(self, timeout: float, begin: float | None = None) -> dict[str, Any]:
        """Return the next document; kill the process if none comes in time.

        Args:
            timeout: the time limit in seconds.
            begin: the start of the time limit, from `time.monotonic`; now if omitted.
        """
        begin = time.monotonic() if begin is None else begin
        answer: dict[str, Any] = {}
        try:
            line = self._lines.get(timeout=max(0.0, begin + timeout - time.monotonic()))
            answer = json.loads(line) if line else {}
        except queue.Empty:
            self._process.kill()
            answer = {"hangs": timeout}
        self.dead = not answer or "hangs" in answer
        return answer

    def _end(self, answer: dict[str, Any]) -> str:
        status = self._process.wait()
        if "hangs" in answer:
            doing = "compiling has taken more than" if self._compiles else "no answer after"
            return f"hangs: {doing} {answer['hangs']:g} seconds"
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"crashes: the process ended with {how}"

    def _last_words(self, since: int) -> str:
        """Return the end of what the process has written to standard error since an offset."""
        self._process.wait()
        end = self._stderr.seek(0, 2)
        self._stderr.seek(max(since, end - _LAST_WORDS))
        words = self._stderr.read().decode("utf-8", "replace").strip()
        return f"; its last words: {words}" if words else ""


def _event(answer: Mapping[str, Any]) -> Event:
    """Parse an event of a worker."""
    ((kind, content),) = answer.items()
    if kind == "result":
        return Result(content["id"], Verdict(content["verdict"]), content["detail"])
    if kind == "joined":
        return ProgramStarted(tuple(content))
    if kind == "broken":
        return ProgramBroken(tuple(content["cases"]), content["detail"], content["refused"])
    return CaseWrong(**content)
