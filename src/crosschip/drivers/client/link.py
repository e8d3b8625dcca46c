"""A connection, and all that there is because of it: memory, and programs at the other end."""

from __future__ import annotations

from contextlib import suppress

from crosschip.drivers.client.connection import Connection
from crosschip.drivers.client.regions import Regions
from crosschip.drivers.protocol import memory, messages
from crosschip.hal import Offer, Options
from crosschip.ir import DeviceError, Model
from crosschip.ops.definition.serialization import Packed


class Link:
    """What a client has of one process of a driver; nothing of it outlives that.

    Args:
        connection: to the process.

    Attributes:
        connection: that.
        regions: the memory that both share.
        forgotten: the numbers of programs that nobody has any more.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.regions = Regions(connection)
        self.forgotten: list[int] = []

    def query(self, model: Model, options: Options) -> Offer:
        """Return the device's answer about a model."""
        with _packed(model) as content:
            answer, descriptors = self.connection.ask_for(
                messages.Answers, lambda n: messages.Query(n, options), [content.descriptor]
            )
        return messages.decode_offer(memory.read(descriptors, answer.size))

    def prepare(self, model: Model, options: Options, saved: memory.Sealed | None) -> int:
        """Return the number of a program that is compiled, or loaded from what it was saved as."""
        while self.forgotten:
            self.discard(self.forgotten.pop())
        with _packed(model) as content:
            sent = [content.descriptor, *([] if saved is None else [saved.descriptor])]
            return self.connection.ask(
                messages.Prepared, lambda n: messages.Prepare(n, options), sent
            ).program

    def save(self, program: int) -> memory.Sealed | None:
        """What a program is saved as; `None` if the device does not save programs."""
        answer, descriptors = self.connection.ask_for(
            messages.Saved, lambda n: messages.Save(n, program)
        )
        if answer.size is None:
            return None
        return memory.Sealed.received(descriptors, answer.size)

    def discard(self, program: int) -> None:
        """A program is not used any more."""
        if self.connection.alive:
            with suppress(DeviceError):  # it is gone with its process
                self.connection.ask(messages.Done, lambda n: messages.Discard(n, program))


def _packed(model: Model) -> memory.Sealed:
    packed = Packed(model)
    sealed = memory.Sealed(packed.size)
    sealed.fill(packed.write)
    return sealed
