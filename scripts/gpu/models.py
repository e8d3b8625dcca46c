"""Models of the corpus.

The models that the usual tools write, as far as they were packed, with random inputs; the answers
are ONNX Runtime's on the processor, and the differences that are allowed those of the corpus. A
model that the device refuses runs on it and on `reference`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from benchmarks.subject import Column, Row
from corpus.judging import difference, flat
from gpu.settings import Settings

import crosschip
from crosschip.ir import Array

REQUIREMENT = "no answer is wrong, and all models run on the device or on it and `reference`"
SHARE = 0.08
PER_DEVICE = True

_LEAST = 2
"""The number of models of a quick trial."""

_INPUT, _OUTPUT, _ALLOWED = "input:", "output:", "allowed"


@dataclass(frozen=True)
class Answer(Row):
    """One model on one device."""

    device: Annotated[str, Column("device")]
    model: Annotated[str, Column("model")]
    verdict: Annotated[str, Column("verdict")]
    operations: Annotated[str, Column("operations on it")]
    difference: Annotated[float | None, Column("difference, of the allowed", ".2f")]
    seconds: Annotated[float, Column("s", ".1f")]

    @property
    def met(self) -> bool:
        return self.verdict == "right"


def save(
    path: Path, inputs: Mapping[str, Array], outputs: Sequence[Array], allowed: Sequence[float]
) -> None:
    """Write a model's inputs and answers.

    Args:
        path: the file, with the suffix `.npz`.
        inputs: by name.
        outputs: in order; what is no tensor is taken apart.
        allowed: the largest difference of each output.
    """
    arrays: dict[str, Any] = {f"{_INPUT}{name}": array for name, array in inputs.items()}
    arrays |= {f"{_OUTPUT}{place:03}": array for place, array in enumerate(outputs)}
    np.savez_compressed(path, **arrays | {_ALLOWED: np.array(allowed, np.float64)})


def measure(device: str, settings: Settings) -> Iterator[Row | str]:
    """Yield a row a model, the smallest first."""
    paths = sorted(settings.models.glob("*.onnx"), key=lambda path: path.stat().st_size)
    if not paths:
        yield f"{settings.models} has no models"
    for index, path in enumerate(paths[:_LEAST] if settings.quick else paths):
        if not settings.remaining():
            yield f"{device}: no time was left for {', '.join(p.stem for p in paths[index:])}"
            return
        try:
            yield _tried(path, device, [device])
        except crosschip.Error as error:
            reason = str(error).strip().partition("\n")[0]
            yield f"{device}: {path.stem} is refused by the device alone: {reason}"
            try:
                yield _tried(path, device, [device, "reference"])
            except crosschip.Error as error:
                yield Answer(device, path.stem, f"refused: {error}".partition("\n")[0], "", None, 0)


def _tried(path: Path, device: str, devices: Sequence[str]) -> Answer:
    begin = time.monotonic()
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as stored:
        arrays = dict(stored)
    inputs = {k.removeprefix(_INPUT): v for k, v in arrays.items() if k.startswith(_INPUT)}
    expected = [arrays[key] for key in sorted(arrays) if key.startswith(_OUTPUT)]
    shapes = {name: array.shape for name, array in inputs.items()}
    with crosschip.compile(path, devices, shapes=shapes, cache=False) as compiled:
        results = [array for one in compiled.run(inputs).values() for array in flat(one)]
        decisions = compiled.placement.decisions
    own = sum(decision.device == device for decision in decisions)
    differences = difference(results, expected)
    allowed = arrays[_ALLOWED]
    is_right = all(a <= b for a, b in zip(differences, allowed, strict=True))
    share = max(
        (a / b if b else float(a > 0) for a, b in zip(differences, allowed, strict=True)),
        default=0.0,
    )
    return Answer(
        device,
        path.stem,
        "right" if is_right else "wrong",
        f"{own} of {len(decisions)}",
        share,
        time.monotonic() - begin,
    )
