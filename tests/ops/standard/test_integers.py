"""Products of 8-bit integers and their decompositions, compared with NumPy and ONNX's evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from tests.modelling import model_of, outputs_of

from crosschip.ir import Array, Builder, ElementType, Model, ModelError, Operand, TensorType
from crosschip.ops import Operator
from crosschip.ops.standard.integers import Conv2DInteger, MatMulInteger

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

BYTES = [np.int8, np.uint8]


def drawn(random: np.random.Generator, dtype: Any, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def evaluated(kind: str, *arrays: Array, **attributes: Any) -> Array:
    """Return the result of ONNX's evaluator."""
    names = [f"x{index}" for index in range(len(arrays))]
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in zip(names, arrays, strict=True)
    ]
    made = helper.make_tensor_value_info("y", TensorProto.INT32, None)
    node = helper.make_node(kind, names, ["y"], **attributes)
    graph = helper.make_graph([node], "g", values, [made])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 10)])
    (result,) = ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))
    return np.asarray(result).astype(np.int32)


def decomposed(model: Model) -> Model:
    """Return the model with its operation decomposed."""
    b = Builder()
    for name, operand in model.inputs.items():
        b._inputs[name] = operand
    (operation,) = model.operations
    assert isinstance(operation, Operator)
    parts = operation.decomposition(b)
    assert parts is not None
    b.output("y0", parts[0])
    return b.build()


@pytest.mark.parametrize("y_type", BYTES)
@pytest.mark.parametrize("x_type", BYTES)
@pytest.mark.parametrize(
    ("x", "y", "x_zero", "y_zero"),
    [
        ((3, 4), (4, 5), None, None),
        ((3, 4), (4, 5), (), ()),
        ((2, 3, 4), (4, 5), (), (5,)),
        ((3, 4), (4, 5), (3, 1), (1, 5)),
        ((2, 1, 3, 4), (5, 4, 2), (2, 1, 3, 1), (5, 1, 2)),
        ((4,), (4,), (), ()),
        ((2, 700), (700, 3), (), (3,)),
        ((2, 5000), (5000, 2), (), ()),
        ((0, 4), (4, 2), (), ()),
    ],
)
def test_matrix_products(
    check: Checker,
    x: tuple[int, ...],
    y: tuple[int, ...],
    x_zero: tuple[int, ...] | None,
    y_zero: tuple[int, ...] | None,
    x_type: Any,
    y_type: Any,
) -> None:
    random = np.random.default_rng(len(x) + sum(y))
    arrays = [drawn(random, x_type, *x), drawn(random, y_type, *y)]
    if x_zero is not None and y_zero is not None:
        arrays += [drawn(random, x_type, *x_zero), drawn(random, y_type, *y_zero)]

    def exact(x: Array, y: Array, *zeros: Array) -> Array:
        wide = [array.astype(np.int64) for array in (x, y, *zeros)]
        left, right = (wide[0] - wide[2], wide[1] - wide[3]) if zeros else wide[:2]
        return np.asarray(np.matmul(left, right), np.int32)

    def build(b: Builder, *operands: Operand) -> Operand:
        return b.add(MatMulInteger, *operands)

    check(build, exact, *arrays)
    types = [TensorType(ElementType.of(a.dtype), a.shape) for a in arrays]
    apart = decomposed(model_of(build, *types))
    inputs = {f"x{index}": array for index, array in enumerate(arrays)}
    np.testing.assert_array_equal(outputs_of(apart, inputs)["y0"], exact(*arrays))


def test_a_matrix_product_is_that_of_onnx(check: Checker) -> None:
    random = np.random.default_rng(3)
    x, y, zero = (
        drawn(random, np.uint8, 4, 3),
        drawn(random, np.uint8, 3, 2),
        np.array(12, np.uint8),
    )
    check(
        lambda b, x, y, z: b.add(MatMulInteger, x, y, z),
        lambda x, y, z: evaluated("MatMulInteger", x, y, z),
        *(x, y, zero),
    )


