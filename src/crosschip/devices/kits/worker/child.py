"""The worker's side: answers calls of the functions of one script until nobody is there any more.

Run as `python child.py SCRIPT`, by whatever Python has what the script needs. What the script, or
a library that it loads, prints goes to standard error.
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

_LOOK_SECONDS = 2.0


def load(path: str) -> ModuleType:
    """The module in a file, whatever else is called like it."""
    spec = spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Answer calls; the first answer comes unasked, once the script has been loaded."""
    wire = load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire.py"))
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    script: list[ModuleType] = []
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()

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


def _end_with(parent: int) -> None:
    """End in the middle of any work, once the process that asked for it is no more."""
    while os.getppid() == parent:
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def _call(script: ModuleType, request: Any, arrays: list[Any]) -> tuple[Any, Any]:
    """The result of a function, and the arrays."""
    function = getattr(script, request["function"])
    if request["function"] == "run":
        return None, function(arrays)
    return function(*request["arguments"]), ()


def _answer(work: Callable[[], tuple[Any, Any]]) -> tuple[dict[str, Any], Any]:
    """The message that says what came of it."""
    try:
        result, arrays = work()
    except Exception as error:  # whatever the vendor's library raises is the answer
        kind, text = type(error).__name__, str(error).strip()
        return {"error": f"{kind}: {text}" if text else kind}, ()
    return {"result": result}, arrays


if __name__ == "__main__":
    main()
