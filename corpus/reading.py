"""The inputs of a model file, as it declares them, with the elements that its entry gives them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

from corpus.entry import Entry
from crosschip.ir import Array


def inputs_of(entry: Entry) -> dict[str, Array]:
    """An array for each input.

    Raises:
        ValueError: an input is no tensor, or its elements cannot be drawn.
    """
    return {name: entry.draw(name, shape, dtype) for name, shape, dtype in _declared(entry)}


def is_open(entry: Entry) -> bool:
    """True if the model leaves a size of an input open."""
    return any(isinstance(size, str) for _, shape, _ in _declared(entry) for size in shape)


def _declared(entry: Entry) -> Iterator[tuple[str, list[int | str], np.dtype[np.generic]]]:
    """Of each input: its name, its sizes or the names of those left open, its elements' type."""
    if entry.file.suffix == ".tflite":
        from corpus.litert import declared

        yield from declared(entry.file)
        return
    graph = onnx.load(entry.file, load_external_data=False).graph
    known = {tensor.name for tensor in graph.initializer}
    for value in graph.input:
        if value.name in known:
            continue
        if not value.type.HasField("tensor_type"):
            raise ValueError(f"the input {value.name!r} is no tensor")
        type = value.type.tensor_type
        shape = [d.dim_value if d.dim_value > 0 else d.dim_param for d in type.shape.dim]
        yield value.name, shape, np.dtype(tensor_dtype_to_np_dtype(type.elem_type))
