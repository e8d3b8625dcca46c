"""Operators that are expressed by others, in the forms of several opsets, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

RNG = np.random.default_rng(3)


def real(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


X, LINE, VOLUME = real(2, 4, 7, 6), real(2, 4, 9), real(2, 4, 5, 6, 7)

Agree = Callable[..., None]

WINDOWS = [
    {"pads": [1, 0], "strides": [2], "dilations": [2]},
    {"auto_pad": "SAME_LOWER", "strides": [2]},
    {"auto_pad": "VALID"},
]


def on_axes(windows: dict[str, object], rank: int) -> dict[str, object]:
    """Return the attributes of one axis, for as many."""
    return {
        name: [end for end in value for _ in range(rank)] if isinstance(value, list) else value
        for name, value in windows.items()
    }


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_of_lines_and_volumes(
    agree: Agree, windows: dict[str, object], groups: int
) -> None:
    for source, kernel in ((LINE, (3,)), (VOLUME, (3, 2, 3))):
        filter, bias = real(6, 4 // groups, *kernel), real(6)
        attributes = {**on_axes(windows, len(kernel)), "group": groups}
        agree("Conv", source, filter, bias, opsets=[7, 22], dynamic=False, relative=1e-5,
              **attributes)  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    "windows",
    [
        {"pads": [1, 0], "strides": [2], "dilations": [2], "output_padding": [1]},
        {"auto_pad": "SAME_UPPER", "strides": [2]},
        {},
    ],
)
def test_transposed_convolution_of_lines_and_volumes(
    agree: Agree, windows: dict[str, object], groups: int
) -> None:
    for source, kernel in ((LINE, (3,)), (VOLUME, (3, 2, 3))):
        filter, bias = real(4, 6 // groups, *kernel), real(6)
        attributes = {**on_axes(windows, len(kernel)), "group": groups}
        agree("ConvTranspose", source, filter, bias, opsets=[7, 22], dynamic=False, relative=1e-5,
              **attributes)  # fmt: skip


@pytest.mark.parametrize("windows", [*WINDOWS[1:], {"pads": [1, 1], "strides": [2]}])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
def test_poolings_of_lines_and_volumes(
    agree: Agree, operator: str, windows: dict[str, object]
) -> None:
    for source in (LINE, VOLUME):
        rank = source.ndim - 2
        attributes = {**on_axes(windows, rank), "kernel_shape": [3, 2, 3][:rank]}
        agree(operator, source, opsets=[8, 19], dynamic=False, relative=1e-5, **attributes)


def test_places_of_maxima(agree: Agree) -> None:
    for order in (0, 1):
        agree("MaxPool", X, opsets=[8, 22], outputs=2, kernel_shape=[3, 2], strides=[2, 1],
              pads=[1, 0, 1, 1], storage_order=order, dynamic=False)  # fmt: skip
    agree("MaxPool", LINE, opsets=[8], outputs=2, kernel_shape=[3], dynamic=False)


def test_global_poolings(agree: Agree) -> None:
    for source in (LINE, X, VOLUME):
        agree("GlobalMaxPool", source, opsets=[7, 22])
        agree("GlobalLpPool", source, opsets=[7], p=3, relative=1e-5)


EQUATIONS = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("...ij,...jk", [(2, 3, 4), (2, 4, 2)]),
    ("ii->i", [(4, 4)]),
    ("bii->bi", [(2, 4, 4)]),
    ("ijk->j", [(2, 3, 4)]),
    ("i,j->ij", [(3,), (4,)]),
    ("bi,ij,bj->b", [(2, 3), (3, 4), (2, 4)]),
    ("ab,ba->", [(3, 4), (4, 3)]),
    ("...a->a...", [(2, 3, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(agree: Agree, equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [real(*shape) for shape in shapes]
    # Its own inference knows a diagonal's size only if it is given.
    dynamic = False if equation.startswith("ii") else None
    agree("Einsum", *arrays, opsets=[12], equation=equation, relative=1e-5, dynamic=dynamic)


def test_top_k(agree: Agree) -> None:
    agree("TopK", X, opsets=[7], outputs=2, k=3, axis=1)
    agree("TopK", X, [2], opsets=[10, 11, 24], outputs=2, axis=-1)
    agree("TopK", X, [2], opsets=[11, 24], outputs=2, axis=2, largest=0)


def test_splits_into_parts_of_an_open_size(agree: Agree) -> None:
    agree("Split", X, opsets=[7, 13], outputs=2, axis=1)
    agree("Split", X, opsets=[18], outputs=4, axis=2, num_outputs=4)


def test_soft_and_hard_maxima(agree: Agree) -> None:
    for operator in ("Softmax", "LogSoftmax", "Hardmax"):
        for axis in (1, -1, 2):
            agree(operator, X, opsets=[11, 13], axis=axis, dynamic=False, relative=1e-5)


def test_indices(agree: Agree) -> None:
    places = np.array([[0, 1, 2], [3, 0, 1]])
    agree("GatherElements", real(4, 3), places, opsets=[11, 13], axis=0)
    agree("ScatterElements", real(4, 3), places, real(2, 3), opsets=[11, 18], axis=0)
    agree("GatherND", X, np.array([[0, 1], [1, 3]]), opsets=[11, 13])
    agree("ScatterND", real(4, 3), np.array([[1], [3]]), real(2, 3), opsets=[11, 18])
    agree("OneHot", np.array([[1, -1], [5, 0]]), np.array([4]), real(2), opsets=[9, 11], axis=1)
    agree("Compress", X, np.array([True, False, True]), opsets=[9, 11], axis=2)
    agree("Compress", X, np.array([True, False, True]), opsets=[11])
    agree("NonZero", np.array([[1, 0], [2, 3]], np.float32), opsets=[9, 13])
    agree("ReverseSequence", real(4, 3, 2), np.array([1, 4, 2]), opsets=[10])


def test_padding(agree: Agree) -> None:
    pads = [0, 1, 2, 0, 1, 0, 0, 3]
    agree("Pad", X, opsets=[7], pads=pads, value=1.5)
    for mode in ("constant", "reflect", "edge"):
        agree("Pad", X, pads, opsets=[11, 13, 19], mode=mode)
    agree("Pad", X, np.array([1, 0, 2, 1]), None, [-1, 0], opsets=[18, 23])
    agree("Pad", X, [1, 0, -2, 1], np.float32(2), [2, -1], opsets=[18, 23])


def test_reductions(agree: Agree) -> None:
    operators = ["L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
    for operator in operators:
        name = f"Reduce{operator}"
        agree(name, X, opsets=[7, 11], axes=[1, -1], keepdims=0, relative=1e-5)
        agree(name, X, opsets=[13], relative=1e-5)
        agree(name, X, [1, 2], opsets=[18], keepdims=0, relative=1e-5)
    agree("ArgMax", X, opsets=[7, 13], axis=-2, keepdims=0)
    agree("ArgMin", np.ones((2, 3), np.float32), opsets=[12], axis=1, select_last_index=1)
    agree("CumSum", X, np.array(1), opsets=[11, 14], exclusive=1, reverse=1, relative=1e-5)


def test_normalizations(agree: Agree) -> None:
    agree("InstanceNormalization", X, real(4), real(4), opsets=[7, 22], relative=1e-5)
    agree("LRN", X, opsets=[7, 13], size=3, alpha=0.5, beta=0.6, bias=2.0, relative=1e-5)
    for power in (1, 2):
        agree("LpNormalization", X, opsets=[7], p=power, axis=1, relative=1e-5)
    agree("LayerNormalization", X, real(7, 6), real(7, 6), opsets=[17], outputs=3, axis=2,
          relative=1e-4)  # fmt: skip
    agree("MeanVarianceNormalization", X, opsets=[9, 13], relative=1e-4)
    agree("GroupNormalization", X, real(4), real(4), opsets=[21], num_groups=2, relative=1e-5)


def test_integers(agree: Agree) -> None:
    bytes_ = RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    signed = RNG.integers(-128, 128, (4, 5)).astype(np.int8)
    agree("MatMulInteger", bytes_, signed, np.uint8(7), np.int8(-3), opsets=[10])
    image = RNG.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8)
    filter = RNG.integers(0, 256, (3, 2, 3, 3)).astype(np.uint8)
    agree("ConvInteger", image, filter, np.uint8(9), np.uint8(100), opsets=[10], pads=[1] * 4)
    agree("DynamicQuantizeLinear", X, opsets=[11], outputs=3)
    agree("BitShift", bytes_, np.array([1, 2, 3, 0], np.uint8), opsets=[11], direction="RIGHT")
    agree("Mod", np.array([-7, 7, -7], np.int32), np.array([3, -3, -3], np.int32), opsets=[10, 13])
    agree(
        "Mod",
        np.array([-7, 7.5], np.float32),
        np.array([3, -3], np.float32),
        opsets=[10, 13],
        fmod=1,
    )


def test_recurrent_networks(agree: Agree) -> None:
    for operator, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        outputs = 3 if operator == "LSTM" else 2
        weights = real(2, gates * 3, 5), real(2, gates * 3, 3), real(2, gates * 6)
        agree(operator, real(4, 2, 5), *weights, np.array([4, 2], np.int32), opsets=[7, 14],
              outputs=outputs, hidden_size=3, direction="bidirectional",
              relative=1e-5)  # fmt: skip
    agree("LSTM", real(4, 2, 5), real(1, 12, 5), real(1, 12, 3), opsets=[14], outputs=3,
          hidden_size=3, activations=["HardSigmoid", "Relu", "Softsign"],
          activation_alpha=[0.3], activation_beta=[0.4], relative=1e-5)  # fmt: skip


def test_transforms(agree: Agree) -> None:
    signal = real(2, 10, 1)
    for inverse, parts in ((0, 1), (0, 2), (1, 2)):
        agree("DFT", real(2, 10, 3, parts), opsets=[17], axis=1, inverse=inverse,
              dynamic=False, relative=1e-5)  # fmt: skip
    agree("DFT", signal, opsets=[17], onesided=1, dynamic=False, relative=1e-5)
    agree("STFT", signal, np.int64(3), real(4), opsets=[17], dynamic=False, relative=1e-5)


def test_images_from_columns(agree: Agree) -> None:
    agree("Col2Im", real(2, 3 * 6, 24), [6, 5], [2, 3], opsets=[18], dynamic=False,
          pads=[0, 1, 1, 0], relative=1e-5)  # fmt: skip


def test_affine_grids(agree: Agree) -> None:
    for align_corners in (0, 1):
        agree("AffineGrid", real(2, 2, 3), [2, 3, 4, 5], opsets=[20], align_corners=align_corners,
              relative=1e-5)  # fmt: skip


def test_volumes_at_the_places_of_a_grid(agree: Agree) -> None:
    grid = RNG.uniform(-1.3, 1.3, (2, 3, 4, 5, 3)).astype(np.float32)
    for mode in ("linear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align_corners in (0, 1):
                agree("GridSample", VOLUME, grid, opsets=[20], mode=mode, padding_mode=padding,
                      align_corners=align_corners, dynamic=False, relative=1e-4)  # fmt: skip
