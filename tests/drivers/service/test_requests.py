"""Requests that are wrong, and those that ask for too much, one by one against a real service."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.drivers.models import RELUS
from tests.drivers.peer import Peer
from tests.drivers.serving import Serving, serving, short_folder, until

from crosschip.devices.reference import ReferenceDevice
from crosschip.drivers.protocol import memory, messages, values
from crosschip.drivers.protocol.messages import Failure, Run, SharedBuffer, Tensor
from crosschip.drivers.service.server import Service
from crosschip.hal import Options
from crosschip.ir import DeviceError


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    """A service of the reference device with small quotas."""
    limits = "--memory=100000", "--programs=3"
    with serving("reference", "--workers=2", *limits) as service:
        yield service


@pytest.fixture
def peer(service: Serving) -> Iterator[Peer]:
    with Peer(service.path) as watcher, Peer(service.path) as peer:
        watcher.greet(watches=True)
        until(lambda: not watcher.figures().clients, "those before are gone")
        peer.greet()
        yield peer


def test_a_run_computes_where_it_is_told_to(peer: Peer) -> None:
    program = peer.prepare(RELUS)
    given, elements = peer.allocate_here(4096)
    into, made = peer.allocate_here(4096)
    x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    np.frombuffer(elements, np.float32, 16)[:] = x.reshape(-1)
    places = into, SharedBuffer(into.fd, 4096, 64, 64)
    run = Run(peer.next(), program, (Tensor((2, 8), part(given, 64)),), places)
    outputs = peer.ask(messages.Ran, run).outputs
    assert [tensor.shape for tensor in outputs] == [(2, 8), (2, 8)]
    assert [tensor.data.offset for tensor in outputs] == [0, 64]
    found = np.frombuffer(made, np.float32, 32).reshape(2, 2, 8)
    np.testing.assert_array_equal(found, [np.maximum(x, 0), x + x])


def part(buffer: SharedBuffer, size: int, offset: int = 0) -> SharedBuffer:
    return SharedBuffer(buffer.fd, buffer.bufferSize, offset, size)


@pytest.mark.parametrize(
    "wrong",
    [
        "no program", "no memory", "beyond", "between elements", "other size", "other shape",
        "too few inputs", "too many inputs", "too few outputs", "place beyond", "no place",
        "no tensor",
    ],
)  # fmt: skip
def test_a_run_that_lies_is_cut_off(peer: Peer, service: Serving, wrong: str) -> None:
    program, buffer = peer.prepare(RELUS), peer.allocate(4096)
    right = Tensor((2, 8), part(buffer, 64))
    cases: dict[str, tuple[list[Tensor], list[SharedBuffer | None]]] = {
        "no memory": ([Tensor((2, 8), SharedBuffer(buffer.fd + 1, 4096, 0, 64))], [None, None]),
        "beyond": ([Tensor((2, 8), part(buffer, 64, 4096))], [None, None]),
        "between elements": ([Tensor((2, 8), part(buffer, 64, 2))], [None, None]),
        "other size": ([Tensor((3, 8), part(buffer, 64))], [None, None]),
        "other shape": ([Tensor((8, 2), part(buffer, 64))], [None, None]),
        "too few inputs": ([], [None, None]),
        "too many inputs": ([right, right], [None, None]),
        "too few outputs": ([right], [None]),
        "place beyond": ([right], [part(buffer, 64, 4090), None]),
        "no place": ([right], [SharedBuffer(99, 4096, 0, 64), None]),
        "no tensor": ([Tensor(None, part(buffer, 64))], [None, None]),
    }
    inputs, places = cases.get(wrong, ([right], [None, None]))
    number = program + 1 if wrong == "no program" else program
    peer.send(Run(peer.next(), number, tuple(inputs), tuple(places)))
    assert peer.is_disconnected()
    with Peer(service.path) as other:
        other.greet()


def test_messages_before_the_greeting_are_cut_off(service: Serving) -> None:
    with Peer(service.path) as early:
        early.send(messages.Ping(1))
        assert early.is_disconnected()


def test_another_version_is_told_so(service: Serving) -> None:
    with Peer(service.path) as old:
        hello = messages.Hello(1, messages.PROTOCOL + 1, "old")
        failure = old.ask(Failure, hello)
        assert "use the same version of crosschip for both" in failure.message


@pytest.mark.parametrize("count", [0, 2, 3])
def test_each_request_comes_with_its_descriptors(peer: Peer, count: int) -> None:
    with open(os.devnull) as file:
        peer.send(messages.Query(peer.next(), Options()), [file.fileno()] * count)
        assert peer.is_disconnected()


@pytest.mark.parametrize(
    "options", [Options(threads=0), Options(threads=10**6), Options(in_flight=0)]
)
def test_options_that_no_engine_keeps_are_cut_off(peer: Peer, options: Options) -> None:
    peer.send(messages.Settings(peer.next(), options))
    assert peer.is_disconnected()


def test_memory_that_is_none_is_a_failure_and_no_more(peer: Peer) -> None:
    with open(os.devnull) as file:
        query = messages.Query(peer.next(), Options())
        assert "no memory that can be shared" in peer.ask(Failure, query, [file.fileno()]).message
    with memory.Sealed.of(values.to_bytes([1])) as content:
        query = messages.Query(peer.next(), Options())
        told = peer.ask(Failure, query, [content.descriptor]).message
        assert "the model: is cut off in its first bytes" in told
    peer.ask(messages.Pong, messages.Ping(peer.next()))


def test_quotas_hold_and_come_back(peer: Peer) -> None:
    programs = [peer.prepare(RELUS) for _ in range(3)]
    request = messages.Prepare(peer.next(), Options())
    with memory.Sealed.of(b"x") as content:
        told = peer.ask(Failure, request, [content.descriptor]).message
    assert "1 programs are asked for, and 0 are left of the 3" in told
    peer.ask(messages.Done, messages.Discard(peer.next(), programs[0]))
    peer.prepare(RELUS)
    buffer = peer.allocate(65536)
    told = peer.ask(Failure, messages.Allocate(peer.next(), 65536)).message
    assert "are left of the 100000 that a client may have" in told
    peer.ask(messages.Done, messages.Release(peer.next(), buffer.fd))
    peer.allocate(65536)
    peer.send(messages.Release(peer.next(), buffer.fd))
    assert peer.is_disconnected()


def test_two_connections_of_a_process_are_one_client(peer: Peer, service: Serving) -> None:
    peer.allocate(65536)
    with Peer(service.path) as other:
        other.greet()
        told = other.ask(Failure, messages.Allocate(other.next(), 65536)).message
        assert "are left of the 100000" in told


def test_a_client_that_never_reads_is_let_go(service: Serving) -> None:
    with Peer(service.path) as silent:
        silent.greet()
        with pytest.raises(OSError):  # noqa: PT011, PT012  # whichever the system says
            while True:
                silent.send(messages.Watch(1))
    with Peer(service.path) as other:
        other.greet()


def test_sockets_are_their_owners_alone() -> None:
    with serving() as service:
        assert stat.S_IMODE(service.path.stat().st_mode) == 0o600


def test_a_path_where_something_is_stays_as_it_is() -> None:
    with short_folder() as folder:
        path = folder / "precious.sock"
        path.write_text("kept")
        with pytest.raises(DeviceError, match="something is there that is no socket"):
            Service(ReferenceDevice(), "reference", path, 1)
        assert path.read_text() == "kept"
        with pytest.raises(DeviceError, match="cannot be written"):
            Service(ReferenceDevice(), "reference", folder / "missing" / "it.sock", 1)


def test_a_path_has_one_service(service: Serving) -> None:
    with pytest.raises(DeviceError, match="a driver serves there already; connect to it"):
        Service(ReferenceDevice(), "reference", Path(service.path), 1)
