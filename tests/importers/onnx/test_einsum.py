"""Einstein's convention with any labels and open sizes, against NumPy's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import crosschip

SIZES = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 5}


@dataclass(frozen=True)
class Case:
    """An equation of two terms, and the labels of sizes that the model leaves open."""

    left: str
    right: str
    result: str
    open: frozenset[str]

    @property
    def equation(self) -> str:
        return f"{self.left},{self.right}->{self.result}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    terms = st.lists(st.sampled_from("abcde"), min_size=1, max_size=4, unique=True)
    left, right = draw(terms), draw(terms)
    every = sorted({*left, *right})
    result = draw(st.lists(st.sampled_from(every), max_size=4, unique=True))
    opened = draw(st.frozensets(st.sampled_from(every), max_size=3))
    return Case("".join(left), "".join(right), "".join(result), opened)


def model(case: Case) -> onnx.ModelProto:
    def shape(labels: str) -> list[int | str]:
        return [f"n_{label}" if label in case.open else SIZES[label] for label in labels]

    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape(labels))
        for name, labels in (("x", case.left), ("y", case.right))
    ]
    output = helper.make_tensor_value_info("z", TensorProto.FLOAT, shape(case.result))
    node = helper.make_node("Einsum", ["x", "y"], ["z"], equation=case.equation)
    graph = helper.make_graph([node], "sum", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@given(cases(), st.data())
def test_any_equation(case: Case, data: st.DataObject) -> None:
    sizes = {
        label: data.draw(st.sampled_from([0, 1, 2, 7])) if label in case.open else size
        for label, size in SIZES.items()
    }
    random = np.random.default_rng(0)
    x, y = (
        random.standard_normal([sizes[label] for label in labels]).astype(np.float32)
        for labels in (case.left, case.right)
    )
    compiled = crosschip.compile(model(case).SerializeToString(), "reference", cache=False)
    made = compiled.run({"x": x, "y": y})["z"]
    np.testing.assert_allclose(made, np.einsum(case.equation, x, y), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "opened"),
    [("bhwc,hkc->bhwk", "b"), ("bhid,bhjd->bhij", "bij"), ("bij,bjk->bik", "bik")],
)
def test_products_are_those_of_matrices_where_sizes_are_open(equation: str, opened: str) -> None:
    """Attention writes them so, and multiplying before summing takes several times as long."""
    terms, _, result = equation.partition("->")
    left, _, right = terms.partition(",")
    sizes = {label: f"n_{label}" if label in opened else 4 for label in equation}
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [sizes[label] for label in labels])
        for name, labels in (("x", left), ("y", right))
    ]
    output = helper.make_tensor_value_info("z", TensorProto.FLOAT, [sizes[i] for i in result])
    graph = helper.make_graph(
        [helper.make_node("Einsum", ["x", "y"], ["z"], equation=equation)], "m", inputs, [output]
    )
    loaded = crosschip.load(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8
        ).SerializeToString()
    )
    kinds = [operation.type for operation in loaded.operations]
    assert "MAT_MUL" in kinds
    assert "REDUCE_SUM" not in kinds
