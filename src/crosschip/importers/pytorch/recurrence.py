"""Shapes of PyTorch's recurrent operators with a dynamic number of steps.

PyTorch 2.9 to 2.13 trace `aten.lstm` and `aten.gru` as loops of a fixed number of steps, so that
`torch.export` fixes that dimension, although the operators stay whole in the exported program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def dynamic_steps() -> Iterator[None]:
    """Have PyTorch infer the shapes of recurrent operators without running their steps."""
    import torch

    lstm, gru = torch.ops.aten.lstm.input, torch.ops.aten.gru.input
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    # One is for tracing, the other for tensors without elements.
    with (
        replaced(lstm.py_kernels, key, _infer_lstm),
        replaced(gru.py_kernels, key, _infer_gru),
        replaced(torch._decomp.decomposition_table, lstm, _infer_lstm),
        replaced(torch._decomp.decomposition_table, gru, _infer_gru),
    ):
        yield


@contextmanager
def replaced(table: dict[Any, Any], key: Any, value: Any) -> Iterator[None]:
    """Replace an entry of a table, and restore it at the end."""
    missing = object()
    previous = table.get(key, missing)
    table[key] = value
    try:
        yield
    finally:
        if previous is missing:
            table.pop(key, None)
        else:
            table[key] = previous


def _infer_lstm(
    x: Any,
    state: Any,
    weights: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, Any, Any]:
    """Return tensors with the shapes of the outputs, which are traced only for these."""
    hidden, cell = state
    width = hidden.size(-1) * (2 if bidirectional else 1)
    return x.new_empty((*x.shape[:2], width)), hidden.clone(), cell.clone()


def _infer_gru(
    x: Any,
    hidden: Any,
    weights: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, Any]:
    """Return tensors with the shapes of the outputs, which are traced only for these."""
    width = hidden.size(-1) * (2 if bidirectional else 1)
    return x.new_empty((*x.shape[:2], width)), hidden.clone()
