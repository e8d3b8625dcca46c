"""Programs as bytes: what is damaged is refused, and what is not refused runs."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fake_npu.graphs import MADE, POOLED, picture, ran, small

from fake_npu_ddk import Chip, NpuError, Status, binary, compile

SAVED = compile(small(), 1 << 20)
HEADER = 16
"""The bytes before those of which there is a checksum; the checksum is the last of them."""


def test_the_same_program_comes_back() -> None:
    program = binary.read(SAVED)
    assert binary.write(program) == SAVED
    assert [tensor.shape for tensor in program.inputs] == [picture().shape]
    assert program.outputs == [MADE, POOLED]


@given(st.integers(0, len(SAVED) - 1), st.integers(1, 255))
def test_a_byte_that_changed_is_noticed(place: int, change: int) -> None:
    damaged = bytearray(SAVED)
    damaged[place] ^= change
    with pytest.raises(NpuError) as caught:
        binary.read(bytes(damaged))
    assert caught.value.status in (Status.DAMAGED_PROGRAM, Status.WRONG_VERSION)


@given(st.integers(0, len(SAVED) - 1))
def test_what_is_cut_off_is_noticed(length: int) -> None:
    with pytest.raises(NpuError) as caught:
        binary.read(SAVED[:length])
    assert caught.value.status is Status.DAMAGED_PROGRAM


@given(st.lists(st.tuples(st.integers(HEADER, 600), st.integers(1, 255)), min_size=1, max_size=4))
def test_a_forged_program_is_refused_or_runs(changes: list[tuple[int, int]]) -> None:
    """The checksum is right: only what the chip cannot do speaks against it."""
    forged = bytearray(SAVED)
    for place, change in changes:
        forged[place] ^= change
    struct.pack_into("<I", forged, HEADER - 4, zlib.crc32(memoryview(forged)[HEADER:]))
    try:
        program = binary.read(bytes(forged))
    except NpuError:
        return
    chip = Chip()
    try:
        handle = chip.load(bytes(forged))
        blocks = [
            [chip.memory.allocate(tensor.size) for tensor in tensors]
            for tensors in (program.inputs, program.outputs)
        ]
        assert chip.submit(handle, *blocks).wait(10)
    except NpuError as error:
        assert error.status is Status.OUT_OF_MEMORY  # noqa: PT017
    finally:
        chip.close()


def test_another_version_is_refused_by_its_number() -> None:
    other = bytearray(SAVED)
    struct.pack_into("<H", other, 4, 7)
    with pytest.raises(NpuError, match="7, not 1") as caught:
        binary.read(bytes(other))
    assert caught.value.status is Status.WRONG_VERSION


def test_a_program_runs_alike_on_every_chip() -> None:
    found = []
    for _ in range(2):
        chip = Chip()
        found.append(ran(chip, chip.load(SAVED), picture(), MADE, POOLED))
        chip.close()
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
