"""Control flow that is resolved or simplified at compile time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32

import crosschip
from crosschip.hal import Options
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    If,
    InputError,
    Loop,
    Model,
    Operand,
    Scan,
    TensorType,
    symbol,
)
from crosschip.ir.bodies import walk_operations
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ops.standard.activation import Relu, Tanh
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.comparison import Greater, Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Reshape, Squeeze
from crosschip.ops.standard.logical import Where
from crosschip.ops.standard.reduction import ReduceSum
from crosschip.ops.standard.unary import Exp, Neg
from crosschip.passes import FoldConstants, ResolveControlFlow, Specialize, simplify
from crosschip.runtime.compile.segments import Compilation, build_segments
from crosschip.runtime.copies import Copies
from crosschip.runtime.discovery import open_device
from crosschip.runtime.execution import Plan
from crosschip.runtime.placement.placement import place
from crosschip.runtime.placement.queries import device_query

X = np.array([1, -2, 3], np.float32)
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
OPERATORS = (Neg, Exp, Tanh)

Inner = Callable[[Builder, Operand], Operand]


def computed(model: Model, **inputs: Array) -> dict[str, Array]:
    """Return the model's outputs without any pass."""
    options = Options()
    with open_device("reference") as device:
        placement = place(model, {"reference": device_query(device, options)})
        built = build_segments(placement, Compilation({"reference": device}, options).make)
        plan = Plan(placement, [one.program for one in built], Copies())
        made = plan.execute([inputs[name] for name in model.inputs])
    return dict(zip(model.outputs, made, strict=True))


def branch(make: Inner, name: str) -> Model:
    b = Builder(name)
    b.output("y", make(b, b.input("x", float32(3))))
    return b.build()


def chosen(condition: object) -> Model:
    """Return a branch; the condition is a constant, or an input if it is `None`."""
    b = Builder("outer")
    x = b.input("x", float32(3))
    c = b.input("c", CONDITION) if condition is None else b.constant(np.array(condition))
    bodies = [
        branch(lambda b, x: b.add(Neg, x), "then"),
        branch(lambda b, x: b.add(Exp, x), "else"),
    ]
    b.output("y", b.insert(If.of("if", c, [x], bodies))[0])
    return b.build()


def looped(trips: int | None, *, limit: float | None = None, collects: bool = True) -> Model:
    """Return a loop that doubles `x` n times (an input if `None`), or until it exceeds a limit."""
    inner = Builder("body")
    number, going = inner.input("i", ITERATION), inner.input("going", CONDITION)
    state = inner.input("x", float32(3))
    same, capture = inner.input("same", float32(3)), inner.input("w", float32(3))
    made = inner.add(Add, inner.add(Add, state, state), inner.add(Mul, same, capture))
    if limit is None:
        inner.output("go", going)
    else:
        as_float = inner.add(Cast, number, float32().element_type)
        inner.output("go", inner.add(Less, as_float, np.float32(limit)))
    inner.output("next", made)
    inner.output("same", same)
    if collects:
        inner.output("seen", inner.add(Neg, state))
    b = Builder("outer")
    x = b.input("x", float32(3))
    if trips is None:
        count: Operand | None = b.input("n", ITERATION)
    else:
        count = b.constant(np.array(trips)) if limit is None else None
    w = b.constant(np.full(3, 2, np.float32), "w")
    unused = b.input("v", float32(3))
    loop = Loop.of("loop", count, None, [x, unused], [w], inner.build())
    outputs = b.insert(loop)
    b.output("y", outputs[0])
    b.output("same", outputs[1])
    if collects:
        b.output("seen", outputs[2])
    return b.build()


def bodies_in(model: Model) -> int:
    return sum(len(operation.bodies) for operation in walk_operations(model))


@pytest.mark.parametrize(("condition", "left"), [(True, ["NEG"]), (False, ["EXP"])])
def test_a_known_branch_is_chosen(condition: bool, left: list[str]) -> None:
    model = chosen(condition)
    simple = simplify(model)
    simple.verify()
    assert [operation.type for operation in simple.operations] == left
    np.testing.assert_array_equal(computed(simple, x=X)["y"], computed(model, x=X)["y"])


def test_a_branch_that_is_not_known_stays() -> None:
    assert bodies_in(simplify(chosen(None))) == 2


@pytest.mark.parametrize("trips", [0, 1, 5, 64])
def test_a_short_loop_is_unrolled(trips: int) -> None:
    model = looped(trips)
    simple = simplify(model)
    simple.verify()
    assert not bodies_in(simple)
    found, expected = computed(simple, x=X, v=X), computed(model, x=X, v=X)
    assert list(found) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_a_loop_whose_condition_folds_is_unrolled() -> None:
    model = looped(0, limit=3)
    simple = simplify(model)
    assert not bodies_in(simple)
    np.testing.assert_array_equal(
        computed(simple, x=X, v=X)["seen"], computed(model, x=X, v=X)["seen"], strict=True
    )
    assert computed(simple, x=X, v=X)["seen"].shape == (4, 3)


def test_a_long_loop_stays() -> None:
    assert bodies_in(simplify(looped(65))) == 1


