"""Legalization for a small target: supported operations remain, or the error has reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.lowering.toy_target import OPERATORS, TOY
from tests.modelling import float32, model_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import CompileError
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Model,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.lowering.legalization import Target, legalize
from crosschip.ops import Add, Conv2D, FullyConnected, HardSwish, Relu, Sub
from crosschip.ops.standard.layout import Unsqueeze
from crosschip.passes import Specialize, simplify

WITH_REALS = replace(
    TOY, capabilities=replace(TOY.capabilities, types=frozenset({ElementType.FLOAT32}))
)
"""The same target for models that are not quantized."""

STEPS = Quantization((0.25,))


def classifiers(models: Path) -> dict[str, Model]:
    """Draw image classification networks with batch 1."""
    return {
        path.stem: simplify(Specialize({"x": (1, 3, 224, 224)})(crosschip.load(path)))
        for path in sorted((models / "onnx").glob("*.onnx"))
    }


def run(model: Model, x: Array) -> Sequence[Array]:
    return ReferenceProgram(model).run([x])


def assert_legal(model: Model, target: Target) -> None:
    model.verify()
    assert all(target.query(model).answers)
    assert {operation.type for operation in model.operations} <= OPERATORS
    for operation in model.operations:
        for operand in operation.outputs:
            shape = operand.type.static_shape
            assert shape is not None
            assert len(shape) <= 4
            assert operand.type.element_type in target.capabilities.types


def test_real_models_have_only_legal_operations(models: Path) -> None:
    networks = classifiers(models)
    with pytest.raises(CompileError, match="has 5 axes, more than 4"):
        legalize(networks.pop("shufflenet_v2_x1_0"), WITH_REALS)
    for model in networks.values():
        legal = legalize(model, WITH_REALS)
        assert_legal(legal, WITH_REALS)
    # That computes HARD_SWISH and HARD_SIGMOID, which the target does not.
    model = networks["mobilenet_v3_small"]
    x = np.random.default_rng(3).normal(size=(1, 3, 224, 224)).astype(np.float32)
    result, expected = run(legalize(model, WITH_REALS), x), run(model, x)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_real_models_of_other_types_are_refused_with_reasons(models: Path) -> None:
    for model in classifiers(models).values():
        with pytest.raises(CompileError, match=r"toy: .*float32 is not supported") as error:
            legalize(model, TOY)
        assert error.value.operations


def test_an_operation_that_cannot_be_decomposed_is_named() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Relu, b.add(Unsqueeze, x, (0,), name="fifth"), name="last")

    with pytest.raises(CompileError, match=r"RELU\.input: has 5 axes, more than 4") as error:
        legalize(model_of(make, float32(1, 2, 3, 4)), WITH_REALS)
    assert error.value.operations == {"fifth", "last"}


def test_open_sizes_are_a_reason() -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N"), 3))
    with pytest.raises(CompileError, match=r"RELU\.output: its sizes must be known"):
        legalize(model, WITH_REALS)


def test_a_quantized_model_stays_in_int8() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        filters = b.constant(np.ones((4, 2, 3, 3), np.int8), quantization=STEPS)
        image = b.add(Conv2D, x, filters, name="conv", quantization=STEPS)
        return b.add(Add, b.add(Relu, image, quantization=STEPS), image, quantization=STEPS)

    model = model_of(make, TensorType(ElementType.INT8, (1, 2, 5, 5), STEPS))
    legal = legalize(model, TOY)
    assert legal is model
    assert_legal(legal, TOY)


def test_decomposition_comes_before_the_passes() -> None:
    def make(b: Builder, x: Operand) -> Operand:
        weight = np.eye(3, dtype=np.float32)
        return b.add(FullyConnected, b.add(Sub, b.add(HardSwish, x), x), weight)

    model = model_of(make, float32(2, 3))
    legal = legalize(model, WITH_REALS)
    assert_legal(legal, WITH_REALS)
    types = [operation.type for operation in legal.operations]
    assert "NEG" in types
    assert "SUB" not in types
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    np.testing.assert_allclose(run(legal, x)[0], run(model, x)[0], rtol=1e-6)
