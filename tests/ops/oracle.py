"""PyTorch if it is installed, else its recorded results in `recorded/`.

PyTorch is large, so the tests do not ask for it. Each test module has a file of its own there. To
record anew what modules need, in an environment that has PyTorch:

    pytest tests/ops/standard/test_arithmetic.py --record-oracle -p no:xdist
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from crosschip.ir import Array

RECORDED = Path(__file__).with_name("recorded")


class PyTorchMissing(Exception):
    """PyTorch was called, but is not installed."""


class _Absent:
    """Stand-in for PyTorch and its members, which can be passed around but not called."""

    def __getattr__(self, name: str) -> Self:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **named: object) -> Any:
        raise PyTorchMissing


def _pytorch() -> tuple[Any, Any]:
    """Return the modules `torch` and `torch.nn.functional`, or stand-ins."""
    try:
        torch = import_module("torch")
        torch.set_num_threads(1)
        return torch, import_module("torch.nn.functional")
    except ImportError:
        return _Absent(), _Absent()


torch, functional = _pytorch()


def of_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a function of PyTorch tensors to a function of arrays."""

    def call(*arrays: Array) -> Any:
        result = function(*map(torch.from_numpy, arrays))
        return [r.numpy() for r in result] if isinstance(result, tuple | list) else result.numpy()

    return call


class Recording:
    """PyTorch's results for a test module, by the test's name and the number of the check."""

    def __init__(self, module: str) -> None:
        self._file = RECORDED / f"{module}.npz"
        self._fresh: dict[str, Array] = {}
        self._known: dict[str, Array] = {}
        if self._file.exists():
            with np.load(self._file, allow_pickle=False) as file:
                self._known = dict(file)

    def add(self, name: str, results: list[Array]) -> None:
        """Add the results of a check."""
        for index, result in enumerate(results):
            # Not every element type has a place in the file format; the bytes of each have.
            self._fresh[f"{name}/{index}/{result.dtype.name}"] = result.view(_bytes_of(result))

    def find(self, name: str) -> list[Array]:
        """Return the results of a check; raise KeyError if they are not recorded."""
        import ml_dtypes  # noqa: F401 - lets NumPy know bfloat16 by its name

        found = []
        for key, stored in self._known.items():
            if key.startswith(f"{name}/"):
                found.append(stored.view(np.dtype(key.rpartition("/")[2])))
        if not found:
            raise KeyError(name)
        return found

    def write(self) -> None:
        """Write the added results, with the version that computed them."""
        arrays: dict[str, Any] = {"oracle": np.array(f"PyTorch {torch.__version__}"), **self._fresh}
        self._file.parent.mkdir(exist_ok=True)
        np.savez_compressed(self._file, **arrays)


def _bytes_of(array: Array) -> np.dtype[Any]:
    return np.dtype(f"u{array.dtype.itemsize}")


def of_onnx(operator: str, outputs: int = 1, **attributes: Any) -> Callable[..., Any]:
    """Return ONNX's evaluation of an operator (newest opset) as a function of arrays."""

    def call(*arrays: Array) -> Any:
        names = [f"in{index}" for index in range(len(arrays))]
        made = [f"out{index}" for index in range(outputs)]
        node = helper.make_node(operator, names, made, **attributes)
        types = map(helper.np_dtype_to_tensor_dtype, (array.dtype for array in arrays))
        infos = [
            helper.make_tensor_value_info(*one, None) for one in zip(names, types, strict=True)
        ]
        results = [helper.make_value_info(name, onnx.TypeProto()) for name in made]
        model = helper.make_model(helper.make_graph([node], "oracle", infos, results))
        return ReferenceEvaluator(model).run(None, dict(zip(names, arrays, strict=True)))

    return call
