"""Control flow that the runtime runs: placement of bodies, hand-over of values, and its end."""

from __future__ import annotations

import _thread
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, float32

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.drawing import Labels
from crosschip.drawing.dot import to_dot
from crosschip.drawing.svg import to_svg
from crosschip.hal import YES, Options, Program, Support
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    If,
    InputError,
    Loop,
    Model,
    Operand,
    Operation,
    Scan,
    TensorType,
    UnsupportedError,
    symbol,
)
from crosschip.ir.control import ControlFlow
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Exp, Neg

DEVICES = ("reference", "openvino,reference", "onnxruntime")
N = symbol("N")
COUNT = TensorType(ITERATION.element_type, ())
ONES = np.ones(2, np.float32)
PAIR = float32(2)

Step = Callable[[Builder, Operand], Operand]


def body_of(step: Step, type_: TensorType, going: Step | None = None) -> Model:
    """A loop's body over one state."""
    b = Builder("body")
    b.input("i", ITERATION)
    condition = b.input("going", CONDITION)
    state = b.input("x", type_)
    made = step(b, state)
    b.output("goes_on", going(b, made) if going else condition)
    b.output("next", made)
    return b.build()


def looped(step: Step, type_: TensorType = PAIR, *, endless: bool = False) -> Model:
    """The model that does a step n times, or for ever."""
    b = Builder("outer")
    x = b.input("x", type_)
    count = None if endless else b.input("n", COUNT)
    b.output("y", b.insert(Loop.of("loop", count, None, [x], [], body_of(step, type_)))[0])
    return b.build()


def negated(b: Builder, x: Operand) -> Operand:
    return b.add(Neg, x)


def mixed(b: Builder, x: Operand) -> Operand:
    return b.add(Neg, b.add(Exp, b.add(Neg, x)))


