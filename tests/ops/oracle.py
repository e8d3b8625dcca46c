"""PyTorch where it is installed; else what it computed once, kept in `recorded.npz`.

PyTorch is large, so the tests do not ask for it. To record anew, in an environment that has it:

    pytest tests/ops --record-oracle -p no:xdist
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np

from crosschip.ir import Array

RECORDED = Path(__file__).with_name("recorded.npz")


class PyTorchMissing(Exception):
    """PyTorch was called, but is not installed."""


class _Absent:
    """Stands for PyTorch and everything in it; can be passed around, but not called."""

    def __getattr__(self, name: str) -> Self:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **named: object) -> Any:
        raise PyTorchMissing


def _pytorch() -> tuple[Any, Any]:
    """The modules `torch` and `torch.nn.functional`, or what stands for them."""
    try:
        torch = import_module("torch")
        torch.set_num_threads(1)
        return torch, import_module("torch.nn.functional")
    except ImportError:
        return _Absent(), _Absent()


torch, functional = _pytorch()


class Recording:
    """PyTorch's results by the name of the test and the number of the check in it."""

    def __init__(self) -> None:
        self._fresh: dict[str, Array] = {}
        self._known: dict[str, Array] = {}
        if RECORDED.exists():
            with np.load(RECORDED, allow_pickle=False) as file:
                self._known = dict(file)

    def add(self, name: str, results: list[Array]) -> None:
        """Keep the results of a check for `write`."""
        for index, result in enumerate(results):
            # Not every element type has a place in the file format; the bytes of each have.
            self._fresh[f"{name}/{index}/{result.dtype.name}"] = result.view(_bytes_of(result))

    def find(self, name: str) -> list[Array]:
        """The results of a check; `KeyError` if they have not been recorded."""
        import ml_dtypes  # noqa: F401 - lets NumPy know bfloat16 by its name

        found = []
        for key, stored in self._known.items():
            if key.startswith(f"{name}/"):
                found.append(stored.view(np.dtype(key.rpartition("/")[2])))
        if not found:
            raise KeyError(name)
        return found

    def write(self) -> None:
        """Write what has been added, with the version that computed it."""
        arrays: dict[str, Any] = {"oracle": np.array(f"PyTorch {torch.__version__}"), **self._fresh}
        np.savez_compressed(RECORDED, **arrays)


def _bytes_of(array: Array) -> np.dtype[Any]:
    return np.dtype(f"u{array.dtype.itemsize}")
