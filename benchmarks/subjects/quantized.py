"""Quantized models, against the engine called directly and against ourselves in float32.

Each network is quantized by ONNX Runtime's own tool in the forms that it writes: QDQ (pairs of
conversions around float operators) and QOperator (quantized operators) with scales from an input,
dynamic (scales computed as it runs), and products with weights in four bits, to which the other
factor may be rounded to eight. `U8S8` are unsigned activations and signed weights. Batch 1, fixed
shapes, a thread for each core; both give the caller outputs of their own. The runs take turns as
they do for latency, and outputs are compared before: they may be as far apart as one engine's are
from another's. OpenVINO reads no QOperator models, so there is nothing to compare ours with.

The last columns are our own time for the same network in float32 over that for the quantized one,
and what `"auto"` chooses of the devices that run it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import crosschip
from benchmarks.comparison import Comparison, Estimate, compare
from benchmarks.engines import compiled_by_us, difference, engines, run_of_engine, run_of_ours
from benchmarks.quantizing import NETWORKS, forms, prepared
from benchmarks.subject import Column, Row
from crosschip.bench.timing import interleave
from crosschip.ir import Array, DeviceError

LIMIT, GAIN = 0.97, 1.8
REQUIREMENT = (
    f"the engine's median time is at least {LIMIT:g} times crosschip's; ResNet50 in QDQ, per "
    f"channel, is at least {GAIN:g} times as fast as in float32"
)

_APART = 0.1
"""The part of the largest output by which quantized networks may differ from engine to engine."""
_GAINING = ("ResNet50", "QDQ U8S8, per channel")
_SURE, _PATIENCE_SECONDS = 0.005, 6.0


@dataclass(frozen=True)
class Quantized(Row):
    """One network in one form on one device."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    form: Annotated[str, Column("form")]
    engine_ms: Annotated[float | None, Column("engine ms", ".3f")]
    ours_ms: Annotated[float, Column("crosschip ms", ".3f")]
    ratio: Annotated[Estimate | None, Column("ratio", ".3f")]
    apart: Annotated[float | None, Column("apart", ".1e")]
    gain: Annotated[float, Column("float32 / quantized", ".2f")]
    chosen: Annotated[str, Column("`auto`")]

    @property
    def met(self) -> bool:
        gained = (self.network, self.form) != _GAINING or self.gain >= GAIN
        return gained and (self.ratio is None or self.ratio.value >= LIMIT)


def measure(*, quick: bool) -> Iterator[Quantized]:
    """Each network in each of its forms, on each device with an engine."""
    with TemporaryDirectory() as folder:
        for network in NETWORKS[1:2] if quick else NETWORKS:
            plain, path = Path(folder, "float32.onnx"), Path(folder, "quantized.onnx")
            inputs = prepared(network, plain)
            for form in forms(network):
                form.write(plain, path, inputs)
                chosen = _chosen(path, inputs)
                for device in engines():
                    found, apart = _compared(path, device, inputs, quick=quick)
                    ours, gain = _gain(plain, path, device, inputs, quick=quick)
                    yield Quantized(
                        device,
                        network,
                        form.name,
                        None if found is None else found.direct_ms,
                        ours if found is None else found.ours_ms,
                        None if found is None else found.ratio,
                        apart,
                        gain,
                        chosen,
                    )


def _chosen(path: Path, inputs: Mapping[str, Array]) -> str:
    """The device that `"auto"` puts first."""
    shapes = {name: array.shape for name, array in inputs.items()}
    with crosschip.compile(path, shapes=shapes, cache=False) as compiled:
        choice = compiled.placement.choice
        return "" if choice is None else choice.order[0]


def _compared(
    path: Path, device: str, inputs: Mapping[str, Array], *, quick: bool
) -> tuple[Comparison | None, float | None]:
    """Our time and the engine's, and how far apart outputs are; nothing if it cannot read it."""
    threads = os.cpu_count() or 1
    ours = partial(run_of_ours, path, device, inputs, threads)
    direct = partial(run_of_engine, path, device, inputs, threads)
    try:
        theirs = direct()()
    except DeviceError:
        return None, None
    made = compiled_by_us(path, device, inputs, threads).run(inputs)
    apart = difference(list(made.values()), theirs)
    if not apart <= _APART:
        raise RuntimeError(f"{path} on {device}: {apart:.1e} apart; its time says nothing")
    result = compare(
        ours,
        direct,
        seconds=0.2 if quick else 0.5,
        blocks=2 if quick else 4,
        error=_SURE,
        patience=0 if quick else _PATIENCE_SECONDS,
    )
    return result, apart


def _gain(
    plain: Path, path: Path, device: str, inputs: Mapping[str, Array], *, quick: bool
) -> tuple[float, float]:
    """Our time for the quantized model in milliseconds, and that in float32 divided by it."""
    threads = os.cpu_count() or 1
    models = {file: compiled_by_us(file, device, inputs, threads) for file in (plain, path)}
    runs = {str(file): partial(model.run, inputs) for file, model in models.items()}
    times = interleave(runs, 5 if quick else 30)
    for model in models.values():
        model.close()
    quantized, real = (median(times[str(file)]) * 1e3 for file in (path, plain))
    return quantized, real / quantized
