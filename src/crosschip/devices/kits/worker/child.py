"""The worker process: answers calls of a script's functions until the parent ends.

Run as `python child.py SCRIPT`, with a Python that has the script's packages. Output of the script
and of libraries goes to standard error.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

_POLL_SECONDS = 2.0


def load(path: str) -> ModuleType:
    """Load a module from a file, independent of other modules of its name."""
    spec = spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answer calls; send the first answer after the script is loaded, without a call."""
    wire = load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire.py"))
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    script: list[ModuleType] = []
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()

    def start() -> tuple[Any, Any]:
        script.append(load(sys.argv[1]))
        return None, ()

    answer = _answer(start)
    while True:
        sys.stderr.flush()
        wire.send(replies, *answer)
        message = wire.receive(requests)
        if message is None or not script:
            break
        answer = _answer(functools.partial(_call, script[0], *message))


def _end_with_parent(parent: int) -> None:
    """End the process, even during a call, once the parent has ended."""
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


def _call(script: ModuleType, request: Any, arrays: list[Any]) -> tuple[Any, Any]:
    """Return the result of a function, and its arrays."""
    function = getattr(script, request["function"])
    if request["function"] == "run":
        return None, function(arrays)
    return function(*request["arguments"]), ()


def _answer(work: Callable[[], tuple[Any, Any]]) -> tuple[dict[str, Any], Any]:
    """Return the message with the result or the error."""
    try:
        result, arrays = work()
    except Exception as error:  # vendors' libraries raise any class
        kind, text = type(error).__name__, str(error).strip()
        return {"error": f"{kind}: {text}" if text else kind}, ()
    return {"result": result}, arrays


if __name__ == "__main__":
    main()
