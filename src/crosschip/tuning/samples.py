"""Sample inputs: from arrays, from a folder, or random."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosschip.ir import Array, InputError, Model
from crosschip.runtime.inputs import random_inputs, read_array

logger = logging.getLogger("crosschip")

Sample = Mapping[str, Array]
Samples = Sample | Sequence[Sample] | str | os.PathLike[str] | None
"""One sample, several, a folder of them, or `None` for random ones."""

_RANDOM_SAMPLES = 4


def samples_of(
    model: Model, source: Samples, shapes: Mapping[str, Sequence[int | None] | int]
) -> list[Sample]:
    """Return a caller's samples.

    Args:
        model: the model.
        source: arrays by the names of inputs, or a sequence of such, or a folder. The folder has
            `NAME.npy` for each input, or a folder with these for each sample; for a model with one
            input, each `.npy` file is a sample. If `None`, samples are random, with a warning,
            because errors depend on the inputs.
        shapes: the shapes of random inputs.

    Raises:
        InputError: there is no sample, an input is missing, or a file cannot be read.
    """
    if source is None:
        logger.warning(
            "%s: no samples are given; the error is measured on random ones, and on real ones it "
            "may be another",
            model.name,
        )
        return [random_inputs(model, shapes, seed) for seed in range(_RANDOM_SAMPLES)]
    if isinstance(source, str | os.PathLike):
        samples: Sequence[Sample] = _in_folder(model, Path(source))
    else:
        samples = [source] if isinstance(source, Mapping) else list(source)
    if not samples:
        raise InputError(f"there are no samples for {model.name}; give at least one")
    for sample in samples:
        if not isinstance(sample, Mapping):
            raise InputError(
                f"a sample for {model.name} is of type {type(sample).__name__}, but must be arrays "
                f"by the names of inputs: {', '.join(model.inputs)}"
            )
        missing = [name for name in model.inputs if name not in sample]
        if missing:
            raise InputError(f"a sample for {model.name} has no input {missing[0]!r}")
    return list(samples)


def _in_folder(model: Model, folder: Path) -> list[Sample]:
    if not folder.is_dir():
        raise InputError(f"{folder}: is no folder; samples are .npy files in one")
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    if inside:
        return [_sample(model, path) for path in inside]
    if len(model.inputs) == 1:
        (name,) = model.inputs
        return [{name: read_array(path)} for path in sorted(folder.glob("*.npy"))]
    return [_sample(model, folder)]


def _sample(model: Model, folder: Path) -> Sample:
    return {name: read_array(folder / f"{name}.npy") for name in model.inputs}
