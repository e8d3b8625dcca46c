"""Requests that nobody waits for any more: they go no further than the segment they are in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from typing import Any

import numpy as np
import pytest
from tests.modelling import DelegatingDevice, chain, float32
from tests.runtime.test_buffers import Remote
from tests.runtime.test_control import COUNT, body_of, looped, mixed, negated

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Options, Program, Support
from crosschip.ir import (
    Array,
    Builder,
    ControlFlow,
    DeadlineError,
    If,
    Loop,
    Model,
    Operand,
    Operation,
    Scan,
    symbol,
)
from crosschip.ir.loops import CONDITION
from crosschip.ops.standard.unary import Exp, Neg
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.requests import Request

LONG = 30.0
"""Seconds that no test takes."""

X = np.full(2, 0.5, np.float32)
OPEN = float32(symbol("N"))


class Counted(DelegatingDevice):
    """Counts the runs of its programs, which wait in one of them until they are let go on.

    Attributes:
        runs: how many have begun.
        holds_in: the run that waits; none if 0.
        entered: set when that has begun.
        gate: lets it go on.
    """

    def __init__(self, name: str = "test", holds_in: int = 0, **more: Any) -> None:
        super().__init__(name=name, **more)
        self.runs = 0
        self.holds_in = holds_in
        self.entered = threading.Event()
        self.gate = threading.Event()

    def supports(self, operation: Operation, options: Options) -> Support:
        if isinstance(operation, ControlFlow):
            return Support.no(operation, "", "is left to the runtime")
        return super().supports(operation, options)

    def compile(self, model: Model, options: Options) -> Program:
        super().compile(model, options)
        return CountedProgram(self, model)


class CountedProgram(ReferenceProgram):
    def __init__(self, device: Counted, model: Model) -> None:
        super().__init__(model)
        self.device = device

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self.device.runs += 1
        if self.device.runs == self.device.holds_in:
            self.device.entered.set()
            assert self.device.gate.wait(LONG)
        return super().run(inputs)


def cancelled(compiled: CompiledModel, first: Counted, **inputs: Array) -> None:
    """Cancel a request while the device holds it up, then let it go on until it ends."""
    request = compiled.submit(inputs)
    assert first.entered.wait(LONG)
    assert request.cancel()
    first.gate.set()
    compiled.close()


def test_what_is_cancelled_does_not_reach_the_next_segment() -> None:
    first, second = Counted("first", holds_in=1), Counted("second")
    model = chain(Neg, Exp, Neg)
    with crosschip.compile(
        model,
        [first, second],
        placement=crosschip.PlacementOptions(pin={"EXP": "second"}),
        cache=False,
    ) as compiled:
        cancelled(compiled, first, x0=X)
    assert (first.runs, second.runs) == (1, 0)


def test_what_is_late_does_not_reach_the_next_segment() -> None:
    first, second = Counted("first", holds_in=1), Counted("second")
    model = chain(Neg, Exp, Neg)
    with crosschip.compile(
        model,
        [first, second],
        placement=crosschip.PlacementOptions(pin={"EXP": "second"}),
        cache=False,
    ) as compiled:
        with pytest.raises(DeadlineError, match="its run ends with the segment that it is in"):
            compiled.run({"x0": X}, timeout=0.05)
        first.gate.set()
        (made,) = compiled.run({"x0": X}).values()
        np.testing.assert_allclose(made, -np.exp(-X), rtol=1e-6)
        assert compiled.statistics().calls == 1
    assert (first.runs, second.runs) == (3, 1)


@pytest.mark.parametrize("kept", [False, True])
def test_places_for_outputs_change_nothing(kept: bool) -> None:
    first, second = Counted("first", holds_in=1), Counted("second")
    place = np.zeros(2, np.float32)
    arguments: dict[str, Any] = {"keep": ["y0"]} if kept else {"outputs": {"y0": place}}
    model, pin = chain(Neg, Exp), {"EXP": "second"}
    with crosschip.compile(
        model, [first, second], placement=crosschip.PlacementOptions(pin=pin), cache=False
    ) as compiled:
        request = compiled.submit({"x0": X}, **arguments)
        assert first.entered.wait(LONG)
        assert request.cancel()
        first.gate.set()
    assert (first.runs, second.runs) == (1, 0)
    assert not place.any()


def test_a_device_that_takes_on_work_gets_none_any_more() -> None:
    """What it has taken on before is waited for."""
    remote, held = Remote(name="remote"), Counted("held", holds_in=1)
    model, pin = chain(Neg, Exp, Neg), {"EXP": "held"}
    with crosschip.compile(
        model, [remote, held], placement=crosschip.PlacementOptions(pin=pin), cache=False
    ) as compiled:
        assert [segment.device for segment in compiled.placement.segments] == [
            *("remote", "held", "remote")
        ]
        before = len(remote.copied)
        cancelled(compiled, held, x0=X)
        assert remote.copied[before:] == ["to the device", "to the host"]


def test_an_endless_loop_ends_with_its_deadline() -> None:
    compiled = crosschip.compile(looped(negated, endless=True), "reference", cache=False)
    with pytest.raises(DeadlineError):
        compiled.run({"x": X}, timeout=0.05)
    compiled.close()  # waits for the run


def nested(b: Builder, x: Operand) -> Operand:
    return b.insert(Loop.of("inner", None, None, [x], [], body_of(negated, OPEN)))[0]


def branching(b: Builder, x: Operand) -> Operand:
    """One of two branches, both on two devices."""
    bodies = []
    for name in ("then", "else"):
        branch = Builder(name)
        branch.output("y", mixed(branch, branch.input("x", OPEN)))
        bodies.append(branch.build())
    return b.insert(If.of("if", b.input("c", CONDITION), [x], bodies))[0]


def scanning(b: Builder, x: Operand) -> Operand:
    body = Builder("body")
    body.output("y", body.add(Neg, body.input("part", float32())))
    return b.insert(Scan.of("scan", [], [x], [], body.build()))[0]


def counting(b: Builder, x: Operand) -> Operand:
    count = b.input("n", COUNT)
    return b.insert(Loop.of("loop", count, None, [x], [], body_of(negated, OPEN)))[0]


@pytest.mark.parametrize(
    ("make", "inputs", "holds_in"),
    [
        (branching, {"c": np.array(True)}, 1),
        (scanning, {}, 1),
        (counting, {"n": np.array(5)}, 3),
        (nested, {}, 7),
    ],
)
@pytest.mark.parametrize("in_place", [False, True])
def test_control_flow_ends_between_two_runs_of_its_bodies(
    make: Callable[[Builder, Operand], Operand],
    inputs: dict[str, Array],
    holds_in: int,
    in_place: bool,
) -> None:
    b = Builder("outer")
    b.output("y", make(b, b.input("x", OPEN)))
    first, second = Counted("first", holds_in, declines=["EXP"]), Counted("second")
    with crosschip.compile(b.build(), [first, second], cache=False) as compiled:
        places = {"y": np.zeros(2, np.float32)} if in_place else None
        request = compiled.submit({"x": X, **inputs}, places)
        assert first.entered.wait(LONG)
        assert request.cancel()
        first.gate.set()
    assert (first.runs, second.runs) == (holds_in, 0)


def test_whoever_runs_it_while_waiting_stops_too() -> None:
    first, second = Counted("first", holds_in=1), Counted("second")
    ends: list[str] = []

    def wait(request: Request) -> None:
        try:
            request.result()
        except CancelledError:
            ends.append("cancelled")

    model, pin = chain(Neg, Exp), {"EXP": "second"}
    with crosschip.compile(
        model, [first, second], placement=crosschip.PlacementOptions(pin=pin), cache=False
    ) as compiled:
        compiled._requests._open_queue()._start_worker = lambda: None  # type: ignore[method-assign]
        request = compiled.submit({"x0": X})
        waiting = threading.Thread(target=wait, args=(request,))
        waiting.start()
        assert first.entered.wait(LONG)
        assert request.cancel()
        first.gate.set()
        waiting.join(LONG)
    assert (ends, second.runs) == (["cancelled"], 0)


def test_a_task_that_gives_up_stops_its_run() -> None:
    first, second = Counted("first", holds_in=1), Counted("second")

    async def give_up() -> None:
        task = asyncio.ensure_future(_awaiting(compiled.submit({"x0": X})))
        await asyncio.to_thread(first.entered.wait, LONG)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        first.gate.set()

    model, pin = chain(Neg, Exp), {"EXP": "second"}
    with crosschip.compile(
        model, [first, second], placement=crosschip.PlacementOptions(pin=pin), cache=False
    ) as compiled:
        asyncio.run(give_up())
    assert (first.runs, second.runs) == (1, 0)


async def _awaiting(request: Request) -> None:
    await request
