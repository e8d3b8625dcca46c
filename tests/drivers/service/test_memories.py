"""What a client says of memory, checked against what there is."""

from __future__ import annotations

import os
from contextlib import ExitStack
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.drivers.protocol import memory
from crosschip.drivers.protocol.channel import ProtocolError
from crosschip.drivers.protocol.messages import SharedBuffer
from crosschip.drivers.service.limits import Accounts, Exceeded, Limits
from crosschip.drivers.service.memories import Memories
from crosschip.ir import ElementType

SIZE = 4096
AROUND = st.sampled_from(
    [0, 1, 3, 4, 63, 64, 65, 128, SIZE - 64, SIZE - 1, SIZE, SIZE + 1, 2**63 - 1]
)
TYPES = st.sampled_from([ElementType.FLOAT32, ElementType.BOOL, ElementType.FLOAT64])
SHAPES = st.lists(st.sampled_from([0, 1, 2, 16, 2**31, 2**62, 2**63 - 1]), max_size=4).map(tuple)


def memories(**limits: int) -> tuple[Memories, Accounts]:
    accounts = Accounts(Limits(**limits))
    return Memories(accounts), accounts


@given(st.sampled_from([1, 2, 0, 2**63 - 1]), AROUND, AROUND, AROUND, TYPES, SHAPES, st.booleans())
def test_only_tensors_that_are_there_are_found(
    number: int, whole: int, offset: int, size: int,
    element_type: ElementType, shape: tuple[int, ...], fits: bool,
) -> None:  # fmt: skip
    there, _ = memories()
    buffer, descriptor = there.allocate(SIZE)
    os.close(descriptor)
    if fits:
        size = prod(shape) * element_type.dtype.itemsize
    part = SharedBuffer(number, whole, offset, size)
    right = (
        (number, whole) == (buffer.fd, SIZE)
        and offset + size <= SIZE
        and prod(shape) * element_type.dtype.itemsize == size
        and offset % 64 == 0
    )
    try:
        found = there.array(part, element_type, shape)
    except ProtocolError:
        assert not right or prod([max(1, extent) for extent in shape]) > 2**60
        return
    assert right
    assert (found.shape, found.dtype, found.nbytes) == (shape, element_type.dtype, size)


def test_memory_counts_until_nobody_uses_it() -> None:
    there, accounts = memories(memory=3 * SIZE, mappings=2)
    one, _ = allocated(there)
    other, _ = allocated(there)
    with pytest.raises(Exceeded, match="pieces of shared memory"):
        there.allocate(SIZE)
    used = there.array(SharedBuffer(one.fd, SIZE, 0, 64), ElementType.FLOAT32, (16,))
    there.release(one.fd)
    there.release(other.fd)
    with pytest.raises(ProtocolError, match=f"there is no memory {one.fd}"):
        there.bytes_in(one)
    assert accounts.memory.used == SIZE
    used[:] = 1
    del used
    assert accounts.memory.used == accounts.mappings.used == 0
    with pytest.raises(Exceeded, match=f"are left of the {3 * SIZE} that a client may have"):
        there.allocate(3 * SIZE + 1)
    with pytest.raises(ProtocolError, match="no bytes"):
        there.allocate(0)


def test_what_is_allocated_late_goes_with_the_rest() -> None:
    there, accounts = memories()
    there.clear()
    allocated(there)
    del there
    assert accounts.memory.used == 0


def allocated(there: Memories) -> tuple[SharedBuffer, np.ndarray]:
    buffer, descriptor = there.allocate(SIZE)
    os.close(descriptor)
    return buffer, there.bytes_in(buffer)[:0].copy()


def test_memory_of_the_clients_is_given_back_whole_or_not_at_all() -> None:
    there, accounts = memories(memory=150)
    with memory.Sealed.of(b"x" * 100) as one, memory.Sealed.of(b"y" * 100) as other:
        with pytest.raises(Exception, match="at most 50 are left"), ExitStack() as held:
            there.take([one.descriptor, other.descriptor], held)
        assert accounts.memory.used == 0
        with ExitStack() as held:
            (content,) = there.take([one.descriptor], held)
            assert content.tobytes() == b"x" * 100
            assert not content.flags.writeable
            assert accounts.memory.used == 100
        assert accounts.memory.used == 0
