"""Transfers.

The times of copying an array of float32 to the chip, and there and back, against the engine's own
copies: `device_put` and `np.asarray` in JAX, `to` and `cpu` in PyTorch, from memory that is not
pinned. crosschip writes to a buffer of `allocate` and reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from benchmarks.comparison import Estimate, compare
from benchmarks.subject import Column, Row
from gpu.engines import engine_of
from gpu.settings import Settings

import crosschip
from crosschip.hal import Buffer
from crosschip.ir import Array, Builder, ElementType, TensorType
from crosschip.ops.standard.activation import Relu

LIMIT = 0.9
REQUIREMENT = f"the engine's median time of a megabyte or more is at least {LIMIT:g} of crosschip's"
SHARE = 0.04
PER_DEVICE = True

_KIBIBYTES = (4, 1024, 16 * 1024, 256 * 1024)


@dataclass(frozen=True)
class Transfer(Row):
    """Copies of one size."""

    device: Annotated[str, Column("device")]
    kibibytes: Annotated[int, Column("KiB")]
    direction: Annotated[str, Column("copy")]
    engine_ms: Annotated[float, Column("engine ms", ".4f")]
    ours_ms: Annotated[float, Column("crosschip ms", ".4f")]
    per_second: Annotated[float, Column("crosschip GB/s", ".2f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]

    @property
    def met(self) -> bool | None:
        return self.ratio.value >= LIMIT if self.kibibytes >= 1024 else None


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Yield the rows, small arrays first."""
    engine = engine_of(device)
    for kibibytes in _KIBIBYTES[:2] if settings.quick else _KIBIBYTES:
        if not settings.remaining():
            yield f"{device}: no time was left for {kibibytes} KiB or more"
            return
        array = np.random.default_rng(0).normal(size=kibibytes * 256).astype(np.float32)
        buffer = _buffer(device, array)
        yield _row(device, array, "to", _writing(buffer, array), engine.put(array), settings)
        there_and_back = engine.round_trip(array)
        ours = _round_trip(buffer, array)
        yield _row(device, array, "there and back", ours, there_and_back, settings)


def _buffer(device: str, array: Array) -> Buffer:
    """Return memory on a device for arrays like this one."""
    b = Builder("identity")
    b.output("y", b.add(Relu, b.input("x", TensorType(ElementType.FLOAT32, array.shape))))
    return crosschip.compile(b.build(), [device], cache=False).allocate("x", array.shape)


def _writing(buffer: Buffer, array: Array) -> Callable[[], Any]:
    def run() -> None:
        buffer.write(array)
        buffer.ready.wait()

    return run


def _round_trip(buffer: Buffer, array: Array) -> Callable[[], Array]:
    def run() -> Array:
        buffer.write(array)
        return buffer.array()

    return run


def _row(
    device: str,
    array: Array,
    direction: str,
    ours: Callable[[], Any],
    direct: Callable[[], Any],
    settings: Settings,
) -> Transfer:
    blocks, seconds = (1, 0.01) if settings.quick else (3, 0.3)
    result = compare(lambda: ours, lambda: direct, seconds=seconds, blocks=blocks)
    speed = array.nbytes / result.ours_ms / 1e6
    figures = result.direct_ms, result.ours_ms, speed, result.ratio
    return Transfer(device, array.nbytes // 1024, direction, *figures)
