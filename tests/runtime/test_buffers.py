"""Devices with memory of their own, which take on work and go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, chain, float32, model_of, outputs_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import (
    Buffer,
    Capabilities,
    Event,
    HostBuffer,
    HostEvent,
    Options,
    Program,
    Submission,
)
from crosschip.ir import (
    Array,
    DeviceError,
    ElementType,
    Error,
    InputError,
    Model,
    symbol,
)
from crosschip.ir.size_reader import SizeReader
from crosschip.ops.standard.activation import Relu, Sigmoid, Tanh
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.unary import Exp


class Memory(Buffer):
    """Memory of a device: a host's array that only the device may touch, and copies are counted."""

    def __init__(self, device: Remote, element_type: ElementType, shape: tuple[int, ...]) -> None:
        self.device = self._owner = device
        self.element_type = element_type
        self.shape = shape
        self.held = np.zeros(shape, element_type.dtype)

    def array(self) -> Array:
        self.ready.wait()
        self._owner.copied.append("to the host")
        return self.held.copy()

    def write(self, array: Array) -> None:
        self._owner.copied.append("to the device")
        self.held[...] = array

    def __dlpack__(self, **request: Any) -> Any:
        return self.array().__dlpack__(**request)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.held.__dlpack_device__()


class Remote(DelegatingDevice):
    """A device that works through what it has taken on in a thread of its own."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.copied: list[str] = []
        self.queue = ThreadPoolExecutor(1)
        self.held_up = threading.Event()
        self.held_up.set()

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        return RemoteProgram(self, model)

    def allocate(self, element_type: ElementType, shape: tuple[int, ...]) -> Buffer:
        return Memory(self, element_type, shape)

    def close(self) -> None:
        self.queue.shutdown()
        super().close()


class RemoteProgram(Program):
    def __init__(self, device: Remote, model: Model) -> None:
        self.device = device
        self.model = model
        self.right = ReferenceProgram(model)

    def submit(
        self,
        inputs: Sequence[Buffer],
        outputs: Sequence[Buffer | None],
        after: Sequence[Event],
    ) -> Submission:
        event = HostEvent()
        mine = [self._mine(buffer) for buffer in inputs]
        places: list[Memory] = []
        reader = SizeReader([operand.type for operand in self.model.inputs.values()])
        sizes = reader.read([buffer.shape for buffer in inputs])
        for index, operand in enumerate(self.model.outputs.values()):
            given = outputs[index] if outputs else None
            shape = operand.type.substitute(sizes).static_shape
            assert shape is not None, "its inputs show all sizes"
            new = Memory(self.device, operand.type.element_type, shape)
            place = given if isinstance(given, Memory) else new
            place.ready = event
            places.append(place)
        self.device.queue.submit(self._work, mine, places, after, event)
        return Submission(places, event)

    def _mine(self, buffer: Buffer) -> Memory:
        if isinstance(buffer, Memory):
            return buffer
        copy = Memory(self.device, buffer.element_type, buffer.shape)
        copy.write(buffer.array())
        return copy

    def _work(
        self,
        inputs: Sequence[Memory],
        places: Sequence[Memory],
        after: Sequence[Event],
        event: HostEvent,
    ) -> None:
        try:
            for other in after:
                other.wait()
            self.device.held_up.wait()
            for place, made in zip(places, self.right.run([m.held for m in inputs]), strict=True):
                place.held[...] = made
            event.set()
        except BaseException as error:  # it comes out of the event
            event.set(error)


@pytest.fixture
def remote() -> Iterator[Remote]:
    with Remote(name="remote", declines=["TANH"]) as device:
        yield device


x = {"x0": np.array([-1, 0.5], np.float32)}


def test_what_is_taken_on_comes_back_as_arrays(remote: Remote) -> None:
    with crosschip.compile(chain(Relu, Exp), [remote], cache=False) as model:
        made = model.run(x)["y0"]
    np.testing.assert_array_equal(made, outputs_of(chain(Relu, Exp), x)["y0"])
    assert remote.copied == ["to the device", "to the host"]


def test_what_another_device_does_not_read_stays_where_it_is(remote: Remote) -> None:
    """Three segments: the sum of the last is of one operand that never left the device."""

    def make(b: Any, x: Any) -> Any:
        kept = b.add(Relu, x)
        return b.add(Add, b.add(Exp, b.add(Tanh, b.add(Sigmoid, x))), kept)

    model = model_of(make, float32(2))
    with crosschip.compile(model, [remote, DelegatingDevice(name="cpu")], cache=False) as compiled:
        assert [s.device for s in compiled.placement.segments] == ["remote", "cpu", "remote"]
        made = compiled.run(x)["y0"]
    np.testing.assert_array_equal(made, outputs_of(model, x)["y0"])
    # In: x and what TANH made; out: what TANH reads, and the result. RELU's stays.
    assert sorted(remote.copied) == ["to the device"] * 2 + ["to the host"] * 2


def test_outputs_stay_between_calls(remote: Remote) -> None:
    with crosschip.compile(chain(Relu), [remote], cache=False) as model:
        state = model.run(x, keep=["y0"])["y0"]
        for _ in range(3):
            state = model.run({"x0": state}, keep=["y0"])["y0"]
        assert remote.copied == ["to the device"]
        assert isinstance(state, Memory)
        np.testing.assert_array_equal(np.from_dlpack(state), [0, 0.5])


def test_outputs_go_where_the_caller_wants_them(remote: Remote) -> None:
    with crosschip.compile(chain(Relu), [remote], cache=False) as model:
        place = model.allocate("y0", (2,))
        assert model.run(x, outputs={"y0": place})["y0"] is place
        np.testing.assert_array_equal(place.array(), [0, 0.5])
        array = np.full(2, 9, np.float32)
        assert model.run(x, outputs={"y0": array})["y0"] is array
        assert array.tolist() == [0, 0.5]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (np.zeros(3, np.float32), "is float32.2., which does not fit the float32.3."),
        (np.zeros(2, np.int32), "does not fit the int32"),
        (np.broadcast_to(np.float32(0), 2), "cannot be written"),
        (HostBuffer(np.zeros((2, 1), np.float32)), "does not fit"),
    ],
)
def test_a_place_that_does_not_fit_is_refused(place: Any, message: str) -> None:
    with (
        crosschip.compile(chain(Relu), "reference", cache=False) as model,
        pytest.raises(InputError, match=message),
    ):
        model.run(x, outputs={"y0": place})


def test_names_of_places_are_checked(remote: Remote) -> None:
    with crosschip.compile(chain(Relu), [remote], cache=False) as model:
        with pytest.raises(InputError, match="no output 'z'; its outputs are y0"):
            model.run(x, keep=["z"])
        with pytest.raises(InputError, match="no input or output 'z'; there are x0, y0"):
            model.allocate("z", (2,))
        wrong = Memory(remote, ElementType.INT32, (2,))
        with pytest.raises(InputError, match="'x0' is a buffer of int32, but the model takes"):
            model.run({"x0": wrong})


def test_a_failure_after_work_was_taken_on_names_the_device(remote: Remote) -> None:
    def fail(inputs: Any) -> Any:
        raise RuntimeError("the board does not answer")

    class Failing(Remote):
        def compile(self, model: Model, options: Options) -> Program:
            program = RemoteProgram(self, model)
            program.right.run = fail  # type: ignore[method-assign]
            return program

    with (
        Failing(name="npu") as device,
        crosschip.compile(chain(Relu), [device], cache=False) as model,
        pytest.raises(DeviceError, match="npu: the board does not answer"),
    ):
        model.run(x)


def test_close_waits_for_runs_that_are_under_way(remote: Remote) -> None:
    model = crosschip.compile(chain(Relu), [remote], cache=False)
    remote.held_up.clear()
    with ThreadPoolExecutor(2) as pool:
        run = pool.submit(model.run, x)
        while not remote.copied:
            pass
        closing = pool.submit(model.close)
        assert not closing.done()
        remote.held_up.set()
        assert run.result()["y0"].tolist() == [0, 0.5]
        closing.result()
    with pytest.raises(InputError, match="has been closed"):
        model.run(x)
    with pytest.raises(InputError, match="has been closed"):
        model.run(x, keep=["y0"])
    model.close()


@pytest.mark.slow
def test_many_threads_run_while_one_closes() -> None:
    for _ in range(20):
        model = crosschip.compile(chain(Relu), "reference", cache=False)

        def attempt(model: crosschip.CompiledModel = model) -> str:
            try:
                while True:
                    assert model.run(x)["y0"].tolist() == [0, 0.5]
            except Error as error:
                return str(error)

        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(attempt) for _ in range(4)]
            model.close()
            assert all("has been closed" in run.result() for run in runs)


OPEN = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N")))


@pytest.mark.parametrize("shape", [3, "ab", (-1, 3), None])
def test_what_is_no_shape_is_refused(shape: Any) -> None:
    with crosschip.compile(OPEN, "reference", cache=False) as model:
        with pytest.raises(InputError, match="is not a shape for 'x0'"):
            model.allocate("x0", shape)
        with pytest.raises(InputError, match="is not a shape for 'x0'"):
            model.prepare({"x0": shape})
        with pytest.raises(InputError, match="shapes is 3, but must be like"):
            model.prepare(3)  # type: ignore[arg-type]


def test_inputs_are_aligned_as_a_device_asks() -> None:
    addresses: list[int] = []

    class Aligned(DelegatingDevice):
        def capabilities(self) -> Capabilities:
            return Capabilities(alignment=4096)

        def compile(self, model: Model, options: Options) -> Program:
            class Noting(ReferenceProgram):
                def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                    addresses.extend(array.ctypes.data % 4096 for array in inputs)
                    return super().run(inputs)

            return Noting(model)

    room = np.zeros(9000, np.float32)
    with crosschip.compile(OPEN, [Aligned(name="npu")], cache=False) as model:
        for start in (0, 1, 7):
            room[start] = 5
            assert model.run({"x0": room[start : start + 3]})["y0"][0] == 5
    assert addresses == [0, 0, 0]


def test_a_device_that_cannot_set_threads_is_not_given_the_operations() -> None:
    class Own(DelegatingDevice):
        def capabilities(self) -> Capabilities:
            return Capabilities()

    devices = [Own(name="npu"), DelegatingDevice(name="cpu")]
    with crosschip.compile(chain(Relu), devices, cache=False, threads=2) as model:
        (decision,) = model.placement.decisions
        assert decision.device == "cpu"
        assert "number of threads cannot be set" in decision.reasons["npu"]
    with crosschip.compile(chain(Relu), devices, cache=False) as model:
        assert model.placement.decisions[0].device == "npu"


def test_element_types_that_a_device_lacks_are_declined() -> None:
    class Narrow(DelegatingDevice):
        def capabilities(self) -> Capabilities:
            return Capabilities(types=frozenset({ElementType.INT32}))

    devices = [Narrow(name="npu"), DelegatingDevice(name="cpu")]
    with crosschip.compile(chain(Relu), devices, cache=False) as model:
        (decision,) = model.placement.decisions
        assert (decision.device, decision.reasons["npu"]) == (
            "cpu",
            "RELU.input: float32 is not supported",
        )
