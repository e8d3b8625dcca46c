"""Networks for the compilers of chips: their files, inputs, answers, and forms in fewer bits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import crosschip
from benchmarks.models import FOLDER, model_file
from crosschip.demo.detection import quads
from crosschip.demo.picture import DEMO_PICTURE, planes
from crosschip.demo.picture import load as load_picture
from crosschip.demo.recognition import ctc_decode, load_characters
from crosschip.devices.kits.onnx.standalone import Dialect, write
from crosschip.ir import Array, Operand
from crosschip.ir.types import ALL_TYPES
from crosschip.ops import Operator
from crosschip.passes import simplify

BERT, DETECTOR, READER = "BERT, 6 layers", "PP-OCRv4 det", "PP-OCRv4 rec"
NETWORKS: Mapping[str, tuple[int, ...]] = {
    READER: (1, 3, 48, 192),
    DETECTOR: (1, 3, 96, 320),
    "MobileNetV1": (1, 3, 224, 224),
    "MobileNetV3-small": (1, 3, 224, 224),
    "ResNet50": (1, 3, 224, 224),
    BERT: (1, 64, 256),
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
"""The places of lines of text in the demo's picture: top, bottom, left and right."""


@contextmanager
def file_of(network: str) -> Iterator[Path]:
    """The network's ONNX file, in float32."""
    if network != BERT:
        yield model_file(network, ".onnx").path
        return
    # It imports JAX, which the other networks do without.
    from benchmarks.networks import small_bert

    model = small_bert(NETWORKS[BERT][1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bert.onnx")
        write(model, Dialect(types=ALL_TYPES), lambda made: None).model.store(path)
        yield path


def example(network: str, number: int = 0) -> Array:
    """A typical input of a network: a part of the demo's picture for those that read, else noise.

    Args:
        network: the network.
        number: which one; 0 is what is measured, and others are to calibrate with.
    """
    if network not in (READER, DETECTOR):
        random = np.random.default_rng(number)
        return random.normal(size=NETWORKS[network]).astype(np.float32)
    height, width = NETWORKS[network][2:]
    top, bottom, left, right = _LINES[number % len(_LINES)]
    if network == DETECTOR:
        top, left = max(0, top - 12), max(0, left - 20)
        bottom, right = top + height, left + width
    return planes(load_picture(DEMO_PICTURE)[top:bottom, left:right], width, height)[np.newaxis]


@cache
def in_float32(network: str) -> Array:
    """The output of a network on `reference` for what is measured."""
    with file_of(network) as path:
        model = crosschip.load(path)
        shapes = dict.fromkeys(model.inputs, NETWORKS[network])
        with crosschip.compile(model, ["reference"], shapes=shapes, cache=False) as compiled:
            return np.asarray(compiled(example(network)))


@cache
def in_float16(network: str) -> Array:
    """The same with each tensor rounded to float16, and all else exact."""
    with file_of(network) as path:
        model = simplify(crosschip.load(path))
        values: dict[Operand, Array] = dict.fromkeys(
            model.inputs.values(), _short(example(network))
        )
        for operation in model.operations:
            assert isinstance(operation, Operator), "these networks have standard operators only"
            read = [
                None if o is None else _short(o.value) if o.is_constant else values[o]
                for o in operation.inputs
            ]
            made = map(_short, operation.kernel()(read))
            values.update(zip(operation.outputs, made, strict=True))
        (output,) = model.outputs.values()
        return values[output]


def _short(array: Array | None) -> Array:
    assert array is not None, "constants have values"
    return array.astype(np.float16).astype(np.float32) if array.dtype == np.float32 else array


def quantized(network: str, path: Path) -> None:
    """Write a network with convolutions and matrix products in eight bits, by ONNX Runtime's tool.

    Activations are uint8, weights int8 with a scale for each output channel. With all operators in
    eight bits, or one scale for all channels, PP-OCRv4 reads nothing any more on any engine.

    Args:
        network: the network.
        path: the file to write.
    """
    with file_of(network) as original:
        model = onnx.load(original)
    (input_,) = model.graph.input
    for size, known in zip(input_.type.tensor_type.shape.dim, NETWORKS[network], strict=True):
        size.dim_value = known
    fixed, prepared = path.with_suffix(".fixed"), path.with_suffix(".prepared")
    onnx.save(model, fixed)
    # It folds normalizations into convolutions; of products and sums it makes Gemm, of which the
    # compilers of chips take less.
    quant_pre_process(fixed, prepared, skip_symbolic_shape=True, skip_optimization=network == BERT)
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


def same(network: str, made: Array, expected: Array) -> bool:
    """Tell whether two outputs say the same: the class, the text, or lines within two pixels."""
    if network == DETECTOR:
        height, width = NETWORKS[network][2:]
        lines, others = (quads(output[0, 0], width, height) for output in (made, expected))
        near = zip(lines, others, strict=False)
        return len(lines) == len(others) > 0 and all(np.abs(a - b).max() <= 2 for a, b in near)
    if network == READER:
        characters = load_characters(FOLDER / "ocr-paddle" / "ppocr_keys_v1.txt")
        one, other = (ctc_decode(output, characters)[0][0] for output in (made, expected))
        return one == other and one != ""
    return bool((made.argmax(-1) == expected.argmax(-1)).all())
