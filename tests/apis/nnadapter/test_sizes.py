"""Sizes that inputs of NNAdapter's models leave open, and shapes that they list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tests.apis.nnadapter.programs import (
    FLOAT32,
    Code,
    Op,
    Type,
    add,
    compilation,
    constant,
    done,
    float32,
    given,
    new,
    operand,
    read,
    relu,
    run,
    run_once,
    types_of,
    written,
    wrong,
)

from crosschip.apis.nnadapter import (
    NNADAPTER_UNKNOWN,
    NNAdapterExecution_compute,
    NNAdapterExecution_create,
    NNAdapterExecution_setInput,
    NNAdapterExecution_setOutput,
    NNAdapterModel,
    NNAdapterModel_finish,
    NNAdapterModel_getOperandType,
    NNAdapterModel_identifyInputsAndOutputs,
    NNAdapterOperand,
    NNAdapterOperandDimensionType,
)


def test_open_sizes_take_any() -> None:
    made = compilation(relu(NNADAPTER_UNKNOWN, 3), "builtin_device")
    (type_,), (output,) = types_of(made)
    assert type_.dimensions == output.dimensions == NNAdapterOperandDimensionType([-65535, 3])
    for count in (0, 1, 5):
        (found,) = run(made, [np.full((count, 3), -1, np.float32)])
        np.testing.assert_array_equal(found, np.zeros((count, 3)))


def test_listed_shapes_are_all_that_there_are() -> None:
    made = compilation(relu(-65535, -65535, dynamic=[[1, 2], [4, 8]]), "builtin_device")
    (type_,), (output,) = types_of(made)
    assert type_.dimensions.dynamic_data == output.dimensions.dynamic_data == [[1, 2], [4, 8]]
    for shape in ((1, 2), (4, 8)):
        (found,) = run(made, [np.ones(shape, np.float32)])
        assert found.shape == shape
    for shape in ((1, 8), (2, 2)):
        execution = given(NNAdapterExecution_create(made))
        done(NNAdapterExecution_setInput(execution, 0, np.ones(shape, np.float32), read))
        done(NNAdapterExecution_setOutput(execution, 0, [], written))
        answer = NNAdapterExecution_compute(execution)
        wrong(answer, Code.NNADAPTER_INVALID_DIMENSIONS, "none of those")


def two_inputs(
    first: Sequence[Sequence[int]], second: Sequence[Sequence[int]]
) -> tuple[NNAdapterModel, NNAdapterOperand]:
    """The sum of two inputs of open sizes."""
    model = new()
    x, y = (
        operand(model, Type(FLOAT32, (-65535, 3), dynamic_data=rows)) for rows in (first, second)
    )
    z = float32(model)
    add(model, Op.NNADAPTER_ADD, [x, y, constant(model, 0)], z)
    done(NNAdapterModel_identifyInputsAndOutputs(model, [x, y], [z]))
    return model, z


def test_sizes_that_are_always_equal_are_one() -> None:
    model, z = two_inputs([[1, 3], [4, 3]], [[1, 3], [4, 3]])
    done(NNAdapterModel_finish(model))
    assert given(NNAdapterModel_getOperandType(z)).dimensions.dynamic_data == [[1, 3], [4, 3]]
    ones = np.ones((4, 3), np.float32)
    (found,) = run_once(model, [ones, ones])
    np.testing.assert_array_equal(found, 2 * ones)


def test_a_size_that_is_always_the_same_is_known() -> None:
    model, z = two_inputs([[4, 3], [4, 3]], [[1, 3], [1, 3]])
    done(NNAdapterModel_finish(model))
    assert given(NNAdapterModel_getOperandType(z)).dimensions == NNAdapterOperandDimensionType(
        [4, 3]
    )


def test_inputs_list_as_many_shapes_as_others() -> None:
    model, _ = two_inputs([[4, 3], [5, 3]], [[1, 3]])
    wrong(NNAdapterModel_finish(model), Code.NNADAPTER_INVALID_DIMENSIONS, "different numbers")
