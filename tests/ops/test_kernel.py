"""Parameter values that a reference reads from `self`."""

from __future__ import annotations

import numpy as np
import pytest

from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.kernel import Kernel
from crosschip.ops.standard.activation import LeakyRelu
from crosschip.ops.standard.reduction import ReduceSum

FLOAT32 = ElementType.FLOAT32
X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def kernel_of(b: Builder) -> Kernel:
    """Return the kernel of the last operation."""
    operation = b.operations[-1]
    assert isinstance(operation, Operator)
    return operation.kernel()


def test_a_constant_parameter_is_decoded_before_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    b.add(LeakyRelu, b.input("x", TensorType(FLOAT32, X.shape)), 0.5)
    kernel = kernel_of(b)

    def decode(array: Array) -> float:
        raise AssertionError("it is decoded in a run")

    monkeypatch.setattr(LeakyRelu.alpha, "decode", decode)
    for _ in range(2):
        (found,) = kernel([X, None])
        np.testing.assert_array_equal(found, [[1, -1, 3], [4, 5, -3]])


def test_a_computed_parameter_is_that_of_the_run() -> None:
    b = Builder()
    axes = b.input("axes", TensorType(ElementType.INT32, (1,)))
    b.add(ReduceSum, b.input("x", TensorType(FLOAT32, X.shape)), axes)
    kernel = kernel_of(b)
    for axis in (0, 1):
        (found,) = kernel([X, np.array([axis], np.int32), None])
        np.testing.assert_array_equal(found, X.sum(axis, keepdims=found.ndim == 2))
