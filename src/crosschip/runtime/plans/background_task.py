"""Work that another thread does while this one goes on."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class BackgroundTask(Thread, Generic[T]):
    """A thread that computes something, from now on.

    A future would do, but importing those takes longer than to load a small model.

    Args:
        compute: what is to be computed.
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        super().__init__(name="crosschip plan", daemon=True)
        self._compute = compute
        self._results: list[T] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._results.append(self._compute())
        except BaseException as error:  # whoever waits is to hear of it
            self._error = error

    def result(self) -> T:
        """Wait for the result and return it, or raise what the computation raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._results[0]
