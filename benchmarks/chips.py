"""Networks on the compilers of chips: `python -m benchmarks.chips [NETWORK …] [--chips NAME …]`.

Each network is compiled for a chip, with ONNX Runtime for what the chip declines, once in float16
and once quantized to eight bits by ONNX Runtime's own tool, and runs on one input. The table says
which share of the multiplications and additions of convolutions and matrix products the chip does,
and how far the outputs are from those of the network in float32 on `reference`, beside what ONNX
Runtime makes of the same file: quantizing may cost more than the chip does. There are no times:
what runs here is the vendors' emulation, whose times are not the chips'.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Annotated

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import crosschip
from benchmarks.models import FOLDER, ROOT, model_file
from benchmarks.subject import Column, Row
from crosschip.demo.picture import DEMO_PICTURE, planes
from crosschip.demo.picture import load as load_picture
from crosschip.demo.recognition import ctc_decode, load_characters
from crosschip.ir import Array, Model, Operation
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose
from crosschip.ops.standard.matrix import FullyConnected, MatMul
from crosschip.runtime.placement import Placement

FLOAT16, INT8 = "float16", "int8"
LIMIT = 1e-2
"""How far outputs in float16 may be from those in float32, by the greatest of these."""

CHIPS = ("qualcomm",)
NETWORKS: Mapping[str, tuple[int, ...]] = {
    "PP-OCRv4 rec": (1, 3, 48, 192),
    "PP-OCRv4 det": (1, 3, 96, 320),
    "MobileNetV1": (1, 3, 224, 224),
    "MobileNetV3-small": (1, 3, 224, 224),
    "ResNet50": (1, 3, 224, 224),
}
"""The shape of the one input of each network."""

_LINES = [
    (31, 106, 55, 345),
    (50, 88, 514, 830),
    (170, 225, 60, 280),
    (252, 285, 60, 332),
    (321, 355, 59, 260),
    (387, 429, 60, 324),
    (533, 566, 510, 747),
]
"""Where lines of text are in the demo's picture: top, bottom, left and right."""


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
    told: Annotated[bool | None, Column("same answer")]
    elsewhere: Annotated[float, Column("error of ONNX Runtime", ".1e")]
    told_elsewhere: Annotated[bool | None, Column("same answer there")]

    @property
    def held(self) -> bool:
        """Float16 by the error; eight bits by the answer, if they leave it to be found at all."""
        if self.precision == FLOAT16:
            return self.error <= LIMIT
        if self.told is None or not self.told_elsewhere:
            return self.error <= 2 * self.elsewhere + LIMIT
        return self.told


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
    path = model_file(network, ".onnx").path
    with tempfile.TemporaryDirectory() as folder:
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
            decisions = list(compiled.placement.every_decision())
            share = _share(compiled.placement, chip)
        elsewhere = _on_onnxruntime(model, network)
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
        _same(network, made, expected),
        _error(elsewhere, expected),
        _same(network, elsewhere, expected),
    )


def multiply_adds(operation: Operation) -> int:
    """The multiplications, each with an addition, of a convolution or matrix product."""
    made = prod(operation.outputs[0].type.static_shape or ())
    match operation:
        case Conv2D():
            return made * prod((operation.filter.type.static_shape or ())[1:])
        case Conv2DTranspose():
            read = prod(operation.input.type.static_shape or ())
            return read * prod((operation.filter.type.static_shape or ())[1:])
        case FullyConnected():
            return made * (operation.weight.type.static_shape or (0,))[-1]
        case MatMul():
            shape = operation.x.type.static_shape or (0,)
            return made * shape[-2 if operation.transpose_x else -1]
    return 0


def _share(placement: Placement, chip: str) -> float:
    """The part of all multiplications and additions that a chip does."""
    done: dict[bool, int] = {True: 0, False: 0}
    for segment in placement.every_segment():
        done[segment.device == chip] += sum(map(multiply_adds, segment.model.operations))
    return done[True] / sum(done.values())


def example(network: str, number: int = 0) -> Array:
    """A typical input of a network: a part of the demo's picture for those that read, else noise.

    Args:
        network: the network.
        number: which one; 0 is what is measured, and others are to calibrate with.
    """
    _, _, height, width = NETWORKS[network]
    if network not in ("PP-OCRv4 rec", "PP-OCRv4 det"):
        random = np.random.default_rng(number)
        return random.normal(size=NETWORKS[network]).astype(np.float32)
    top, bottom, left, right = _LINES[number % len(_LINES)]
    if network == "PP-OCRv4 det":
        top, left = max(0, top - 12), max(0, left - 20)
        bottom, right = top + height, left + width
    return planes(load_picture(DEMO_PICTURE)[top:bottom, left:right], width, height)[np.newaxis]


@cache
def in_float32(network: str) -> Array:
    """The output of a network on `reference` for what is measured."""
    model = crosschip.load(model_file(network, ".onnx").path)
    shapes = dict.fromkeys(model.inputs, NETWORKS[network])
    with crosschip.compile(model, ["reference"], shapes=shapes, cache=False) as compiled:
        return np.asarray(compiled(example(network)))


def quantized(network: str, path: Path) -> None:
    """Write a network with convolutions and matrix products in eight bits, by ONNX Runtime's tool.

    Activations are uint8, weights int8 with a scale for each output channel. With all operators in
    eight bits, or one scale for all channels, PP-OCRv4 reads nothing any more on any engine.

    Args:
        network: the network.
        path: the file to write.
    """
    model = onnx.load(model_file(network, ".onnx").path)
    (input_,) = model.graph.input
    for size, known in zip(input_.type.tensor_type.shape.dim, NETWORKS[network], strict=True):
        size.dim_value = known
    fixed, prepared = path.with_suffix(".fixed"), path.with_suffix(".prepared")
    onnx.save(model, fixed)
    quant_pre_process(fixed, prepared, skip_symbolic_shape=True)
    quantize_static(
        prepared,
        path,
        _Examples(network, input_.name),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        op_types_to_quantize=["Conv", "Gemm", "MatMul"],
    )


class _Examples(CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    """Inputs to calibrate with."""

    def __init__(self, network: str, name: str) -> None:
        self._inputs = iter([{name: example(network, number)} for number in range(1, 7)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._inputs, None)


def _on_onnxruntime(model: Model, network: str) -> Array:
    """The output of the same file on ONNX Runtime, which shows what quantizing it has cost."""
    shapes = dict.fromkeys(model.inputs, NETWORKS[network])
    with crosschip.compile(model, ["onnxruntime"], shapes=shapes, cache=False) as compiled:
        return np.asarray(compiled(example(network)))


def _error(made: Array, expected: Array) -> float:
    """The greatest difference, by the greatest of the expected elements."""
    return float(np.abs(made - expected).max() / np.abs(expected).max())


def _same(network: str, made: Array, expected: Array) -> bool | None:
    """Whether two outputs say the same; `None` where they are maps, which say nothing."""
    if network == "PP-OCRv4 det":
        return None
    if network == "PP-OCRv4 rec":
        characters = load_characters(FOLDER / "ocr-paddle" / "ppocr_keys_v1.txt")
        one, other = (ctc_decode(output, characters)[0][0] for output in (made, expected))
        return one == other and one != ""
    return bool((made.argmax(-1) == expected.argmax(-1)).all())


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
            cells = run(network, chip, precision).cells()
            if not headings:
                headings = list(cells)
                print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}")
            print(f"| {' | '.join(cells.values())} |", flush=True)


if __name__ == "__main__":
    main()
