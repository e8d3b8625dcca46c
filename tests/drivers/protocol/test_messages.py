"""Messages: what is written is read, and what is out of range is not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.drivers.models import RELUS

from crosschip.drivers.protocol import messages
from crosschip.drivers.protocol.board import Board, size_of
from crosschip.drivers.protocol.messages import Run, SharedBuffer, Tensor
from crosschip.hal import Options, Performance, Precision, Range, Sizes
from crosschip.ops.definition.serialization import SerializedModel, to_bytes

UNSIGNED = st.integers(0, 2**63 - 1)
BUFFERS = st.builds(SharedBuffer, UNSIGNED, UNSIGNED, UNSIGNED, UNSIGNED)
SHAPES = st.none() | st.lists(UNSIGNED, max_size=32).map(tuple)
TENSORS = st.lists(st.builds(Tensor, SHAPES, BUFFERS), max_size=3).map(tuple)
PLACES = st.lists(st.none() | BUFFERS, max_size=3).map(tuple)
RUN = Run(1, 1, (Tensor((2, 8), SharedBuffer(1, 4096, 0, 64)),), (None,), 3, True)


@given(st.builds(Run, UNSIGNED, UNSIGNED, TENSORS, PLACES, st.integers(0, 3), st.booleans()))
def test_runs_are_read_as_they_were_written(run: Run) -> None:
    assert messages.decode_request(messages.encode(run)) == run


def test_options_are_read_as_they_were_written() -> None:
    sizes = Sizes((Range("N", 1, 8),), ((("N", 2),),), 5)
    options = Options(Precision.FLOAT16, 3, 2, sizes, Performance.HIGH)
    for kind in (messages.Query, messages.Prepare, messages.Settings):
        request = kind(7, options)
        assert messages.decode_request(messages.encode(request)) == request


def replaced(tree: Any, place: tuple[int, ...], value: object) -> Any:
    if not place:
        return value
    return [replaced(e, place[1:], value) if i == place[0] else e for i, e in enumerate(tree)]


PLACES_OF_NUMBERS = [
    *[(1,), (2,), (5,)],
    *[(3, 0, 0, 0), (3, 0, 1, 0), (3, 0, 1, 1), (3, 0, 1, 2), (3, 0, 1, 3)],
]


@pytest.mark.parametrize("place", PLACES_OF_NUMBERS)
@pytest.mark.parametrize("value", [-1, 2**63, 2**64 - 1, 1.0, "1", None, []])
def test_each_number_is_checked(place: tuple[int, ...], value: object) -> None:
    tree = msgspec.msgpack.decode(messages.encode(RUN))
    with pytest.raises(msgspec.ValidationError):
        messages.decode_request(msgspec.msgpack.encode(replaced(tree, place, value)))


@pytest.mark.parametrize(("place", "value"), [((5,), 4), ((3, 0, 0), [1] * 33), ((6,), 1)])
def test_ranks_and_priorities_are_checked(place: tuple[int, ...], value: object) -> None:
    tree = msgspec.msgpack.decode(messages.encode(RUN))
    with pytest.raises(msgspec.ValidationError):
        messages.decode_request(msgspec.msgpack.encode(replaced(tree, place, value)))


def test_a_model_is_packed_as_it_is_saved() -> None:
    packed = SerializedModel(RELUS)
    room = bytearray(packed.size)
    packed.write(memoryview(room))
    assert bytes(room) == to_bytes(RELUS)


def test_the_board_tells_what_runs() -> None:
    board = Board(memoryview(bytearray(size_of(3))))
    assert board.running() == frozenset()
    board.enter(2, 7)
    board.enter(0, 2**63 - 1)
    assert board.running() == {7, 2**63 - 1}
    board.leave(2)
    assert board.running() == {2**63 - 1}
