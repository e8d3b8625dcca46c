"""Shared memory: what is safe to map, and what is not."""

from __future__ import annotations

import fcntl
import gc
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosschip.drivers.protocol import memory
from crosschip.ir import DeviceError

FIXED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def sealed(size: int, seals: int) -> int:
    descriptor = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def piped() -> int:
    one, other = os.pipe()
    os.close(other)
    return one


@pytest.fixture
def clean_up() -> Iterator[None]:
    """Descriptors and mappings are no more afterwards than before.

    They may be fewer: what other tests had in this process may come to its end meanwhile.
    """
    before = held()
    yield
    gc.collect()
    assert all(after <= count for after, count in zip(held(), before, strict=True))


def held() -> tuple[int, int]:
    maps = Path("/proc/self/maps").read_text()
    return len(os.listdir("/proc/self/fd")), maps.count("/memfd:")


KINDS: dict[str, Callable[[], int]] = {
    "a pipe": piped,
    "a socket": lambda: socket.socket().detach(),
    "a folder": lambda: os.open("/", os.O_RDONLY),
    "a device": lambda: os.open("/dev/zero", os.O_RDWR),
    "a file": lambda: os.open(__file__, os.O_RDONLY),
    "a path": lambda: os.open("/tmp", os.O_PATH),
    "without seals": lambda: os.memfd_create("test"),
    "may shrink": lambda: sealed(64, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE),
    "may grow": lambda: sealed(64, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE),
    "empty": lambda: sealed(0, FIXED | fcntl.F_SEAL_WRITE),
    "too large": lambda: sealed(1 << 40, FIXED | fcntl.F_SEAL_WRITE),
}


@pytest.mark.usefixtures("clean_up")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("writable", [True, False])
def test_what_is_no_safe_memory_is_refused(kind: str, writable: bool) -> None:
    descriptor = KINDS[kind]()
    try:
        with pytest.raises(DeviceError, match=r"shared|sealed"):
            memory.map_shared(descriptor, writable=writable, max_bytes=1 << 30)
    finally:
        os.close(descriptor)


@pytest.mark.usefixtures("clean_up")
def test_what_others_may_write_to_is_not_read_from() -> None:
    descriptor = memory.allocate(100)
    memory.map_shared(descriptor, writable=True)
    with pytest.raises(DeviceError, match="nobody may shrink it or write to it"):
        memory.map_shared(descriptor, writable=False)
    os.close(descriptor)


@pytest.mark.usefixtures("clean_up")
def test_a_mapping_stays_without_its_descriptor_as_long_as_it_is_used() -> None:
    descriptor = memory.allocate(5000)
    one, other = (memory.map_shared(descriptor, writable=True) for _ in range(2))
    os.close(descriptor)
    array = np.frombuffer(one, np.uint8)[10:20]
    del one
    array[:] = 7
    assert bytes(other[10:20]) == b"\7" * 10
    assert len(other) == 5000


@pytest.mark.usefixtures("clean_up")
@given(st.binary(max_size=10_000))
def test_sealed_memory_holds_what_was_written_for_good(content: bytes) -> None:
    with memory.Sealed.of(content) as made:
        assert made.read() == content
        view = memory.map_shared(made.descriptor, writable=False)
        assert view.readonly
        with pytest.raises(OSError):  # noqa: PT011  # the system's words
            os.pwrite(made.descriptor, b"x", 0)
        assert memory.read([os.dup(made.descriptor)], len(content)) == content


@pytest.mark.usefixtures("clean_up")
def test_memory_that_a_message_lies_about_is_refused() -> None:
    with memory.Sealed.of(b"abc") as made:
        with pytest.raises(DeviceError, match="less memory than announced"):
            memory.read([os.dup(made.descriptor)], 4)
        with pytest.raises(DeviceError, match="did not send the announced memory"):
            memory.read([], 1)
        with pytest.raises(DeviceError, match="did not send the announced memory"):
            memory.read([os.dup(made.descriptor), os.dup(made.descriptor)], 3)


def test_memory_that_there_is_not_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"there is no memory of .* bytes: \d+ are available"):
        memory.allocate(1 << 60)


@given(st.integers(0, 1 << 40))
def test_rounded_sizes_waste_little_and_are_few(size: int) -> None:
    room = memory.round_size(size)
    assert room >= max(1, size)
    assert room % 4096 == 0
    assert room <= max(4096, size * 1.34 + 4096)
    assert memory.round_size(room) == room