class Recording(Program):
    """Runs another program; keeps what goes in and comes out, and stops a run if it is asked to."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.calls: list[tuple[Sequence[Array], Sequence[Array]]] = []
        self.closed = False
        self.interrupt_at = -1

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        made = self.program.run(inputs)
        self.calls.append((inputs, made))
        if len(self.calls) == self.interrupt_at:
            _thread.interrupt_main()
        return made

    def close(self) -> None:
        self.closed = True


class RecordingDevice(DelegatingDevice):
    """The reference device, with programs that record; it may take control flow whole."""

    def __init__(self, *, whole: bool = False, **more: object) -> None:
        super().__init__(**more)  # type: ignore[arg-type]
        self.whole = whole
        self.programs: list[Recording] = []

    def supports(self, operation: Operation, options: Options) -> Support:
        if isinstance(operation, ControlFlow):
            return YES if self.whole else Support.no(operation, "", "is left to the runtime")
        return super().supports(operation, options)

    def compile(self, model: Model, options: Options) -> Program:
        self.programs.append(Recording(super().compile(model, options)))
        return self.programs[-1]


def test_values_are_handed_on_without_copies() -> None:
    device = RecordingDevice()
    model = looped(negated, float32(N))
    x = np.ones(1000, np.float32)
    with crosschip.compile(model, [device], cache=False) as compiled:
        y = compiled.run({"x": x, "n": np.array(5)})["y"]
        (program,) = device.programs
        assert len(program.calls) == 5
        assert program.calls[0][0][0] is x
        for (_, made), (given, _) in zip(program.calls, program.calls[1:], strict=False):
            assert given[0] is made[0]
        assert y is program.calls[-1][1][0]
    assert program.closed


def test_constants_are_handed_on_in_c_order() -> None:
    """Folded constants may repeat one element in memory, which not every engine reads."""
    device = RecordingDevice()
    b = Builder("outer")
    start = b.constant(np.broadcast_to(np.float32(2), (2,)))
    made = b.insert(Loop.of("loop", b.input("n", COUNT), None, [start], [], body_of(negated, PAIR)))
    b.output("y", made[0])
    with crosschip.compile(b.build(), [device], cache=False) as compiled:
        y = compiled.run({"n": np.array(1)})["y"]
    (call,) = device.programs[0].calls
    assert call[0][0].flags.c_contiguous
    np.testing.assert_array_equal(y, [-2, -2])


def test_what_comes_out_is_the_callers_own() -> None:
    with crosschip.compile(looped(negated), "reference", cache=False) as compiled:
        y = compiled.run({"x": ONES, "n": np.array(0)})["y"]
    np.testing.assert_array_equal(y, ONES)
    assert not np.shares_memory(y, ONES)


def test_a_body_is_placed_on_several_devices() -> None:
    first, second = RecordingDevice(name="one", declines=("EXP",)), RecordingDevice(name="two")
    with crosschip.compile(looped(mixed), [first, second], cache=False) as compiled:
        (loop,) = compiled.placement.decisions
        assert loop.device == "runtime"
        assert [d.device for d in loop.bodies[0].decisions] == ["one", "two", "one"]
        assert compiled.placement.summary().startswith(
            "4 operations in 4 segments: one runs 2, runtime runs 1, two runs 1"
        )
        y = compiled.run({"x": ONES, "n": np.array(2)})["y"]
    once = -np.exp(-ONES)
    expected = -np.exp(-once)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_what_fails_to_compile_in_a_body_goes_elsewhere() -> None:
    first, second = RecordingDevice(name="one", fails=("EXP",)), RecordingDevice(name="two")
    with crosschip.compile(looped(mixed), [first, second], cache=False) as compiled:
        assert {d.device for d in compiled.placement.all_decisions()} >= {"runtime", "two"}
        y = compiled.run({"x": ONES, "n": np.array(1)})["y"]
    np.testing.assert_allclose(y, -np.exp(-ONES), rtol=1e-6)


@pytest.mark.parametrize(
    ("declines", "whole", "expected"),
    [((), (False, True), "runtime"), (("EXP",), (False, True), "two"), ((), (True, False), "one")],
)
def test_who_takes_control_flow_whole(
    declines: Sequence[str], whole: tuple[bool, bool], expected: str
) -> None:
    """A device that has it, unless those before it run all of its bodies."""
    one = RecordingDevice(name="one", declines=declines, whole=whole[0])
    two = RecordingDevice(name="two", whole=whole[1])
    placement = crosschip.explain(looped(mixed), [one, two])
    assert [decision.device for decision in placement.decisions] == [expected]


def test_what_no_device_runs_in_a_body_is_listed() -> None:
    device = RecordingDevice(declines=("EXP",))
    with pytest.raises(UnsupportedError, match=r"LOOP: body.*(\n.*)*EXP: not implemented"):
        crosschip.compile(looped(mixed), [device], cache=False)


def test_a_loop_without_end_is_interrupted() -> None:
    class Stopping(RecordingDevice):
        def compile(self, model: Model, options: Options) -> Program:
            program = super().compile(model, options)
            assert isinstance(program, Recording)
            program.interrupt_at = 7
            return program

    device = Stopping()
    with crosschip.compile(looped(negated, endless=True), [device], cache=False) as compiled:
        with pytest.raises(KeyboardInterrupt):
            compiled.run({"x": ONES})
        assert 7 <= len(device.programs[0].calls) < 1000


@pytest.mark.parametrize("devices", DEVICES)
def test_runs_at_once_do_not_meet(devices: str) -> None:
    def doubled(b: Builder, x: Operand) -> Operand:
        return b.add(Add, x, x)

    model = looped(doubled)
    with crosschip.compile(model, devices, cache=False) as compiled:

        def run(number: int) -> bool:
            inputs = {"x": ONES * number, "n": np.array(number % 7)}
            return bool((compiled.run(inputs)["y"] == ONES * number * 2 ** (number % 7)).all())

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(run, range(64)))


def test_bodies_come_from_the_cache(tmp_path: Path) -> None:
    for word in ("miss", "hit"):
        with crosschip.compile(looped(mixed), "reference", cache=tmp_path) as compiled:
            assert compiled.report.cache == word
            compiled.run({"x": ONES, "n": np.array(1)})


def test_conditions_of_several_elements_are_refused_when_they_come() -> None:
    b = Builder("outer")
    condition = b.input("c", TensorType(CONDITION.element_type, (N,)))
    inner = Builder("inner")
    inner.output("y", inner.add(Neg, inner.input("x", float32(2))))
    other = Builder("other")
    other.output("y", other.add(Exp, other.input("x", float32(2))))
    made = If.of("if", condition, [b.input("x", float32(2))], [inner.build(), other.build()])
    b.output("y", b.insert(made)[0])
    with crosschip.compile(b.build(), "reference", cache=False) as compiled:
        compiled.run({"c": np.array([True]), "x": ONES})
        with pytest.raises(DeviceError, match=r"runtime: IF 'if': the condition has 2 elements"):
            compiled.run({"c": np.array([True, False]), "x": ONES})


def test_what_is_scanned_must_be_of_one_length() -> None:
    inner = Builder("inner")
    parts = [inner.input(name, float32()) for name in "pq"]
    inner.output("y", inner.add(Mul, *parts))
    b = Builder("outer")
    scanned = [b.input("p", float32(N)), b.input("q", float32(symbol("M")))]
    b.output("y", b.insert(Scan.of("scan", [], scanned, [], inner.build()))[0])
    with crosschip.compile(b.build(), "reference", cache=False) as compiled:
        found = compiled.run({"p": ONES, "q": ONES * 3})["y"]
        np.testing.assert_array_equal(found, ONES * 3)
        with pytest.raises(
            DeviceError, match=r"SCAN 'scan': the scanned inputs have different sizes: \[1, 2\]"
        ):
            compiled.run({"p": ONES, "q": ONES[:1]})


@pytest.mark.parametrize("devices", DEVICES)
def test_a_loop_goes_on_as_its_body_says(devices: str) -> None:
    def below(b: Builder, x: Operand) -> Operand:
        return b.add(Less, b.add(ReduceSum, x, (0,), keepdim=False), np.float32(10))

    def doubled(b: Builder, x: Operand) -> Operand:
        return b.add(Add, x, x)

    b = Builder("outer")
    loop = Loop.of(
        "loop", None, None, [b.input("x", float32(2))], [], body_of(doubled, float32(2), below)
    )
    b.output("y", b.insert(loop)[0])
    with crosschip.compile(b.build(), devices, cache=False) as compiled:
        np.testing.assert_array_equal(compiled.run({"x": ONES})["y"], ONES * 8)


def test_no_device_can_have_the_name_of_the_runtime() -> None:
    with pytest.raises(InputError, match="no device can be called 'runtime'"):
        crosschip.compile(looped(negated), [RecordingDevice(name="runtime")], cache=False)


def test_drawings_name_who_runs_it() -> None:
    placement = crosschip.explain(looped(negated), [ReferenceDevice()])
    groups = {o: s.device for s in placement.segments for o in s.model.operations}
    assert "runtime" in to_dot(placement.model, groups)
    drawn = to_svg(placement.model, Labels(groups))
    assert "LOOP" in drawn
    assert "runtime: 1 operation" in drawn


def test_shapes_that_are_given_reach_bodies() -> None:
    model = looped(negated, float32(N))
    with crosschip.compile(model, "reference", shapes={"x": (3,)}, cache=False) as compiled:
        assert compiled.outputs["y"].type.shape == (3,)
        compiled.run({"x": np.ones(3, np.float32), "n": np.array(2)})
