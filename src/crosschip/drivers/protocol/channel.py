"""A connection that transfers messages of bounded size, with file descriptors."""

from __future__ import annotations

import array
import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress

from crosschip.ir import DeviceError

LIMIT = 1 << 16
"""The maximum size of a message in bytes; larger data go into shared memory."""

DESCRIPTORS = 253
"""The maximum number of descriptors with a message, which is Linux's limit."""

_CREDENTIALS = struct.Struct("iII")
_CUT_OFF = int(socket.MSG_TRUNC | socket.MSG_CTRUNC)
_FLAGS = int(socket.MSG_CMSG_CLOEXEC)
_FLAGS_AT_ONCE = int(_FLAGS | socket.MSG_DONTWAIT)
_SPACE = socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)


class ProtocolError(DeviceError):
    """The peer violated the protocol; the connection is unusable."""


class Channel:
    """One end of a connection; one thread at a time may send, and one may receive.

    Args:
        end: a connected socket that preserves message boundaries (`SOCK_SEQPACKET`).
    """

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self._buffer = bytearray(LIMIT)
        self._view = memoryview(self._buffer)

    def send(self, message: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a message.

        Raises:
            OSError: the peer has closed the connection.
        """
        if len(message) > LIMIT:
            raise DeviceError(
                f"a message has {len(message)} bytes, and may have {LIMIT}: too many inputs or "
                "outputs, or too long names"
            )
        if len(descriptors) > DESCRIPTORS:
            raise DeviceError(
                f"{len(descriptors)} memory regions exceed the limit of {DESCRIPTORS} for a "
                "message: there are too many outputs of dynamic size"
            )
        if descriptors:
            socket.send_fds(self.end, [message], list(descriptors))
        else:
            self.end.send(message)

    def receive(self, *, wait: bool = True) -> tuple[memoryview, list[int]]:
        """Return the next message, valid until the next call, and its descriptors.

        Args:
            wait: whether to wait, up to the socket's timeout.

        Raises:
            EOFError: the peer has closed the connection.
            ProtocolError: the message is too large, or has too many descriptors.
            OSError: the connection failed, or timed out (`BlockingIOError`).
        """
        receive_flags = _FLAGS if wait else _FLAGS_AT_ONCE
        size, ancillary, flags, _ = self.end.recvmsg_into([self._view], _SPACE, receive_flags)
        descriptors = _descriptors(ancillary) if ancillary else []
        if flags & _CUT_OFF:
            close_all(descriptors)
            raise ProtocolError("a message is larger than a message may be")
        if not size:
            close_all(descriptors)
            raise EOFError
        return self._view[:size], descriptors

    def shut_down(self) -> None:
        """Shut the connection down; the reading thread notices that and closes it."""
        with suppress(OSError):
            self.end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end."""
        self.end.close()


def peer(end: socket.socket) -> tuple[int, int]:
    """Return the process and user ids of a connection's other end."""
    credentials = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(credentials)
    return process, user


def close_all(descriptors: Sequence[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def _descriptors(ancillary: Sequence[tuple[int, int, bytes]]) -> list[int]:
    numbers = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    return numbers.tolist()
