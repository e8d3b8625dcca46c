"""The nodes' definitions in NumPy, as OpenHarmony's documents write them; images are NHWC."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from scipy.special import erf, expit

from crosschip.ir import Array

ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "NO_ACTIVATION": lambda x: x,
    "RELU": lambda x: np.maximum(x, 0),
    "SIGMOID": expit,
    "RELU6": lambda x: np.minimum(np.maximum(0, x), 6),
    "ELU": lambda x: np.where(x >= 0, x, 0.7 * (np.exp(x) - 1)),
    "LEAKY_RELU": lambda x: np.where(x >= 0, x, 0.7 * x),
    "ABS": np.abs,
    "RELU1": lambda x: np.minimum(np.maximum(0, x), 1),
    "SOFTSIGN": lambda x: x / (1 + np.abs(x)),
    "SOFTPLUS": lambda x: np.log(1 + np.exp(x)),
    "TANH": np.tanh,
    "SELU": lambda x: 1.05070098 * np.where(x >= 0, x, 1.67326324 * (np.exp(x) - 1)),
    "HSWISH": lambda x: x * np.minimum(np.maximum(0, x + 3), 6) / 6,
    "HSIGMOID": lambda x: np.maximum(0, np.minimum(1, (x + 3) / 6)),
    "THRESHOLDRELU": lambda x: np.minimum(np.maximum(0, x), 1.5),
    "LINEAR": lambda x: x,
    "HARD_TANH": lambda x: np.where(x > 1.5, 1.5, np.where(x < -0.5, -0.5, x)),
    "SIGN": np.sign,
    "SWISH": lambda x: x * expit(x),
    "GELU": lambda x: x * 0.5 * (1 + erf(x / math.sqrt(2))),
}
"""By what follows `ACTIVATION_TYPE_`, with alpha 0.7, minVal -0.5, maxVal 1.5, not approximate."""


def same_padding(size: int, span: int, stride: int) -> tuple[int, int]:
    """The padding that makes `ceil(size / stride)` windows, the larger half at the end."""
    total = max((-(-size // stride) - 1) * stride + span - size, 0)
    return total // 2, total - total // 2


def windows(
    image: Array,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    *,
    fill: float,
    up: bool = False,
) -> Array:
    """Each window of an image: [N, rows, columns, kernel_h, kernel_w, C]."""
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    more = []
    for axis in range(2):
        room = image.shape[1 + axis] + pads[2 * axis] + pads[2 * axis + 1] - spans[axis]
        more.append(-room % stride[axis] if up else 0)
    padded = np.pad(
        image.astype(np.float64),
        [(0, 0), (pads[0], pads[1] + more[0]), (pads[2], pads[3] + more[1]), (0, 0)],
        constant_values=fill,
    )
    counts = [(padded.shape[1 + a] - spans[a]) // stride[a] + 1 for a in range(2)]
    found = np.empty((len(image), *counts, *kernel, image.shape[-1]))
    for y, x in np.ndindex(*counts):
        top, left = y * stride[0], x * stride[1]
        found[:, y, x] = padded[
            :,
            top : top + spans[0] : dilation[0],
            left : left + spans[1] : dilation[1],
        ]
    return found


def conv2d(
    image: Array,
    weight: Array,
    bias: Array,
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    group: int,
) -> Array:
    """The convolution with weights [outC, kH, kW, inC / group]."""
    found = windows(image, weight.shape[1:3], stride, dilation, pads, fill=0)
    out, per = len(weight) // group, weight.shape[3]
    parts = [
        np.einsum(
            "nyxijc,oijc->nyxo",
            found[..., g * per : (g + 1) * per],
            weight[g * out : (g + 1) * out].astype(np.float64),
        )
        for g in range(group)
    ]
    return np.concatenate(parts, -1) + bias


def conv2d_transpose(
    image: Array,
    weight: Array,
    bias: Array,
    stride: Sequence[int],
    dilation: Sequence[int],
    pads: Sequence[int],
    group: int,
    more: Sequence[int],
) -> Array:
    """What each pixel adds to the output, with weights [outC, kH, kW, inC / group]."""
    batch, height, width, _ = image.shape
    out, rows, columns, per = weight.shape
    full = np.zeros(
        (
            batch,
            (height - 1) * stride[0] + dilation[0] * (rows - 1) + 1 + more[0],
            (width - 1) * stride[1] + dilation[1] * (columns - 1) + 1 + more[1],
            out,
        )
    )
    each = out // group
    for y, x, i, j, g in itertools.product(
        range(height), range(width), range(rows), range(columns), range(group)
    ):
        pixel = image[:, y, x, g * per : (g + 1) * per].astype(np.float64)
        kernel = weight[g * each : (g + 1) * each, i, j]
        full[:, y * stride[0] + i * dilation[0], x * stride[1] + j * dilation[1], g * each :][
            :, :each
        ] += pixel @ kernel.T
    top, bottom, left, right = pads
    return full[:, top : full.shape[1] - bottom, left : full.shape[2] - right] + bias


def places(old: int, new: int, mode: str) -> Array:
    """The places in the source of each pixel, as the document has it."""
    i = np.arange(new, dtype=np.float64)
    if mode == "ASYMMETRIC":
        return i * old / new
    if mode == "ALIGN_CORNERS":
        return i * (old - 1) / (new - 1) if new != 1 else np.zeros(1)
    return (i + 0.5) * old / new - 0.5 if new > 1 else np.zeros(1)


def rounded(place: float, mode: str) -> int:
    """The nearest pixel of a place."""
    functions: Mapping[str, Callable[[float], int]] = {
        "NORMAL": lambda p: math.floor(p + 0.5),
        "ROUND_HALF_DOWN": lambda p: math.ceil(p - 0.5),
        "ROUND_HALF_UP": lambda p: math.floor(p + 0.5),
        "FLOOR": math.floor,
        "CEIL": math.ceil,
    }
    return functions[mode](place)


def resize(
    image: Array,
    size: Sequence[int],
    weights: Callable[[float], Mapping[int, float]],
    mode: str,
    *,
    exclude_outside: bool = False,
) -> Array:
    """An image of another size, each pixel of which is a weighted sum of others, axis by axis.

    Args:
        image: the image.
        size: the new height and width.
        weights: for a place, the weight of each pixel around it.
        mode: what follows `COORDINATE_TRANSFORM_MODE_`.
        exclude_outside: whether pixels beyond the image do not count; else the border does.
    """
    result = image.astype(np.float64)
    for axis, new in enumerate(size, 1):
        old = image.shape[axis]
        matrix = np.zeros((new, old))
        for row, place in enumerate(places(old, new, mode)):
            for pixel, weight in weights(place).items():
                if not exclude_outside or 0 <= pixel < old:
                    matrix[row, min(max(pixel, 0), old - 1)] += weight
            if exclude_outside:
                matrix[row] /= matrix[row].sum()
        result = np.moveaxis(np.tensordot(matrix, result, (1, axis)), 0, axis)
    return result


def linear(place: float) -> Mapping[int, float]:
    """The weights of the two pixels around a place."""
    first = math.floor(place)
    return {first: 1 - (place - first), first + 1: place - first}


def cubic(coefficient: float) -> Callable[[float], Mapping[int, float]]:
    """The weights of the four pixels around a place."""

    def weight(x: float) -> float:
        a, x = coefficient, abs(x)
        if x <= 1:
            return (a + 2) * x**3 - (a + 3) * x**2 + 1
        return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0

    def weights(place: float) -> Mapping[int, float]:
        first = math.floor(place) - 1
        return {pixel: weight(place - pixel) for pixel in range(first, first + 4)}

    return weights
