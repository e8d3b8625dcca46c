"""SHA-256 of the constants of models, computed once each, on several threads."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from threading import Thread

import numpy as np

from crosschip.ir import Array, Operand
from crosschip.runtime.artifact.digests import block_digests

_THREADS = min(4, os.cpu_count() or 1)
_WORTHWHILE = 2**16
"""The minimum size of a constant that is hashed on other threads, in bytes."""

_MAX_HELD_NBYTES = 2**30
"""The maximum number of bytes of elements that are held in memory for the compiler."""


class Fingerprints:
    """Digests of constants, which are shared by the keys of one compilation.

    The weights of a model enter the keys of the choice among devices, of the programs, and of the
    compiled model. Elements that are read from a file or computed for a digest are held until
    `release`, since the compiler needs them next.
    """

    def __init__(self) -> None:
        # The content is held, so that no other object gets the same `id`.
        self._futures: dict[int, tuple[object, Future[bytes]]] = {}
        self._pending: deque[tuple[Operand, Future[bytes]]] = deque()
        self._held: list[Array] | None = []
        self._budget = _MAX_HELD_NBYTES

    def begin(self, constants: Iterable[Operand]) -> None:
        """Start to hash large constants on other threads."""
        for constant in constants:
            content = constant.content
            if content is not None and content.nbytes >= _WORTHWHILE:
                self._future(constant)
        for _ in range(min(_THREADS, len(self._pending))):
            try:
                Thread(target=self._work, name="crosschip hashing", daemon=True).start()
            except RuntimeError:  # the process is ending, and there can be no more threads
                return

    def of(self, constant: Operand) -> bytes:
        """Return the concatenated digests of a constant's blocks.

        Raises:
            ModelFileError: the constant's file has changed since the model was loaded.
        """
        future = self._future(constant)
        while not future.done() and self._work_once():
            pass
        return future.result()

    def release(self) -> None:
        """Release the held elements, and hold none from now on."""
        self._held = None

    def _future(self, constant: Operand) -> Future[bytes]:
        content = constant.content
        entry = self._futures.get(id(content))
        if entry is None:
            future: Future[bytes] = Future()
            entry = self._futures.setdefault(id(content), (content, future))
            if entry[1] is future:  # and not that of another thread
                self._pending.append((constant, future))
        return entry[1]

    def _work(self) -> None:
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        """Hash the next constant; return false if there is none."""
        try:
            constant, future = self._pending.popleft()
        except IndexError:
            return False
        try:
            elements = constant.value
            assert elements is not None, "constants have values"
            self._hold(elements)
            future.set_result(b"".join(block_digests(_bytes(elements))))
        except BaseException as error:
            future.set_exception(error)
            if not isinstance(error, Exception):  # an interruption also ends this thread's call
                raise
        return True

    def _hold(self, elements: Array) -> None:
        held = self._held
        if held is not None and elements.nbytes <= self._budget:
            self._budget -= elements.nbytes
            held.append(elements)


def _bytes(array: Array) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
