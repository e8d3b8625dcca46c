"""Connections: whole messages, with descriptors, within limits."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from crosschip.drivers.protocol.channel import DESCRIPTORS, LIMIT, Channel, ProtocolError, close_all
from crosschip.ir import DeviceError


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        yield Channel(one), Channel(other)


def test_messages_stay_whole_and_in_order(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    sent = [b"x", bytes(LIMIT), b"yz"]
    for message in sent:
        one.send(message)
        view, descriptors = other.receive()
        assert (bytes(view), descriptors) == (message, [])


def test_descriptors_come_along_and_go_no_further(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    with open(os.devnull) as file:
        one.send(b"x", [file.fileno()] * DESCRIPTORS)
    _, descriptors = other.receive()
    assert len(descriptors) == DESCRIPTORS
    assert not any(os.get_inheritable(descriptor) for descriptor in descriptors)
    close_all(descriptors)


def test_what_is_too_much_is_not_sent(ends: tuple[Channel, Channel]) -> None:
    one, _ = ends
    with pytest.raises(DeviceError, match=f"has {LIMIT + 1} bytes, and may have {LIMIT}"):
        one.send(bytes(LIMIT + 1))
    with pytest.raises(
        DeviceError, match="254 memory regions exceed the limit of 253 for a message"
    ):
        one.send(b"x", [0] * (DESCRIPTORS + 1))


def test_what_is_too_much_is_broken_and_leaves_nothing(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    before = len(os.listdir("/proc/self/fd"))
    with open(os.devnull) as file:
        socket.send_fds(one.end, [bytes(LIMIT + 1)], [file.fileno()] * 3)
    with pytest.raises(ProtocolError, match="larger than a message may be"):
        other.receive()
    assert len(os.listdir("/proc/self/fd")) == before


def test_the_end_is_the_end(ends: tuple[Channel, Channel]) -> None:
    one, other = ends
    one.shut_down()
    with pytest.raises(EOFError):
        other.receive()
    with pytest.raises(OSError):  # noqa: PT011  # the system's words
        other.send(b"x")
