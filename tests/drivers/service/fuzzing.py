"""A client that keeps to nothing: `python -m tests.drivers.service.fuzzing SOCKET …`.

It holds valid conversations up to some point, and then sends a message that is wrong in one way or
another: in a field, in its bytes, in the descriptors that come along, in its place, or in what lies
in shared memory. It prints how many messages the service answered, refused, and cut it off for.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE, fcntl
from pathlib import Path
from typing import Any

import msgspec
import xxhash
from tests.drivers.models import RELUS
from tests.drivers.peer import Peer

from crosschip.drivers.protocol import memory, messages, values
from crosschip.drivers.protocol.messages import Failure, SharedBuffer, Tensor
from crosschip.hal import Options
from crosschip.ops.definition import serialization
from crosschip.ops.definition.serialization import to_bytes

SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL
BOUNDARIES: Sequence[Any] = (
    *(-1, 0, 1, 2, 3, 7, 8, 63, 64, 65, 4095, 4096, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32),
    *(2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**31), -(2**63)),
    *(None, True, False, 0.0, -1.5, float("nan"), float("inf")),
    *("", "x", "Run", "Hello", "\0", "é" * 100, "y" * 3000, b"", b"\0" * 100),
    *([], [0], [0] * 40, [2**40] * 3, [-1, -1], [[[]]], {}, {"": 0}, {"type": "Run"}),
)
TAGS = ("Allocate", "Release", "Query", "Prepare", "Save", "Discard", "Run", "Settings", "Ping")


class Fuzzer:
    """A client of that kind.

    Args:
        path: of the service's socket.
        seed: of all that it does.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        self.chance = random.Random(seed)
        self.model = to_bytes(RELUS)
        self.seen: Counter[str] = Counter()

    def run(self, count: int) -> None:
        """Send so many messages that are wrong in some way."""
        while self.seen["sent"] < count:
            # A connection that is refused means that those before have not been let go yet.
            with suppress(OSError, EOFError), Peer(self.path) as peer:
                self.converse(peer)

    def converse(self, peer: Peer) -> None:
        """Hold a conversation until the service ends it, or for so long."""
        chance = self.chance
        greets = chance.random() > 0.05
        buffers = []
        if greets:
            peer.greet()
            buffers = [peer.allocate(20480) for _ in range(chance.randrange(3))]
            if buffers:
                peer.prepare(RELUS)
        reads = chance.random() > 0.1
        for _ in range(chance.randrange(1, 60)):
            right = buffers and chance.random() < 0.5
            descriptors: list[int] = []
            with ExitStack() as files:
                if right:
                    message = messages.encode(self.right(peer, buffers))
                else:
                    message, descriptors = self.wrong(peer, files)
                try:
                    self.send(peer, message, descriptors)
                except OSError:
                    break
            self.seen["right" if right else "sent"] += 1
            if reads and not self.drain(peer):
                break
            if chance.random() < 0.01:
                peer.channel.end.shutdown(chance.choice([socket.SHUT_RD, socket.SHUT_WR]))

    def right(self, peer: Peer, buffers: Sequence[SharedBuffer]) -> messages.Request:
        """A request that the service does what is asked for."""
        chance, number = self.chance, peer.next()
        if chance.random() < 0.3:
            return chance.choice([messages.Ping(number), messages.Watch(number)])
        given = msgspec.structs.replace(chance.choice(buffers), dataSize=64)
        places = chance.choice([None, *buffers]), chance.choice([None, *buffers])
        return messages.Run(number, 1, (Tensor((2, 8), given),), places, chance.randrange(4))

    def send(self, peer: Peer, message: bytes, descriptors: Sequence[int]) -> None:
        """Send bytes, however many they are."""
        try:
            peer.channel.end.settimeout(0.0)
            socket.send_fds(peer.channel.end, [message], list(descriptors))
        except BlockingIOError:
            raise OSError("the service does not read on") from None

    def drain(self, peer: Peer) -> bool:
        """Take the answers that are there; false once the service has ended the conversation."""
        # Now and then what was sent is waited for, so that the next message finds its effect.
        peer.channel.end.settimeout(self.chance.choice([0.0, 0.0, 0.001, 0.01]))
        try:
            while True:
                answer = peer.answer()
                self.seen["failed" if isinstance(answer, Failure) else "answered"] += 1
        except (BlockingIOError, TimeoutError):
            return True
        except (EOFError, OSError):
            self.seen["cut off"] += 1
            return False
        finally:
            peer.channel.end.settimeout(0.0)

    def wrong(self, peer: Peer, files: ExitStack) -> tuple[bytes, list[int]]:
        """A message and what goes along, of which something is wrong."""
        chance = self.chance
        request, descriptors = self.request(peer, files)
        message = messages.encode(request)
        way = chance.choice([self.field, self.field, self.field, self.torn, None, None])
        if way is not None:
            message = way(message)
        if way is None or chance.random() < 0.1:
            descriptors = self.descriptors(descriptors, files)
        return message, descriptors

    def request(self, peer: Peer, files: ExitStack) -> tuple[messages.Request, list[int]]:
        """A request that might be right."""
        chance, number = self.chance, peer.next()
        kind = chance.randrange(12)
        if kind < 5:
            return self.run_request(number), []
        if kind == 5:
            return messages.Allocate(number, chance.choice([1, 64, 4096, 10**6, 10**9])), []
        if kind == 6:
            return messages.Release(number, chance.randrange(4)), []
        if kind == 7:
            return messages.Query(number, self.options()), [self.content(files)]
        if kind == 8:
            two = chance.random() < 0.3
            contents = [self.content(files) for _ in range(1 + two)]
            return messages.Prepare(number, self.options()), contents
        if kind == 9:
            named = chance.choice([messages.Save, messages.Discard])
            return named(number, chance.randrange(4)), []
        if kind == 10:
            return messages.Settings(number, self.options()), []
        plain = [messages.Ping(number), messages.Watch(number)]
        return chance.choice([*plain, messages.Hello(number, messages.PROTOCOL, "again")]), []

    def run_request(self, number: int) -> messages.Run:
        """A run whose tensors lie in memory that is there, or is not, wholly or in part."""
        chance = self.chance
        part = self.part
        shape: tuple[int, ...] | None = chance.choice([(2, 8), (1, 8), (0, 8), (3, 8), (2**61, 8)])
        if chance.random() < 0.1:
            shape = None
        inputs = [Tensor(shape, part(64)) for _ in range(chance.choice([1, 1, 1, 0, 2]))]
        outputs = [chance.choice([None, part(64)]) for _ in range(chance.choice([2, 2, 2, 0, 3]))]
        priority, alone = chance.randrange(4), chance.random() < 0.3
        program = chance.choice([1, 1, 1, 0, 2])
        return messages.Run(number, program, tuple(inputs), tuple(outputs), priority, alone)

    def part(self, size: int) -> SharedBuffer:
        """A part of memory, most likely of what there is."""
        chance = self.chance
        buffer = chance.choice([64, 4096, 4096, 20000, 20480])
        offset = chance.choice([0, 0, 0, 64, 1, 4096, 2**62])
        return SharedBuffer(chance.choice([1, 1, 2, 3]), buffer, offset, chance.choice([size, 0]))

    def options(self) -> Options:
        """Options, some of which no engine can keep."""
        chance = self.chance
        threads = chance.choice([None, None, 1, 2, 0, -1, 10**6, 2**40])
        return Options(threads=threads, in_flight=chance.choice([1, 1, 2, 0, -5, 2**40]))

    def field(self, message: bytes) -> bytes:
        """The message with something else in one of its fields, or another number of them."""
        chance = self.chance
        tree = msgspec.msgpack.decode(message)
        places = list(_places(tree))
        holder, key = chance.choice(places)
        way = chance.randrange(8)
        if way < 5:
            holder[key] = chance.choice(BOUNDARIES)
        elif way == 5:
            tree[0] = chance.choice([*TAGS, "Nothing", "", 0, None])
        elif way == 6 and isinstance(holder, list):
            holder.insert(key, chance.choice(BOUNDARIES))
        else:
            del holder[key]
        try:
            return msgspec.msgpack.encode(tree)
        except OverflowError:  # a number that MessagePack does not have
            return message

    def torn(self, message: bytes) -> bytes:
        """The message with some bytes that are others, missing, or too many."""
        chance = self.chance
        place = chance.randrange(len(message))
        way = chance.randrange(6)
        if way == 0:
            return message[:place] or b"\xc1"
        if way == 1:
            return message + chance.randbytes(chance.choice([1, 8, 1000]))
        if way == 2:
            return message + bytes(chance.choice([65536, 65536 - len(message), 100_000]))
        if way == 3:
            return chance.randbytes(chance.choice([1, 2, 30, 5000]))
        if way == 4:
            return b"\x91" * chance.choice([3, 900, 60_000])
        torn = bytearray(message)
        for _ in range(chance.choice([1, 1, 2, 5])):
            torn[chance.randrange(len(torn))] = chance.randrange(256)
        return bytes(torn)

    def content(self, files: ExitStack) -> int:
        """Memory with a model, which is whole or is not."""
        chance = self.chance
        content = self.model
        if chance.random() < 0.7:
            content = self.damaged()
        sealed = files.enter_context(memory.Sealed.of(content))
        return sealed.descriptor

    def damaged(self) -> bytes:
        """The model with bytes that are others, and a checksum that may be of them."""
        chance = self.chance
        content = bytearray(self.model)
        for _ in range(chance.choice([1, 1, 3])):
            place = chance.randrange(len(content))
            content[place] = chance.choice([chance.randrange(256), *b'0123456789[]{},"'])
        if chance.random() < 0.1:
            content = content[: chance.randrange(len(content))]
        if chance.random() < 0.9 and len(content) > _PREAMBLE:
            content[_PREAMBLE - 8 : _PREAMBLE] = struct.pack(
                "<Q", xxhash.xxh3_64_intdigest(bytes(content[_PREAMBLE:]))
            )
        return bytes(content)

    def descriptors(self, right: list[int], files: ExitStack) -> list[int]:
        """Others than belong to a message."""
        chance = self.chance
        count = chance.choice([0, 1, 1, 1, 2, 3, 200, 253])
        if count > 3:
            return [self.descriptor(files)] * count
        return [*right[: chance.randrange(3)], *(self.descriptor(files) for _ in range(count))]

    def descriptor(self, files: ExitStack) -> int:
        """One of the wrong kind, size or permission."""
        made = self.chance.choice(KINDS)(self.chance)
        for descriptor in made:
            files.callback(os.close, descriptor)
        return made[0]


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """All the places in a message where something stands."""
    keys = range(len(tree)) if isinstance(tree, list) else list(tree)
    for key in keys:
        yield tree, key
        if isinstance(tree[key], list | dict):
            yield from _places(tree[key])


