"""ONNX's messages, which are those of the onnx library, and are made as that makes them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from crosschip.ir import ElementType
from crosschip.onnx_messages import (
    CODES,
    code_of,
    make_attribute,
    make_node,
    operator_sets,
    tensor_type,
)

_OURS = "from crosschip import onnx_messages"
_LIBRARY = "import onnx"
_SAME = """
import onnx.checker, pickle
names = [name for name in vars(onnx_messages) if name.endswith("Proto")]
assert len(names) > 10, names
assert all(getattr(onnx_messages, n) is getattr(onnx, n) for n in names if hasattr(onnx, n))
assert onnx.onnx_ml_pb2.NodeProto is onnx_messages.NodeProto
node = onnx_messages.NodeProto(op_type="Relu", input=["x"], output=["y"])
onnx.checker.check_node(node)
assert pickle.loads(pickle.dumps(node)) == node
assert type(pickle.loads(pickle.dumps(node))) is onnx.NodeProto
"""


def run(code: str, **environment: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})


@pytest.mark.parametrize("implementation", ["upb", "python"])
@pytest.mark.parametrize("order", [(_OURS, _LIBRARY), (_LIBRARY, _OURS)])
def test_the_classes_are_those_of_the_library_whichever_comes_first(
    order: tuple[str, str], implementation: str
) -> None:
    run("\n".join([*order, _SAME]), PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=implementation)


def test_the_library_itself_is_not_imported() -> None:
    run(f"{_OURS}\nimport sys\nassert not [name for name in sys.modules if name[:4] == 'onnx']")


def test_a_library_without_the_generated_file_is_imported() -> None:
    """As it is where all modules are packed into one file."""
    hidden = "from pathlib import Path\nPath.is_file = lambda path: False"
    run(f"{hidden}\n{_OURS}\nimport sys\nassert 'onnx' in sys.modules\nimport onnx\n{_SAME}")


_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_REALS = st.floats(width=32, allow_nan=False)
_TENSOR = helper.make_tensor("t", TensorProto.FLOAT, [1], [2.0])
_GRAPH = helper.make_graph([], "g", [], [])
_VALUES = st.one_of(
    _INTEGERS,
    st.booleans(),
    _REALS,
    _REALS.map(np.float32),
    st.integers(-128, 127).map(np.int8),
    st.text(),
    st.binary(),
    st.sampled_from([_TENSOR, _GRAPH]),
    st.lists(_INTEGERS, min_size=1),
    st.lists(_INTEGERS, min_size=1).map(np.array),
    st.lists(st.one_of(_REALS, st.integers(-9, 9)), min_size=1),
    st.lists(st.text(), min_size=1),
)


@given(_VALUES)
def test_attributes_are_made_as_the_library_makes_them(value: object) -> None:
    made, wanted = make_attribute("name", value), helper.make_attribute("name", value)
    assert made.SerializeToString() == wanted.SerializeToString()


@pytest.mark.parametrize("value", [[], [1, "a"], object(), [object()], None])
def test_what_is_no_value_of_an_attribute_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"is no value of the attribute 'name'$"):
        make_attribute("name", value)


@pytest.mark.parametrize("named", [{}, {"name": "n"}, {"name": "n", "domain": "d"}])
def test_nodes_are_made_as_the_library_makes_them(named: dict[str, str]) -> None:
    given = ("Conv", ["x", "", "b"], ["y"])
    made = make_node(*given, **named, z=1, axis=None, b=[1, 2])
    wanted = helper.make_node(*given, **named, z=1, axis=None, b=[1, 2])
    assert made.SerializeToString() == wanted.SerializeToString()


@pytest.mark.parametrize("shape", [None, [], [2, None, "n"], [0]])
def test_types_are_made_as_the_library_makes_them(shape: Sequence[int | str | None] | None) -> None:
    wanted = helper.make_tensor_type_proto(TensorProto.INT8, shape)
    assert tensor_type(TensorProto.INT8, shape).SerializeToString() == wanted.SerializeToString()


@pytest.mark.parametrize("kind", [kind for kind in CODES if kind is not ElementType.STRING])
def test_the_code_of_a_type_is_the_librarys(kind: ElementType) -> None:
    assert code_of(kind.dtype) == CODES[kind] == helper.np_dtype_to_tensor_dtype(kind.dtype)


def test_operator_sets_are_listed_in_their_order() -> None:
    wanted = [helper.make_operatorsetid("", 21), helper.make_operatorsetid("com.example", 1)]
    assert operator_sets({"": 21, "com.example": 1}) == wanted
