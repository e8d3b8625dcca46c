"""Processes of their own for foreign libraries, perhaps with another Python.

A vendor's library may end its process, wait for ever, print, or need packages that do not go
together with anybody else's. A `Worker` runs a script that calls it, elsewhere.

worker = Worker("mychip", Path("tool.py"), python="/opt/mychip/bin/python")
reply = worker.call("compile", "/tmp/folder", {"level": 3}, seconds=600)
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from crosschip.devices.kits.worker.wire import receive, send
from crosschip.ir import Array, DeviceError
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass

_CHILD = Path(__file__).with_name("child.py")
_START_SECONDS = 120
_LAST_WORDS = 2000


class Refused(DeviceError):
    """The script's function raised an error.

    Attributes:
        output: what it said, and below that what was printed while it worked.
    """

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


class Died(Refused):
    """The process came to its end in the middle of its work, or was ended for taking too long.

    Attributes:
        fate: how it ended, without its last words.
    """

    def __init__(self, fate: str, output: str) -> None:
        last = _one_line(output[-_LAST_WORDS:])
        super().__init__(f"{fate}; its last words: {last}" if last else fate, output)
        self.fate = fate


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call.

    Attributes:
        result: what the function returned, as JSON says it; `None` from `run`.
        arrays: what `run` returned.
        printed: what the process wrote while it worked.
    """

    result: Any
    arrays: Sequence[Array]
    printed: str


class Worker(Closing):
    """A process that runs a script's functions, one call at a time. Any thread may call.

    Args:
        name: the device's, which messages begin with.
        script: a file of functions, loaded there by its path; `run` alone takes and returns a list
            of arrays.
        python: the interpreter.
        folder: the working directory; `None` for a temporary one.

    Raises:
        DeviceError: the interpreter does not start, or the script cannot be loaded.
    """

    def __init__(
        self,
        name: str,
        script: Path,
        python: str = sys.executable,
        folder: str | None = None,
    ) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._room = tempfile.TemporaryDirectory(prefix="crosschip-")
        self._words = Path(self._room.name, "words")
        try:
            with self._words.open("wb") as words:
                self._process = subprocess.Popen(
                    [python, "-I", str(_CHILD), str(script)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=words,
                    cwd=folder or self._room.name,
                    start_new_session=True,  # Ctrl-C is for this process to handle
                )
        except OSError as error:
            self._room.cleanup()
            raise DeviceError(f"{name}: {python} does not start ({error.strerror})") from None
        try:
            self._answer("starting", 0, _START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Tell whether the process is alive."""
        return self._process.poll() is None

    def call(
        self,
        function: str,
        *arguments: Any,
        arrays: Sequence[Array] = (),
        seconds: float | None = None,
    ) -> Reply:
        """Call a function of the script.

        Args:
            function: its name.
            arguments: its arguments, as JSON can say them.
            arrays: handed over as a list, behind the arguments, if there are any.
            seconds: how long it may take.

        Raises:
            Refused: it raised an error.
            Died: the process did not live to answer, or did not in time.
        """
        doing = {"run": "running", "compile": "compiling"}.get(function, f"in {function}()")
        with self._lock:
            if not self.alive:
                raise Died(f"{self.name}: the process {self._fate()} before it was asked", "")
            start = self._words.stat().st_size
            request = {"function": function, "arguments": arguments}
            return self._answer(doing, start, seconds, request, arrays)

    def close(self) -> None:
        """End the process."""
        process = self._process
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # what was left to write has nobody to read it
                    stream.close()
        process.wait()
        self._room.cleanup()

    def _answer(
        self,
        doing: str,
        start: int,
        seconds: float | None,
        request: Any = None,
        arrays: Sequence[Array] = (),
    ) -> Reply:
        late = threading.Event()
        watch = threading.Timer(seconds, self._end, [late]) if seconds is not None else None
        if watch is not None:
            watch.daemon = True
            watch.start()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None, "it is a pipe"
        assert stdout is not None, "it is a pipe"
        try:
            if request is not None:
                send(stdin, request, arrays)
            message = receive(stdout)
        except (OSError, EOFError, ValueError):
            message = None
        except BaseException:  # interrupted: whatever it does is of no use any more
            self._process.kill()
            raise
        finally:
            if watch is not None:
                watch.cancel()
        printed = self._printed(start)
        if message is None:
            fate = self._fate()
            how = f"took more than {seconds:g} seconds" if late.is_set() else fate
            raise Died(f"{self.name}: the process {how} while {doing}", printed)
        content, made = message
        if "error" in content:
            output = str(content["error"])
            raise Refused(f"{self.name}: {_one_line(output)}", f"{output}\n{printed}")
        return Reply(content.get("result"), made, printed)

    def _end(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def _printed(self, start: int) -> str:
        with self._words.open("rb") as words:
            words.seek(start)
            return words.read().decode(errors="replace")

    def _fate(self) -> str:
        self._process.kill()  # where it only closed its end
        code = self._process.wait()
        if code >= 0:
            return f"ended with status {code}"
        return f"died of {signal.Signals(-code).name}"


def _one_line(text: str) -> str:
    """The end of a text on one line, without what a terminal would take for orders."""
    words = " ".join(text.split())
    return "".join(c for c in words if c.isprintable())[-_LAST_WORDS:]
