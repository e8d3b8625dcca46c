"""Examples of recurrent networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crosschip.ir import Array, ElementType
from crosschip.ops.definition.examples import Example, example, examples, model_input, random
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction, DynamicQuantizeLSTM


def _weights(gates: int, passes: int, **more: object) -> dict[str, Any]:
    """Return arguments for 4 time steps, batch size 2, input size 5 and hidden size 3."""
    return {
        "input": random(4, 2, 5),
        "weight": random(passes, gates * 3, 5, low=-1, high=1),
        "recurrence_weight": random(passes, gates * 3, 3, low=-1, high=1),
        **more,
    }


def _examples(gates: int, functions: int) -> Iterator[Example]:
    """Yield examples of the features that all cells share."""
    bias = random(1, gates * 6, low=-1, high=1)
    yield example(**_weights(gates, 1), bias=bias)
    yield example(**_weights(gates, 1, direction=Direction.REVERSE))
    yield example(
        **_weights(gates, 2, direction=Direction.BIDIRECTIONAL),
        bias=random(2, gates * 6, low=-1, high=1),
        initial_hidden=random(2, 2, 3),
    )
    yield example(
        **_weights(gates, 1), bias=bias, sequence_lengths=model_input(np.array([4, 2], np.int32))
    )
    yield example(
        **_weights(gates, 2, direction=Direction.BIDIRECTIONAL),
        sequence_lengths=model_input(np.array([1, 3], np.int32)),
    )
    yield example(**_weights(gates, 1), clip=0.5)
    yield example(
        **_weights(gates, 1),
        activations=[CellFunction.HARD_SIGMOID, *[CellFunction.RELU] * (functions - 1)],
        activation_alpha=[0.25] * functions,
    )


examples(RNN, *_examples(1, 1))

examples(GRU, *_examples(3, 2), example(**_weights(3, 1), linear_before_reset=True))

examples(
    LSTM,
    *_examples(4, 3),
    example(
        **_weights(4, 1),
        initial_hidden=random(1, 2, 3),
        initial_cell=random(1, 2, 3),
        peephole=random(1, 9),
    ),
    example(**_weights(4, 1), input_forget=True),
)


def _bytes_of(*shape: int) -> Array:
    """Return constant pseudorandom 8-bit integers."""
    return (np.arange(np.prod(shape)) * 53 % 251).astype(np.uint8).reshape(shape)


def _in_bytes(passes: int, **more: object) -> dict[str, Any]:
    """Return arguments with constant 8-bit weights, scaled to [-1, 1]."""
    return {
        **_weights(4, passes),
        "weight": _bytes_of(passes, 12, 5),
        "recurrence_weight": _bytes_of(passes, 12, 3),
        "weight_zero_point": np.full(passes, 130, np.uint8),
        "weight_scale": np.linspace(0.002, 0.007, passes, dtype=np.float32),
        "recurrence_weight_scale": np.linspace(0.002, 0.007, passes, dtype=np.float32),
        "recurrence_weight_zero_point": np.full(passes, 120, np.uint8),
        **more,
    }


examples(
    DynamicQuantizeLSTM,
    example(**_in_bytes(1), bias=_bytes_of(1, 24).astype(np.float32) / 256),
    example(
        **_in_bytes(2, direction=Direction.BIDIRECTIONAL),
        initial_hidden=random(2, 2, 3),
        initial_cell=random(2, 2, 3),
    ),
    example(**_in_bytes(1), sequence_lengths=model_input(np.array([4, 2], np.int32))),
    example(**_in_bytes(1), peephole=np.linspace(-1, 1, 9, dtype=np.float32).reshape(1, 9)),
    example(
        **_weights(4, 1, direction=Direction.REVERSE)
        | {
            "weight": random(1, 12, 5, dtype=ElementType.UINT8, low=20, high=228),
            "recurrence_weight": random(1, 12, 3, dtype=ElementType.UINT8, low=20, high=228),
            "weight_scale": random(1, 12, low=0.002, high=0.01),
            "recurrence_weight_scale": random(1, low=0.002, high=0.01),
            "recurrence_weight_zero_point": random(1, dtype=ElementType.UINT8, low=99, high=150),
        }
    ),
    example(
        input=random(4, 2, 5),
        input_forget=True,
        weight=(_bytes_of(1, 12, 5) ^ 128).view(np.int8),
        recurrence_weight=(_bytes_of(1, 12, 3) ^ 128).view(np.int8),
        weight_scale=np.linspace(0.002, 0.007, 12, dtype=np.float32)[None],
        recurrence_weight_scale=np.array([0.006], np.float32),
    ),
)