def _memory(size: int, seals: int, content: bytes = b"") -> list[int]:
    descriptor = os.memfd_create("wrong", os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    if content:
        os.pwrite(descriptor, content[:size], 0)
    if seals:
        fcntl(descriptor, F_ADD_SEALS, seals)
    return [descriptor]


def _reopened() -> list[int]:
    """Memory that can be read only, and changed by whoever has the other descriptor."""
    (descriptor,) = _memory(4096, SEALS)
    return [os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY), descriptor]


def _file() -> list[int]:
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    os.ftruncate(descriptor, 4096)
    return [descriptor]


def _sockets() -> list[int]:
    return [end.detach() for end in socket.socketpair()]


KINDS: Sequence[Callable[[random.Random], list[int]]] = (
    lambda _: list(os.pipe()),
    lambda _: list(reversed(os.pipe())),
    lambda _: _sockets(),
    lambda _: _file(),
    lambda _: [os.open("/", os.O_RDONLY)],
    lambda _: [os.open("/tmp", os.O_PATH)],
    lambda _: [os.open("/dev/zero", os.O_RDWR)],
    lambda _: [os.open("/dev/null", os.O_WRONLY)],
    lambda _: [os.eventfd(0)],
    lambda _: _memory(4096, 0),
    lambda _: _memory(4096, SEALS),
    lambda _: _memory(4096, F_SEAL_SHRINK | F_SEAL_WRITE),
    lambda _: _memory(4096, F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL),
    lambda _: _memory(0, SEALS | F_SEAL_WRITE),
    lambda _: _memory(1, SEALS | F_SEAL_WRITE),
    lambda _: _memory(1 << 40, SEALS | F_SEAL_WRITE),
    lambda _: _memory(10**6, SEALS | F_SEAL_WRITE),
    lambda chance: _memory(4096, SEALS | F_SEAL_WRITE, chance.randbytes(4096)),
    lambda _: _memory(4096, SEALS | F_SEAL_WRITE, serialization.MAGIC),
    lambda _: _memory(4096, SEALS | F_SEAL_WRITE, values.to_bytes([1])),
    lambda _: _reopened(),
)

_PREAMBLE = serialization._PREAMBLE.size


def main() -> None:
    """Attack a service, and tell what came of it."""
    path, count, seed = Path(sys.argv[1]), *(int(text) for text in sys.argv[2:])
    fuzzer = Fuzzer(path, seed)
    fuzzer.run(count)
    print(msgspec.json.encode(fuzzer.seen).decode())


if __name__ == "__main__":
    main()
