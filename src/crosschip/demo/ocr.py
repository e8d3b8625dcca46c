"""The demo's three models, compiled by crosschip."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np

import crosschip
from crosschip.demo.models import MODELS, characters_file, model_folder
from crosschip.demo.picture import Floats
from crosschip.demo.reader import Reader
from crosschip.demo.recognition import load_characters
from crosschip.runtime.compiled import CompiledModel


@dataclass
class Stage:
    """One of the three models, and the times of its runs.

    Attributes:
        name: the task of the model.
        compiled: the compiled model.
        milliseconds: the time of each run so far.
    """

    name: str
    compiled: CompiledModel
    milliseconds: list[float] = field(default_factory=list)

    def __call__(self, x: Floats) -> Floats:
        """Run the model on its input and return its output."""
        start = time.perf_counter()
        output = self.compiled(x)
        self.milliseconds.append((time.perf_counter() - start) * 1e3)
        return np.asarray(output, np.float32)


class Ocr:
    """Read text with the three models."""

    def __init__(
        self,
        devices: Sequence[str],
        cache: bool | Path = True,
        configuration: crosschip.Configuration | None = None,
    ) -> None:
        """Import and compile the models.

        Args:
            devices: the devices, in the order of preference of the first model. Each next model
                prefers the next device, so that all are used.
            cache: as for `crosschip.compile`.
            configuration: the compile options.

        Raises:
            InputError: the wheel with the models is not installed.
            Error: a device cannot be used.
        """
        self.stages: dict[str, Stage] = {}
        for turn, name in enumerate(MODELS):
            first = turn % len(devices)
            order = [*devices[first:], *devices[:first]]
            model = crosschip.load(model_folder(name))
            compiled = crosschip.compile(model, order, cache=cache, configuration=configuration)
            self.stages[name] = Stage(name, compiled)
        self.reader = Reader(
            self.stages["detection"],
            self.stages["angle"],
            self.stages["recognition"],
            load_characters(characters_file()),
        )

    def reset_times(self) -> None:
        """Discard the times of runs so far."""
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
