"""A worker process that runs cases one by one, and a new one whenever it dies."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from crosschip.conformance.judge import Result, Verdict
from crosschip.hal import Options
from crosschip.ir import DeviceError
from crosschip.ir.closing import Closing
from crosschip.runtime.plain import to_plain

STARTUP_SECONDS = 120
_LAST_WORDS = 600
"""The characters that are shown of what a process said before it died."""


class Runner(Closing):
    """Runs cases one after the other in a process, and in a new one whenever that dies."""

    def __init__(
        self,
        device: str,
        *,
        seed: int = 0,
        timeout: float = 60,
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
        self._timeout = timeout
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
        return worker.run(id, self._timeout)

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
            self._worker = _Worker(self._command)
        return self._worker


class _Worker:
    """A worker process, and the thread that reads from it.

    Attributes:
        about: the device's name and version.
        dead: whether the process has ended.
    """

    def __init__(self, command: list[str]) -> None:
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

    def run(self, id: str, timeout: float) -> Result:
        """Have a case run."""
        assert self._process.stdin is not None, "it has been asked for"
        before = self._said.seek(0, 2)
        with suppress(BrokenPipeError):  # if it has died, that shows when it does not answer
            self._process.stdin.write(f"{id}\n")
            self._process.stdin.flush()
        answer = self._answer(timeout)
        if self.dead:
            return Result(id, Verdict.FAIL, self._end(answer) + self._last_words(before))
        return Result(answer["id"], Verdict(answer["verdict"]), answer["detail"])

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

    def _end(self, answer: dict[str, Any]) -> str:
        status = self._process.wait()
        if "hangs" in answer:
            return f"hangs: no answer after {answer['hangs']:g} seconds"
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        return f"crashes: the process ended with {how}"

    def _last_words(self, since: int) -> str:
        """The end of what the process has said since a place; empty if it is nothing."""
        self._process.wait()
        end = self._said.seek(0, 2)
        self._said.seek(max(since, end - _LAST_WORDS))
        words = self._said.read().decode("utf-8", "replace").strip()
        return f"; its last words: {words}" if words else ""
