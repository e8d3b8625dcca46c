"""Constraints on elements: they hold on every device, whatever way runs the operator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.opdef.custom.documents import LIKE_X, made, package_of, taken

import crosschip as cc
from crosschip import opdef
from crosschip.ir import Array, Builder, DeviceError, ElementType, Model, Operand, TensorType
from crosschip.opdef.datatypes import Datatype
from crosschip.ops.standard.arithmetic import Mul
from crosschip.ops.standard.conversion import Cast

INTEGERS = made("Whole", "shape(Whole) == shape(X)", datatypes=(Datatype.INT_32,))


class Squared(opdef.CustomOperator):
    """The square, and the whole part: outputs of two types."""

    def reference(self, X: Array) -> Sequence[Array]:
        return [X * X, X.astype(np.int32)]


class InParts(opdef.CustomOperator):
    """The same by its parts only."""

    def decompose(self, b: Builder) -> Sequence[Operand]:
        return [b.add(Mul, self.X, self.X), b.add(Cast, self.X, ElementType.INT32)]


ATOMS = st.builds(
    "{} {} {}".format,
    st.just("X"),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.integers(-2, 2),
)
MEMBERS = st.builds(
    "X {} {{{}}}".format,
    st.sampled_from(["in", "not in"]),
    st.lists(st.integers(-2, 2).map(str), min_size=1, max_size=3).map(", ".join),
)
SHAPES = st.sampled_from(["rank(X) == 1", "rank(X) == 2", "size(X) > 9"])
RULES = st.recursive(
    ATOMS | MEMBERS | SHAPES,
    lambda rule: (
        st.builds("({} and {})".format, rule, rule)
        | st.builds("({} or {})".format, rule, rule)
        | st.builds("not ({})".format, rule)
    ),
    max_leaves=4,
)


def model_of(base: type[opdef.CustomOperator], rule: str, folder: Path) -> Model:
    package = package_of(folder, taken("X", rule), LIKE_X, INTEGERS)
    operator: type[opdef.CustomOperator] = package.defines("Try")(type("Try", (base,), {}))
    b = Builder("one")
    outputs = b.add_all(operator, b.input("x", TensorType(ElementType.FLOAT32, (3,))))
    for index, output in enumerate(outputs):
        b.output(f"y{index}", output)
    return b.build()


def ran(model: Model, device: str, x: Array) -> Any:
    with cc.compile(model, [device], cache=False) as compiled:
        try:
            return [array.tolist() for array in compiled.run({"x": x}).values()]
        except DeviceError:
            return "refused"


@pytest.mark.parametrize("device", ["openvino", "onnxruntime"])
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(rule=RULES, values=st.lists(st.integers(-2, 2), min_size=3, max_size=3))
@example(rule="(X >= 0 or X < -1)", values=[-1, 0, 1])
@example(rule="not (X == 1)", values=[1, 1, 1])
@example(rule="X >= 0", values=[-1, 0, 1])
def test_parts_keep_the_rules_that_the_reference_keeps(
    device: str, rule: str, values: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rule")
    x = np.array(values, np.float32)
    try:
        whole = model_of(Squared, rule, folder)
    except cc.Error:  # what it says of the shape is broken already
        return
    parts = model_of(InParts, rule, folder)
    assert ran(parts, device, x) == ran(whole, "reference", x)
