"""Convolutions and poolings, against ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

RNG = np.random.default_rng(2)
X = RNG.standard_normal((2, 4, 9, 7)).astype(np.float32)
FILTER = RNG.standard_normal((6, 4, 3, 2)).astype(np.float32)
DEPTHWISE = RNG.standard_normal((4, 1, 3, 3)).astype(np.float32).tolist()
BIAS = RNG.standard_normal(6).astype(np.float32).tolist()
TRANSPOSED = RNG.standard_normal((4, 3, 3, 2)).astype(np.float32)
VERSIONS = [7, 11, 22, 26]

Agree = Callable[..., None]


def test_conv(agree: Agree) -> None:
    agree("Conv", X, FILTER, opsets=VERSIONS)
    agree("Conv", X, FILTER.tolist(), BIAS, opsets=VERSIONS, kernel_shape=[3, 2])
    agree("Conv", X, FILTER, BIAS, opsets=[7, 22], pads=[1, 0, 2, 1], strides=[2, 3])
    agree("Conv", X, FILTER, opsets=[7, 22], dilations=[2, 3], pads=[0, 1, 2, 3])
    agree("Conv", X, DEPTHWISE, opsets=[7, 22], group=4, pads=[1, 1, 1, 1])
    agree("Conv", X, FILTER[:, :2].tolist(), opsets=[7, 22], group=2, auto_pad="NOTSET")


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_conv_auto_pad(agree: Agree, auto_pad: str) -> None:
    agree("Conv", X, FILTER.tolist(), opsets=VERSIONS, auto_pad=auto_pad)
    for strides in [(2, 2), (3, 1), (4, 4)]:
        agree("Conv", X, FILTER.tolist(), dynamic=False, opsets=[7, 22], auto_pad=auto_pad,
              strides=strides)  # fmt: skip


def test_conv_transpose(agree: Agree) -> None:
    agree("ConvTranspose", X, TRANSPOSED, opsets=VERSIONS)
    agree("ConvTranspose", X, TRANSPOSED.tolist(), BIAS[:3], opsets=VERSIONS, strides=[2, 3])
    agree("ConvTranspose", X, TRANSPOSED, opsets=[7, 22], pads=[1, 0, 2, 1], strides=[2, 2],
          output_padding=[1, 0])  # fmt: skip
    agree("ConvTranspose", X, TRANSPOSED.tolist(), opsets=[7, 22], dilations=[2, 3])
    agree("ConvTranspose", X, TRANSPOSED.tolist(), opsets=[7, 22], group=2, auto_pad="VALID")


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_conv_transpose_of_given_size(agree: Agree, auto_pad: str) -> None:
    for shape in [(18, 14), (17, 14), (19, 15)]:
        agree("ConvTranspose", X, TRANSPOSED.tolist(), dynamic=False, opsets=[11, 22],
              strides=[2, 2], output_shape=shape, auto_pad=auto_pad)  # fmt: skip


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_conv_transpose_same(agree: Agree, auto_pad: str) -> None:
    for strides in [(1, 1), (2, 2), (3, 1)]:
        agree("ConvTranspose", X, TRANSPOSED.tolist(), opsets=[11, 22], auto_pad=auto_pad,
              strides=strides)  # fmt: skip


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_pooling(agree: Agree, op: str) -> None:
    agree(op, X, opsets=[7, 8, 10, 11, 12, 19, 22, 26], kernel_shape=[3, 2])
    agree(op, X, opsets=[7, 22], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 0, 2, 1])
    agree(op, X, opsets=[10, 22], kernel_shape=[3, 3], strides=[2, 3], ceil_mode=1)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_pooling_auto_pad(agree: Agree, op: str, auto_pad: str) -> None:
    agree(op, X, opsets=[7, 11, 22], kernel_shape=[3, 2], auto_pad=auto_pad)
    for strides, ceil_mode in itertools.product([(2, 2), (3, 1)], [0, 1]):
        agree(op, X, dynamic=False, opsets=[10, 22], kernel_shape=[3, 2], auto_pad=auto_pad,
              strides=strides, ceil_mode=ceil_mode)  # fmt: skip


def test_average_that_counts_padding(agree: Agree) -> None:
    agree("AveragePool", X, opsets=[7, 11, 19, 22], kernel_shape=[3, 3], pads=[1, 1, 1, 1],
          strides=[2, 2], count_include_pad=1)  # fmt: skip


@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_no_window_starts_in_the_padding(agree: Agree, op: str) -> None:
    for size, stride in itertools.product(range(4, 10), range(1, 4)):
        agree(op, X[:, :, :size, :size], dynamic=False, opsets=[10, 22], kernel_shape=[3, 3],
              strides=[stride, stride], pads=[0, 1, 2, 1], ceil_mode=1)  # fmt: skip


def test_global_average_pool(agree: Agree) -> None:
    agree("GlobalAveragePool", X, opsets=[7, 22, 26])
    agree("GlobalAveragePool", X[0], opsets=[7, 22])
    agree("GlobalAveragePool", X[..., None], opsets=[7, 22])
