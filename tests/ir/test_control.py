"""Control flow: rules, types and text form."""

from __future__ import annotations

import numpy as np
import pytest
from tests.modelling import float32

from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    If,
    Loop,
    Model,
    ModelError,
    Operand,
    Scan,
    TensorType,
    symbol,
)
from crosschip.ir.bodies import retype, walk_operations
from crosschip.ir.dimension import is_unknown
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.ops.definition.serialization import from_bytes, to_bytes
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.unary import Neg

N = symbol("N")
BOOL = ElementType.BOOL


def body(*types: TensorType, grows: bool = False) -> Model:
    """Return a loop body with one state and one capture: it adds or concatenates them."""
    b = Builder("body")
    b.input("i", ITERATION)
    going = b.input("going", CONDITION)
    state, capture = b.input("x", types[0]), b.input("w", types[1])
    made = b.add(Concat, parts=[state, capture], axis=0) if grows else b.add(Add, state, capture)
    b.output("goes_on", going)
    b.output("next", made)
    b.output("seen", b.add(Neg, capture))
    return b.build()


def looped(state: TensorType, capture: TensorType, *, grows: bool = False, trips: int = 3) -> Model:
    b = Builder("outer")
    x, w = b.input("x", state), b.input("w", capture)
    count = b.constant(np.array(trips))
    inner = body(state, capture, grows=grows)
    last, seen = b.insert(Loop.of("loop", count, None, [x], [w], inner), ["last", "seen"])
    b.output("last", last)
    b.output("seen", seen)
    return b.build()


def test_text_shows_bodies_below_their_operation() -> None:
    model = looped(float32(2), float32(2))
    model.verify()
    assert (
        str(model)
        == """\
model outer
  input x: float32[2]
  input w: float32[2]
  %last, %seen = LOOP(trip_count=3, x=%x, w=%w, states=1): float32[2], float32[3, 2]
    body
      input i: int64[]
      input going: bool[]
      input x: float32[2]
      input w: float32[2]
      %add_0 = ADD(input0=%x, input1=%w): float32[2]
      %neg_0 = NEG(input=%w): float32[2]
      output goes_on = %going
      output next = %add_0
      output seen = %neg_0
  output last = %last
  output seen = %seen"""
    )


def test_a_state_that_grows_has_an_open_size() -> None:
    model = looped(float32(2), float32(2), grows=True)
    model.verify()
    (size,) = model.outputs["last"].type.shape or ()
    assert is_unknown(size)
    assert model.outputs["seen"].type.shape == (3, 2)


def test_sizes_that_stay_keep_their_names() -> None:
    model = looped(float32(N, 2), float32(1, 2))
    assert model.outputs["last"].type.shape == (N, 2)


def test_new_types_of_inputs_reach_bodies_and_back() -> None:
    model = looped(float32(N, 2), float32(N, 2))
    fixed = retype(model, [float32(5, 2), float32(5, 2)])
    fixed.verify()
    assert fixed.outputs["last"].type.shape == (5, 2)
    assert fixed.outputs["seen"].type.shape == (3, 5, 2)
    (loop,) = fixed.operations
    assert loop.bodies[0].inputs["x"].type.shape == (5, 2)


def test_saving_keeps_bodies_and_shares_arrays() -> None:
    large = np.arange(100, dtype=np.float32)
    b = Builder("outer")
    condition = b.input("c", TensorType(BOOL, ()))
    bodies = []
    for name in ("then", "else"):
        inner = Builder(name)
        x = inner.input("x", float32(100))
        kept = inner.constant(large, "kept")
        inner.output("y", inner.add(Add, x, inner.add(Add, kept, kept)))
        bodies.append(inner.build())
    x = b.input("x", float32(100))
    b.output("y", b.insert(If.of("if", condition, [x], bodies))[0])
    model = b.build()
    saved = to_bytes(model)
    assert len(saved) < 2 * large.nbytes + 4096 < 4 * large.nbytes + 4096
    assert saved.count(large.tobytes()) == 1
    again = from_bytes(saved)
    again.verify()
    assert str(again) == str(model)
    assert sum(1 for _ in walk_operations(again)) == 5


def test_a_scan_has_the_length_of_what_it_scans() -> None:
    inner = Builder("body")
    state, part = inner.input("s", float32(2)), inner.input("p", float32(2))
    inner.output("next", inner.add(Add, state, part))
    inner.output("made", inner.add(Neg, part))
    b = Builder("outer")
    first, scanned = b.input("s", float32(2)), b.input("x", float32(2, N))
    scan = Scan.of("scan", [first], [scanned], [], inner.build(), input_axes=[1], output_axes=[-1])
    last, made = b.insert(scan)
    assert last.type.shape == (2,)
    assert made.type.shape == (2, N)


