"""A client of a service that sends whatever it is told to, message by message."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from crosschip.drivers.protocol import memory, messages
from crosschip.drivers.protocol.channel import Channel, close_all
from crosschip.drivers.protocol.messages import Answer, Request, SharedBuffer
from crosschip.hal import Options
from crosschip.ir import Model
from crosschip.ops.definition.serialization import to_bytes

T = TypeVar("T", bound=Answer)


class Peer:
    """One connection.

    Args:
        path: of the service's socket.
        wait: seconds after which an answer that does not come is a failure.

    Attributes:
        channel: the connection, for messages of any kind.
    """

    def __init__(self, path: Path, wait: float = 60.0) -> None:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        end.settimeout(wait)
        end.connect(str(path))
        self.channel = Channel(end)
        self._number = 0

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()

    def next(self) -> int:
        """A number for a request."""
        self._number += 1
        return self._number

    def send(self, request: Request, descriptors: Sequence[int] = ()) -> None:
        """Send a request."""
        self.channel.send(messages.encode(request), descriptors)

    def answer(self) -> Answer:
        """The next answer, without what comes along.

        Raises:
            EOFError, ConnectionError: the service has cut the connection off.
        """
        view, descriptors = self.channel.receive()
        close_all(descriptors)
        answer: Answer = messages.decode_answer(view)
        return answer

    def ask(self, kind: type[T], request: Request, descriptors: Sequence[int] = ()) -> T:
        """The answer to a request, which must be of this kind."""
        self.send(request, descriptors)
        answer = self.answer()
        assert isinstance(answer, kind), answer
        assert answer.number == request.number
        return answer

    def greet(self, *, watches: bool = False) -> messages.Description:
        """The answer to a greeting.

        Args:
            watches: whether it is no client.
        """
        hello = messages.Hello(self.next(), messages.PROTOCOL, "peer", watches)
        return self.ask(messages.Description, hello)

    def allocate(self, size: int) -> SharedBuffer:
        """Memory of the service's, as messages name it."""
        return self.ask(messages.Memory, messages.Allocate(self.next(), size)).buffer

    def allocate_here(self, size: int) -> tuple[SharedBuffer, memoryview]:
        """The same, and its bytes."""
        self.send(messages.Allocate(self.next(), size))
        view, (descriptor,) = self.channel.receive()
        answer = messages.decode_answer(view)
        assert isinstance(answer, messages.Memory)
        try:
            return answer.buffer, memory.map_shared(descriptor, writable=True)
        finally:
            os.close(descriptor)

    def prepare(self, model: Model, options: Options | None = None) -> int:
        """The number of a program that is made from a model."""
        request = messages.Prepare(self.next(), options or Options())
        with memory.Sealed.of(to_bytes(model)) as content:
            return self.ask(messages.Prepared, request, [content.descriptor]).program

    def figures(self) -> messages.Figures:
        """What the service does."""
        return self.ask(messages.Status, messages.Watch(self.next())).figures

    def is_disconnected(self) -> bool:
        """Tell whether the service ends the connection, after whatever it answers yet."""
        try:
            while True:
                self.answer()
        except (EOFError, ConnectionError):
            return True
        except TimeoutError:
            return False
