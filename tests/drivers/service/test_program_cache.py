"""Programs that several clients of a driver have."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import chain

from crosschip.devices.reference import ReferenceProgram
from crosschip.drivers.service.program_cache import ProgramCache, SharedProgram, key_of
from crosschip.hal import Options, Precision, Program
from crosschip.ops.standard.activation import Relu

MODEL = chain(Relu)


class Counted(ReferenceProgram):
    """A program that knows how often it has been closed."""

    closed = saves = 0

    def save(self) -> bytes:
        self.saves += 1
        time.sleep(0.01)  # others ask meanwhile
        return b"saved"

    def close(self) -> None:
        self.closed += 1


def made() -> SharedProgram:
    return SharedProgram(Counted(MODEL), MODEL)


def failing() -> SharedProgram:
    raise RuntimeError("it is there already")


def bytes_of(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.array(values, np.uint8)


def test_who_asks_for_the_same_gets_the_same() -> None:
    sharing = ProgramCache()
    first = sharing.take(b"key", made)
    assert sharing.take(b"key", failing).program is first.program
    assert sharing.take(b"other", made).program is not first.program


def test_it_is_saved_once_for_all_who_ask_at_once() -> None:
    program = Counted(MODEL)
    shared = SharedProgram(program, MODEL)
    with ThreadPoolExecutor(8) as threads:
        saved = [each.result() for each in [threads.submit(shared.save) for _ in range(8)]]
    assert program.saves == 1
    first = saved[0]
    assert first is not None
    assert all(one is first for one in saved)
    assert first.read() == b"saved"
    shared.close()
    assert program.closed == 1


def test_what_could_not_be_made_is_not_there() -> None:
    sharing = ProgramCache()
    with pytest.raises(RuntimeError):
        sharing.take(b"key", failing)
    assert sharing.take(b"key", made)


@given(st.lists(st.booleans(), max_size=40))
def test_the_last_one_closes_it_and_nobody_before(steps: list[bool]) -> None:
    sharing = ProgramCache()
    program: Program | None = None
    users = 0
    for comes in steps:
        if comes:
            shared = sharing.take(b"key", made)
            assert (shared.program is program) == (users > 0)
            program, users = shared.program, users + 1
        elif users:
            sharing.leave(b"key")
            users -= 1
        if isinstance(program, Counted):
            assert program.closed == (not users)


def test_keys_differ_by_all_that_a_program_is_made_of() -> None:
    half = Options(precision=Precision.FLOAT16)
    keys = [
        key_of(Options(), bytes_of(1, 2), None),
        key_of(Options(), bytes_of(1, 3), None),
        key_of(Options(), bytes_of(1, 2), bytes_of()),
        key_of(Options(), bytes_of(1, 2), bytes_of(4)),
        key_of(Options(), bytes_of(1, 2, 4), None),
        key_of(half, bytes_of(1, 2), None),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(Options(), bytes_of(1, 2), None) == keys[0]
