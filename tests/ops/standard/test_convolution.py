"""Convolutions, compared with PyTorch, hand computation, and ONNX's padding rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import functional, of_onnx, torch

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, ModelError, Operand, Quantization, TensorType
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import AutoPad
from crosschip.ops.standard.convolution import (
    Conv1D,
    Conv1DTranspose,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    Conv3DTranspose,
)
from crosschip.ops.standard.pooling import (
    AveragePool2D,
    MaxPool2D,
)

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

NAMES = {AutoPad.SAME: "SAME_UPPER", AutoPad.SAME_LOWER: "SAME_LOWER", AutoPad.VALID: "VALID"}


def floats(*shape: int) -> Array:
    return np.random.default_rng(21).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("auto_pad", NAMES)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("kernel", [(3, 2), (4, 5)], ids=str)
def test_automatic_padding(
    check: Checker, auto_pad: AutoPad, strides: tuple[int, int], kernel: tuple[int, int]
) -> None:
    given: dict[str, Any] = {"auto_pad": auto_pad, "strides": strides}
    filters = floats(3, 2, *kernel)
    conv = of_onnx("Conv", auto_pad=NAMES[auto_pad], strides=strides)
    check(lambda b, x: b.add(Conv2D, x, filters, **given), lambda x: conv(x, filters), (2, 2, 8, 9))


@pytest.mark.parametrize("auto_pad", [AutoPad.SAME, AutoPad.SAME_LOWER])
@pytest.mark.parametrize("strides", [(2, 2), (3, 1)], ids=str)
def test_automatic_cutting(check: Checker, auto_pad: AutoPad, strides: tuple[int, int]) -> None:
    filters = floats(2, 3, 4, 3)
    conv = of_onnx("ConvTranspose", auto_pad=NAMES[auto_pad], strides=strides)
    check(
        lambda b, x: b.add(Conv2DTranspose, x, filters, auto_pad=auto_pad, strides=strides),
        lambda x: conv(x, filters),
        (2, 2, 4, 5),
    )


IMAGES = {1: (7,), 2: (7, 6), 3: (5, 7, 6)}
KERNELS = {1: (3,), 2: (3, 2), 3: (2, 3, 2)}


@pytest.mark.parametrize("auto_pad", NAMES)
@pytest.mark.parametrize("operator", [Conv1D, Conv3D])
def test_images_of_other_ranks(
    check: Checker, operator: type[Conv1D | Conv3D], auto_pad: AutoPad
) -> None:
    rank = operator.spatial_rank
    pads = (1, 0, 0, 2, 1, 1)[: 2 * rank] if auto_pad is AutoPad.NONE else (0,) * 2 * rank
    strides, filters, bias = (2, 1, 3)[:rank], floats(4, 2, *KERNELS[rank]), floats(4)
    given = {"auto_pad": auto_pad, "pads": pads, "strides": strides, "group": 2}
    padding: dict[str, Any] = (
        {"pads": (*pads[::2], *pads[1::2])} if auto_pad is AutoPad.NONE else {}
    )
    conv = of_onnx("Conv", auto_pad=NAMES[auto_pad], strides=strides, group=2, **padding)
    check(
        lambda b, x: b.add(operator, x, filters, bias, **given),
        lambda x: conv(x, filters, bias),
        (2, 4, *IMAGES[rank]),
    )


@pytest.mark.parametrize("operator", [Conv1DTranspose, Conv3DTranspose])
def test_transposed_convolutions_of_other_ranks(
    check: Checker, operator: type[Conv1DTranspose | Conv3DTranspose]
) -> None:
    rank = operator.spatial_rank
    pads, strides, more = (1, 0, 0, 1, 0, 0)[: 2 * rank], (2, 1, 3)[:rank], (1, 0, 2)[:rank]
    filters, bias = floats(4, 2, *KERNELS[rank]), floats(2)
    given = {"pads": pads, "strides": strides, "output_padding": more}
    conv = of_onnx(
        "ConvTranspose",
        strides=strides,
        output_padding=more,
        pads=(*pads[::2], *pads[1::2]),
    )
    check(
        lambda b, x: b.add(operator, x, filters, bias, **given),
        lambda x: conv(x, filters, bias),
        (2, 4, *IMAGES[rank]),
    )


def test_a_transposed_convolution_is_filled_up() -> None:
    """Windows of 1 at strides of 3 leave two rows after the last window, which hold the bias."""
    x = np.ones((1, 1, 2, 1), np.float32)
    for settings in ({"auto_pad": AutoPad.SAME}, {"output_shape": (6, 1)}):
        arrays = [x, 2 * x[:, :, :1], np.ones(1, np.float32)]
        rows = computed(Conv2DTranspose, arrays, strides=(3, 1), **settings)
        assert rows.ravel().tolist() == [3, 1, 1, 3, 1, 1]


def computed(
    operator: type[Operator],
    arrays: Sequence[Array],
    quantizations: Sequence[Quantization | None] = (None, None, None),
    **settings: Any,
) -> Array:
    """Return the reference's output."""
    b = Builder()
    b.output("y", b.add(operator, *operands(b, arrays, quantizations), **settings))
    (result,) = ReferenceDevice().compile(b.build(), Options()).run(arrays)
    return result


