"""Samples of the calls of a compiled model: copies of the inputs of recent calls."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from crosschip.hal import Buffer
from crosschip.runtime.choice import ShapeKey

_MOST_SAMPLES = 16
"""The maximum number of samples, each with other shapes."""

_MOST_BYTES = 1 << 25
"""The maximum size of a copy; of larger inputs, only the shapes are kept, to delay no call."""

_MOST_TOTAL_BYTES = 1 << 26
"""The maximum size of all copies together."""

FAR = 4
"""The factor by which a size must differ for shapes to be far from each other."""


Sample = tuple[ShapeKey, list[Any] | None]
"""The shapes and the values of the inputs of a call, in order; `None` for large ones."""


class CallSamples:
    """Copies of the inputs of recent calls, one for each of the last few sets of shapes.

    Args:
        on_far: called, in the thread of a call, if the call's shapes are far from all tested ones.

    Attributes:
        tested: the sets of shapes for which devices have been measured.
        is_open: whether all calls are of interest; otherwise only those with shapes far from the
            tested ones are copied.
    """

    def __init__(self, on_far: Callable[[], None]) -> None:
        self._on_far = on_far
        self._samples: OrderedDict[ShapeKey, list[Any] | None] = OrderedDict()
        self._lock = threading.Lock()
        self.tested: list[ShapeKey] = []
        self.is_open = True

    def add(self, values: Sequence[Any]) -> None:
        """Add the inputs of a call, in order, unless there is a sample of their shapes."""
        shapes = shape_key(values)
        far = all(is_far(shapes, other) for other in self.tested)
        if not (far or self.is_open):
            return
        is_large = _nbytes(values) > _MOST_BYTES
        with self._lock:
            if shapes in self._samples:
                self._samples.move_to_end(shapes)
                return
            self._samples[shapes] = None if is_large else [_copy(value) for value in values]
            while len(self._samples) > 1 and self._is_full():
                self._samples.popitem(last=False)
        if far:
            self._on_far()

    def are_far_from(self, measured: Sequence[ShapeKey]) -> bool:
        """Return whether the shapes of a sample are far from all measured ones."""
        return any(all(is_far(shapes, other) for other in measured) for shapes, _ in self.recent())

    def recent(self) -> list[Sample]:
        """Return the samples, the oldest first."""
        with self._lock:
            return list(self._samples.items())

    def clear(self) -> None:
        """Remove all samples."""
        with self._lock:
            self._samples.clear()

    def _is_full(self) -> bool:
        total = sum(_nbytes(values or ()) for values in self._samples.values())
        return len(self._samples) > _MOST_SAMPLES or total > _MOST_TOTAL_BYTES

    def after_fork(self) -> None:
        """Replace the lock in a forked process, in which the thread that held it may be missing."""
        self._lock = threading.Lock()


def shape_key(values: Sequence[Any]) -> ShapeKey:
    """Return the shapes of inputs; empty for values that are no tensors."""
    return tuple([tuple(getattr(value, "shape", ())) for value in values])


def _nbytes(values: Sequence[Any]) -> int:
    """Return the size of the tensors among values, in bytes."""
    return sum(getattr(value, "nbytes", 0) for value in values)


def is_far(a: ShapeKey, b: ShapeKey) -> bool:
    """Return whether a size differs by the factor `FAR`, or a rank differs."""
    return len(a) != len(b) or any(
        len(first) != len(second)
        or any(
            max(one, other) >= FAR * max(1, min(one, other))
            for one, other in zip(first, second, strict=True)
        )
        for first, second in zip(a, b, strict=True)
    )


def _copy(value: Any) -> Any:
    """Return a copy of an input, as an array if it is in a device's memory."""
    if isinstance(value, Buffer):
        return value.array().copy()
    return value.copy() if type(value) is np.ndarray else deepcopy(value)
