"""The messages between client and service, as types.

A client numbers its requests; an answer carries the request's number. Structures are those of the
driver contract, version 1. Large data are in shared memory (`SharedBuffer`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

from crosschip.hal import Capabilities, Instance, Kind, Offer, Options, Performance
from crosschip.ir.types import MAX_RANK

PROTOCOL = 2
"""The protocol version."""

Unsigned = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A non-negative size or number that fits a signed 64-bit integer."""

Shape = Annotated[tuple[Unsigned, ...], msgspec.Meta(max_length=MAX_RANK)]
Priority = Annotated[int, msgspec.Meta(ge=0, le=3)]


class SharedBuffer(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A range of shared memory; like the structure of that name in HDI V1_0.

    Attributes:
        fd: the connection's number of the memory.
        bufferSize: the number of bytes of the memory.
        offset: the byte offset of the range.
        dataSize: the number of bytes of the range.
    """

    fd: Unsigned
    bufferSize: Unsigned
    offset: Unsigned
    dataSize: Unsigned


class Tensor(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """A tensor's elements in C order; or an encoded value of another kind.

    Attributes:
        shape: the shape; `None` for a value encoded by `crosschip.drivers.protocol.values`.
        data: the memory of the elements.
    """

    shape: Shape | None
    data: SharedBuffer


class Request(msgspec.Struct, array_like=True, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of a client's requests.

    Attributes:
        number: the request's number.
    """

    number: Unsigned


class Hello(Request, frozen=True):
    """Open a connection; the first request. Answered by `Description`.

    Attributes:
        protocol: the client's protocol version.
        client: the client's name.
        watches: whether the connection only monitors or stops the service, which then does not
            count it as a client and does not stay alive for it.
    """

    protocol: int
    client: str
    watches: bool = False


class Allocate(Request, frozen=True):
    """Allocate shared memory. Answered by `Memory`, with its descriptor."""

    size: Unsigned


class Release(Request, frozen=True):
    """Release shared memory. Answered by `Done`."""

    fd: Unsigned


class Query(Request, frozen=True):
    """Ask which operations of a model the device supports. Answered by `Answers`.

    Sent with a descriptor of sealed memory that holds the model, serialized by
    `crosschip.ops.definition.serialization`.
    """

    options: Options


class Prepare(Request, frozen=True):
    """Compile a model, or load a saved program. Answered by `Prepared`.

    Sent with a descriptor of the serialized model, as for `Query`; to load, also with a descriptor
    of sealed memory that holds the saved program.

    Attributes:
        options: the compile options.
    """

    options: Options


class Save(Request, frozen=True):
    """Save a program. Answered by `Saved`, with a descriptor."""

    program: Unsigned


class Discard(Request, frozen=True):
    """Discard a program; its runs in progress continue. Answered by `Done`."""

    program: Unsigned


class Run(Request, frozen=True):
    """Run a program. Answered by `Ran`.

    Attributes:
        program: the program's number.
        inputs: the inputs, in the model's order.
        outputs: the memory of each output, written from its beginning; `None` to let the
            service allocate it, which it also does where the memory is too small.
        priority: NNRt's priority, from 0 for none to 3 for high.
        alone: whether to execute no other run at the same time, so that a crash is attributed to
            this one.
    """

    program: Unsigned
    inputs: tuple[Tensor, ...]
    outputs: tuple[SharedBuffer | None, ...]
    priority: Priority = 0
    alone: bool = False


class Settings(Request, frozen=True):
    """Ask for the engine's settings under these options. Answered by `EngineSettings`."""

    options: Options


class Ping(Request, frozen=True):
    """Ask whether the driver responds. Answered by `Pong`."""


class Watch(Request, frozen=True):
    """Ask for the service's figures. Answered by `Status`."""


class Stop(Request, frozen=True):
    """Stop the service after the runs in progress. Answered by `Done`."""


AnyRequest = (
    Hello | Allocate | Release | Query | Prepare | Save | Discard | Run | Settings | Ping | Watch
    | Stop
)  # fmt: skip


class Answer(msgspec.Struct, array_like=True, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of a service's answers.

    Attributes:
        number: the request's number.
    """

    number: int


class Done(Answer, frozen=True):
    """The request succeeded."""


class Description(Answer, frozen=True):
    """The device's description. Sent with the descriptor of the board (`protocol.board`)."""

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
    """The board's size in bytes."""


class Memory(Answer, frozen=True):
    """Shared memory that has been allocated."""

    buffer: SharedBuffer


class Answers(Answer, frozen=True):
    """The answer to `Query`: an `Offer`, MessagePack in sealed memory.

    Sent with the memory's descriptor.
    """

    size: int


class Prepared(Answer, frozen=True):
    """A program has been prepared.

    Attributes:
        program: the program's number.
    """

    program: int


class Saved(Answer, frozen=True):
    """A saved program, in memory whose descriptor is sent.

    Attributes:
        size: the number of bytes; `None` if the device cannot save programs.
    """

    size: int | None


class Ran(Answer, frozen=True):
    """A run has succeeded.

    Attributes:
        outputs: the outputs, in the model's order. Descriptors of memory that is new to the
            client are sent, in order.
    """

    outputs: tuple[Tensor, ...]


class EngineSettings(Answer, frozen=True):
    """The engine's settings, by its own names."""

    settings: Mapping[str, str]


class Pong(Answer, frozen=True):
    """Answer to `Ping`: the driver responds."""


class ClientStatus(msgspec.Struct, frozen=True):
    """The figures of a service's client.

    Attributes:
        name: the client's name.
        process: the client's process id.
        programs: the number of prepared programs.
        memory: the number of shared bytes.
        runs: the number of ended runs.
        waiting: the number of queued runs.
    """

    name: str
    process: int
    programs: int
    memory: int
    runs: int
    waiting: int


class Figures(msgspec.Struct, frozen=True):
    """The figures of a service.

    Attributes:
        device: the device's name.
        version: the engine's version.
        process: the process id.
        state: `available`, or `busy` if all workers execute runs.
        seconds: the age in seconds.
        clients: the connected clients.
        waiting: the number of queued runs.
        running: the number of executing runs.
        workers: the maximum number of executing runs.
        runs: the number of ended runs.
        failures: the number of failed runs.
        copied: the number of outputs that were copied to client memory.
        rate: recently ended runs per second.
        latency: seconds from acceptance to end of recent runs, by percentile (`50`, `90`,
            `99`).
        memory: the process's resident bytes.
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
    """The service's figures."""

    figures: Figures


class Failure(Answer, frozen=True):
    """The request failed.

    Attributes:
        message: the error message.
        kind: the name of the exception's type.
        operations: for a `CompileError`, the names of the failing operations.
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