def operands(
    b: Builder, arrays: Sequence[Array], quantizations: Sequence[Quantization | None]
) -> list[Operand]:
    return [
        b.input(str(index), TensorType(ElementType.of(array.dtype), array.shape, quantization))
        for index, (array, quantization) in enumerate(zip(arrays, quantizations, strict=False))
    ]


def integers(dtype: Any, low: int, high: int, *shape: int) -> Array:
    return np.random.default_rng(22).integers(low, high, shape).astype(dtype)


# The scales are powers of two, so that a float64 holds every sum exactly.
FILTERS = [
    (Quantization((2.0**-5,)), Quantization((2.0**-9,))),
    (
        Quantization((2.0**-5, 2.0**-4, 2.0**-7), axis=0),
        Quantization((2.0**-9, 2.0**-8, 2.0**-11), axis=0),
    ),
]


@pytest.mark.parametrize(("scales", "bias_scales"), FILTERS, ids=["layer", "channels"])
@pytest.mark.parametrize("fuse", [Fuse.NONE, Fuse.RELU])
def test_quantized(scales: Quantization, bias_scales: Quantization, fuse: Fuse) -> None:
    """Compute like an accelerator: accumulate in int32, then scale and round once."""
    x = integers(np.int8, -128, 128, 2, 4, 6, 7)
    filters = integers(np.int8, -127, 128, 3, 4, 3, 2)
    bias = integers(np.int32, -5000, 5000, 3)
    own = Quantization((2.0**-4,))
    actual = computed(
        Conv2D,
        [x, filters, bias],
        [own, scales, bias_scales],
        strides=(2, 1),
        fuse_code=fuse,
        quantization=Quantization((3.0,)),
    )
    columns = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32), (3, 2), (2, 3))
    sums = np.einsum("nchwij,ocij->nohw", columns[:, :, ::2], filters.astype(np.int32))
    sums = sums + bias[:, None, None]
    units = np.array(scales.scale)[:, None, None] * own.scale[0]
    steps = np.rint(sums * units / 3.0)
    expected = np.clip(steps, 0 if fuse is Fuse.RELU else -128, 127).astype(np.int8)
    np.testing.assert_array_equal(actual, expected)
    assert len(np.unique(expected)) > 10


def test_a_bias_in_another_unit_is_refused() -> None:
    arrays = [
        integers(np.int8, -9, 9, 1, 2, 4, 4),
        integers(np.int8, -9, 9, 3, 2, 2, 2),
        integers(np.int32, -9, 9, 3),
    ]
    for bias, why in (
        (Quantization((0.125,)), "its scale 0.125 is not"),
        (Quantization((0.25,), (3,)), "must be symmetric int32"),
    ):
        b, scales = Builder(), [Quantization((0.5,)), Quantization((0.5,)), bias]
        with pytest.raises(ModelError, match=f"CONV_2D.bias: .*{why}"):
            b.add(Conv2D, *operands(b, arrays, scales))


REFUSED: list[tuple[type[Operator], dict[str, Any], str]] = [
    (Conv2D, {"pads": (0, -1, 0, 0)}, "pads: .* not all 0 or more"),
    (Conv2D, {"dilations": (0, 1)}, "dilations: .* positive"),
    (Conv2D, {"group": 0}, "group: 0 is not positive"),
    (Conv2D, {"auto_pad": 4}, "auto_pad: 4 is not a valid AutoPad"),
    (Conv2DTranspose, {"strides": (0, 1)}, "strides: .* positive"),
    (Conv2DTranspose, {"output_padding": (0, -1)}, "output_padding: .* negative"),
    (Conv2DTranspose, {"pads": (9, 9, 0, 0)}, "pads: .* cut off more than there is"),
    (Conv2DTranspose, {"group": 3}, "group: 3 does not divide 4 input channels"),
]


@pytest.mark.parametrize(("operator", "settings", "why"), REFUSED)
def test_refused(operator: type[Operator], settings: dict[str, Any], why: str) -> None:
    b = Builder()
    arrays = [floats(1, 4, 5, 5), floats(4, 4, 2, 2)]
    with pytest.raises(ModelError, match=f"{operator.type}.{why}"):
        b.add(operator, *operands(b, arrays, (None, None)), **settings)


# `pads` of the operators are top, bottom, left, right; PyTorch's are left, right, top, bottom.
PADS = [(0, 0, 0, 0), (1, 1, 1, 1), (0, 1, 2, 0), (2, 0, 1, 3)]


def padded(image: Any, pads: tuple[int, ...], value: float = 0.0) -> Any:
    top, bottom, left, right = pads
    return functional.pad(image, (left, right, top, bottom), value=value)


