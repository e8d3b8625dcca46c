"""Digests of constants: each computed once, whoever asks, and held until they are compiled."""

from __future__ import annotations

import hashlib
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.ir import Array, Operand, constant
from crosschip.ir.elements import Computed
from crosschip.runtime.artifact.digests import BLOCK_SIZE
from crosschip.runtime.cache.fingerprints import Fingerprints

F32 = np.dtype(np.float32)


class Counted:
    """A constant whose elements are computed, and how often they were."""

    def __init__(self, size: int, fill: float = 1.0, error: BaseException | None = None) -> None:
        self.times = 0
        self._size, self._fill, self._error = size, fill, error
        self.operand: Operand = constant(Computed(F32, (size,), self._compute), "weights")

    def _compute(self) -> Array:
        self.times += 1
        if self._error is not None:
            raise self._error
        return np.full(self._size, self._fill, F32)


def expected(elements: Array) -> bytes:
    data = elements.tobytes()
    blocks = [data[start : start + BLOCK_SIZE] for start in range(0, len(data), BLOCK_SIZE)]
    return b"".join(hashlib.sha256(block).digest() for block in blocks)


@given(
    sizes=st.lists(st.sampled_from([0, 1, 2**14, 2**16, 3 * 2**18 + 1]), min_size=1, max_size=6),
    begins=st.booleans(),
)
def test_digests_are_those_of_the_elements(sizes: list[int], begins: bool) -> None:
    counted = [Counted(size, fill) for fill, size in enumerate(sizes)]
    fingerprints = Fingerprints()
    if begins:
        fingerprints.begin(each.operand for each in counted)
    for fill, each in reversed(list(enumerate(counted))):
        assert fingerprints.of(each.operand) == expected(np.full(sizes[fill], fill, F32))


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_each_is_hashed_once_for_all_who_ask(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a process ends, and there can be no more threads."""
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def limited(thread: threading.Thread) -> None:
        if thread.name == "crosschip hashing":
            if len(started) == threads:
                raise RuntimeError("can't start new thread")
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    counted = [Counted(2**16, fill) for fill in range(20)]
    fingerprints = Fingerprints()
    fingerprints.begin(each.operand for each in counted)
    with ThreadPoolExecutor(4) as pool:
        found = [[pool.submit(fingerprints.of, each.operand) for each in counted] for _ in range(4)]
    digests = [[one.result() for one in row] for row in found]
    assert all(row == digests[0] for row in digests)
    assert len(set(digests[0])) == 20
    assert [each.times for each in counted] == [1] * 20


@pytest.mark.parametrize("error", [OSError("it is gone"), KeyboardInterrupt()])
def test_what_fails_is_raised_where_it_is_asked_for(error: BaseException) -> None:
    bad, good = Counted(2**16, error=error), Counted(2**16)
    fingerprints = Fingerprints()
    with pytest.raises(type(error)):
        fingerprints.of(bad.operand)
    with pytest.raises(type(error)):
        fingerprints.of(bad.operand)
    assert fingerprints.of(good.operand) == expected(np.ones(2**16, F32))


def test_elements_are_held_until_they_are_released_if_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("crosschip.runtime.cache.fingerprints._MAX_HELD_NBYTES", 100_000)
    fingerprints = Fingerprints()

    def hashed(size: int) -> Any:
        operand, arrays = _read_anew(size)
        fingerprints.of(operand)
        return arrays[0]

    within, beyond = hashed(90_000), hashed(20_000)
    assert within() is not None
    assert beyond() is None
    fingerprints.release()
    assert within() is None
    assert hashed(10)() is None


def _read_anew(size: int) -> tuple[Operand, list[weakref.ref[Array]]]:
    """A constant that is made whenever it is asked for, and what was made."""
    arrays: list[weakref.ref[Array]] = []

    class Anew(Computed):
        def read(self) -> Any:
            made = np.zeros(self.shape, self.dtype)
            arrays.append(weakref.ref(made))
            return made

    return constant(Anew(np.dtype(np.uint8), (size,), lambda: np.zeros(0)), "weights"), arrays
