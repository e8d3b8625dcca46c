"""Paddle's own answers: a saved model, run by Paddle's inference engine, nothing optimised."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paddle import inference

Array = NDArray[Any]


def record(model: Sequence[Path], stem: Path, inputs: Mapping[str, Array]) -> None:
    """Run a model of one input on each array and save what went in and what came out.

    Args:
        model: its program and parameter files, or only the directory that holds both.
        stem: where to save, as `<stem>-<key>.npz` with the arrays `input:<name>` and
            `output:<index>`, in the order of the model's outputs.
        inputs: the arrays [N, C, H, W] by key.

    Raises:
        ValueError: an output is not finite, or the same everywhere, and so tests nothing.
    """
    predictor = load(model)
    (name,) = predictor.get_input_names()
    for key, value in inputs.items():
        outputs = run(predictor, {name: value})
        if not all(np.isfinite(output).all() and np.ptp(output) > 0 for output in outputs):
            raise ValueError(f"{stem}-{key}: the outputs of {model[0]} are degenerate")
        arrays: dict[str, Any] = {f"output:{index}": y for index, y in enumerate(outputs)}
        np.savez_compressed(f"{stem}-{key}.npz", **{f"input:{name}": value} | arrays)


def load(model: Sequence[Path]) -> inference.Predictor:
    """Return Paddle's predictor for a model on the processor, with no pass and no oneDNN."""
    # A program without parameters has an empty name beside it; a lone name is a directory.
    is_alone = len(model) == 1 and model[0].suffix in (".pdmodel", ".json")
    config = inference.Config(*map(str, model), *([""] if is_alone else []))
    config.disable_gpu()
    config.disable_mkldnn()
    config.switch_ir_optim(False)
    config.disable_glog_info()
    return inference.create_predictor(config)


def run(
    predictor: inference.Predictor,
    inputs: Mapping[str, Array],
    levels: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> list[Array]:
    """Return the outputs, in order, for inputs, and the levels of sequences of some, by name."""
    for name, value in inputs.items():
        handle = predictor.get_input_handle(name)
        handle.reshape(value.shape)
        handle.copy_from_cpu(value)
        if levels and name in levels:
            handle.set_lod([list(offsets) for offsets in levels[name]])
    predictor.run()
    names = predictor.get_output_names()
    return [predictor.get_output_handle(output).copy_to_cpu() for output in names]
