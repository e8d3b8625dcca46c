"""Worker processes for vendors' libraries, possibly with another Python.

A vendor's library may end its process, hang, print, or need packages that conflict with other
packages. A `Worker` runs a script that calls the library in another process.

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
_MAX_OUTPUT = 2000


class Refused(DeviceError):
    """The script's function raised an exception.

    Attributes:
        output: the exception's message, followed by the output of the process.
    """

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


class Died(Refused):
    """The process ended during a call, or was killed because it took too long.

    Attributes:
        fate: how the process ended, without its output.
    """

    def __init__(self, fate: str, output: str) -> None:
        last = _one_line(output[-_MAX_OUTPUT:])
        super().__init__(f"{fate}; its last words: {last}" if last else fate, output)
        self.fate = fate


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a call.

    Attributes:
        result: the function's result as JSON data; `None` for `run`.
        arrays: the result of `run`.
        printed: the output of the process during the call.
    """

    result: Any
    arrays: Sequence[Array]
    printed: str


class Worker(Closing):
    """A process that runs a script's functions, one call at a time, from any thread.

    Args:
        name: the device's name, for messages.
        script: the path of the script; only its function `run` takes and returns arrays.
        python: the interpreter.
        folder: the working directory; `None` for a temporary one.

    Raises:
        DeviceError: the interpreter does not start, or the script cannot be loaded.
    """

    def __init__(
        self, name: str, script: Path, python: str = sys.executable, folder: str | None = None
    ) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._folder = tempfile.TemporaryDirectory(prefix="crosschip-")
        self._log = Path(self._folder.name, "words")
        try:
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [python, "-I", str(_CHILD), str(script)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=folder or self._folder.name,
                    start_new_session=True,  # Ctrl-C goes to this process only
                )
        except OSError as error:
            self._folder.cleanup()
            raise DeviceError(f"{name}: {python} does not start ({error.strerror})") from None
        try:
            self._exchange("starting", 0, _START_SECONDS)
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
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
            function: the name of the function.
            arguments: its arguments, as JSON data.
            arrays: the list of arrays that `run` takes.
            seconds: the time limit.

        Raises:
            Refused: the function raised an exception.
            Died: the process ended, or exceeded the time limit.
        """
        doing = {"run": "running", "compile": "compiling"}.get(function, f"in {function}()")
        with self._lock:
            if not self.alive:
                raise Died(f"{self.name}: the process {self._fate()} before it was asked", "")
            start = self._log.stat().st_size
            request = {"function": function, "arguments": arguments}
            return self._exchange(doing, start, seconds, request, arrays)

    def close(self) -> None:
        """Kill the process."""
        process = self._process
        if process.poll() is None:
            process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # buffered data cannot be written any more
                    stream.close()
        process.wait()
        self._folder.cleanup()

    def _exchange(
        self,
        doing: str,
        start: int,
        seconds: float | None,
        request: Any = None,
        arrays: Sequence[Array] = (),
    ) -> Reply:
        late = threading.Event()
        watch = threading.Timer(seconds, self._kill_late, [late]) if seconds is not None else None
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
        except BaseException:  # interrupted: the answer is not needed any more
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
        content, arrays_out = message
        if "error" in content:
            output = str(content["error"])
            raise Refused(f"{self.name}: {_one_line(output)}", f"{output}\n{printed}")
        return Reply(content.get("result"), arrays_out, printed)

    def _kill_late(self, late: threading.Event) -> None:
        late.set()
        self._process.kill()

    def _printed(self, start: int) -> str:
        with self._log.open("rb") as log:
            log.seek(start)
            return log.read().decode(errors="replace")

    def _fate(self) -> str:
        self._process.kill()  # it may only have closed its pipe
        code = self._process.wait()
        if code >= 0:
            return f"ended with status {code}"
        return f"died of {signal.Signals(-code).name}"


def _one_line(text: str) -> str:
    """Return the end of a text on one line, without control characters."""
    line = " ".join(text.split())
    return "".join(c for c in line if c.isprintable())[-_MAX_OUTPUT:]
