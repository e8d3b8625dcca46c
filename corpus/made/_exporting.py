"""PyTorch's two exporters to ONNX, and what networks are given."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from corpus.entry import Input

AXES: Mapping[str, int] = {
    **{"batch": 2, "sequence": 24, "target": 7},
    **{"step": 1, "past": 10, "total": 11},
    **{"height": 64, "width": 96, "steps": 15, "samples": 4000},
}
"""The sizes of open axes in examples."""


@dataclass(frozen=True, slots=True)
class Given:
    """An input of a network.

    Attributes:
        shape: sizes, or the names of open axes.
        dtype: the element type, by its name in NumPy.
        rule: for its elements.
    """

    shape: Sequence[int | str]
    dtype: str
    rule: Input


def example(name: str, given: Given) -> np.ndarray:
    """An array for an input."""
    sizes = tuple(AXES[size] if isinstance(size, str) else size for size in given.shape)
    return given.rule.draw(sizes, np.dtype(given.dtype), zlib.crc32(name.encode()))


def export(
    module: Any, inputs: Mapping[str, Given], outputs: Sequence[str], exporter: str, path: Path
) -> None:
    """Export a module.

    Args:
        module: it takes tensors in order, and gives one or a tuple of them.
        inputs: what it takes.
        outputs: the names of what it gives.
        exporter: `torchscript` or `dynamo`.
        path: of the file.
    """
    import torch

    tensors = tuple(torch.from_numpy(example(name, given)) for name, given in inputs.items())
    open_axes = [
        {axis: size for axis, size in enumerate(given.shape) if isinstance(size, str)}
        for given in inputs.values()
    ]
    names = {"input_names": list(inputs), "output_names": list(outputs)}
    if exporter == "torchscript":
        axes = dict(zip(inputs, open_axes, strict=True))
        torch.onnx.export(
            module, tensors, path, dynamo=False, opset_version=17, dynamic_axes=axes, **names
        )
        return
    shapes = tuple(open_axes)
    torch.onnx.export(
        module,
        tensors,
        path,
        dynamo=True,
        dynamic_shapes=(shapes,) if _takes_any_number(module) else shapes,
        external_data=False,
        verbose=False,
        **names,
    )


def _takes_any_number(module: Any) -> bool:
    """Tell whether a module's `forward` takes all tensors by one parameter, as in `*tensors`."""
    import inspect

    kinds = {each.kind for each in inspect.signature(module.forward).parameters.values()}
    return inspect.Parameter.VAR_POSITIONAL in kinds
