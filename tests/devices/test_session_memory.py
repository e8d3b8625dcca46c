"""Memory of OpenVINO's carried tensors: no other writer, and few reallocations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.modelling import model_of

from crosschip.devices.openvino import OpenVinoDevice
from crosschip.devices.openvino.state import OpenVinoSession
from crosschip.hal import Carried, Options, Program
from crosschip.ir import ElementType, TensorType, symbol
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.joining import Concat

_STEPS = 300


@pytest.fixture
def program() -> Iterator[Program]:
    """Concatenate two tensors and add 1."""

    def rows(name: str) -> TensorType:
        return TensorType(ElementType.FLOAT32, (symbol(name), 8))

    model = model_of(
        lambda b, past, new: b.add(Add, b.add(Concat, [past, new], 0), np.float32(1)),
        rows("past"),
        rows("step"),
    )
    with OpenVinoDevice() as device:
        yield device.compile(model, Options(threads=1))


def _session(program: Program) -> OpenVinoSession:
    session = program.session([Carried(0, 0)])
    assert isinstance(session, OpenVinoSession)
    return session


def test_other_runs_leave_the_memory_of_sessions_alone(program: Program) -> None:
    session = _session(program)
    for _ in range(2):
        session.run([None, np.zeros((3, 8), np.float32)])
        session.advance()
    (state,) = session._carried
    before = [tensor.data.copy() for tensor in state.tensors]
    for count in (1, 3, 6):
        others = np.full((count, 8), 7, np.float32)
        (made,) = program.run([others, others])
        np.testing.assert_array_equal(made, np.full((2 * count, 8), 8))
    for tensor, elements in zip(state.tensors, before, strict=True):
        np.testing.assert_array_equal(tensor.data, elements)


def test_memory_grows_seldom(program: Program) -> None:
    session = _session(program)
    (state,) = session._carried
    places: set[int] = set()
    for step in range(_STEPS):
        session.run([None, np.zeros((1, 8), np.float32)])
        session.advance()
        places.update(tensor.data.ctypes.data for tensor in state.tensors)
        assert session.shape(0) == (step + 1, 8)
    made = np.arange(_STEPS, 0, -1, dtype=np.float32)
    np.testing.assert_array_equal(session.read(0), np.broadcast_to(made[:, None], (_STEPS, 8)))
    assert len(places) < _STEPS / 10


def test_a_run_whose_outcome_is_not_taken_leaves_the_state(program: Program) -> None:
    session = _session(program)
    session.write(0, np.full((2, 8), 5, np.float32))
    session.run([None, np.zeros((1, 8), np.float32)])
    np.testing.assert_array_equal(session.read(0), np.full((2, 8), 5))
    session.run([None, np.zeros((1, 8), np.float32)])
    session.advance()
    np.testing.assert_array_equal(session.read(0), [[6.0] * 8] * 2 + [[1.0] * 8])
