"""Random operations on random tensors, by seed: supported operations must be right.

Run as a script for long runs: `python -m tests.devices.sampling openvino 0 20000`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from tests.devices.conftest import assert_alike, built, static, symbolic

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Device, Options
from crosschip.ir import Array, DeviceError, ModelError
from crosschip.ops import operator_named

Arguments = tuple[list[Any], dict[str, Any]]
"""Arrays, which may become inputs or constants, and parameters, in order; and by name."""
Draw = Callable[["Draws"], Arguments]

_UNARY = "RELU RELU6 SIGMOID TANH EXP ABS NEG SQRT FLOOR CEIL ROUND SIGN HARD_SIGMOID HARD_SWISH"
_BINARY = "ADD SUB MUL DIV MAX MIN POW EQUAL LESS GREATER LESS_EQUAL GREATER_EQUAL NOT_EQUAL"
_REDUCTIONS = "REDUCE_MAX REDUCE_MIN REDUCE_MEAN REDUCE_SUM REDUCE_PROD REDUCE_L1 REDUCE_L2"


class Draws:
    """Random choices of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def one(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def some(self, count: int, *choices: int) -> list[int]:
        return [int(self.one(*choices)) for _ in range(count)]

    def shape(self, least: int = 0, most: int = 4) -> tuple[int, ...]:
        rank = int(self.random.integers(least, most + 1))
        return tuple(self.some(rank, 1, 1, 2, 3, 4, 5, 8))

    def reals(self, shape: tuple[int, ...], special: bool = True) -> Array:
        values = self.random.normal(scale=3, size=shape).astype(np.float32)
        if special and self.random.random() < 0.3:
            places = self.random.random(shape) < 0.2
            values = np.where(places, self.random.choice(_SPECIAL, shape), values)
        return np.asarray(values, np.float32)

    def indices(self, shape: tuple[int, ...], size: int) -> Array:
        beyond = self.random.random() < 0.2
        low, high = (-size - 3, size + 3) if beyond else (-size, size)
        dtype = self.one(np.int32, np.int64)
        return self.random.integers(low, max(high, low + 1), shape).astype(dtype)

    def axis(self, shape: tuple[int, ...]) -> int:
        return int(self.random.integers(-len(shape), len(shape)))


_SPECIAL = np.array([np.nan, np.inf, -np.inf, 0, -0.0], np.float32)


def _unary(d: Draws) -> Arguments:
    return [d.reals(d.shape())], {}


def _binary(d: Draws) -> Arguments:
    shape = d.shape()
    other = tuple(1 if d.random.random() < 0.3 else size for size in shape)
    cut = other[int(d.random.integers(len(other) + 1)) :]
    pair = [d.reals(shape), d.reals(cut)]
    return pair[:: d.one(1, -1)], {}


def _reduction(d: Draws) -> Arguments:
    shape = d.shape(1)
    axes = sorted({d.axis(shape) % len(shape) for _ in range(d.one(1, 2))})
    return [d.reals(shape), axes], {"keepdim": d.one(True, False)}


def _window(d: Draws) -> dict[str, Any]:
    return {
        "pads": d.some(4, 0, 0, 1, 2),
        "strides": d.some(2, 1, 1, 2, 3, 5),
        "dilations": d.some(2, 1, 1, 2),
    }


def _convolution(d: Draws) -> Arguments:
    group, per_group, out = d.some(3, 1, 1, 2, 3)
    kernel = d.some(2, 1, 2, 3, 5)
    image = d.some(2, 1, 2, 3, 5, 7, 9)
    x = d.reals((d.one(1, 2), group * per_group, *image), special=False)
    filters = d.reals((out * group, per_group, *kernel), special=False)
    return [x, filters], {"group": group, **_window(d)}


def _pooling(d: Draws) -> Arguments:
    x = d.reals((d.one(1, 2), d.one(1, 3), *d.some(2, 1, 3, 5, 8)), special=False)
    more = {"kernel_shape": d.some(2, 1, 2, 3), "ceil_mode": d.one(True, False)}
    return [x], {**_window(d), "dilations": [1, 1], **more}


def _matmul(d: Draws) -> Arguments:
    rows, depth, columns = d.some(3, 1, 2, 3, 5)
    batch = d.shape(0, 2)
    x = d.reals((*batch, rows, depth), special=False)
    y = d.reals((*d.one(batch, ()), depth, columns), special=False)
    if d.random.random() < 0.2:
        x = d.reals((depth,), special=False)
    return [x, y], {}


def _gather(d: Draws) -> Arguments:
    shape = d.shape(1)
    axis = d.axis(shape)
    return [d.reals(shape), d.indices(d.shape(0, 2), shape[axis]), axis], {}


def _gather_elements(d: Draws) -> Arguments:
    shape = d.shape(1)
    axis = d.axis(shape)
    places = list(shape)
    places[axis] = d.one(1, 2, 3)
    return [d.reals(shape), d.indices(tuple(places), shape[axis]), axis], {}


def _gather_nd(d: Draws) -> Arguments:
    shape = d.shape(1)
    count = int(d.random.integers(1, len(shape) + 1))
    return [d.reals(shape), d.indices((*d.shape(0, 2), count), min(shape[:count]))], {}


def _scatter_nd(d: Draws) -> Arguments:
    shape = d.shape(1)
    count = int(d.random.integers(1, len(shape) + 1))
    places = d.indices((1, count), min(shape[:count]))
    return [d.reals(shape), places, d.reals((1, *shape[count:]))], {}


def _top_k(d: Draws) -> Arguments:
    shape = d.shape(1)
    axis = d.axis(shape)
    count = np.array([int(d.random.integers(0, shape[axis] + 2))], np.int64)
    return [d.reals(shape), count, axis], {"largest": d.one(True, False)}


def _arg(d: Draws) -> Arguments:
    shape = d.shape(1)
    return [d.reals(shape), d.axis(shape)], {"keepdim": d.one(True, False)}


def _reshape(d: Draws) -> Arguments:
    shape = d.shape(0, 3)
    total = int(np.prod(shape))
    target = d.one([total], [-1], [1, total], [-1, d.one(1, 2, 3)], [0, -1], [total, 2])
    return [d.reals(shape), np.array(target, np.int64)], {}


def _range(d: Draws) -> Arguments:
    return [np.array(v, np.int64) for v in d.random.integers(-4, 5, 3)], {}


def _slice(d: Draws) -> Arguments:
    shape = d.shape(1)
    axis = d.axis(shape) % len(shape)
    bounds = [np.array([v], np.int64) for v in d.random.integers(-9, 10, 2)]
    return [d.reals(shape), [axis], *bounds], {"steps": [d.one(1, 1, 2, -1)]}


def _expand(d: Draws) -> Arguments:
    shape = d.shape()
    target = [*d.shape(0, 1), *(d.one(size, size, 1, 2) for size in shape)]
    return [d.reals(shape), np.array(target, np.int64)], {}


DRAWS: dict[str, Draw] = {
    **dict.fromkeys(_UNARY.split(), _unary),
    **dict.fromkeys(_BINARY.split(), _binary),
    **dict.fromkeys(_REDUCTIONS.split(), _reduction),
    **dict.fromkeys(["MAX_POOL_2D", "AVERAGE_POOL_2D"], _pooling),
    **dict.fromkeys(["ARG_MAX", "ARG_MIN"], _arg),
    "CONV_2D": _convolution,
    "MAT_MUL": _matmul,
    "GATHER": _gather,
    "GATHER_ELEMENTS": _gather_elements,
    "GATHER_ND": _gather_nd,
    "SCATTER_ND": _scatter_nd,
    "TOP_K": _top_k,
    "RESHAPE": _reshape,
    "RANGE": _range,
    "SLICE": _slice,
    "EXPAND": _expand,
}
_HEAVY = ["CONV_2D", "MAT_MUL", "GATHER", "TOP_K"]


def sample(device: Device, seed: int) -> str:
    """Return the outcome of a seed: `right`, `refused`, `declined` or `invalid`.

    Raises:
        AssertionError: the device computes something else than the definition says.
    """
    d = Draws(seed)
    name = d.one(*DRAWS, *_HEAVY)
    arguments, named = DRAWS[name](d)
    # The first is an input, so that there is something to run.
    is_input = [
        isinstance(a, np.ndarray) and (i == 0 or d.random.random() < 0.6)
        for i, a in enumerate(arguments)
    ]
    arrays = [a for a, given in zip(arguments, is_input, strict=True) if given]

    def build(b: Any, *inputs: Any) -> Any:
        rest = iter(inputs)
        filled = [
            next(rest) if given else b.constant(a) if isinstance(a, np.ndarray) else a
            for a, given in zip(arguments, is_input, strict=True)
        ]
        return tuple(b.add_all(operator_named(name), *filled, **named))

    try:
        model = built(build, arrays, d.one(static, static, symbolic))
    except ModelError:
        return "invalid"
    if not all(device.supports(o, Options()) for o in model.operations):
        return "declined"
    try:
        expected = ReferenceDevice().compile(model, Options()).run(arrays)
    except DeviceError:
        expected = None
    threads = d.one(1, 2)
    try:
        program = device.compile(model, Options(threads=threads))
        actual = program.run(arrays)
        again = program.run(arrays)
    except DeviceError:
        return "refused"
    described = f"{name} {[a.shape if isinstance(a, np.ndarray) else a for a in arguments]} {named}"
    assert expected is not None, f"seed {seed}: {described} must be refused"
    for one, two, other in zip(actual, again, expected, strict=True):
        try:
            np.testing.assert_array_equal(one, two)
            assert_alike(one, other, 1e-4)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {described}: {error}") from None
    return "right"


def main(name: str, first: int, count: int) -> None:
    """Sample many seeds and print the outcomes."""
    device = entry_points(group="crosschip.devices")[name].load()()
    outcomes: Counter[str] = Counter()
    for seed in range(first, first + count):
        print(seed, end="\r", file=sys.stderr)
        try:
            outcomes[sample(device, seed)] += 1
        except AssertionError as error:
            outcomes["wrong"] += 1
            print(str(error)[:600], flush=True)
    print(dict(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
