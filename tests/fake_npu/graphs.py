"""Small graphs of the DDK, and running them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fake_npu_ddk import Chip, DataType, Graph, Operator, Settings, Tensor

Array = NDArray[Any]

SOURCE = Tensor(DataType.UINT8, (1, 9, 7, 5), 0.05, 120)
FILTERS = Tensor(DataType.UINT8, (3, 3, 5, 6), 0.02, 131)
MADE = Tensor(DataType.UINT8, (1, 5, 4, 6), 0.1, 30)
POOLED = Tensor(DataType.UINT8, (1, 1, 1, 6), 0.1, 30)


def small() -> Graph:
    """A convolution with a bound, and the mean of its pixels; both are outputs."""
    random = np.random.default_rng(0)
    graph = Graph()
    source = graph.input(SOURCE)
    weights = random.integers(0, 256, FILTERS.shape, np.uint8)
    filters = graph.constant(FILTERS, weights)
    bias = random.integers(-500, 500, 6).astype(np.int32)
    added = graph.constant(Tensor(DataType.INT32, (6,)), bias)
    settings = Settings(strides=(2, 2), pads=(1, 1, 1, 1), low=0.0)
    made = graph.add(Operator.CONV_2D, [source, filters, added], MADE, settings)
    pooled = graph.add(Operator.GLOBAL_AVERAGE_POOL, [made], POOLED)
    graph.output(made)
    graph.output(pooled)
    return graph.finish()


def ran(chip: Chip, program: int, elements: Array, *made: Tensor) -> list[Array]:
    """The outputs of a run of a program with one input."""
    memory = chip.memory
    source = Tensor(DataType.UINT8, elements.shape, 1.0)
    read, *blocks = [memory.allocate(tensor.size) for tensor in (source, *made)]
    memory.copy_in(read, source, elements)
    chip.submit(program, [read], blocks).wait()
    results = [memory.copy_out(*pair) for pair in zip(blocks, made, strict=True)]
    for block in (read, *blocks):
        memory.release(block)
    return results


def picture(seed: int = 0) -> Array:
    """Elements for the input of `small`."""
    return np.random.default_rng(seed).integers(0, 256, SOURCE.shape, np.uint8)
