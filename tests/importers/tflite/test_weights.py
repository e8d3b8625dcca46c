"""Weights with a scale for each block, and sparse ones: the same results as LiteRT's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from tests.importers.tflite.layer_cases import PatchedCase
from tests.importers.tflite.single_operator import Case, Draw, LiteRT, Tensor, options

import crosschip
from crosschip.ir import Array

_SEEDS, _NIGHTLY_SEEDS = 4, 300
_TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def litert() -> Iterator[LiteRT]:
    engine = LiteRT()
    yield engine
    engine.close()


def blockwise(draw: Draw) -> Case:
    """Return FULLY_CONNECTED with 4-bit weights that have a scale for each block of a row.

    LiteRT has one kernel that reads these scales: it is optimized, has no activation, and takes at
    least 4 rows of at least 32 elements in whole blocks. The others take all scales for 0.
    """
    block = draw.random.choice([2, 8, 32])
    count = 32 // block * draw.random.randint(1, 3)
    units, size, rows = draw.random.randint(4, 7), block * count, draw.random.randint(1, 4)
    integers = draw.numpy.integers(-8, 8, (units, size)).astype(np.int8)
    scales = draw.reals((units, count), 0.01, 0.5).astype(np.float16)
    bias = Tensor(draw.reals((units,)), constant=True) if draw.chance(0.5) else None
    input = Tensor(draw.reals((rows, size)))

    def patch(model: Any) -> None:
        graph = model.subgraphs[0]
        weight = graph.tensors[1]
        low, high = (integers.reshape(-1)[start::2] & 15 for start in (0, 1))
        model.buffers[weight.buffer].data = (low | high << 4).astype(np.uint8)
        weight.type = schema.TensorType.INT4
        scale = schema.TensorT()
        scale.name, scale.type, scale.shape = "scales", schema.TensorType.FLOAT16, scales.shape
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(scales.tobytes(), np.uint8)
        scale.buffer = len(model.buffers) - 1
        graph.tensors.append(scale)
        weight.quantization = schema.QuantizationParametersT()
        weight.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
        details = weight.quantization.details = schema.BlockwiseQuantizationT()
        details.scales, details.zeroPoints = len(graph.tensors) - 1, -1
        details.blockSize = block

    weights = Tensor(integers, "int8", True, (1.0,), (0,))
    inputs = [input, weights, bias]
    chosen = options("FullyConnected")
    return PatchedCase(
        "FULLY_CONNECTED", inputs, [Tensor()], chosen, 13, optimized=True, patch=patch
    )


def _encode(
    array: Array, order: Sequence[int], blocks: dict[int, int], compressed: Sequence[bool]
) -> tuple[Any, Array]:
    """Return a format of a sparse array, and the elements that it stores.

    Args:
        array: the array.
        order: the axis of each level; those from the rank on are axes of blocks.
        blocks: the size of the blocks of some axes.
        compressed: whether each level lists its indices.
    """
    split: list[int] = []
    for axis, size in enumerate(array.shape):
        split += [size // blocks[axis], blocks[axis]] if axis in blocks else [size]
    inner = [axis + 1 + sum(b < axis for b in blocks) for axis in blocks]
    outer = [n for n in range(len(split)) if n not in inner]
    levels = array.reshape(split).transpose([[*outer, *inner][axis] for axis in order])
    sparsity = schema.SparsityParametersT()
    sparsity.traversalOrder, sparsity.blockMap = list(order), list(blocks)
    sparsity.dimMetadata = []
    parents: list[tuple[int, ...]] = [()]
    for level, size in enumerate(levels.shape):
        metadata = schema.DimensionMetadataT()
        children = [[(*p, n) for n in range(size)] for p in parents]
        if compressed[level]:
            children = [[c for c in some if np.any(levels[c])] for some in children]
            metadata.format = schema.DimensionType.SPARSE_CSR
            metadata.arraySegmentsType = metadata.arrayIndicesType = (
                schema.SparseIndexVector.Int32Vector
            )
            metadata.arraySegments, metadata.arrayIndices = (
                schema.Int32VectorT(),
                schema.Int32VectorT(),
            )
            metadata.arraySegments.values = np.cumsum([0, *map(len, children)]).tolist()
            metadata.arrayIndices.values = [c[-1] for some in children for c in some]
        else:
            metadata.denseSize = size
        sparsity.dimMetadata.append(metadata)
        parents = [c for some in children for c in some]
    return sparsity, np.array([levels[p] for p in parents], array.dtype)


def _sparse_case(case: Case, index: int, sparsity: Any, stored: Array) -> Case:
    """Return a case whose input `index` is sparse."""

    def patch(model: Any) -> None:
        tensor = model.subgraphs[0].tensors[index]
        tensor.sparsity = sparsity
        model.buffers[tensor.buffer].data = np.frombuffer(stored.tobytes(), np.uint8)

    return PatchedCase(
        case.operator, case.inputs, case.outputs, case.options, case.version, patch=patch
    )


def _sparse_array(draw: Draw, shape: tuple[int, ...]) -> Array:
    array = draw.reals(shape, 0.5, 4)
    return np.where(draw.numpy.uniform(size=shape) < 0.6, np.float32(0), array)


def _densify(draw: Draw) -> Case:
    """Return DENSIFY of a random format; the last level is compressed unless a block is."""
    blocks = {axis: draw.random.choice([2, 4]) for axis in range(2) if draw.chance(0.4)}
    shape = tuple(draw.random.randint(1, 3) * blocks.get(axis, 1) for axis in range(2))
    array = _sparse_array(draw, shape)
    array.reshape(-1)[0] = 1.0  # LiteRT takes an empty tensor for one that is no constant
    dtype = draw.random.choice(["float32", "int8"])
    order = [*draw.random.sample([0, 1], 2), *range(2, 2 + len(blocks))]
    compressed = [draw.chance(0.5), True, *[False] * len(blocks)]
    sparsity, stored = _encode(array.astype(dtype), order, blocks, compressed)
    input = Tensor(array.astype(dtype), dtype, True)
    case = Case("DENSIFY", [input], [Tensor(dtype=dtype)], options("Densify"))
    return _sparse_case(case, 0, sparsity, stored)


def _sparse_layer(draw: Draw) -> Case:
    """Return FULLY_CONNECTED with sparse weights: single elements, or blocks of 4 in a row."""
    blocks = {1: 4} if draw.chance(0.5) else {}
    units, size = draw.random.randint(1, 5), 4 * draw.random.randint(1, 4)
    array = _sparse_array(draw, (units, size))
    array[0, 0] = 1.0
    order = range(2 + len(blocks))
    sparsity, stored = _encode(array, order, blocks, [False, True, False])
    input = Tensor(draw.reals((draw.random.randint(1, 4), size)))
    inputs = [input, Tensor(array, constant=True), Tensor(draw.reals((units,)), constant=True)]
    chosen = options("FullyConnected", fusedActivationFunction=draw.random.choice([0, 1, 3]))
    return _sparse_case(Case("FULLY_CONNECTED", inputs, [Tensor()], chosen, 8), 1, sparsity, stored)


_DRAWS = {"blockwise": blockwise, "densify": _densify, "sparse layer": _sparse_layer}


def _check(litert: LiteRT, kind: str, seeds: int, device: str) -> None:
    """Compare a device with LiteRT; it must run at least half of the files."""
    compared, devices = 0, list(dict.fromkeys([device, "reference"]))
    for seed in range(seeds):
        case = _DRAWS[kind](Draw(seed))
        expected = litert.run(case)
        if isinstance(expected, str):
            continue
        model = crosschip.load(case.file())
        inputs = dict(zip(model.inputs, case.arrays(), strict=True))
        with crosschip.compile(model, devices, cache=False) as compiled:
            (actual,) = compiled.run(inputs).values()
        scale = max(1.0, float(np.abs(expected[0]).max()))
        np.testing.assert_allclose(
            actual, expected[0], _TOLERANCE, _TOLERANCE * scale, err_msg=f"seed {seed}: {case}"
        )
        assert actual.dtype == expected[0].dtype
        compared += 1
    assert compared >= seeds / 2


@pytest.mark.parametrize("kind", _DRAWS)
def test_the_reference_computes_what_litert_does(kind: str, litert: LiteRT) -> None:
    _check(litert, kind, _SEEDS, "reference")


@pytest.mark.nightly
@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino", "xla"])
@pytest.mark.parametrize("kind", _DRAWS)
def test_many_files_give_what_litert_does(kind: str, device: str, litert: LiteRT) -> None:
    _check(litert, kind, _NIGHTLY_SEEDS, device)
