"""A worker process that runs cases, and a new one whenever it dies."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosschip.conformance.joined import Broken, Joined, Wrong
from crosschip.conformance.judge import Result, Verdict
from crosschip.hal import Options
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing
from crosschip.runtime.plain import to_plain

STARTUP_SECONDS = 120
TIMEOUT, COMPILE_TIMEOUT = 60.0, 600.0
"""The seconds that a case may take besides compiling, and that compiling may take."""

_PROGRESS_SECONDS = 1.0
_LAST_WORDS = 600
"""The characters that are shown of what a process said before it died."""


OnWait = Callable[[float, bool], None]
"""Is told, about once a second, for how many seconds a case lasts, and whether it compiles."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The seconds after which a device hangs.

    Attributes:
        run: what a case may take besides compiling.
        compile: what compiling may take, or answering whether an operation is supported.
    """

    run: float = TIMEOUT
    compile: float = COMPILE_TIMEOUT


class Runner(Closing):
    """Runs cases one after the other in a process, and in a new one whenever that dies.

    Args:
        device: the name of its entry point, or its class as `module:Class`.
        seed: what random elements are made from.
        timeouts: after how many seconds a case hangs.
        claims: the device's own file, if it is not beside its module.
        options: how the device is to compile; `None` for the default.
        properties: the device's settings.
        on_wait: is told how long a case lasts, while it does.
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
        on_wait: OnWait | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", f"{__package__}.worker", device, f"--seed={seed}"]
        if options is not None:
            self._command.append(f"--options={json.dumps(to_plain(options))}")
        if claims is not None:
            self._command.append(f"--claims={claims}")
        if properties:
            self._command.append(f"--properties={json.dumps(dict(properties))}")
        self._timeouts = timeouts or Timeouts()
        self._on_wait = on_wait
        self._worker: _Worker | None = None

    @property
    def about(self) -> dict[str, str]:
        """The device's name and version.

        Raises:
            DeviceError: it does not open.
        """
        return self._living().about

    def start(self) -> None:
        """Make the process if there is none; a device that does not open shows in the next run."""
        with suppress(DeviceError):
            self._living()

    def run(self, id: str) -> Result:
        """Run the case of an id; a crash or a hang is a failure of the case."""
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

    def run_joined(self, ids: Sequence[str], together: int) -> Iterator[Event]:
        """Run cases in programs of several; a case without a result is to be run alone.

        Args:
            ids: the cases.
            together: how many operations a program may have.
        """
        try:
            worker = self._living()
        except DeviceError:
            return  # each case, run alone, says so
        yield from worker.events(ids, together)

    def kill(self) -> None:
        """End the process at once, whatever it does."""
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
            self._worker = _Worker(self._command, self._timeouts, self._on_wait)
        return self._worker


@dataclass(frozen=True, slots=True)
class Died:
    """The end of a process in the middle of cases.

    Attributes:
        detail: how it ended, with its last words.
    """

    detail: str


Event = Result | Joined | Broken | Wrong | Died


class _Worker:
    """A worker process, and the thread that reads from it.

    Attributes:
        about: the device's name and version.
        dead: whether the process has ended.
    """

    def __init__(
        self, command: list[str], timeouts: Timeouts, on_wait: OnWait | None = None
    ) -> None:
        self._timeouts = timeouts
        self._on_wait = on_wait
        self._compiles = False
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        # In a session of its own: Ctrl-C is for the kit, which ends the process itself.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.dead = False
        self.about: dict[str, str] = self._answer(STARTUP_SECONDS)
        if self.dead or "error" in self.about:
            words = self._last_words(0)
            self.close()
            raise DeviceError(
                self.about.get("error") or f"the device crashes when it is opened{words}"
            )

    def events(self, ids: Sequence[str], together: int) -> Iterator[Event]:
        """Have cases run; what comes of them, as it comes."""
        assert self._process.stdin is not None, "it has been asked for"
        before = self._said.seek(0, 2)
        with suppress(BrokenPipeError):  # if it has died, that shows when it does not answer
            request = {"cases": list(ids), "together": together}
            self._process.stdin.write(f"{json.dumps(request)}\n")
            self._process.stdin.flush()
        while True:
            answer = self._next(self._timeouts)
            if self.dead:
                yield Died(self._end(answer) + self._last_words(before))
            if self.dead or "done" in answer:
                return
            yield _event(answer)

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()

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
        self._said.close()
        self.dead = True

    def _read(self) -> None:
        assert self._process.stdout is not None, "it has been asked for"
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put("")

    def _next(self, timeouts: Timeouts) -> dict[str, Any]:
        """The next event but `compiling`, which only says what the time counts for."""
        begin = time.monotonic()
        while True:
            limit = timeouts.compile if self._compiles else timeouts.run
            answer = self._answer(limit, begin)
            if "compiling" not in answer:
                return answer
            self._compiles, begin = bool(answer["compiling"]), time.monotonic()

    def _answer(self, timeout: float, begin: float | None = None) -> dict[str, Any]:
        """The next document; if none comes in time, the process is dead or made so.

        Args:
            timeout: the seconds that it may take.
            begin: since when; now if left out.
        """
        begin = time.monotonic() if begin is None else begin
        answer: dict[str, Any] = {}
        while True:
            lasts = time.monotonic() - begin
            wait = min(_PROGRESS_SECONDS, timeout - lasts)
            try:
                line = self._lines.get(timeout=max(0.0, wait))
                answer = json.loads(line) if line else {}
                break
            except queue.Empty:
                if wait < _PROGRESS_SECONDS:
                    self._process.kill()
                    answer = {"hangs": timeout}
                    break
                if self._on_wait:
                    self._on_wait(time.monotonic() - begin, self._compiles)
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
        """The end of what the process has said since a place; empty if it is nothing."""
        self._process.wait()
        end = self._said.seek(0, 2)
        self._said.seek(max(since, end - _LAST_WORDS))
        words = self._said.read().decode("utf-8", "replace").strip()
        return f"; its last words: {words}" if words else ""


def _event(answer: Mapping[str, Any]) -> Event:
    """An event as a worker has written it."""
    ((kind, content),) = answer.items()
    if kind == "result":
        return Result(content["id"], Verdict(content["verdict"]), content["detail"])
    if kind == "joined":
        return Joined(tuple(content))
    if kind == "broken":
        return Broken(tuple(content["cases"]), content["detail"], content["refused"])
    return Wrong(**content)
