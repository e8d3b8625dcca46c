"""Small models that describe much: loading and compiling them stays within a budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, helper, numpy_helper, parser
from tests.modelling import float32, model_of

import crosschip
from crosschip.ir import Budget, BudgetError, Builder, InputError, Model, Operand, symbol
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand

HEADER = '<ir_version: 8, opset_import: ["" : 17, "local" : 1]>'


def doubling_functions(folder: Path, depth: int) -> Path:
    """A file with a function that calls another twice, which calls another twice, …."""
    functions = [
        f"""<domain: "local", opset_import: ["" : 17, "local" : 1]> f{level} (v) => (r)
            {{ a = local.f{level - 1}(v)  r = local.f{level - 1}(a) }}"""
        for level in range(1, depth + 1)
    ]
    proto = parser.parse_model(f"""{HEADER} g (float[2] x) => (float[2] y)
        {{ y = local.f{depth}(x) }}
        <domain: "local", opset_import: ["" : 17]> f0 (v) => (r) {{ r = Neg(v) }}
        {" ".join(functions)}""")
    path = folder / "doubling.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def doubling_constants(times: int) -> Model:
    """A model that adds four numbers, joined with themselves again and again, to its input."""

    def make(b: Builder, x: Operand) -> Operand:
        made = b.constant(np.ones(4, np.float32))
        for _ in range(times):
            made = b.add(Concat, [made, made], 0)
        return b.add(Add, x, made)

    return model_of(make, float32(1))


def many_constants(count: int) -> Model:
    """A model that adds constants of 256 KiB, each made from four bytes of its own."""

    def make(b: Builder, x: Operand) -> Operand:
        for _ in range(count):
            x = b.add(Add, x, b.add(Expand, b.constant(np.ones(1, np.float32)), (2**16,)))
        return x

    return model_of(make, float32(2**16))


@pytest.mark.slow
def test_functions_that_double_end(tmp_path: Path) -> None:
    path = doubling_functions(tmp_path, 30)
    with pytest.raises(BudgetError, match=r"doubling\.onnx: .*over 5000 operations.*operations=…"):
        crosschip.load(path, budget=Budget(operations=5000))


def test_what_is_below_the_limit_is_expanded(tmp_path: Path) -> None:
    path = doubling_functions(tmp_path, 6)
    assert len(crosschip.load(path).operations) == 64
    assert len(crosschip.load(path, budget=Budget(operations=190)).operations) == 64
    with pytest.raises(BudgetError, match="over 189 operations"):
        crosschip.load(path, budget=Budget(operations=189))


def test_loading_ends_when_its_time_is_over(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="has taken over 1e-06 seconds"):
        crosschip.load(doubling_functions(tmp_path, 3), budget=Budget(seconds=1e-6))


def test_compiling_ends_when_its_time_is_over() -> None:
    with pytest.raises(BudgetError, match=r"^model: has taken over 1e-06 seconds"):
        crosschip.compile(doubling_constants(2), "reference", budget=Budget(seconds=1e-6))
    with pytest.raises(BudgetError, match=r"^model: has taken over 1e-06 seconds"):
        crosschip.explain(doubling_constants(2), "reference", budget=Budget(seconds=1e-6))


def test_constants_that_double_are_not_folded() -> None:
    placement = crosschip.explain(doubling_constants(27), "reference")
    constants = placement.model.constants
    assert sum(operand.value.nbytes for operand in constants if operand.value is not None) < 2**19


def test_many_constants_are_folded_up_to_the_limit() -> None:
    budget = Budget(bytes=2**20)
    assert len(crosschip.explain(many_constants(4), "reference", budget=budget).decisions) == 4
    with pytest.raises(BudgetError, match=r"constants grow by over 10\d+ bytes.*bytes=1048576"):
        crosschip.explain(many_constants(6), "reference", budget=budget)


def test_what_a_large_model_holds_may_be_made_anew() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, x, b.add(Add, b.constant(np.ones(2**18, np.float32)), np.float32(1)))

    budget = Budget(bytes=2**10)
    placement = crosschip.explain(model_of(make, float32(1)), "reference", budget=budget)
    assert len(placement.decisions) == 1


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino"])
def test_a_tensor_that_is_too_large_is_refused(device: str) -> None:
    model = model_of(lambda b, x: b.add(Add, x, x), float32(2**31, 2))
    with pytest.raises(BudgetError, match=r"'x0' is float32\[2147483648, 2\], which takes 1717"):
        crosschip.compile(model, device, cache=False)


def test_shapes_that_are_given_count() -> None:
    model = model_of(lambda b, x: b.add(Add, x, x), float32(symbol("N"), 2))
    with pytest.raises(BudgetError, match=r"tensor_bytes=4294967296"):
        crosschip.explain(model, "reference", shapes={"x0": (2**31, 2)})
    larger = Budget(tensor_bytes=2**40)
    assert crosschip.explain(model, "reference", shapes={"x0": (2**31, 2)}, budget=larger).segments


def test_a_sparse_tensor_with_its_zeros_counts(tmp_path: Path) -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "i")
    graph = helper.make_graph(
        [helper.make_node("Shape", ["w"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", 7, [1])],
        sparse_initializer=[helper.make_sparse_tensor(values, indices, [2**30])],
    )
    path = tmp_path / "sparse.onnx"
    opsets = [helper.make_opsetid("", 17)]
    path.write_bytes(helper.make_model(graph, opset_imports=opsets).SerializeToString())
    with pytest.raises(BudgetError, match="constants grow"):
        crosschip.load(path)


@pytest.mark.parametrize("limit", [0, -1, float("nan"), "1", True, None])
@pytest.mark.parametrize("name", ["bytes", "tensor_bytes", "operations", "programs", "seconds"])
def test_a_limit_is_a_number_above_zero(name: str, limit: Any) -> None:
    with pytest.raises(InputError, match=f"budget: {name} is .*above 0"):
        Budget(**{name: limit})


def test_limits_may_be_larger_than_any_float(tmp_path: Path) -> None:
    names = ("bytes", "tensor_bytes", "operations", "programs", "seconds")
    for limit in (10**400, float("inf")):
        boundless = Budget(**dict.fromkeys(names, limit))  # type: ignore[arg-type]
        model = crosschip.load(doubling_functions(tmp_path, 3), budget=boundless)
        assert crosschip.explain(model, "reference", budget=boundless).segments


def test_a_budget_is_a_budget(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"budget is 5, but must be a crosschip\.Budget"):
        crosschip.load(doubling_functions(tmp_path, 1), budget=5)  # type: ignore[arg-type]


@pytest.mark.slow
def test_folding_takes_little_memory() -> None:
    """27 doublings of sixteen bytes would be two GiB."""
    script = (
        "import crosschip; from tests.runtime.test_budget import doubling_constants;"
        "crosschip.explain(doubling_constants(27), 'reference');"
        # Not `ru_maxrss`, which begins with what the process had that started this one.
        "print(*[line for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert int(found.stdout.split()[1]) < 2**20  # KiB


LIMITS = [
    (Budget(seconds=1e-6), "has taken over 1e-06 seconds"),
    (Budget(tensor_bytes=4095), r"'x0' is float32\[1024\], which takes 4096 bytes"),
]


@pytest.mark.parametrize(("budget", "message"), LIMITS)
def test_a_compiled_model_is_loaded_within_a_budget(
    tmp_path: Path, budget: Budget, message: str
) -> None:
    model = model_of(lambda b, x: b.add(Add, x, x), float32(1024))
    path = tmp_path / "adding.chips"
    with crosschip.compile(
        model, "reference", cache=crosschip.CacheOptions(location=tmp_path, token="adding")
    ) as compiled:
        compiled.save(path)
    for source, token in ((path, None), (path.read_bytes(), None), (tmp_path, "adding")):
        with crosschip.load_compiled(source, token=token, budget=Budget(tensor_bytes=4096)):
            pass
        with pytest.raises(BudgetError, match=f": {message}.*budget=crosschip.Budget"):
            crosschip.load_compiled(source, token=token, budget=budget)
    with pytest.raises(BudgetError, match=rf"^{path}: "):
        crosschip.load_compiled(path, budget=budget)


@pytest.mark.parametrize("device", ["reference", "openvino"])
def test_what_falls_into_too_many_programs_is_not_compiled(device: str) -> None:
    """Branches in branches have a program for each branch without branches of its own."""
    model = crosschip.load(branches(4))
    with crosschip.compile(model, device, cache=False, budget=Budget(programs=16)) as compiled:
        assert compiled.placement.segments
    with pytest.raises(BudgetError, match=r"^g: falls into 16 segments, .*programs=15: if"):
        crosschip.compile(model, device, cache=False, budget=Budget(programs=15))


def branches(depth: int) -> bytes:
    """A file of an `If` whose branches are `If`s, and so on to a depth."""

    def graph(depth: int) -> GraphProto:
        node = helper.make_node("Neg", ["x"], ["y"])
        if depth:
            one, other = graph(depth - 1), graph(depth - 1)
            node = helper.make_node("If", ["c"], ["y"], then_branch=one, else_branch=other)
        return helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", 1, [2])])

    outer = graph(depth)
    for name, element_type, shape in (("x", 1, [2]), ("c", 9, [])):
        outer.input.append(helper.make_tensor_value_info(name, element_type, shape))
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(outer, opset_imports=opsets, ir_version=8).SerializeToString()
