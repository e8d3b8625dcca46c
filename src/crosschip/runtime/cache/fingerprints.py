"""SHA-256 of the constants of models, each computed once, by several threads."""

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
"""The least size of a constant that is worth another thread, in bytes."""

_MOST_HELD = 2**30
"""The most bytes that are kept in memory because they are likely to be asked for again."""


class Fingerprints:
    """Digests of constants, however many models share them.

    The weights of a model are hashed for the choice among devices, for the program of each, and for
    the compiled model as a whole: whoever makes several keys hands the same fingerprints to all.
    What is read from a file, or computed, for them is held until `release`: the compiler is the
    next who asks for it.
    """

    def __init__(self) -> None:
        # The content is held, so that no other object gets its number meanwhile.
        self._known: dict[int, tuple[object, Future[bytes]]] = {}
        self._left: deque[tuple[Operand, Future[bytes]]] = deque()
        self._held: list[Array] | None = []
        self._room = _MOST_HELD

    def begin(self, constants: Iterable[Operand]) -> None:
        """Have other threads begin with constants, where they are large enough to be worth it."""
        for constant in constants:
            content = constant.content
            if content is not None and content.nbytes >= _WORTHWHILE:
                self._future(constant)
        for _ in range(min(_THREADS, len(self._left))):
            try:
                Thread(target=self._work, name="crosschip hashing", daemon=True).start()
            except RuntimeError:  # the process is ending, and there can be no more threads
                return

    def of(self, constant: Operand) -> bytes:
        """The digests of a constant's blocks, one behind the other.

        Raises:
            ModelFileError: the file that it is in has changed since the model was loaded.
        """
        found = self._future(constant)
        while not found.done() and self._work_once():
            pass
        return found.result()

    def release(self) -> None:
        """Hold no elements any longer, nor such as will be hashed later."""
        self._held = None

    def _future(self, constant: Operand) -> Future[bytes]:
        content = constant.content
        known = self._known.get(id(content))
        if known is None:
            made: Future[bytes] = Future()
            known = self._known.setdefault(id(content), (content, made))
            if known[1] is made:  # and not that of another thread
                self._left.append((constant, made))
        return known[1]

    def _work(self) -> None:
        while self._work_once():
            pass

    def _work_once(self) -> bool:
        """Hash the next constant; false if there is none."""
        try:
            constant, made = self._left.popleft()
        except IndexError:
            return False
        try:
            elements = constant.value
            assert elements is not None, "constants have values"
            self._hold(elements)
            made.set_result(b"".join(block_digests(_bytes(elements))))
        except BaseException as error:
            made.set_exception(error)
            if not isinstance(error, Exception):  # the user interrupts whoever asks
                raise
        return True

    def _hold(self, elements: Array) -> None:
        held = self._held
        if held is not None and elements.nbytes <= self._room:
            self._room -= elements.nbytes
            held.append(elements)


def _bytes(array: Array) -> memoryview:
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
