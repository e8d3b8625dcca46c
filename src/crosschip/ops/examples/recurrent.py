"""Examples of recurrent networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crosschip.ops.definition.examples import Example, example, examples, given, random
from crosschip.ops.numerics.cells import CellFunction
from crosschip.ops.standard.recurrent import GRU, LSTM, RNN, Direction


def _weights(gates: int, passes: int, **more: object) -> dict[str, Any]:
    """Arguments for 4 time steps of a batch of 2, with 5 values in and 3 hidden ones."""
    return {
        "input": random(4, 2, 5),
        "weight": random(passes, gates * 3, 5, low=-1, high=1),
        "recurrence_weight": random(passes, gates * 3, 3, low=-1, high=1),
        **more,
    }


def _examples(gates: int, functions: int) -> Iterator[Example]:
    """Uses of a cell with so many gates and functions, for what all cells have."""
    bias = random(1, gates * 6, low=-1, high=1)
    yield example(**_weights(gates, 1), bias=bias)
    yield example(**_weights(gates, 1, direction=Direction.REVERSE))
    yield example(
        **_weights(gates, 2, direction=Direction.BIDIRECTIONAL),
        bias=random(2, gates * 6, low=-1, high=1),
        initial_hidden=random(2, 2, 3),
    )
    yield example(
        **_weights(gates, 1), bias=bias, sequence_lengths=given(np.array([4, 2], np.int32))
    )
    yield example(
        **_weights(gates, 2, direction=Direction.BIDIRECTIONAL),
        sequence_lengths=given(np.array([1, 3], np.int32)),
    )
    yield example(**_weights(gates, 1), clip=0.5)
    yield example(
        **_weights(gates, 1),
        activations=[CellFunction.HARD_SIGMOID, *[CellFunction.RELU] * (functions - 1)],
        activation_alpha=[0.25] * functions,
    )


examples(RNN, *_examples(1, 1))

examples(
    GRU,
    *_examples(3, 2),
    example(**_weights(3, 1), linear_before_reset=True),
)

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