def test_loops_that_would_make_too_much_stay() -> None:
    """32 loops in a loop of 64 trips: the outer one stays, the inner ones are unrolled."""
    inner = Builder("body")
    inner.input("i", ITERATION)
    going, state = inner.input("going", CONDITION), inner.input("x", float32(3))
    value = state
    for number in range(32):
        deep = Builder("deep")
        deep.input("i", ITERATION)
        on, x = deep.input("going", CONDITION), deep.input("x", float32(3))
        deep.output("go", on)
        deep.output("next", deep.add(Tanh, x))
        count = inner.constant(np.array(4))
        loop = Loop.of(f"deep{number}", count, None, [value], [], deep.build())
        value = inner.insert(loop)[0]
    inner.output("go", going)
    inner.output("next", value)
    b = Builder("outer")
    x = b.input("x", float32(3))
    loop = Loop.of("outer", b.constant(np.array(64)), None, [x], [], inner.build())
    b.output("y", b.insert(loop)[0])
    simple = simplify(b.build())
    simple.verify()
    assert bodies_in(simple) == 1
    assert len(simple.operations[0].bodies[0].operations) == 32 * 4


def test_what_never_changes_is_captured_and_constants_are_the_bodies_own() -> None:
    model = looped(None)
    simple = simplify(model)
    simple.verify()
    (loop,) = (operation for operation in simple.operations if operation.bodies)
    assert isinstance(loop, Loop)
    assert loop.states == 1
    assert [operand.name for operand in loop.captures] == ["v"]
    assert simple.outputs["same"] is simple.inputs["v"]
    inputs = {"x": X, "v": -X, "n": np.array(3)}
    expected = computed(model, **inputs)
    for name, array in computed(simple, **inputs).items():
        np.testing.assert_array_equal(array, expected[name], strict=True)


def test_what_nobody_reads_is_not_collected() -> None:
    model = looped(None)
    outputs = {name: o for name, o in model.outputs.items() if name != "seen"}
    simple = simplify(Model(model.name, model.inputs, model.operations, outputs))
    (loop,) = (operation for operation in simple.operations if operation.bodies)
    assert len(loop.outputs) == 1
    assert "NEG" not in [operation.type for operation in loop.bodies[0].operations]


def test_a_scan_of_known_length_is_unrolled() -> None:
    inner = Builder("body")
    state, part = inner.input("s", float32(3)), inner.input("p", float32(3))
    inner.output("next", inner.add(Add, state, part))
    inner.output("made", inner.add(Mul, state, part))
    b = Builder("outer")
    given = b.input("s", float32(3)), b.input("x", float32(2, 3))
    scan = Scan.of(
        "scan",
        [given[0]],
        [given[1]],
        [],
        inner.build(),
        input_reversed=[True],
        output_axes=[-1],
        output_reversed=[True],
    )
    outputs = b.insert(scan)
    b.output("y", outputs[0])
    b.output("z", outputs[1])
    model = b.build()
    simple = simplify(model)
    simple.verify()
    assert not bodies_in(simple)
    expected = computed(model, s=X, x=ROWS)
    for name, array in computed(simple, s=X, x=ROWS).items():
        np.testing.assert_array_equal(array, expected[name], strict=True)


FIVE = np.arange(5, dtype=np.float32)

GUARDED: dict[str, Callable[[Builder, Operand, Operand], Operand]] = {
    "a size that was open": lambda b, x, _: b.add(Squeeze, x, (0,)),
    "a constant that becomes the body's own": lambda b, x, sizes: b.add(Reshape, FIVE, sizes),
}


def guarded(make: Callable[[Builder, Operand, Operand], Operand]) -> Model:
    """Return a branch on `float32[N, 3]` that some N cannot run, or one that all can."""
    type_ = float32(symbol("N"), 3)
    bodies = []
    for each in (make, lambda b, x, _: b.add(Neg, x)):
        body = Builder("body")
        given = body.input("x", type_), body.input("sizes", TensorType(ElementType.INT64, (2,)))
        body.output("y", each(body, *given))
        bodies.append(body.build())
    b = Builder("outer")
    x, c = b.input("x", type_), b.input("c", CONDITION)
    b.output("y", b.insert(If.of("if", c, [x, b.add(ShapeOf, x)], bodies))[0])
    return b.build()


@pytest.mark.parametrize("make", GUARDED.values(), ids=GUARDED)
@pytest.mark.parametrize("devices", ["reference", "onnxruntime,reference", "openvino,reference"])
def test_a_branch_that_sizes_rule_out_is_an_error_only_if_it_runs(
    make: Callable[[Builder, Operand, Operand], Operand], devices: str
) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    model = guarded(make)
    shapes = {"x": x.shape}
    with crosschip.compile(model, devices.split(","), shapes=shapes, cache=False) as compiled:
        np.testing.assert_array_equal(compiled(x, np.array(False)), -x)
        with pytest.raises(crosschip.Error):
            compiled(x, np.array(True))