def branches(then: Array, other: Array, condition: TensorType = CONDITION) -> Operand:
    b = Builder("outer")
    bodies = []
    for value in (then, other):
        inner = Builder("inner")
        inner.output("y", inner.constant(value, "k"))
        bodies.append(inner.build())
    return b.insert(If.of("if", b.input("c", condition), [], bodies))[0]


def test_what_branches_have_in_common_is_known() -> None:
    zeros = np.zeros
    assert branches(zeros((2, 3)), zeros((2, 3))).type.shape == (2, 3)
    first, second = branches(zeros((2, 3)), zeros((2, 4))).type.shape or ()
    assert first == 2
    assert is_unknown(second)
    assert branches(zeros((2, 3)), zeros(6)).type.shape is None


def with_one_state(made: TensorType, *, outputs: int = 2) -> None:
    inner = Builder("inner")
    inner.input("i", ITERATION)
    going = inner.input("going", CONDITION)
    inner.input("s", float32(2))
    inner.output("goes_on", going)
    if outputs > 1:
        value = np.zeros(made.static_shape or (), made.element_type.dtype)
        inner.output("next", inner.constant(value, "k"))
    b = Builder("outer")
    b.insert(Loop.of("loop", None, None, [b.input("x", float32(2))], [], inner.build()))


def test_broken_rules_are_named() -> None:
    one = np.zeros(1, np.float32)
    with pytest.raises(ModelError, match=r"IF\.y: is float32\[1\] one time and int64\[1\]"):
        branches(one, np.zeros(1, np.int64))
    with pytest.raises(ModelError, match=r"IF\.condition: is bool\[2\], but must be one bool"):
        branches(one, one, TensorType(BOOL, (2,)))
    with pytest.raises(ModelError, match=r"IF\.condition: is float32\[\], but must be one bool"):
        branches(one, one, float32())
    with pytest.raises(ModelError, match=r"LOOP\.s: is float32\[2\] one time and int64\[2\]"):
        with_one_state(TensorType(ElementType.INT64, (2,)))
    with pytest.raises(ModelError, match=r"LOOP\.body: makes 1 values, but must make at least 2"):
        with_one_state(float32(2), outputs=1)
    x = Builder("outer").input("x", float32(2))
    with pytest.raises(ModelError, match=r"body: takes 4 values, but gets 3"):
        Loop.of("loop", None, None, [x], [], body(float32(2), float32(2)))
    with pytest.raises(ModelError, match=r"IF: holds then_body and else_body"):
        If("if", (), bodies=[])


def test_verification_looks_into_bodies() -> None:
    inner = Builder("inner")
    stray = Operand("stray", float32(2))
    inner.output("y", stray)
    broken = inner.build()
    b = Builder("outer")
    b.output("y", b.insert(If.of("if", b.input("c", CONDITION), [], [broken, broken]))[0])
    with pytest.raises(ModelError, match="'if': model output 'y' is 'stray', which nothing makes"):
        b.build().verify()


def test_state_types_settle_in_loops_in_loops() -> None:
    """The inner loop's types follow the outer loop's, which widen twice."""
    inner = body(float32(2), float32(2), grows=True)
    b = Builder("middle")
    b.input("i", ITERATION)
    going = b.input("going", CONDITION)
    x, w = b.input("x", float32(2)), b.input("w", float32(2))
    count = b.constant(np.array(2))
    last, _ = b.insert(Loop.of("inner", count, None, [x], [w], inner))
    b.output("goes_on", going)
    b.output("next", last)
    b.output("seen", w)
    outer = Builder("outer")
    x, w = outer.input("x", float32(2)), outer.input("w", float32(2))
    loop = Loop.of("outer", outer.constant(np.array(3)), None, [x], [w], b.build())
    last, seen = outer.insert(loop)
    outer.output("last", last)
    outer.output("seen", seen)
    model = outer.build()
    model.verify()
    assert seen.type.shape == (3, 2)
    assert last.type.shape is not None
    assert is_unknown(last.type.shape[0])


def within(model: Model, other: Model, level: int) -> Model:
    """Return a model that consists of one `If` with two models as branches."""
    b = Builder(f"level{level}")
    condition, x = b.input("c", TensorType(BOOL, ())), b.input("x", float32(2))
    branches = If(f"if_{level}", (condition, condition, x), bodies=[model, other])
    b.output("y", b.insert(branches, ["y"])[0])
    return b.build()


def test_control_flow_is_nested_to_a_depth() -> None:
    """A nesting depth of 64 does not overflow the stack; a deeper one is rejected."""
    b = Builder("leaf")
    b.input("c", TensorType(BOOL, ()))
    b.output("y", b.add(Neg, b.input("x", float32(2))))
    model = leaf = b.build()
    for level in range(64):
        model = within(model, leaf, level)
    assert model.depth == 64
    model.verify()
    assert from_bytes(to_bytes(model)).depth == 64
    assert len([*walk_operations(model)]) == 2 * 64 + 1
    with pytest.raises(ModelError, match=r"IF 'if_64': control flow is nested over 64 deep"):
        within(model, leaf, 64)
