"""The models that are measured: their files, and what Paddle itself computes with them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crosschip.ir import Array

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("CROSSCHIP_MODELS", ROOT / "build" / "models"))

_OCR = {
    "PP-OCRv4 det": ("ch_PP-OCRv4_det_infer", "ch_PP-OCRv4_det_infer"),
    "PP-OCRv4 rec": ("ch_PP-OCRv4_rec_infer", "ch_PP-OCRv4_rec_infer"),
    "PP-OCR cls": ("ch_ppocr_mobile_v2_cls_infer", "ch_ppocr_mobile_v2.0_cls_infer"),
}
"""For each network of the text reader: its folder of Paddle files, and its ONNX file's stem."""

_VISION = {
    "MobileNetV1": "mobilenet_v1",
    "MobileNetV2": "mobilenet_v2",
    "MobileNetV3-small": "mobilenet_v3_small",
    "ResNet50": "resnet50",
    "ShuffleNetV2 1.0": "shufflenet_v2_x1_0",
    "SqueezeNet 1.1": "squeezenet1_1",
}


@dataclass(frozen=True, slots=True)
class Oracle:
    """Inputs, and the outputs that Paddle computes from them."""

    inputs: Mapping[str, Array]
    outputs: tuple[Array, ...]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs."""
        return {name: array.shape for name, array in self.inputs.items()}


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A network in one of the formats that it comes in.

    Attributes:
        network: what the network is called.
        path: the file.
        directly: the file of the same network that each engine reads when called directly.
    """

    network: str
    path: Path
    directly: Mapping[str, Path]

    @property
    def format(self) -> str:
        """The file's suffix: `.pdmodel`, `.json` (Paddle 3) or `.onnx`."""
        return self.path.suffix

    def oracle(self, batch: int) -> Oracle:
        """The outputs of Paddle for a batch of 1 or 4."""
        name = f"oracle-{batch}.npz"
        beside = self.path.with_suffix(f".{name}")
        with np.load(beside if beside.exists() else self.path.with_name(name)) as arrays:
            return Oracle(
                {key.removeprefix("input:"): arrays[key] for key in arrays if "input:" in key},
                tuple(arrays[key] for key in sorted(arrays) if "output:" in key),
            )


def model_files(*, quick: bool = False) -> list[ModelFile]:
    """Every network in every format; the smallest one only if it has to be quick."""
    found: list[ModelFile] = []
    for network, (folder, stem) in _OCR.items():
        paddle = FOLDER / "ocr-paddle" / folder / "inference.pdmodel"
        found += _formats(network, paddle, FOLDER / "ocr-onnx" / f"{stem}.onnx")
    for network, name in _VISION.items():
        paddle = FOLDER / "paddle2" / name / "inference.pdmodel"
        paddle3 = FOLDER / "paddle3" / name / "inference.json"
        found += _formats(network, paddle, FOLDER / "onnx" / f"{name}.onnx", paddle3)
    return [file for file in found if file.network == "PP-OCR cls" or not quick]


def model_file(network: str, format: str) -> ModelFile:
    """One network in one format."""
    (found,) = (f for f in model_files() if (f.network, f.format) == (network, format))
    return found


def _formats(network: str, paddle: Path, onnx: Path, *others: Path) -> list[ModelFile]:
    """A network's files; ONNX Runtime reads nothing but ONNX, and OpenVINO no Paddle 3."""
    return [
        ModelFile(network, path, {"onnxruntime": onnx, "openvino": direct})
        for path, direct in [(paddle, paddle), *((o, paddle) for o in others), (onnx, onnx)]
    ]