def test_sizes_that_a_body_reads_stay_known_as_they_become_constants() -> None:
    model = guarded(lambda b, x, sizes: b.add(Reshape, b.add(Exp, x), sizes))
    fixed = Specialize({"x": (4, 3)})(model)
    folded = FoldConstants()(fixed)
    (constant,) = folded.constants
    assert constant in folded.operations[0].inputs
    assert folded.outputs["y"].type == fixed.outputs["y"].type == float32(4, 3)


def test_a_branch_of_which_no_body_can_run_is_refused() -> None:
    b = Builder("outer")
    x, c = b.input("x", float32(symbol("N"), 3)), b.input("c", CONDITION)
    bodies = []
    for name in ("then", "else"):
        body = Builder(name)
        body.output("y", body.add(Squeeze, body.input("x", x.type), (0,)))
        bodies.append(body.build())
    b.output("y", b.insert(If.of("if", c, [x], bodies))[0])
    with pytest.raises(InputError, match=r"SQUEEZE\.axes: axis 0 has size 4, not 1"):
        Specialize({"x": (4, 3)})(b.build())


def test_models_without_control_flow_are_left_as_they_are() -> None:
    b = Builder("plain")
    b.output("y", b.add(Neg, b.input("x", float32(3))))
    model = b.build()
    assert ResolveControlFlow()(model) is model


@st.composite
def programs(draw: st.DrawFn, depth: int = 2) -> Inner:
    """Draw functions that build float32[3] operands with control flow."""
    steps = [draw(steps_of(depth)) for _ in range(draw(st.integers(1, 3)))]

    def build(b: Builder, x: Operand) -> Operand:
        for step in steps:
            x = step(b, x)
        return b.add(Tanh, x)

    return build


@st.composite
def steps_of(draw: st.DrawFn, depth: int) -> Inner:
    kind = draw(st.sampled_from(["plain", "if", "loop"] if depth else ["plain"]))
    if kind == "plain":
        operator = draw(st.sampled_from(OPERATORS))
        return lambda b, x: b.add(operator, x)
    if kind == "if":
        inner = [draw(programs(depth - 1)) for _ in range(2)]
        known = draw(st.sampled_from([True, False, None]))

        def branches(b: Builder, x: Operand) -> Operand:
            if known is None:
                total = b.add(ReduceSum, x, (0,), keepdim=False)
                condition = b.add(Less, total, np.float32(0))
            else:
                condition = b.constant(np.array(known))
            bodies = [branch(make, role) for make, role in zip(inner, ("t", "e"), strict=True)]
            return b.insert(If.of(b.unique_name("if"), condition, [x], bodies))[0]

        return branches
    inner_step, trips = draw(programs(depth - 1)), draw(st.integers(0, 3))

    def loop(b: Builder, x: Operand) -> Operand:
        inner = Builder("body")
        inner.input("i", ITERATION)
        going, state = inner.input("going", CONDITION), inner.input("x", float32(3))
        capture = inner.input("w", float32(3))
        made = inner.add(Add, inner_step(inner, state), capture)
        inner.output("go", going)
        inner.output("next", made)
        count = b.constant(np.array(trips))
        return b.insert(Loop.of(b.unique_name("loop"), count, None, [x], [x], inner.build()))[0]

    return loop


@given(programs())
def test_simplifying_keeps_what_random_programs_compute(make: Inner) -> None:
    b = Builder("random")
    b.output("y", make(b, b.input("x", float32(3))))
    model = b.build()
    model.verify()
    simple = simplify(model)
    simple.verify()
    expected = computed(model, x=X)["y"]
    np.testing.assert_allclose(computed(simple, x=X)["y"], expected, rtol=1e-5, atol=1e-6)
    again = simplify(simple)
    assert str(again) == str(simple)


@pytest.mark.parametrize("device", ["onnxruntime"])
@given(programs())
def test_engines_compute_what_random_programs_do(device: str, make: Inner) -> None:
    b = Builder("random")
    b.output("y", make(b, b.input("x", float32(3))))
    model = b.build()
    with crosschip.compile(model, device, cache=False) as compiled:
        expected = computed(model, x=X)["y"]
        np.testing.assert_allclose(compiled.run({"x": X})["y"], expected, rtol=1e-4, atol=1e-5)


def test_what_is_refined_as_it_is_unrolled_is_what_the_next_time_reads() -> None:
    """Each inference of a comparison of dynamic sizes introduces a new unknown dimension."""
    body = Builder("body")
    state = body.input("state", TensorType(ElementType.FLOAT32, (symbol("n"), 3)))
    slice_ = body.input("slice", TensorType(ElementType.FLOAT32, (symbol("m"), 3)))
    larger = body.add(Where, body.add(Greater, slice_, state), slice_, state)
    body.output("next", larger)
    body.output("kept", body.add(Relu, larger))
    b = Builder()
    first = b.input("first", TensorType(ElementType.FLOAT32, (symbol("n"), 3)))
    steps = b.input("steps", TensorType(ElementType.FLOAT32, (4, symbol("m"), 3)))
    last, kept = b.insert(Scan.of("scan", [first], [steps], (), body.build()))
    b.output("last", last)
    b.output("kept", kept)
    unrolled = simplify(b.build())
    unrolled.verify()
    assert not any(operation.bodies for operation in unrolled.operations)
