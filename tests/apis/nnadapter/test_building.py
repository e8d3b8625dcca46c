"""Building a model through NNAdapter: what is found out, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.apis.nnadapter.programs import (
    FLOAT32,
    INT32,
    Asymmetric,
    Channel,
    Code,
    Layer,
    Lifetime,
    Op,
    Precision,
    Type,
    add,
    constant,
    done,
    finish,
    float32,
    given,
    new,
    operand,
    run_once,
    wrong,
)

from crosschip.apis.nnadapter import (
    NNADAPTER_UNKNOWN,
    NNAdapterModel,
    NNAdapterModel_addOperand,
    NNAdapterModel_addOperation,
    NNAdapterModel_finish,
    NNAdapterModel_getOperandType,
    NNAdapterModel_identifyInputsAndOutputs,
    NNAdapterModel_setOperandValue,
    NNAdapterOperand,
    NNAdapterOperandType,
)


def test_types_follow_operations() -> None:
    model = new()
    x = operand(model, Type(FLOAT32, (NNADAPTER_UNKNOWN, 3, 8, 8)))
    y, flat, shape = float32(model), float32(model), operand(model, Type(INT32))
    assert given(NNAdapterModel_getOperandType(y)).dimensions.count == 0
    numbers = [constant(model, n) for n in (0, [0, 0, 0, 0], [2, 2], [2, 2], False, False, 0)]
    add(model, Op.NNADAPTER_AVERAGE_POOL_2D, [x, *numbers], y)
    assert given(NNAdapterModel_getOperandType(y)).dimensions.data == [-65535, 3, 4, 4]
    add(model, Op.NNADAPTER_SHAPE, [y, constant(model, int(INT32))], shape)
    assert (
        given(NNAdapterModel_getOperandType(shape)).lifetime is Lifetime.NNADAPTER_TEMPORARY_SHAPE
    )
    add(model, Op.NNADAPTER_FLATTEN, [y, constant(model, 1), constant(model, -1)], flat)
    finish(model, [x], flat, shape)
    made = [given(NNAdapterModel_getOperandType(o)) for o in (x, y, flat, shape, numbers[0])]
    assert [type_.dimensions.data for type_ in made[:4]] == [
        *([-65535, 3, 8, 8], [-65535, 3, 4, 4], [-65535, 48], [4])
    ]
    assert [type_.lifetime.name.removeprefix("NNADAPTER_") for type_ in made] == [
        *("MODEL_INPUT", "TEMPORARY_VARIABLE", "MODEL_OUTPUT", "MODEL_OUTPUT", "CONSTANT_COPY")
    ]
    image = np.arange(2 * 192, dtype=np.float32).reshape(2, 3, 8, 8)
    values, sizes = run_once(model, [image])
    pooled = image.reshape(2, 3, 4, 2, 4, 2).mean((3, 5)).reshape(2, 48)
    np.testing.assert_array_equal(values, pooled)
    np.testing.assert_array_equal(sizes, [2, 3, 4, 4])


def test_operations_may_be_added_before_what_they_read_is_made() -> None:
    model = new()
    x, y, z = float32(model, 2), float32(model, 2), float32(model, 2)
    add(model, Op.NNADAPTER_EXP, [y], z)
    add(model, Op.NNADAPTER_ABS, [x], y)
    finish(model, [x], z)
    (found,) = run_once(model, [np.array([-1, 2], np.float32)])
    np.testing.assert_allclose(found, np.exp([1, 2]), rtol=1e-6)


def test_constants_are_copied_or_referred_to() -> None:
    for copy, expected in ((True, 1.0), (False, 5.0)):
        model = new()
        x, y, z = float32(model, 1), float32(model, 1), float32(model)
        value = np.array([1], np.float32)
        done(NNAdapterModel_setOperandValue(y, value, copy))
        lifetime = given(NNAdapterModel_getOperandType(y)).lifetime
        assert lifetime == (2 if copy else 3)
        value[0] = 5
        add(model, Op.NNADAPTER_ADD, [x, y, constant(model, 0)], z)
        finish(model, [x], z)
        (found,) = run_once(model, [np.zeros(1, np.float32)])
        assert found == [expected]


@pytest.mark.parametrize(
    ("type_", "value", "code", "text"),
    [
        (Type(FLOAT32, (2,)), bytes(4), Code.NNADAPTER_INVALID_PARAMETER, "has 4 bytes"),
        (Type(FLOAT32, (2,)), None, Code.NNADAPTER_INVALID_PARAMETER, "no contiguous buffer"),
        (Type(FLOAT32, (2,)), np.ones(4, "f")[::2], Code.NNADAPTER_INVALID_PARAMETER, "contiguous"),
        (Type(FLOAT32, (-65535,)), bytes(4), Code.NNADAPTER_INVALID_DIMENSIONS, "known sizes"),
    ],
)
def test_values_that_do_not_fit(
    type_: NNAdapterOperandType, value: Any, code: Code, text: str
) -> None:
    own = operand(new(), type_)
    wrong(NNAdapterModel_setOperandValue(own, value, True), code, text)


@pytest.mark.parametrize(
    ("type_", "code", "text"),
    [
        (Type(13), Code.NNADAPTER_INVALID_PARAMETER, "no NNAdapterOperandPrecisionCode 13"),  # type: ignore[arg-type]
        (Type(FLOAT32, layout=4), Code.NNADAPTER_INVALID_PARAMETER, "LayoutCode 4"),  # type: ignore[arg-type]
        (Type(FLOAT32, (1,) * 9), Code.NNADAPTER_INVALID_DIMENSIONS, "9 axes"),
        (Type(FLOAT32, (2, -1)), Code.NNADAPTER_INVALID_DIMENSIONS, "size -1"),
        (
            Type(FLOAT32, (-65535,), dynamic_data=[[1]] * 9),
            *(Code.NNADAPTER_INVALID_DIMENSIONS, "9 shapes"),
        ),
        (
            Type(FLOAT32, (-65535, 3), dynamic_data=[[1, 3], [1, 4]]),
            *(Code.NNADAPTER_INVALID_DIMENSIONS, "[1, 4] does not fit"),
        ),
        (Type(FLOAT32, (2,), Layer(1)), Code.NNADAPTER_INVALID_PARAMETER, "takes NoneType"),
        (
            Type(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_LAYER, (2,)),
            *(Code.NNADAPTER_INVALID_PARAMETER, "SymmPerLayer"),
        ),
        (
            Type(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_LAYER, (2,), Asymmetric(1, 2)),
            *(Code.NNADAPTER_INVALID_PARAMETER, "takes NNAdapterSymmPerLayerQuantParams"),
        ),
        (
            Type(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_LAYER, (2,), Layer(-1)),
            *(Code.NNADAPTER_INVALID_PARAMETER, "positive"),
        ),
        (
            Type(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL, (2,), Channel(0, ())),
            *(Code.NNADAPTER_INVALID_PARAMETER, "scales"),
        ),
        (
            Type(Precision.NNADAPTER_QUANT_INT8_SYMM_PER_CHANNEL, (2,), Channel(1, (1, 2))),
            *(Code.NNADAPTER_INVALID_PARAMETER, "channel_dim is 1"),
        ),
        ("float32", Code.NNADAPTER_INVALID_PARAMETER, "no NNAdapterOperandType"),
    ],
)
def test_types_that_there_are_not(type_: Any, code: Code, text: str) -> None:
    wrong(NNAdapterModel_addOperand(new(), type_), code, text)


def test_what_finishing_finds() -> None:
    """Each defect of a model, with its code and what is told."""

    def nothing_made(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        return float32(model, 2), float32(model, 2)

    def from_nowhere(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y, z = (float32(model, 2) for _ in range(3))
        add(model, Op.NNADAPTER_ADD, [x, z, constant(model, 0)], y)
        return x, y

    def in_a_circle(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y, z = (float32(model, 2) for _ in range(3))
        add(model, Op.NNADAPTER_ADD, [x, z, constant(model, 0)], y)
        add(model, Op.NNADAPTER_ABS, [y], z)
        return x, y

    def twice(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y = float32(model, 2), float32(model, 2)
        for _ in range(2):
            add(model, Op.NNADAPTER_ABS, [x], y)
        return x, y

    def another_type(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y = float32(model, 2), operand(model, Type(INT32, (2,)))
        add(model, Op.NNADAPTER_ABS, [x], y)
        return x, y

    def another_shape(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y = float32(model, 2), float32(model, 3)
        add(model, Op.NNADAPTER_ABS, [x], y)
        return x, y

    def another_output(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y = float32(model, 2), float32(model, 2)
        add(model, Op.NNADAPTER_ABS, [x], y, float32(model, 2))
        return x, y

    def a_broken_rule(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y = float32(model, 2), float32(model)
        add(model, Op.NNADAPTER_SOFTMAX, [x, constant(model, 5)], y)
        return x, y

    def onto_a_constant(model: NNAdapterModel) -> Sequence[NNAdapterOperand]:
        x, y = float32(model, 1), float32(model)
        add(model, Op.NNADAPTER_ABS, [x], constant(model, 1.5))
        add(model, Op.NNADAPTER_ABS, [x], y)
        return x, y

    invalid_dimensions, invalid = (
        Code.NNADAPTER_INVALID_DIMENSIONS,
        Code.NNADAPTER_INVALID_PARAMETER,
    )
    defects: list[tuple[Callable[[NNAdapterModel], Sequence[NNAdapterOperand]], Code, str]] = [
        (nothing_made, invalid, "nothing makes it"),
        (from_nowhere, invalid, "made by no operation"),
        (in_a_circle, invalid, "its own output"),
        (twice, invalid, "made by abs_0 and by abs_1"),
        (another_type, invalid, "declared int32[2]"),
        (another_shape, invalid_dimensions, "declared float32[3]"),
        (another_output, invalid, "makes 1 output operands, not 2"),
        (a_broken_rule, invalid, "SOFTMAX.axis"),
        (onto_a_constant, invalid, "is a constant"),
    ]
    for defect, code, text in defects:
        model = new()
        x, y = defect(model)
        wrong(NNAdapterModel_finish(model), code=invalid, text="not been identified")
        done(NNAdapterModel_identifyInputsAndOutputs(model, [x], [y]))
        wrong(NNAdapterModel_finish(model), code, text)


def test_operands_of_another_model_are_refused() -> None:
    model, other = new(), new()
    x, y = float32(model, 2), float32(other, 2)
    answer = NNAdapterModel_addOperation(model, Op.NNADAPTER_ABS, [x], [y])
    wrong(answer, Code.NNADAPTER_INVALID_PARAMETER, "another model")
    code = NNAdapterModel_identifyInputsAndOutputs(model, [y], [x])
    wrong(code, Code.NNADAPTER_INVALID_PARAMETER, "another model")
    wrong(
        NNAdapterModel_addOperation(model, 96, [x], [x]),
        *(Code.NNADAPTER_INVALID_PARAMETER, "no operator 96"),
    )


def test_no_axes_are_one_element() -> None:
    model = new()
    x, y, z = float32(model), operand(model, Type(FLOAT32)), float32(model)
    done(NNAdapterModel_setOperandValue(y, np.float32(2), True))
    add(model, Op.NNADAPTER_MUL, [x, y, constant(model, 0)], z)
    (found,) = run_once(finish(model, [x], z), [np.array(3, np.float32)])
    assert found.shape == ()
    assert found == 6
