"""Whatever a device does, crosschip stands: a table of calls, and of what can come back."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.modelling import DelegatingDevice, chain, float32, model_of, outputs_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import (
    COMPLETED,
    YES,
    Capabilities,
    CompileError,
    HostBuffer,
    Kind,
    Offer,
    Options,
    Program,
    Submission,
)
from crosschip.ir import Array, DeviceError, Error, Model, symbol
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add

x = {"x0": np.array([-1, 0.5], np.float32)}
EXPECTED = outputs_of(chain(Relu), x)["y0"]


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Base(BaseException):
    """One that is no `Exception`."""


def raising(error: BaseException) -> Callable[..., Any]:
    def fault(*arguments: object) -> Any:
        raise error

    return fault


def returning(value: object) -> Callable[..., Any]:
    return lambda *arguments: value


RAISED = {
    "runtime": raising(RuntimeError("the board does not answer")),
    "lines": raising(OSError("first\nsecond")),
    "empty": raising(ValueError()),
    "mute": raising(Mute()),
    "base": raising(Base("gone")),
    "exit": raising(SystemExit(3)),
    "generator": raising(GeneratorExit()),
    "stop": raising(StopIteration()),
    "memory": raising(MemoryError()),
    "recursion": raising(RecursionError("too deep")),
    "ours": raising(crosschip.Error("a plain error")),
}
JUNK = {
    "none": returning(None),
    "number": returning(7),
    "text": returning("junk"),
    "list": returning([None]),
    "object": returning(object()),
}
OUTPUTS = {
    "no output": returning([]),
    "two outputs": returning([EXPECTED, EXPECTED]),
    "a list": returning([EXPECTED.tolist()]),
    "a number": returning([np.float32(1)]),
    "no elements": returning([np.zeros(0, np.float32)]),
    "transposed": returning([np.zeros((1, 2), np.float32)]),
    "float64": returning([EXPECTED.astype(np.float64)]),
    "int32": returning([EXPECTED.astype(np.int32)]),
    "an array": returning(EXPECTED),
    "a dict": returning({"y0": EXPECTED}),
    "an iterator": lambda *arguments: iter([EXPECTED]),
}


class Faulty(DelegatingDevice):
    """A device of which one method misbehaves, and its programs, of which one does."""

    def __init__(self, method: str, fault: Callable[..., Any]) -> None:
        super().__init__(name="acme")
        self.method, self.fault = method, fault

    def __getattribute__(self, name: str) -> Any:
        own = object.__getattribute__(self, "__dict__")
        if name != own.get("method", ""):
            return super().__getattribute__(name)
        fault = own["fault"]
        return fault() if name in ("version", "vendor", "kind", "properties") else fault

    def compile(self, *arguments: Any) -> Program:
        return FaultyProgram(super().compile(*arguments), self.method, self.fault)

    def load(self, *arguments: Any) -> Program:
        return FaultyProgram(super().load(*arguments), self.method, self.fault)


class FaultyQuery(Faulty):
    """One that answers about whole models."""

    def query(self, model: Model, options: Options) -> Offer:
        offer: Offer = self.fault(model, options)
        return offer


class FaultyProgram(Program):
    def __init__(self, right: Program, method: str, fault: Callable[..., Any]) -> None:
        self.right = right
        if method.startswith("program."):
            setattr(self, method.removeprefix("program."), fault)

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self.right.run(inputs)

    def save(self) -> bytes | None:
        return self.right.save()


ASKED_FOR_AN_INSTANCE = ("version", "vendor", "kind", "capabilities", "properties")
CALLS: list[tuple[str, dict[str, Callable[..., Any]]]] = [
    *((method, {**RAISED, **JUNK}) for method in ASKED_FOR_AN_INSTANCE),
    ("query", {**RAISED, **JUNK}),
    ("supports", {**RAISED, **JUNK}),
    ("compile", {**RAISED, **JUNK}),
    ("load", {**RAISED, **JUNK}),
    ("close", RAISED),
    ("program.run", {**RAISED, **JUNK, **OUTPUTS}),
    ("program.save", {**RAISED, "number": JUNK["number"], "text": JUNK["text"]}),
    ("program.close", RAISED),
    ("program.rules", {"number": returning(7)}),
]
TABLE = [(method, name) for method, faults in CALLS for name in faults]
FAULTS = {(method, name): fault for method, faults in CALLS for name, fault in faults.items()}
HARMLESS = ("load", "close", "program.save", "program.close")
"""Methods without which the right answer is still there."""


@pytest.mark.parametrize(("method", "fault"), TABLE)
def test_a_device_that_misbehaves_is_an_error_that_names_it(
    method: str, fault: str, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    if method in ("version", "vendor") and fault == "text":
        return  # any text is a good answer
    caplog.set_level(logging.WARNING)
    kind = FaultyQuery if method == "query" else Faulty
    device = kind("" if method == "query" else method, FAULTS[method, fault])

    def runs() -> list[Array]:
        made = []
        for _ in range(2):  # the second time from the cache
            with crosschip.compile(chain(Relu), [device], cache=tmp_path) as model:
                made.append(model.run(x)["y0"])
        return made

    if method in HARMLESS:
        for made in runs():
            np.testing.assert_array_equal(made, EXPECTED)
        assert method == "close" or any("acme" in record.message for record in caplog.records)
        return
    with pytest.raises(Error, match="acme"):
        runs()


@pytest.mark.parametrize("name", [n for n in RAISED if n not in ("ours",)])
def test_an_operation_that_a_device_fails_to_answer_about_goes_elsewhere(name: str) -> None:
    class Forgetful(DelegatingDevice):
        def supports(self, operation: Any, options: Any) -> Any:
            return RAISED[name]() if operation.type == "TANH" else YES

    devices = [Forgetful(name="npu"), DelegatingDevice(name="cpu")]
    with crosschip.compile(chain(Relu, Tanh), devices, cache=False) as model:
        assert [decision.device for decision in model.placement.decisions] == ["npu", "cpu"]


def test_an_interrupt_passes() -> None:
    device = Faulty("program.run", raising(KeyboardInterrupt()))
    with (
        crosschip.compile(chain(Relu), [device], cache=False) as model,
        pytest.raises(KeyboardInterrupt),
    ):
        model.run(x)


def test_only_the_operations_that_an_error_names_go_elsewhere() -> None:
    class Particular(DelegatingDevice):
        def compile(self, model: Any, options: Any) -> Program:
            guilty = [o for o in model.operations if o.type == "TANH"]
            if guilty:
                raise CompileError("no room for TANH", guilty)
            return super().compile(model, options)

    devices = [Particular(name="npu"), DelegatingDevice(name="cpu")]
    with crosschip.compile(chain(Relu, Tanh, Relu), devices, cache=False) as model:
        assert [d.device for d in model.placement.decisions] == ["npu", "cpu", "npu"]
        (tanh,) = (d for d in model.placement.decisions if d.type == "TANH")
        assert tanh.reasons["npu"] == "TANH: no room for TANH"


def test_the_sizes_of_outputs_follow_those_of_the_inputs() -> None:
    class Short(ReferenceProgram):
        def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
            return [array[:1] for array in super().run(inputs)]

    class ShortDevice(DelegatingDevice):
        def compile(self, model: Any, options: Any) -> Program:
            return Short(model)

    model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N"), 2))
    with crosschip.compile(model, [ShortDevice(name="npu")], cache=False) as compiled:
        compiled(np.ones((1, 2), np.float32))
        with pytest.raises(DeviceError, match=r"npu: returned float32\[1, 2\] for"):
            compiled(np.ones((3, 2), np.float32))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), min_size=1))
def test_shapes_that_were_right_before_are_looked_at_again(
    turns: list[tuple[int, bool, bool]],
) -> None:
    wrong = False

    class Longer(ReferenceProgram):
        def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
            (made,) = super().run(inputs)
            return [np.concatenate([made, made[:1] if len(made) else [[1, 2]]]) if wrong else made]

    class LongerDevice(DelegatingDevice):
        def compile(self, model: Any, options: Any) -> Program:
            return Longer(model)

    model = model_of(lambda b, x: b.add(Tanh, x), float32(symbol("N"), 2))
    right = 0
    with crosschip.compile(model, [LongerDevice(name="npu")], cache=False) as compiled:
        for rows, wrong, has_place in turns:
            array = np.ones((rows, 2), np.float32)
            places = {"y0": np.empty_like(array)} if has_place else None
            if wrong:
                with pytest.raises(DeviceError, match="the device breaks the driver contract"):
                    compiled.run({"x0": array}, places)
                continue
            made = compiled.run({"x0": array}, places)["y0"]
            np.testing.assert_allclose(made, np.tanh(array), rtol=1e-6)
            right += array.nbytes
        (segment,) = compiled.statistics().segments
        assert (segment.bytes_in, segment.bytes_out) == (right, right)


def test_a_type_by_its_other_name_is_the_same_type() -> None:
    """NumPy has two types of 64 bits that are equal and not the same."""

    class Renaming(ReferenceProgram):
        def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
            return [array.view(np.longlong) for array in super().run(inputs)]

    class RenamingDevice(DelegatingDevice):
        def compile(self, model: Any, options: Any) -> Program:
            return Renaming(model)

    int64 = crosschip.ir.TensorType(crosschip.ir.ElementType.INT64, (2,))
    model = model_of(lambda b, x: b.add(Add, x, x), int64)
    with crosschip.compile(model, [RenamingDevice()], cache=False) as compiled:
        (made,) = compiled.run({"x0": np.array([1, 2])}).values()
        assert made.dtype is np.dtype(np.int64)


class Reporting(DelegatingDevice):
    """Reports a broken rule as an extra output."""

    def compile(self, model: Any, options: Any) -> Program:
        class Checked(ReferenceProgram):
            rules = ("RELU.input: must not be negative",)

            def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
                return [*super().run(inputs), inputs[0] >= 0]

        return Checked(model)


def test_a_broken_rule_that_a_program_reports_is_an_error() -> None:
    with crosschip.compile(chain(Relu), [Reporting(name="npu")], cache=False) as model:
        (made,) = model.run({"x0": np.ones(2, np.float32)}).values()
        assert made.tolist() == [1, 1]
        with pytest.raises(DeviceError, match=r"npu: RELU\.input: must not be negative"):
            model.run(x)


@pytest.mark.parametrize("fault", [*JUNK, *RAISED])
def test_a_submission_that_is_none_is_an_error(fault: str) -> None:
    class Submitting(DelegatingDevice):
        def compile(self, model: Any, options: Any) -> Program:
            class Asynchronous(Program):
                def submit(self, inputs: Any, outputs: Any, after: Any) -> Submission:
                    submission: Submission = {**JUNK, **RAISED}[fault]()
                    return submission

            return Asynchronous()

    with (
        crosschip.compile(chain(Relu), [Submitting(name="npu")], cache=False) as model,
        pytest.raises(DeviceError, match=r"^npu: "),
    ):
        model.run(x)


class Shapeless(HostBuffer):
    """A buffer that does not say what it holds."""

    def __init__(self) -> None:
        self.ready = COMPLETED


def test_a_buffer_that_says_nothing_is_an_error() -> None:
    class Submitting(DelegatingDevice):
        def compile(self, model: Any, options: Any) -> Program:
            class Asynchronous(Program):
                def submit(self, inputs: Any, outputs: Any, after: Any) -> Submission:
                    return Submission([Shapeless()], COMPLETED)

            return Asynchronous()

    with (
        crosschip.compile(chain(Relu), [Submitting(name="npu")], cache=False) as model,
        pytest.raises(DeviceError, match="npu: failed while describing a buffer"),
    ):
        model.run(x)


def test_a_program_that_does_not_say_how_it_runs_is_an_error() -> None:
    class Secretive(DelegatingDevice):
        def compile(self, model: Any, options: Any) -> Program:
            class Silent(ReferenceProgram):
                run = property(lambda self: 1 / 0)

            return Silent(model)

    with pytest.raises(DeviceError, match="npu: failed while telling how it runs"):
        crosschip.compile(chain(Relu), [Secretive(name="npu")], cache=False)


def test_devices_of_another_kind_or_contract_are_refused() -> None:
    with pytest.raises(TypeError, match="defines neither run nor submit"):
        type("Nothing", (Program,), {})
    with pytest.raises(TypeError, match="defines neither supports nor query"):
        type("Nothing", (crosschip.hal.Device,), {})


def test_what_is_closed_is_closed_whatever_fails_to() -> None:
    first = Faulty("program.close", raising(OSError("stuck")))
    second = DelegatingDevice(name="cpu")
    with contextlib.ExitStack() as stack:
        stack.enter_context(crosschip.compile(chain(Relu, Tanh), [first, second], cache=False))
    assert Kind.CPU is first.kind
    assert HostBuffer(EXPECTED).ready is COMPLETED


class Meeting(DelegatingDevice):
    """Notes whether two compilations were under way at once, on any instances."""

    parallel = True
    barrier: threading.Barrier

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), parallel_compile=self.parallel)

    def compile(self, model: Model, options: Options) -> Program:
        with contextlib.suppress(threading.BrokenBarrierError):
            self.barrier.wait(0.2 if not self.parallel else 30)
        return super().compile(model, options)


@pytest.mark.parametrize("parallel", [True, False])
def test_a_device_may_decline_to_compile_in_parallel(parallel: bool) -> None:
    class Device(Meeting):
        pass

    met: list[None] = []
    Device.parallel, Device.barrier = parallel, threading.Barrier(2, lambda: met.append(None))
    devices = [Device(name="one"), Device(name="two")]
    with ThreadPoolExecutor(2) as pool:
        compiled = list(
            pool.map(lambda d: crosschip.compile(chain(Relu), [d], cache=False), devices)
        )
    assert bool(met) is parallel
    for each in compiled:
        np.testing.assert_array_equal(each.run(x)["y0"], EXPECTED)
        each.close()