@pytest.mark.parametrize("filter_type", BYTES)
@pytest.mark.parametrize(
    ("image", "filter", "attributes"),
    [
        ((1, 2, 5, 5), (3, 2, 3, 3), {}),
        ((2, 2, 6, 5), (3, 2, 3, 2), {"pads": [1, 0, 1, 2], "strides": [2, 1]}),
        ((1, 4, 5, 5), (6, 2, 3, 3), {"group": 2, "dilations": [2, 1]}),
        ((1, 3, 4, 4), (3, 1, 3, 3), {"group": 3, "pads": [1, 1, 1, 1]}),
        ((1, 40, 4, 4), (2, 40, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((1, 500, 3, 3), (2, 500, 3, 3), {}),
    ],
)
def test_convolutions(
    check: Checker, image: Any, filter: Any, attributes: dict[str, Any], filter_type: Any
) -> None:
    random = np.random.default_rng(image[1])
    arrays = [drawn(random, np.uint8, *image), drawn(random, filter_type, *filter)]
    arrays += [drawn(random, np.uint8), drawn(random, filter_type)]
    own = dict(attributes)
    if "pads" in own:
        top, left, bottom, right = own["pads"]
        own["pads"] = (top, bottom, left, right)

    def build(b: Builder, *operands: Operand) -> Operand:
        return b.add(Conv2DInteger, *operands, **own)

    def exact(*arrays: Array) -> Array:
        wide = [array.astype(np.int32) for array in arrays]
        reals = [(wide[0] - wide[2]).astype(np.float64), (wide[1] - wide[3]).astype(np.float64)]
        node = helper.make_node("Conv", ["a", "b"], ["y"], **attributes)
        (result,) = ReferenceEvaluator(node).run(None, {"a": reals[0], "b": reals[1]})
        return np.asarray(result).astype(np.int32)

    check(build, exact, *arrays)
    types = [TensorType(ElementType.of(a.dtype), a.shape) for a in arrays]
    inputs = {f"x{index}": array for index, array in enumerate(arrays)}
    apart = decomposed(model_of(build, *types))
    np.testing.assert_array_equal(outputs_of(apart, inputs)["y0"], exact(*arrays))


def test_zero_points_of_output_channels(check: Checker) -> None:
    random = np.random.default_rng(9)
    image, filter = drawn(random, np.uint8, 1, 2, 4, 4), drawn(random, np.int8, 3, 2, 2, 2)
    zeros = drawn(random, np.int8, 3)

    def exact(image: Array, filter: Array, zeros: Array) -> Array:
        each = [
            evaluated("ConvInteger", image, filter[i : i + 1], np.array(0, np.uint8), zeros[i])
            for i in range(3)
        ]
        return np.concatenate(each, 1)

    check(
        lambda b, x, f, z: b.add(Conv2DInteger, x, f, filter_zero_point=z),
        exact,
        *(image, filter, zeros),
    )


def test_what_does_not_go_together_is_refused() -> None:
    def bytes_(*shape: int) -> TensorType:
        return TensorType(ElementType.UINT8, shape)

    signed = TensorType(ElementType.INT8, ())
    cases = [
        (MatMulInteger, [bytes_(2, 3), bytes_(3, 2), bytes_(2)], "x_zero_point: [2] are not one"),
        (MatMulInteger, [bytes_(2, 3), bytes_(3, 2), bytes_(3, 1)], "x_zero_point: a size"),
        (MatMulInteger, [bytes_(2, 3), bytes_(3, 2), signed], "must be uint8 like x"),
        (MatMulInteger, [bytes_(2, 3), bytes_(4, 2)], "y: the inner sizes"),
        (Conv2DInteger, [bytes_(1, 2, 4, 4), bytes_(3, 2, 2, 2), bytes_(3)], "is not one number"),
        (Conv2DInteger, [bytes_(1, 3, 4, 4), bytes_(3, 2, 2, 2)], "filter: its channels"),
    ]
    for operator, types, told in cases:
        with pytest.raises(ModelError, match=told.replace("[", r"\[").replace("]", r"\]")):
            model_of(lambda b, *o, operator=operator: b.add(operator, *o), *types)
    with pytest.raises(ModelError, match="filter_zero_point: has 2 axes"):
        model_of(
            lambda b, x, f, z: b.add(Conv2DInteger, x, f, filter_zero_point=z),
            *(bytes_(1, 2, 4, 4), bytes_(3, 2, 2, 2), bytes_(3, 1)),
        )
