"""Compiled models at forks and at the end of the process.

A forked process has one thread and a copy of all locks. Engines wait forever for threads that no
longer exist, and so does any code that needs a lock of such a thread. At the end of the process,
Python stops threads that return from an engine, which crashes engines.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from crosschip.hal import Forking
from crosschip.ir import DeviceError

if TYPE_CHECKING:
    from crosschip.runtime.guard.devices import GuardedDevice
    from crosschip.runtime.submissions import Submissions

_EXIT_SECONDS = 30.0
"""The seconds that the end of the process waits for runs that are under way."""

_LOOK_SECONDS = 0.001

_MODELS: WeakSet[TrackedRuns] = WeakSet()
_ENGINE_THREADS: WeakSet[threading.Thread] = WeakSet()
_unusable: frozenset[str] = frozenset()
"""The devices whose libraries cannot be used in this process, as it was forked during a run."""

_ADVICE = (
    "start processes with multiprocessing's 'spawn' or 'forkserver', fork before the model is "
    "compiled and compile it in the child, or compile with PlacementOptions(isolate=True)"
)


class TrackedRuns(ABC):
    """Base of a compiled model: counts its current runs, and refuses runs after `stop`.

    Instances that have called `_track` are handled at forks and at the end of the process.
    """

    _requests: Submissions

    def __init__(self) -> None:
        # An entry for each run in progress; adding and removing one takes no lock.
        self._running: list[None] = []
        # Called at the start of each run if set; see `stop`.
        self._check: Callable[[], None] | None = None

    def _track(self) -> None:
        """Finish the model's runs at the end of the process, and handle it after forks."""
        _MODELS.add(self)
        _register()

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the model."""

    @property
    @abstractmethod
    def devices(self) -> Mapping[str, GuardedDevice]:
        """The devices, by name."""

    @property
    @abstractmethod
    def devices_on_trial(self) -> Collection[str]:
        """The names of the devices that another thread compiles for or measures at present."""

    @property
    def runs_under_way(self) -> int:
        """The number of runs in progress, in all threads."""
        return len(self._running) + self._requests.running

    @abstractmethod
    def stop(self, check: Callable[[], None]) -> None:
        """Call a function before each later run, which may refuse the run by an error.

        Args:
            check: the function; if it returns, the run goes on.
        """

    @abstractmethod
    def stop_trials(self) -> None:
        """Begin no more trials of other devices, and end those in progress soon."""

    def finish_requests(self, seconds: float) -> None:
        """Accept no more requests, and wait for the accepted ones.

        Args:
            seconds: the maximum number of seconds to wait for each worker thread.
        """
        self._requests.close(max(0.0, seconds))

    def withdraw_run(self) -> None:
        """Do not count the run of a thread that waits for the end of the process."""
        self._running.pop()

    @abstractmethod
    def after_fork(self, refuse: Callable[[], None] | None) -> None:
        """Reset the state of threads in a forked process, which has only one of them.

        Args:
            refuse: raises the error that refuses each run; `None` if the model can be run.
        """


def start_engine_thread(thread: threading.Thread) -> None:
    """Start a thread that calls engines, and that the end of the process waits for."""
    _ENGINE_THREADS.add(thread)
    _register()
    thread.start()


def _register() -> None:
    # atexit runs the last registration first, so before that of engines, which are loaded.
    atexit.unregister(_finish_runs)
    atexit.register(_finish_runs)


def check_device(name: str) -> None:
    """Raise DeviceError if a fork left the library of a device unusable in this process."""
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
    """Return the name of a device without the chip's number."""
    return name.partition(":")[0]


def _after_fork() -> None:
    """Make models unusable in a forked process whose engines need the parent; reset the others."""
    global _unusable
    models = list(_MODELS)
    _unusable |= {
        _library(name)
        for model in models
        if model.runs_under_way
        for name, device in model.devices.items()
        if device.capabilities.forking is not Forking.ALWAYS
    }
    _unusable |= {
        _library(name)
        for model in models
        for name in model.devices_on_trial
        if name not in model.devices
        or model.devices[name].capabilities.forking is not Forking.ALWAYS
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
    """Let runs end before the interpreter does, and start no others."""
    models = list(_MODELS)
    ending = threading.get_ident()
    end = time.monotonic() + _EXIT_SECONDS
    for model in models:
        model.stop_trials()
    for thread in list(_ENGINE_THREADS):
        thread.join(max(0.0, end - time.monotonic()))
    for model in models:
        model.finish_requests(end - time.monotonic())
        model.stop(partial(_wait_for_end, model, ending))
    while any(model.runs_under_way for model in models) and time.monotonic() < end:
        time.sleep(_LOOK_SECONDS)


def _wait_for_end(model: TrackedRuns, ending: int) -> None:
    """Block a thread until the process ends; the thread that ends it continues."""
    if threading.get_ident() != ending:
        model.withdraw_run()
        threading.Event().wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
