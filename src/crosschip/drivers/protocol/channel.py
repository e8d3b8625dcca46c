"""A connection: whole messages of bounded size, each with the descriptors that come along."""

from __future__ import annotations

import array
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from crosschip.ir import DeviceError

LIMIT = 1 << 16
"""The most bytes of a message; what is larger goes into shared memory."""

DESCRIPTORS = 253
"""The most descriptors that come along with a message: as many as Linux lets through."""

_CREDENTIALS = struct.Struct("iII")
_CUT_OFF = int(socket.MSG_TRUNC | socket.MSG_CTRUNC)
_FLAGS = int(socket.MSG_CMSG_CLOEXEC)
_FLAGS_AT_ONCE = int(_FLAGS | socket.MSG_DONTWAIT)
_SPACE = socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)


class ProtocolError(DeviceError):
    """The other side does not keep to the messages; the connection is of no use any more."""


class Channel:
    """One end of a connection; one thread at a time sends, and one receives.

    Args:
        end: a connected socket that keeps messages apart (`SOCK_SEQPACKET`).
    """

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._room = bytearray(LIMIT)
        self._view = memoryview(self._room)

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a message.

        Raises:
            OSError: the other side is not there any more.
        """
        if len(message) > LIMIT:
            raise DeviceError(
                f"a message has {len(message)} bytes, and may have {LIMIT}: too many inputs or "
                "outputs, or too long names"
            )
        if len(descriptors) > DESCRIPTORS:
            raise DeviceError(
                f"{len(descriptors)} pieces of memory are sent at once, and {DESCRIPTORS} may be: "
                "too many outputs whose sizes were not known"
            )
        if descriptors:
            socket.send_fds(self.end, [message], list(descriptors))
        else:
            self.end.send(message)

    def receive(self, *, wait: bool = True) -> tuple[memoryview, list[int]]:
        """Return the next message, valid until the one after it, and the descriptors that came along.

        Args:
            wait: whether to wait for it, as long as the socket allows.

        Raises:
            EOFError: there will be no more.
            Broken: it is too large, or too many descriptors came along.
            OSError: the connection failed, or nothing came in time (`BlockingIOError`).
        """
        how = _FLAGS if wait else _FLAGS_AT_ONCE
        size, came, flags, _ = self.end.recvmsg_into([self._view], _SPACE, how)
        descriptors = _descriptors(came) if came else []
        if flags & _CUT_OFF:
            close_all(descriptors)
            raise ProtocolError("a message is larger than a message may be")
        if not size:
            close_all(descriptors)
            raise EOFError
        return self._view[:size], descriptors

    def cut_off(self) -> None:
        """End the connection, for whoever reads from it to notice and close it."""
        with suppress(OSError):
            self.end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end of the connection."""
        self.end.close()


def peer(end: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end of a connection."""
    credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(credentials)
    return process, user


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors that are not needed any more."""
    for descriptor in descriptors:
        os.close(descriptor)


def _descriptors(came: Sequence[tuple[int, int, bytes]]) -> list[int]:
    numbers = array.array("i")
    for level, kind, data in came:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return numbers.tolist()
