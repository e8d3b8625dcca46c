"""Networks on the compilers of chips: `python -m benchmarks.chips [NETWORK …] [--chips NAME …]`.

Each network is compiled for a chip, with ONNX Runtime for what the chip declines, once in float16
and once quantized to eight bits by ONNX Runtime's own tool, and runs on one input. The table says
which share of the multiplications and additions of convolutions and matrix products the chip does,
and how far the outputs are from those of the network in float32 on `reference`. Beside that is what
fewer bits cost without the chip: in float16, each tensor rounded to it and all else exact; in eight
bits, ONNX Runtime with the same file. There are no times: what runs here is the vendors' emulation,
whose times are not the chips'.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np

import crosschip
from benchmarks.models import ROOT
from benchmarks.samples import NETWORKS, example, file_of, in_float16, in_float32, quantized, same
from benchmarks.subject import Column, Row
from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Array, Model
from crosschip.runtime.placement.placement import Placement

FLOAT16, INT8 = "float16", "int8"
LIMIT = 1e-2
"""The most that outputs in float16 may differ from those in float32, by the greatest of these."""

CHIPS = ("qualcomm", "rockchip")


@dataclass(frozen=True)
class Chip(Row):
    """A network on a chip."""

    network: Annotated[str, Column("network")]
    size: Annotated[str, Column("input")]
    chip: Annotated[str, Column("chip")]
    precision: Annotated[str, Column("precision")]
    share: Annotated[float, Column("multiply-adds on it", ".1%")]
    operations: Annotated[str, Column("operations on it")]
    error: Annotated[float, Column("error", ".1e")]
    told: Annotated[bool, Column("same answer")]
    elsewhere: Annotated[float, Column("error without it", ".1e")]
    told_elsewhere: Annotated[bool, Column("same answer without it")]

    @property
    def met(self) -> bool:
        """Float16 by the error, eight bits by the answer, whether or not they allow for it."""
        return self.error <= LIMIT if self.precision == FLOAT16 else self.told


def interpreter(chip: str) -> str:
    """The Python that has the chip's tools: what the environment names, or `make test-chips` made.

    Raises:
        FileNotFoundError: there is none.
    """
    named = os.environ.get(f"CROSSCHIP_{chip.upper()}_PYTHON")
    python = Path(named) if named else ROOT / "build" / "chips" / chip / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"{python} is not there; `make test-chips` installs it")
    return str(python)


def run(network: str, chip: str, precision: str) -> Chip:
    """A network, compiled and run once."""
    shape = NETWORKS[network]
    settings = {"python": interpreter(chip)}
    with file_of(network) as path, tempfile.TemporaryDirectory() as folder:
        if precision == FLOAT16:
            settings["precision"] = FLOAT16
        else:
            path = Path(folder, "quantized.onnx")
            quantized(network, path)
        model = crosschip.load(path)
        with crosschip.compile(
            model,
            [chip, "onnxruntime"],
            shapes=dict.fromkeys(model.inputs, shape),
            properties={chip: settings},
            cache=False,
        ) as compiled:
            made = np.asarray(compiled(example(network)))
            decisions = list(compiled.placement.all_decisions())
            share = _share(compiled.placement, chip)
        elsewhere = in_float16(network) if precision == FLOAT16 else _on_onnxruntime(model, network)
    expected = in_float32(network)
    own = sum(decision.device == chip for decision in decisions)
    return Chip(
        network,
        "x".join(map(str, shape)),
        chip,
        precision,
        share,
        f"{own} of {len(decisions)}",
        _error(made, expected),
        same(network, made, expected),
        _error(elsewhere, expected),
        same(network, elsewhere, expected),
    )


def _share(placement: Placement, chip: str) -> float:
    """The part of all multiplications and additions that a chip does."""
    done: dict[bool, int] = {True: 0, False: 0}
    for segment in placement.all_segments():
        done[segment.device == chip] += sum(map(multiply_adds, segment.model.operations))
    return done[True] / sum(done.values())


def _on_onnxruntime(model: Model, network: str) -> Array:
    """The output of the same file on ONNX Runtime, which shows what quantizing it has cost."""
    shapes = dict.fromkeys(model.inputs, NETWORKS[network])
    with crosschip.compile(model, ["onnxruntime"], shapes=shapes, cache=False) as compiled:
        return np.asarray(compiled(example(network)))


def _error(made: Array, expected: Array) -> float:
    """The greatest difference, by the greatest of the expected elements."""
    return float(np.abs(made - expected).max() / np.abs(expected).max())


def main() -> None:
    """Print a table, a row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--chips", nargs="+", default=CHIPS)
    parser.add_argument("--precisions", nargs="+", default=[FLOAT16, INT8])
    chosen = parser.parse_args()
    headings: list[str] = []
    for network in chosen.networks:
        for chip, precision in product(chosen.chips, chosen.precisions):
            cells = {
                heading: {"True": "yes", "False": "no"}.get(cell, cell)
                for heading, cell in run(network, chip, precision).cells().items()
            }
            if not headings:
                headings = list(cells)
                print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
            print(f"| {' | '.join(cells.values())} |", flush=True)


if __name__ == "__main__":
    main()
