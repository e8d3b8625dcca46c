"""ONNX's `If`, `Loop` and `Scan` whose course is not known, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import parser

import crosschip
from crosschip.importers import load
from crosschip.importers.onnx import unrolling
from crosschip.ir import ControlFlow, If, Loop, Model, ModelFileError, Scan
from crosschip.ir.bodies import walk_operations
from crosschip.ops.definition.serialization import from_bytes, to_bytes

Array = NDArray[Any]
Arrays = dict[str, Array]

HEADER = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1, "local" : 1]>'
DEVICES = (["reference"], ["openvino", "reference"], ["onnxruntime"])

X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5
ROW = np.array([1, -2, 3], np.float32)


def f32(*values: float) -> Array:
    return np.array(values, np.float32)


def imported(folder: Path, graph: str) -> tuple[Model, Path]:
    path = folder / "model.onnx"
    path.write_bytes(parser.parse_model(f"{HEADER} {graph}").SerializeToString())
    model = load(path)
    model.verify()
    return model, path


def oracle(path: Path, inputs: Mapping[str, Array]) -> Arrays:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


def expect(found: Mapping[str, Array], wanted: Mapping[str, Array]) -> None:
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


LOOP = """g (float[2, 3] x, int64 n) => (float[2, 3] y, float[N, 2, 3] all)
    <bool go = {1}, float[3] w = {1, 2, 3}> {
    a = Relu(x)
    b, all = Loop<body =
        step (int64 i, bool c, float[2, 3] s) => (bool d, float[2, 3] t, float[2, 3] u)
        { d = Identity(c)  t = Add(s, w)  u = Mul(t, x) }>(n, go, a)
    y = Neg(b)
}"""
EARLY_EXIT = """g (float[3] x, float most) => (float[3] y, int64[N] times)
    <bool go = {1}, int64 n = {9223372036854775807}> {
    y, times = Loop<body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t, int64 i2)
        { t = Add(s, s)  sum = ReduceSum<keepdims = 0>(t)  d = Less(sum, most)
          i2 = Identity(i) }>(n, go, x)
}"""
WITHOUT_LIMITS = """g (float[3] x, float most) => (float[3] y) {
    y = Loop<body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t)
        { t = Add(s, s)  sum = ReduceSum<keepdims = 0>(t)  d = Less(sum, most) }>(, , x)
}"""
GROWING = """g (float[3] x, int64 n) => (float[M] y) <bool go = {1}> {
    y = Loop<body = step (int64 i, bool c, float[K] s) => (bool d, float[L] t)
        { d = Identity(c)  t = Concat<axis = 0>(s, x) }>(n, go, x)
}"""
GAINING_AXES = """g (float[3] x, int64 n) => (float y) <bool go = {1}, int64[1] axis = {0}> {
    z = Loop<body = step (int64 i, bool c, float s) => (bool d, float t)
        { d = Identity(c)  t = Unsqueeze(s, axis) }>(n, go, x)
    y = ReduceSum<keepdims = 0>(z)
}"""
SWAPPED = """g (float[3] x, float[2] v, int64 n) => (float[A] y, float[B] z) <bool go = {1}> {
    y, z = Loop<body = step (int64 i, bool c, float[K] s, float[L] t)
        => (bool d, float[L] t2, float[K] s2)
        { d = Identity(c)  s2 = Neg(s)  t2 = Identity(t) }>(n, go, x, v)
}"""
FIBONACCI = """g (int64 n) => (int64 y, int64[N] all)
    <bool go = {1}, int64 one = {1}, int64 nil = {0}> {
    y, unused, all = Loop<body = step (int64 i, bool c, int64 a, int64 b)
        => (bool d, int64 b2, int64 s, int64 s2)
        { d = Identity(c)  b2 = Identity(b)  s = Add(a, b)  s2 = Identity(s) }>(n, go, nil, one)
}"""
SCALARS_WITH_AN_AXIS = """g (float[3] x, int64[1] n, bool[1] go) => (float[3] y, int64[N, 1] k) {
    y, k = Loop<body = step (int64[1] i, bool[1] c, float[3] s)
        => (bool[1] d, float[3] t, int64[1] j)
        { d = Identity(c)  f = Cast<to = 1>(i)  t = Add(s, f)  j = Identity(i) }>(n, go, x)
}"""
BRANCHES = """g (float[2, 3] x, bool c) => (float[M, 3] y) <float[1, 3] w = {1, 2, 3}> {
    y = If<then_branch = one () => (float[2, 3] p) { p = Add(x, w) },
           else_branch = two () => (float[4, 3] q) { q = Concat<axis = 0>(x, x) }>(c)
}"""
BRANCHES_OF_UNLIKE_RANK = """g (float[2, 3] x, bool c) => (float y) <int64[1] flat = {-1}> {
    z = If<then_branch = one () => (float[2, 3] p) { p = Neg(x) },
           else_branch = two () => (float[6] q) { q = Reshape(x, flat) }>(c)
    y = ReduceSum<keepdims = 0>(z)
}"""
BRANCHES_THAT_HAND_ON = """g (float[2, 3] x, float[2, 3] v, bool c) => (float[2, 3] y, float[3] z)
    <float[3] k = {1, 2, 3}> {
    y, z = If<then_branch = one () => (float[2, 3] p, float[3] r)
                { p = Identity(x)  r = Identity(k) },
              else_branch = two () => (float[2, 3] q, float[3] s)
                { q = Identity(v)  s = Constant<value_floats = [7.0, 8.0, 9.0]>() }>(c)
}"""
LOOP_IN_BRANCH_IN_LOOP = """g (float[3] x, int64 n, float[3] w) => (float[3] y) <bool go = {1}> {
    y = Loop<body = outer (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
        d = Identity(c)  six = Constant<value_float = 6.0>()
        sum = ReduceSum<keepdims = 0>(s)  small = Less(sum, six)
        t = If<then_branch = one () => (float[3] p) {
            p = Loop<body = inner (int64 j, bool e, float[3] a) => (bool f, float[3] b)
                { f = Identity(e)  k = Cast<to = 1>(i)  m = Mul(w, k)  b = Add(a, m) }>(n, go, s)
        }, else_branch = two () => (float[3] q) { q = Neg(s) }>(small)
    }>(n, go, x)
}"""
SCAN = """g (float[3, N] x, float[N, 2] v, float[3] s0)
    => (float[3] y, float[3, N] z, float[N, 2] u) {
    y, z, u = Scan<num_scan_inputs = 2, scan_input_axes = [1, -2], scan_input_directions = [1, 0],
        scan_output_axes = [-1, 0], scan_output_directions = [1, 0],
        body = b (float[3] s, float[3] a, float[2] c) => (float[3] t, float[3] d, float[2] e)
        { t = Add(s, a)  d = Mul(t, s0)  e = Neg(c) }>(s0, x, v)
}"""
SCAN_WITHOUT_STATE = """g (float[N, 3] x, float[3] w) => (float[N, 3] y) {
    y = Scan<num_scan_inputs = 1, body = b (float[3] a) => (float[3] c)
        { c = Add(a, w) }>(x)
}"""
FROM_A_FUNCTION = """g (float[2, 3] x, int64 n) => (float[2, 3] y) { y = local.f(x, n) }
    <domain: "local", opset_import: ["" : 17]> f (v, k) => (r) {
    go = Constant<value = bool {1}>()
    r = Loop<body = step (int64 i, bool c, float[2, 3] s) => (bool d, float[2, 3] t)
        { d = Identity(c)  t = Add(s, v) }>(k, go, v) }"""

CASES: dict[str, tuple[str, type[ControlFlow], list[Arrays]]] = {
    "loop": (LOOP, Loop, [{"x": X, "n": np.array(n)} for n in (3, 1, 0, -2)]),
    "early exit": (
        EARLY_EXIT,
        Loop,
        [{"x": f32(1, 2, 3), "most": np.array(m, np.float32)} for m in (100, 1)],
    ),
    "without limits": (
        WITHOUT_LIMITS,
        Loop,
        [{"x": f32(1, 2, 3), "most": np.array(50, np.float32)}],
    ),
    "growing state": (GROWING, Loop, [{"x": ROW, "n": np.array(n)} for n in (2, 0)]),
    "state gaining axes": (GAINING_AXES, Loop, [{"x": ROW, "n": np.array(n)} for n in (2, 0)]),
    "swapped states": (
        SWAPPED,
        Loop,
        [{"x": ROW, "v": f32(5, 6), "n": np.array(n)} for n in (3, 2)],
    ),
    "integers": (FIBONACCI, Loop, [{"n": np.array(n)} for n in (9, 0)]),
    "scalars with an axis": (
        SCALARS_WITH_AN_AXIS,
        Loop,
        [{"x": ROW, "n": np.array([3]), "go": np.array([True])}],
    ),
    "branches": (BRANCHES, If, [{"x": X, "c": np.array(c)} for c in (True, False)]),
    "branches of unlike rank": (
        BRANCHES_OF_UNLIKE_RANK,
        If,
        [{"x": X, "c": np.array(c)} for c in (True, False)],
    ),
    "branches that hand on": (
        BRANCHES_THAT_HAND_ON,
        If,
        [{"x": X, "v": -X, "c": np.array(c)} for c in (True, False)],
    ),
    "loop in branch in loop": (
        LOOP_IN_BRANCH_IN_LOOP,
        Loop,
        [{"x": ROW, "n": np.array(n), "w": f32(1, 1, 0.5)} for n in (4, 0)],
    ),
    "scan": (
        SCAN,
        Scan,
        [
            {
                "x": np.arange(3 * n, dtype=np.float32).reshape(3, n),
                "v": np.arange(2 * n, dtype=np.float32).reshape(n, 2),
                "s0": f32(1, 2, 3),
            }
            for n in (4, 1)
        ],
    ),
    "scan without state": (SCAN_WITHOUT_STATE, Scan, [{"x": X, "w": ROW}, {"x": X[:1], "w": ROW}]),
    "function": (FROM_A_FUNCTION, Loop, [{"x": X, "n": np.array(2)}]),
}


@pytest.mark.parametrize("case", CASES)
def test_against_onnxruntime(tmp_path: Path, case: str) -> None:
    graph, kind, calls = CASES[case]
    model, path = imported(tmp_path, graph)
    assert any(isinstance(operation, kind) for operation in model.operations)
    wanted = [oracle(path, inputs) for inputs in calls]
    for devices in DEVICES:
        with crosschip.compile(model, devices=devices, cache=False) as compiled:
            for inputs, outputs in zip(calls, wanted, strict=True):
                expect(compiled.run(inputs), outputs)


@pytest.mark.parametrize("case", CASES)
def test_saved_and_from_the_cache(tmp_path: Path, case: str) -> None:
    graph, _, calls = CASES[case]
    model, path = imported(tmp_path, graph)
    again = from_bytes(to_bytes(model))
    assert str(again) == str(model)
    again.verify()
    wanted = oracle(path, calls[0])
    for devices in ("reference", "onnxruntime"):
        for word in ("miss", "hit"):
            with crosschip.compile(again, devices, cache=tmp_path / "cache") as compiled:
                without_programs = case == "branches that hand on" and devices == "reference"
                assert compiled.report.cache == ("off" if without_programs else word)
                expect(compiled.run(calls[0]), wanted)


@pytest.mark.parametrize("device", ["reference", "onnxruntime"])
@pytest.mark.parametrize("trips", [0, 2])
@pytest.mark.parametrize("size", [0, 3])
def test_collected_sizes_where_nothing_runs(
    tmp_path: Path, size: int, trips: int, device: str
) -> None:
    model, path = imported(
        tmp_path,
        """g (float[A, 3] x, int64 n) => (float[K, A, 3] all) <bool go = {1}> {
        all = Loop<body = step (int64 i, bool c) => (bool d, float[A, 3] t)
            { d = Identity(c)  t = Neg(x) }>(n, go) }""",
    )
    inputs = {"x": np.ones((size, 3), np.float32), "n": np.array(trips)}
    with crosschip.compile(model, device, cache=False) as compiled:
        made = compiled.run(inputs)["all"]
    assert made.shape == (trips, size, 3)
    expected = oracle(path, inputs)["all"]
    np.testing.assert_array_equal(made, expected.reshape(made.shape))


def test_what_is_known_is_unrolled_or_chosen(tmp_path: Path) -> None:
    known = LOOP.replace("int64 n)", "float unused)").replace("<bool", "<int64 n = {3}, bool")
    model, path = imported(tmp_path, known)
    assert not any(isinstance(operation, ControlFlow) for operation in model.operations)
    inputs = {"x": X, "unused": np.array(0, np.float32)}
    with crosschip.compile(model, "reference", cache=False) as compiled:
        expect(compiled.run(inputs), oracle(path, inputs))


def test_long_loops_stay(tmp_path: Path) -> None:
    trips = unrolling.MAX_TRIPS + 1
    known = LOOP.replace("int64 n)", "float unused)")
    model, path = imported(tmp_path, known.replace("<bool", f"<int64 n = {{{trips}}}, bool"))
    assert [o.type for o in model.operations if o.bodies] == ["LOOP"]
    assert model.outputs["all"].type.shape == (trips, 2, 3)
    inputs = {"x": X, "unused": np.array(0, np.float32)}
    with crosschip.compile(model, "reference", cache=False) as compiled:
        expect(compiled.run(inputs), oracle(path, inputs))


def nested(depth: int, trips: int) -> str:
    """Loops in loops, each a number of times that is known."""
    body = "t0 = Neg(s0)"
    for level in range(depth):
        body = f"""t{level + 1} = Loop<body = b{level}
            (int64 i{level}, bool c{level}, float[3] s{level})
            => (bool d{level}, float[3] t{level})
            {{ d{level} = Identity(c{level})  {body} }}>(n, go, s{level + 1})"""
    return f"""g (float[3] s{depth}) => (float[3] t{depth})
        <bool go = {{1}}, int64 n = {{{trips}}}> {{ {body} }}"""


def test_loops_in_loops_load_at_once(tmp_path: Path) -> None:
    model, _ = imported(tmp_path, nested(4, 60))  # unrolled, they would be 13 million nodes
    assert sum(1 for _ in walk_operations(model)) <= unrolling.MAX_UNROLLED
    assert any(operation.bodies for operation in walk_operations(model))


def test_loops_in_loops_run(tmp_path: Path) -> None:
    model, path = imported(tmp_path, nested(3, 9))
    inputs = {"s3": ROW}
    with crosschip.compile(model, "reference", cache=False) as compiled:
        expect(compiled.run(inputs), oracle(path, inputs))


def test_bodies_with_operations_outside_the_standard_set(tmp_path: Path) -> None:
    model, path = imported(
        tmp_path,
        """g (float[2, 3] x, float[2, 3] w, int64 n) => (float[2, 3] y) <bool go = {1}> {
        y = Loop<body = step (int64 i, bool c, float[2, 3] s) => (bool d, float[2, 3] t)
            {
                d = Identity(c)
                a = com.microsoft.UnfoldTensor<dim = 0, size = 1>(s)
                b = ReduceMax<axes = [2], keepdims = 0>(a)
                t = Sub(b, w)
            }>(n, go, x) }""",
    )
    inputs = {"x": X, "w": X + 1, "n": np.array(3)}
    wanted = oracle(path, inputs)
    for devices in (["onnxruntime"], ["reference", "onnxruntime"]):
        with crosschip.compile(model, devices, cache=False) as compiled:
            expect(compiled.run(inputs), wanted)
    assert compiled.placement.summary().count("runs") == 3  # reference, onnxruntime, runtime


def test_values_of_unlike_types_are_refused(tmp_path: Path) -> None:
    graph = BRANCHES.replace(
        "(float[4, 3] q) { q = Concat<axis = 0>(x, x) }",
        "(int64[4, 3] q) { r = Concat<axis = 0>(x, x)  q = Cast<to = 7>(r) }",
    )
    with pytest.raises(ModelFileError, match=r"IF\.p: is float32.* one time and int64"):
        imported(tmp_path, graph)


UNARY = ("Neg", "Relu", "Abs", "Tanh")
BINARY = ("Add", "Sub", "Mul", "Max")


@st.composite
def statements(draw: st.DrawFn, depth: int, names: tuple[str, ...], tag: str) -> str:
    """Lines that make `tag` of names of float[3], with control flow in them."""
    lines, known = [], list(names)
    for index in range(draw(st.integers(1, 3))):
        made = f"{tag}_{index}"
        kind = draw(st.sampled_from(["unary", "binary", "if", "loop", "scan"][: 5 if depth else 2]))
        one, other = draw(st.sampled_from(known)), draw(st.sampled_from(known))
        if kind == "unary":
            lines.append(f"{made} = {draw(st.sampled_from(UNARY))}({one})")
        elif kind == "binary":
            lines.append(f"{made} = {draw(st.sampled_from(BINARY))}({one}, {other})")
        elif kind == "if":
            then = draw(statements(depth - 1, tuple(known), f"{made}t"))
            other_branch = draw(statements(depth - 1, tuple(known), f"{made}e"))
            lines.append(
                f"""{made}s = ReduceSum<keepdims = 0>({one})  {made}c = Less({made}s, limit)
                {made} = If<then_branch = {made}tb () => (float[3] {made}t) {{ {then} }},
                else_branch = {made}eb () => (float[3] {made}e) {{ {other_branch} }}>({made}c)"""
            )
        elif kind == "loop":
            inner = (*known, f"{made}x")
            body = draw(statements(depth - 1, inner, f"{made}y"))
            going = draw(st.sampled_from([f"Identity({made}g)", f"Less({made}q, limit)"]))
            count = draw(st.sampled_from(["n", "two"]))
            lines.append(
                f"""{made}, {made}all = Loop<body = {made}b
                (int64 {made}i, bool {made}g, float[3] {made}x)
                => (bool {made}h, float[3] {made}z, float[3] {made}w)
                {{ {body}  {made}q = ReduceSum<keepdims = 0>({made}y)
                {made}h = {going}  {made}z = Tanh({made}y)  {made}w = Identity({made}x) }}
                >({count}, go, {one})"""
            )
        else:
            inner = (*known, f"{made}x", f"{made}v")
            body = draw(statements(depth - 1, inner, f"{made}y"))
            flags = draw(st.integers(0, 1)), draw(st.integers(0, 1))
            lines.append(
                f"""{made}, {made}all = Scan<num_scan_inputs = 1,
                scan_input_directions = [{flags[0]}], scan_output_directions = [{flags[1]}],
                scan_output_axes = [{draw(st.sampled_from([0, 1, -1]))}],
                body = {made}b (float[3] {made}x, float[3] {made}v)
                => (float[3] {made}z, float[3] {made}w)
                {{ {body}  {made}z = Tanh({made}y)  {made}w = Add({made}v, {made}x) }}
                >({one}, rows)"""
            )
        known.append(made)
    lines.append(f"{tag} = Tanh({known[-1]})")
    return "\n".join(lines)


@settings(deadline=None, max_examples=15, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_bodies(tmp_path: Path, data: st.DataObject) -> None:
    body = data.draw(statements(3, ("x", "w"), "y"))
    graph = f"""g (float[3] x, float[3] w, float[R, 3] rows, float limit, int64 n)
        => (float[3] y) <bool go = {{1}}, int64 two = {{2}}> {{ {body} }}"""
    model, path = imported(tmp_path, graph)
    inputs = {
        "x": ROW,
        "w": f32(0.5, -1, 2),
        "rows": X,
        "limit": np.array(data.draw(st.floats(-2, 2, width=32)), np.float32),
        "n": np.array(data.draw(st.integers(0, 3))),
    }
    wanted = oracle(path, inputs)
    for devices in (["reference"], ["onnxruntime"], ["openvino"], ["openvino", "onnxruntime"]):
        with crosschip.compile(model, devices, cache=False) as compiled:
            expect(compiled.run(inputs), wanted)