@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("dilations", [(1, 1), (2, 1)], ids=str)
@pytest.mark.parametrize("group", [1, 2, 4])
def test_convolution(
    check: Checker,
    pads: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    group: int,
) -> None:
    def like(x: Array, filters: Array, bias: Array | None = None) -> Any:
        return functional.conv2d(
            padded(torch.from_numpy(x), pads),
            torch.from_numpy(filters),
            None if bias is None else torch.from_numpy(bias),
            strides,
            dilation=dilations,
            groups=group,
        )

    def conv(b: Any, *operands: Any) -> Any:
        return b.add(
            Conv2D, *operands, pads=pads, strides=strides, dilations=dilations, group=group
        )

    filters = np.random.default_rng(2).normal(size=(8, 4 // group, 3, 2)).astype(np.float32)
    check(
        lambda b, x: conv(b, x, filters, np.arange(8, dtype=np.float32)),
        lambda x: like(x, filters, np.arange(8, dtype=np.float32)),
        (2, 4, 8, 9),
    )
    check(
        lambda b, x: conv(b, x, filters),
        lambda x: like(x, filters),
        (2, 4, 8, 9),
    )


# For an image of 8 by 9: `ceil(8 / stride_h)` and `ceil(9 / stride_w)` windows, an odd rest last.
SAME = [
    ((3, 3), (1, 1), (1, 1, 1, 1)),
    ((2, 4), (1, 1), (0, 1, 1, 2)),
    ((3, 3), (2, 2), (0, 1, 1, 1)),
    ((5, 2), (3, 3), (1, 2, 0, 0)),
    ((1, 1), (2, 2), (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("kernel", "strides", "pads"), SAME, ids=str)
def test_same_padding(
    check: Checker, kernel: tuple[int, int], strides: tuple[int, int], pads: tuple[int, ...]
) -> None:
    filters = np.random.default_rng(3).normal(size=(5, 4, *kernel)).astype(np.float32)
    given: dict[str, Any] = {"auto_pad": AutoPad.SAME, "strides": strides}
    check(
        lambda b, x: b.add(Conv2D, x, filters, **given),
        lambda x: functional.conv2d(
            padded(torch.from_numpy(x), pads), torch.from_numpy(filters), None, strides
        ),
        (2, 4, 8, 9),
    )
    check(
        lambda b, x: b.add(MaxPool2D, x, kernel_shape=kernel, **given),
        lambda x: functional.max_pool2d(
            padded(torch.from_numpy(x), pads, -np.inf), kernel, strides
        ),
        (2, 4, 8, 9),
    )
    check(
        lambda b, x: b.add(AveragePool2D, x, kernel_shape=kernel, count_include_pad=True, **given),
        lambda x: functional.avg_pool2d(padded(torch.from_numpy(x), pads), kernel, strides),
        (2, 4, 8, 9),
    )


def test_valid_padding_ignores_pads(check: Checker) -> None:
    filters = np.ones((3, 4, 3, 3), np.float32)
    check(
        lambda b, x: b.add(Conv2D, x, filters, auto_pad=AutoPad.VALID, pads=(1, 1, 1, 1)),
        lambda x: functional.conv2d(torch.from_numpy(x), torch.from_numpy(filters)),
        (2, 4, 8, 9),
    )


@pytest.mark.parametrize("pads", PADS, ids=str)
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)], ids=str)
@pytest.mark.parametrize("dilations", [(1, 1), (1, 2)], ids=str)
@pytest.mark.parametrize("group", [1, 2, 4])
def test_transposed_convolution(
    check: Checker,
    pads: tuple[int, ...],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    group: int,
) -> None:
    filters = np.random.default_rng(4).normal(size=(4, 6 // group, 3, 4)).astype(np.float32)
    if group == 4:
        filters = filters[:, :1]
    top, bottom, left, right = pads

    def like(x: Array) -> Any:
        whole = functional.conv_transpose2d(
            torch.from_numpy(x),
            torch.from_numpy(filters.copy()),
            None,
            strides,
            groups=group,
            dilation=dilations,
        )
        return whole[:, :, top : whole.shape[2] - bottom, left : whole.shape[3] - right]

    check(
        lambda b, x: b.add(
            Conv2DTranspose,
            x,
            filters.copy(),
            pads=pads,
            strides=strides,
            group=group,
            dilations=dilations,
        ),
        like,
        (2, 4, 5, 6),
    )


def test_transposed_convolution_with_output_padding(check: Checker) -> None:
    filters = np.random.default_rng(5).normal(size=(4, 6, 3, 3)).astype(np.float32)
    bias = np.arange(6, dtype=np.float32)
    for sizes in ({"output_padding": (1, 0)}, {"output_shape": (10, 11)}):
        check(
            lambda b, x, sizes=sizes: b.add(
                Conv2DTranspose, x, filters, bias, pads=(1, 1, 1, 1), strides=(2, 2), **sizes
            ),
            lambda x: functional.conv_transpose2d(
                torch.from_numpy(x),
                torch.from_numpy(filters),
                torch.from_numpy(bias),
                (2, 2),
                (1, 1),
                (1, 0),
            ),
            (2, 4, 5, 6),
        )
