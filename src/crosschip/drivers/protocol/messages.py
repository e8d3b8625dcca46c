"""The messages, as types: what a client asks a service for, and what that answers.

Each request has a number of the client's choosing, which the answer carries. Structures are those
of the driver contract, version 1. What is large lies in memory that both share (`SharedBuffer`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from crosschip.hal import Capabilities, Instance, Kind, Offer, Options, Performance
from crosschip.ir.types import MAX_RANK

PROTOCOL = 2
"""The version of the messages."""

Unsigned = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""Sizes and numbers of things: as large as a signed integer of 64 bits may be."""

Shape = Annotated[tuple[Unsigned, ...], msgspec.Meta(max_length=MAX_RANK)]
Priority = Annotated[int, msgspec.Meta(ge=0, le=3)]


class SharedBuffer(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A part of memory that both sides have; the structure of that name in HDI V1_0.

    Attributes:
        fd: the memory, by the number under which the connection knows it.
        bufferSize: how many bytes it has.
        offset: where the part begins, in bytes.
        dataSize: how many bytes it has.
    """

    fd: Unsigned
    bufferSize: Unsigned
    offset: Unsigned
    dataSize: Unsigned


class Tensor(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Elements of a tensor in C order; or a value that is of text or no tensor.

    Attributes:
        shape: the sizes; `None` for a value that `crosschip.drivers.protocol.values` has written.
        data: where they are.
    """

    shape: Shape | None
    data: SharedBuffer


class Request(msgspec.Struct, array_like=True, frozen=True, tag=True, forbid_unknown_fields=True):
    """What a client asks for.

    Attributes:
        number: what the answer is known by.
    """

    number: Unsigned


class Hello(Request, frozen=True):
    """The first message: asks what the device is. Answered by `Description`.

    Attributes:
        protocol: the version of the messages that the client speaks.
        client: what it calls itself.
        watches: whether it will only ask how the service is, or end it: the service does not stay
            for it, and does not count it among its clients.
    """

    protocol: int
    client: str
    watches: bool = False


class Allocate(Request, frozen=True):
    """Memory to read and write, of which a descriptor comes with the answer, a `SharedBuffer`."""

    size: Unsigned


class Release(Request, frozen=True):
    """Memory is not used any more. Answered by `Done`."""

    fd: Unsigned


class Query(Request, frozen=True):
    """Which operations of a model the device runs. Answered by `Answers`.

    A descriptor comes along of sealed memory with the model, in the saved form of
    `crosschip.ops.definition.serialization`.
    """

    options: Options


class Prepare(Request, frozen=True):
    """Compile a model, or load a program that was saved. Answered by `Prepared`.

    A descriptor comes along of sealed memory with the model, as for `Query`; and a second one, to
    load, of such with what `Save` gave.

    Attributes:
        options: the caller's wishes.
    """

    options: Options


class Save(Request, frozen=True):
    """The bytes from which a program is loaded. Answered by `Saved`, a descriptor beside it."""

    program: Unsigned


class Discard(Request, frozen=True):
    """A program is not used any more; it is there until its runs have ended. Answered by `Done`."""

    program: Unsigned


class Run(Request, frozen=True):
    """Run a program. Answered by `Ran`.

    Attributes:
        program: its number.
        inputs: one for each input of the model.
        outputs: for each output memory to put it into, from its beginning; `None` for memory that
            the service allocates, as it does where there is too little.
        priority: NNRt's, from 0 for none to 3 for high.
        alone: whether nothing else is to run meanwhile, so that a fault is this run's.
    """

    program: Unsigned
    inputs: tuple[Tensor, ...]
    outputs: tuple[SharedBuffer | None, ...]
    priority: Priority = 0
    alone: bool = False


class Settings(Request, frozen=True):
    """The engine's settings for options. Answered by `EngineSettings`."""

    options: Options


class Ping(Request, frozen=True):
    """A sign of life is wanted. Answered by `Pong`."""


class Watch(Request, frozen=True):
    """What the service does. Answered by `Status`."""


class Stop(Request, frozen=True):
    """The service is to end, once runs that are under way have. Answered by `Done`."""


AnyRequest = (
    Hello | Allocate | Release | Query | Prepare | Save | Discard | Run | Settings | Ping | Watch
    | Stop
)  # fmt: skip


class Answer(msgspec.Struct, array_like=True, frozen=True, tag=True, forbid_unknown_fields=True):
    """What a service answers.

    Attributes:
        number: the request's.
    """

    number: int


class Done(Answer, frozen=True):
    """It has been done."""


class Description(Answer, frozen=True):
    """What the device is. A descriptor of the board comes along (`protocol.board`)."""

    protocol: int
    vendor: str
    kind: Kind
    version: str
    code: str
    properties: Mapping[str, str]
    capabilities: Capabilities
    instances: tuple[Instance, ...]
    operators: tuple[str, ...]
    modes: Mapping[Performance, Mapping[str, str]]
    board: int
    """The bytes of the board."""


class Memory(Answer, frozen=True):
    """Memory that both sides have now."""

    buffer: SharedBuffer


class Answers(Answer, frozen=True):
    """The answer to `Query`: an `Offer`, written as MessagePack into memory of its own.

    A descriptor of that comes along.
    """

    size: int


class Prepared(Answer, frozen=True):
    """A program is ready.

    Attributes:
        program: its number.
    """

    program: int


class Saved(Answer, frozen=True):
    """A saved program, in memory whose descriptor comes along.

    Attributes:
        size: how many bytes it has; `None` if the device does not save programs.
    """

    size: int | None


class Ran(Answer, frozen=True):
    """A run has ended.

    Attributes:
        outputs: one for each output of the model. Descriptors come along of memory that the client
            does not know yet, in order.
    """

    outputs: tuple[Tensor, ...]


class EngineSettings(Answer, frozen=True):
    """The engine's settings, in its own words."""

    settings: Mapping[str, str]


class Pong(Answer, frozen=True):
    """A sign of life."""


class ClientStatus(msgspec.Struct, frozen=True):
    """One of the clients of a service.

    Attributes:
        name: what it calls itself.
        process: its process.
        programs: how many it has prepared.
        memory: how many bytes it shares with the service.
        runs: how many it has had.
        waiting: how many wait.
    """

    name: str
    process: int
    programs: int
    memory: int
    runs: int
    waiting: int


class Figures(msgspec.Struct, frozen=True):
    """A service at a moment.

    Attributes:
        device: its device.
        version: of what does the work.
        process: its process.
        state: `available`, or `busy` if as much runs as may.
        seconds: how long it has been there.
        clients: who is connected.
        waiting: how many runs wait.
        running: how many runs are under way.
        workers: how many may be.
        runs: how many have ended.
        failures: how many of these failed.
        copied: how many of their outputs were copied into memory of a client's.
        rate: runs that ended in the last seconds, a second.
        latency: seconds from taking on to the end, by percentile (`50`, `90`, `99`); of late.
        memory: how many bytes the process takes.
    """

    device: str
    version: str
    process: int
    state: str
    seconds: float
    clients: tuple[ClientStatus, ...]
    waiting: int
    running: int
    workers: int
    runs: int
    failures: int
    copied: int
    rate: float
    latency: Mapping[str, float]
    memory: int


class Status(Answer, frozen=True):
    """What the service does."""

    figures: Figures


class Failure(Answer, frozen=True):
    """The request has failed.

    Attributes:
        message: why.
        kind: the name of the exception's type.
        operations: the names of the operations at fault, as the device names them, if it is a
            `CompileError`.
    """

    message: str
    kind: str = "DeviceError"
    operations: tuple[str, ...] = ()


AnyAnswer = (
    Done | Description | Memory | Answers | Prepared | Saved | Ran | EngineSettings | Pong
    | Status | Failure
)  # fmt: skip

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(AnyRequest).decode
decode_answer = msgspec.msgpack.Decoder(AnyAnswer).decode
encode_offer = msgspec.msgpack.Encoder().encode
decode_offer = msgspec.msgpack.Decoder(Offer).decode
