"""A connection with the resources that depend on it: memory and programs."""

from __future__ import annotations

from contextlib import suppress

from crosschip.drivers.client.connection import Connection
from crosschip.drivers.client.regions import Regions
from crosschip.drivers.protocol import memory, messages
from crosschip.hal import Offer, Options
from crosschip.ir import DeviceError, Model
from crosschip.ops.definition.serialization import SerializedModel


class Link:
    """A client's resources in one process of a driver.

    Args:
        connection: the connection to the process.

    Attributes:
        connection: the same.
        regions: the shared memory.
        forgotten: the numbers of programs to discard.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.regions = Regions(connection)
        self.forgotten: list[int] = []

    def query(self, model: Model, options: Options) -> Offer:
        """Return the device's offer for a model."""
        with _serialize(model) as content:
            answer, descriptors = self.connection.ask_for(
                messages.Answers, lambda n: messages.Query(n, options), [content.descriptor]
            )
        return messages.decode_offer(memory.read(descriptors, answer.size))

    def prepare(self, model: Model, options: Options, saved: memory.Sealed | None) -> int:
        """Compile a program, or load a saved one; return its number."""
        while self.forgotten:
            self.discard(self.forgotten.pop())
        with _serialize(model) as content:
            descriptors = [content.descriptor, *([] if saved is None else [saved.descriptor])]
            return self.connection.ask(
                messages.Prepared, lambda n: messages.Prepare(n, options), descriptors
            ).program

    def save(self, program: int) -> memory.Sealed | None:
        """Return a saved program; `None` if the device cannot save programs."""
        answer, descriptors = self.connection.ask_for(
            messages.Saved, lambda n: messages.Save(n, program)
        )
        if answer.size is None:
            return None
        return memory.Sealed.from_message(descriptors, answer.size)

    def discard(self, program: int) -> None:
        """Discard a program."""
        if self.connection.alive:
            with suppress(DeviceError):  # the process has died
                self.connection.ask(messages.Done, lambda n: messages.Discard(n, program))


def _serialize(model: Model) -> memory.Sealed:
    packed = SerializedModel(model)
    sealed = memory.Sealed(packed.size)
    sealed.fill(packed.write)
    return sealed
