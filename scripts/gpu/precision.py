"""Precision of products.

A model in float32 is computed in float32: the error of a product of matrices of 1024 by 1024 and of
a convolution, as a share of the largest element, is below what TF32, bfloat16 or float16 would
cause. With `precision=`, it is as large as the narrower type's. What the engine does with the
settings that it begins with shows whether the chip has TF32 at all. The times are of 32 products of
256 by 4096 by 4096, one after the other.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from benchmarks.engines import difference
from benchmarks.subject import Column, Row
from gpu.engines import BFLOAT16, FLOAT32, engine_of
from gpu.settings import Settings

import crosschip
from crosschip.bench.timing import Run, interleave
from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.matrix import MatMul

_RANGES = {FLOAT32: (0.0, 2e-5), BFLOAT16: (2e-4, 2e-2), "float16": (2e-5, 2e-3)}
"""The least and the largest error of each precision; the narrower types round factors."""

REQUIREMENT = "; ".join(
    f"errors in {name} of {low:g} to {high:g}" for name, (low, high) in _RANGES.items()
)
SHARE = 0.03
PER_DEVICE = True

_SIZE, _CHANNELS = 1024, 64
_WIDTH, _ROWS, _PRODUCTS = 4096, 256, 32
_RUNS = 10


@dataclass(frozen=True)
class Error(Row):
    """The error of one product in one precision."""

    device: Annotated[str, Column("device")]
    product: Annotated[str, Column("product")]
    precision: Annotated[str, Column("precision")]
    error: Annotated[float | None, Column("error", ".1e")]
    milliseconds: Annotated[float | None, Column("ms", ".2f")]

    @property
    def met(self) -> bool | None:
        if self.error is None or self.precision not in _RANGES:
            return None
        low, high = _RANGES[self.precision]
        return low <= self.error <= high


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Yield the errors of both products in each precision, then the times."""
    random = np.random.default_rng(0)
    products: Mapping[str, tuple[Callable[..., Any], Callable[[Any, Any], Any], list[Array]]] = {
        "matrices": (_matrices, _matmul, _normal(random, (_SIZE, _SIZE), (_SIZE, _SIZE))),
        "convolution": (
            _convolution,
            _CONVOLVE[device.partition(":")[0]],
            _normal(random, (1, _CHANNELS, 32, 32), (_CHANNELS, _CHANNELS, 3, 3)),
        ),
    }
    refused = set[str]()
    for name, (build, direct, factors) in products.items():
        exact = _exact(name, factors)
        for precision in _RANGES:
            try:
                result = np.asarray(_run_of(build(factors), device, precision, factors[0])())
            except crosschip.UnsupportedError as error:
                refused.add(precision)
                reason = str(error).splitlines()[-1].strip()
                yield f"{device} refuses {name} in {precision}: {reason}"
                continue
            yield Error(device, name, precision, difference([result], [exact]), None)
        result = engine_of(device).by_default(direct, (factors[0], factors[1]))
        yield Error(device, name, "the engine's default", difference([result], [exact]), None)
    if settings.remaining():
        precisions = [precision for precision in _RANGES if precision not in refused]
        sizes = (32, 64, 2) if settings.quick else (_ROWS, _WIDTH, _PRODUCTS)
        yield from _times(device, precisions, *sizes)


def _times(
    device: str, precisions: Sequence[str], rows: int, width: int, products: int
) -> Iterator[Row]:
    x, weight = _normal(np.random.default_rng(0), (rows, width), (width, width))
    model = _matrices([x, weight / np.float32(math.sqrt(width))], products)
    runs = {precision: _run_of(model, device, precision, x) for precision in precisions}
    for precision, seconds in interleave(runs, _RUNS).items():
        milliseconds = statistics.median(seconds) * 1e3
        yield Error(device, f"{products} of matrices", precision, None, milliseconds)


def _run_of(model: Model, device: str, precision: str, x: Array) -> Run:
    compiled = crosschip.compile(model, [device], precision=precision, cache=False)
    return lambda: compiled(x)


def _matrices(factors: list[Array], times: int = 1) -> Model:
    b, (x, weight) = Builder("product"), factors
    y, constant = b.input("x", TensorType(ElementType.FLOAT32, x.shape)), b.constant(weight)
    for _ in range(times):
        y = b.add(MatMul, y, constant)
    b.output("y", y)
    return b.build()


def _convolution(factors: list[Array]) -> Model:
    b, (x, weight) = Builder("convolution"), factors
    bias = np.zeros(len(weight), np.float32)
    image = b.input("x", TensorType(ElementType.FLOAT32, x.shape))
    b.output("y", b.add(Conv2D, image, weight, bias))
    return b.build()


def _exact(name: str, factors: list[Array]) -> Array:
    """Return a product in float64."""
    x, weight = (factor.astype(np.float64) for factor in factors)
    if name == "matrices":
        return np.asarray(x @ weight)
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], (2, 3))
    return np.asarray(np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True))


def _matmul(x: Any, weight: Any) -> Any:
    return x @ weight


def _jax_convolution(x: Any, weight: Any) -> Any:
    from jax import lax

    return lax.conv(x, weight, (1, 1), "VALID")


def _torch_convolution(x: Any, weight: Any) -> Any:
    from torch.nn import functional

    return functional.conv2d(x, weight)


_CONVOLVE: Mapping[str, Callable[[Any, Any], Any]] = {
    "xla": _jax_convolution,
    "torch": _torch_convolution,
}


def _normal(random: np.random.Generator, *shapes: tuple[int, ...]) -> list[Array]:
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]
