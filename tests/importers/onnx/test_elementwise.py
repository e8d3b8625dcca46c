"""Arithmetic and activations, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

RNG = np.random.default_rng(1)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
ROW = RNG.standard_normal((4, 1)).astype(np.float32)
INTEGERS = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
NONZERO = np.where(INTEGERS == 0, 2, INTEGERS)[1:2].astype(np.int32)

Agree = Callable[..., None]


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_binary(agree: Agree, op: str) -> None:
    agree(op, X, POSITIVE, opsets=[7, 13, 14, 26])
    agree(op, X, np.abs(ROW), opsets=[7, 26])
    agree(op, X, [2.0], opsets=[7, 26])
    agree(op, INTEGERS, NONZERO, opsets=[7, 26])


def test_power(agree: Agree) -> None:
    agree("Pow", POSITIVE, ROW, opsets=[7, 12, 13, 15, 26])
    agree("Pow", X, [2], opsets=[12, 26])
    agree("Pow", INTEGERS, np.float32(2.0), opsets=[12, 26])
    agree("Pow", INTEGERS, np.int32(3), opsets=[12, 26])


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_variadic(agree: Agree, op: str) -> None:
    agree(op, X, POSITIVE, -X, opsets=[7])
    agree(op, X, ROW, [0.5], opsets=[8, 12, 13, 26])
    agree(op, X, opsets=[8, 26])
    agree(op, INTEGERS, NONZERO, opsets=[12, 26])


@pytest.mark.parametrize("op", ["Sqrt", "Exp"])
def test_functions(agree: Agree, op: str) -> None:
    agree(op, POSITIVE, opsets=[7, 13, 26])


@pytest.mark.parametrize("op", ["Relu", "Sigmoid", "Tanh"])
def test_activations(agree: Agree, op: str) -> None:
    agree(op, X, opsets=[7, 13, 26])


def test_activations_with_attributes(agree: Agree) -> None:
    agree("LeakyRelu", X, opsets=[7, 16, 26])
    agree("LeakyRelu", X, opsets=[7, 16], alpha=0.3)
    agree("HardSigmoid", X * 3, opsets=[7, 22, 26])
    agree("HardSigmoid", X * 3, opsets=[7, 22], alpha=0.4, beta=0.1)
    agree("HardSwish", X * 3, opsets=[14, 22, 26])


def test_clip_by_attributes(agree: Agree) -> None:
    agree("Clip", X, opsets=[7, 10])
    agree("Clip", X, opsets=[7, 10], min=-0.5)
    agree("Clip", X, opsets=[7, 10], min=-0.5, max=0.25)


def test_clip_by_inputs(agree: Agree) -> None:
    low, high = np.float32(-0.5), np.float32(0.25)
    agree("Clip", X, opsets=[11, 12, 13, 26])
    agree("Clip", X, low, high, opsets=[11, 12, 13, 26])
    agree("Clip", X, None, high, opsets=[11, 26])
    agree("Clip", X, np.array(low), np.array(high), opsets=[11, 26])
    agree("Clip", X, high, low, opsets=[13])
    agree("Clip", INTEGERS, np.int32(-3), np.int32(4), opsets=[12, 26])
    agree("Clip", INTEGERS, None, np.array(4, np.int32), opsets=[12, 26])
    agree("Clip", INTEGERS, opsets=[12, 26])


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2])
def test_softmax(agree: Agree, axis: int) -> None:
    agree("Softmax", X, opsets=[11, 12, 13, 26], axis=axis)
    agree("Softmax", X[0], opsets=[7, 11, 13], axis=max(-1, axis - 1))


def test_softmax_defaults(agree: Agree) -> None:
    agree("Softmax", X, opsets=[7, 11, 13, 26])
    agree("Softmax", X[0, 0], opsets=[7, 13])
    agree("Softmax", X[0, 0, 0], opsets=[11, 13], axis=0)
    agree("Softmax", X[:, :, :1, :1], opsets=[7, 12])
