"""Compilation for the device that is ready first.

The device that is expected to be ready first is compiled for alone, since several at once would
delay each other. The next one is begun when that fails, or when it takes longer than expected.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from queue import Empty, SimpleQueue

from crosschip.ir import BudgetError, Error
from crosschip.runtime.compile.candidates import Candidates
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.lifetime import start_engine_thread

STAGGER_SECONDS = 3.0
"""The seconds after which the compilation for the next device begins beside the others."""

Built = CompiledModel | BaseException


class FirstReady:
    """The compilations of a model for several devices, begun one after the other.

    Args:
        candidates: the devices.
        names: the names of the devices to compile for, in order.

    Attributes:
        results: the compiled model of each device that has been compiled for, or its error, by
            name; without the one that `first` returned.
    """

    def __init__(self, candidates: Candidates, names: Iterable[str]) -> None:
        self._candidates = candidates
        self._waiting = deque(names)
        self._queue: SimpleQueue[tuple[str, Built]] = SimpleQueue()
        self._active: set[str] = set()
        self._threads: list[threading.Thread] = []
        self._abandoned = False
        self._lock = threading.Lock()
        self.results: dict[str, Built] = {}

    def first(self) -> tuple[str, CompiledModel] | None:
        """Return the name of the device that is ready first, and the model compiled for it.

        Returns:
            `None` if no device runs the whole model.

        Raises:
            BudgetError: the model costs more than the budget allows.
            BaseException: an interruption.
        """
        try:
            self._begin_next()
            while self._active:
                ended = self._next_result(STAGGER_SECONDS if self._waiting else None)
                if ended is None:
                    self._begin_next()
                    continue
                name, result = ended
                if isinstance(result, CompiledModel):
                    return name, result
                if not isinstance(result, Error) or isinstance(result, BudgetError):
                    raise result
                self.results[name] = result
                if not self._active:
                    self._begin_next()
        except BaseException:
            self.abandon()
            raise
        return None

    def rest(self, check: Callable[[], None]) -> dict[str, Built]:
        """Wait for the compilations that were begun, and do the others in this thread.

        Args:
            check: called before each compilation; may end this by an exception.

        Returns:
            The compiled model, which the caller closes, or the error of each device, by name.
        """
        while self._active:
            ended = self._next_result(None)
            assert ended is not None, "it waits without limit"
            self.results[ended[0]] = ended[1]
        while self._waiting:
            check()
            name = self._waiting.popleft()
            self._active.add(name)
            self.results[name] = self._build(name)
            self._active.discard(name)
        results, self.results = self.results, {}
        return results

    def abandon(self) -> None:
        """Close what has been compiled, and what is being compiled as soon as it is ready."""
        with self._lock:
            self._abandoned = True
        results = [*self.results.values()]
        self.results.clear()
        while not self._queue.empty():
            results.append(self._queue.get()[1])
        for result in results:
            if isinstance(result, CompiledModel):
                result.close()

    @property
    def is_active(self) -> bool:
        """Whether a compilation that was begun is in progress."""
        return any(thread.is_alive() for thread in self._threads)

    def join(self) -> None:
        """Wait for the ends of the compilations that were begun."""
        for thread in self._threads:
            thread.join()

    def _next_result(self, seconds: float | None) -> tuple[str, Built] | None:
        """Wait for the end of a compilation; return `None` after a number of seconds."""
        try:
            name, result = self._queue.get(timeout=seconds)
        except Empty:
            return None
        self._active.discard(name)
        return name, result

    def _begin_next(self) -> None:
        """Begin to compile for the next device in another thread."""
        if not self._waiting:
            return
        name = self._waiting.popleft()
        self._active.add(name)
        # With the context, in which the files that are read are recorded.
        run, title = copy_context().run, f"crosschip compiling for {name}"
        thread = threading.Thread(target=run, args=(self._work, name), name=title, daemon=True)
        start_engine_thread(thread)
        self._threads.append(thread)

    def _work(self, name: str) -> None:
        result = self._build(name)
        with self._lock:
            abandoned = self._abandoned
            if not abandoned:
                self._queue.put((name, result))
        if abandoned and isinstance(result, CompiledModel):
            result.close()

    def _build(self, name: str) -> Built:
        try:
            return self._candidates.build(name)
        except BaseException as error:  # passed on to the thread that waits
            return error
