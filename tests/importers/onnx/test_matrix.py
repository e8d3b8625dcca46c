"""Matrix products, normalizations and reductions, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 3, 4, 5)).astype(np.float32)
A = RNG.standard_normal((4, 5)).astype(np.float32)
B = RNG.standard_normal((5, 6)).astype(np.float32)
C = RNG.standard_normal(6).astype(np.float32)
STATISTICS = [RNG.random(3).astype(np.float32) + np.float32(0.5) for _ in range(4)]

REDUCTIONS = [
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
]

Agree = Callable[..., None]


def test_matmul(agree: Agree) -> None:
    agree("MatMul", A, B, opsets=[7, 9, 13, 26])
    agree("MatMul", X, B.tolist(), opsets=[7, 26])
    agree("MatMul", X, X.swapaxes(2, 3), opsets=[7, 26])
    agree("MatMul", C[:5], B, opsets=[7, 26])
    agree("MatMul", A, C[:5], opsets=[7, 26])


@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm(agree: Agree, trans_a: int, trans_b: int) -> None:
    a, b = A.T if trans_a else A, B.T if trans_b else B
    for c in (C, C.tolist(), C[:1], [[2.0]], C[None]):
        agree("Gemm", a, b.tolist(), c, opsets=[7, 26], transA=trans_a, transB=trans_b)
    agree("Gemm", a, b, C, opsets=[7, 9, 13], transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)
    agree("Gemm", a, b, C, opsets=[11], transA=trans_a, transB=trans_b, beta=0.0)
    agree("Gemm", a, b, opsets=[11, 13, 26], transA=trans_a, transB=trans_b, alpha=0.5)


def test_batch_normalization(agree: Agree) -> None:
    agree("BatchNormalization", X, *STATISTICS, opsets=[7, 9, 14, 15, 26])
    constant = [array.tolist() for array in STATISTICS]
    agree("BatchNormalization", X, *constant, opsets=[7, 9, 14, 15, 26], epsilon=0.1, momentum=0.5)
    agree("BatchNormalization", X[:, :, 0, 0], *constant, opsets=[9, 15])
    agree("BatchNormalization", X, *constant, opsets=[7], spatial=1)
    agree("BatchNormalization", X, *constant, opsets=[15], training_mode=0)


def test_layer_normalization(agree: Agree) -> None:
    agree("LayerNormalization", X, C[:5], C[1:], opsets=[17, 26])
    agree("LayerNormalization", X, C[:5].tolist(), opsets=[17, 26])
    agree("LayerNormalization", X, C[:5], opsets=[17, 26], epsilon=0.1)
    agree("LayerNormalization", X, A, A, opsets=[17, 26], axis=2, stash_type=1)


@pytest.mark.parametrize(
    ("op", "since"), [("ReduceMean", 18), ("ReduceSum", 13), ("ReduceMax", 18)]
)
def test_reduction(agree: Agree, op: str, since: int) -> None:
    before, after = [7, 11, since - 1], [since, 26]
    for keepdims in (0, 1):
        agree(op, X, opsets=before, axes=[1, 2], keepdims=keepdims)
        agree(op, X, [1, 2], opsets=after, keepdims=keepdims)
        agree(op, X, opsets=before + after, keepdims=keepdims)
    agree(op, X, opsets=[11, since - 1], axes=[-1])
    agree(op, X, np.array([-1, 0]), opsets=after)
    agree(op, X, opsets=after, noop_with_empty_axes=1)
    agree(op, X, [3], opsets=after, noop_with_empty_axes=1)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduction_of_no_axes(agree: Agree, op: str) -> None:
    """Each element by itself: what else the operator computes stays."""
    after = [13, 18, 26] if op == "ReduceSum" else [18, 21, 26]
    none = np.zeros(0, np.int64)
    for x in (X, np.array([-3.0, 0.0, 1e30, np.inf, -np.inf, np.nan], np.float32)):
        for axes in ([], [none], [()]):
            for keepdims in (0, 1):
                given = {"noop_with_empty_axes": 1, "keepdims": keepdims}
                dynamic = False if axes and isinstance(axes[0], np.ndarray) else None
                agree(op, x, *axes, opsets=after, dynamic=dynamic, **given)
