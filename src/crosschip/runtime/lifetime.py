"""Compiled models at forks and at the end of the process.

A forked process has one thread, and a copy of all locks as they were. Engines whose threads are
gone wait for them for ever, and so does whoever needs a lock that another thread held. At the end
of the process, Python ends threads that come back from an engine, which engines do not survive.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from crosschip.hal import Forking
from crosschip.ir import DeviceError

if TYPE_CHECKING:
    from crosschip.runtime.compiled import CompiledModel

_EXIT_SECONDS = 30.0
"""The seconds that the end of the process waits for runs that are under way."""

_LOOK_SECONDS = 0.001

_MODELS: WeakSet[CompiledModel] = WeakSet()
_unusable: frozenset[str] = frozenset()
"""The devices whose libraries cannot be used in this process, as it was forked during a run."""

_ADVICE = (
    "start processes with multiprocessing's 'spawn' or 'forkserver', fork before the model is "
    "compiled and compile it in the child, or compile with PlacementOptions(isolate=True)"
)


def watch(model: CompiledModel) -> None:
    """See to a compiled model when the process is forked, and when it ends."""
    _MODELS.add(model)
    # The last that is registered comes first: before the engines, which are loaded by now, end.
    atexit.unregister(_finish_runs)
    atexit.register(_finish_runs)


def check_device(name: str) -> None:
    """Refuse a device whose library cannot be used in this process.

    Args:
        name: the device's.

    Raises:
        DeviceError: the process was forked while another thread was in the library.
    """
    if _library(name) in _unusable:
        _refuse_device(name)


def hold_forever(objects: object) -> None:
    """Never release objects, not even at the end of the process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(objects))


def _refuse_device(name: str) -> None:
    raise DeviceError(
        f"{name}: this process was forked while another thread ran a model on it, and what that "
        f"thread had locked stays locked here; {_ADVICE}"
    )


def _refuse_model(model: str, device: str) -> None:
    raise DeviceError(
        f"{device}: the model {model} was compiled in the process that this one has been forked "
        f"from, and cannot be used here; {_ADVICE}"
    )


def _library(name: str) -> str:
    """The name of a device without that of a chip."""
    return name.partition(":")[0]


def _after_fork() -> None:
    """Leave to the parent what only it can use; see to the rest."""
    global _unusable
    models = list(_MODELS)
    _unusable |= {
        _library(name)
        for model in models
        if model.runs_under_way
        for name, device in model.devices.items()
        if device.capabilities.forking is not Forking.ALWAYS
    }
    for model in models:
        refuse = None
        for name, device in model.devices.items():
            if _library(name) in _unusable:
                refuse = partial(_refuse_device, name)
            elif device.capabilities.forking is Forking.NEVER:
                refuse = partial(_refuse_model, model.name, name)
        model.after_fork(refuse)


def _finish_runs() -> None:
    """Let runs end before the interpreter does, and no other thread begin one."""
    models = list(_MODELS)
    ending = threading.get_ident()
    end = time.monotonic() + _EXIT_SECONDS
    for model in models:
        model.finish_requests(end - time.monotonic())
        model.stop(partial(_wait_for_end, model, ending))
    while any(model.runs_under_way for model in models) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)


def _wait_for_end(model: CompiledModel, ending: int) -> None:
    """Have a thread wait for the end of the process; the one that ends it goes on."""
    if threading.get_ident() != ending:
        model.withdraw_run()
        threading.Event().wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
