"""Driver of rknn-toolkit2; runs in the environment of that package, without crosschip.

On a machine with a Rockchip chip, rknn-toolkit-lite2 runs the compiled program, if it is installed
in the same environment; otherwise the simulator of rknn-toolkit2. The simulator runs only what the
same object has built, so a program keeps the ONNX model, and is built again.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.numpy_helper import to_array

_MODEL, _PROGRAM = "model.onnx", "model.rknn"
_MOVING = ("Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Cast")
_PRODUCTS = ("MatMul", "Gemm")
_SUMS = ("ReduceMean", "ReduceSum")
_HEIGHT_AND_WIDTH = [2, 3]

os.environ["TQDM_DISABLE"] = "1"  # no progress bars between error messages


class _Loaded:
    """The toolkit's loaded model, which `run` executes, and the types of the model's outputs."""

    rknn: Any = None
    types: Sequence[Any] = ()


def describe() -> Mapping[str, Any]:
    """Return the versions of the tool and of the runtime."""
    _toolkit()
    lite = f", rknn-toolkit-lite2 {version('rknn-toolkit-lite2')}" if _has_chip() else ""
    return {"version": version("rknn-toolkit2") + lite}


def compile(folder: str, settings: Mapping[str, str]) -> list[str]:
    """Build `model.onnx` for a chip, and run it once, since some refusals occur only then."""
    rknn = _built(folder, settings)
    _done(rknn.export_rknn(str(Path(folder, _PROGRAM))), "export the program")
    if not _has_chip():
        _Loaded.rknn = rknn
        _started(folder)
        run([np.zeros(shape, dtype) for shape, dtype in _tensors(_graph(folder).input)])
    return [_MODEL, _PROGRAM]


def load(folder: str, settings: Mapping[str, str]) -> None:
    """Load the built program for `run`."""
    if _has_chip():
        from rknnlite.api import RKNNLite

        _Loaded.rknn = RKNNLite()
        _done(_Loaded.rknn.load_rknn(str(Path(folder, _PROGRAM))), "load the program")
        _started(folder)
    elif _Loaded.rknn is None:
        _Loaded.rknn = _built(folder, settings)
        _started(folder)


def run(inputs: Sequence[Any]) -> list[Any]:
    """Run the program; return outputs in the model's types, since float16 comes back as float32."""
    arguments = {"data_type": [str(array.dtype) for array in inputs]} if _has_chip() else {}
    formats = ["nchw"] * len(inputs)
    outputs = _Loaded.rknn.inference(inputs=list(inputs), data_format=formats, **arguments)
    if outputs is None:
        raise RuntimeError("rknn-toolkit2 did not run the model")
    return [
        array.astype(kind, copy=False) for array, kind in zip(outputs, _Loaded.types, strict=True)
    ]


def _built(folder: str, settings: Mapping[str, str]) -> Any:
    _refuse_endless(_graph(folder))
    rknn = _toolkit()(verbose=False)
    _done(rknn.config(target_platform=settings["platform"]), "take the settings")
    _done(rknn.load_onnx(model=str(Path(folder, _MODEL))), "read the model")
    _done(rknn.build(do_quantization=False), "build the model")
    return rknn


def _refuse_endless(graph: Any) -> None:
    """Refuse graphs that the toolkit never finishes building, at any level of optimization.

    These are products of quantized matrices, the smallest case a Gemm of int8[4, 8] and int8[8, 8],
    and reductions of quantized tensors along several axes: the sum of int8[2, 3, 4] along the last
    two, the mean along the first and the last. Those along height and width end.
    """
    quantized: set[str] = set()
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        moved = node.op_type in _MOVING and node.input[0] in quantized
        if node.op_type == "DequantizeLinear" or moved:
            quantized.add(node.output[0])
        elif node.op_type in _PRODUCTS and quantized.issuperset(node.input[:2]):
            raise RuntimeError(f"{node.name}: both matrices are quantized, and it never ends")
        elif node.op_type in _SUMS and node.input[0] in quantized:
            axes = [to_array(constants[name]).tolist() for name in node.input[1:]]
            if any(len(reduced) > 1 and sorted(reduced) != _HEIGHT_AND_WIDTH for reduced in axes):
                reason = "quantized, along several axes, and it may never end"
                raise RuntimeError(f"{node.name}: {reason}")


def _started(folder: str) -> None:
    _done(_Loaded.rknn.init_runtime(), "start the runtime")
    _Loaded.types = [dtype for _, dtype in _tensors(_graph(folder).output)]


def _graph(folder: str) -> Any:
    return onnx.load(Path(folder, _MODEL)).graph


def _tensors(values: Any) -> list[tuple[list[int], Any]]:
    """Return shapes and types of inputs or outputs."""
    kinds = [value.type.tensor_type for value in values]
    return [
        ([size.dim_value for size in kind.shape.dim], tensor_dtype_to_np_dtype(kind.elem_type))
        for kind in kinds
    ]


def _toolkit() -> Any:
    """Return the toolkit's class.

    It imports PyTorch for a kind of quantization that is not used here. Without PyTorch, a stub
    with the two names needed for the import replaces it.
    """
    if "torch" not in sys.modules and find_spec("torch") is None:
        torch: Any = types.ModuleType("torch")
        torch.no_grad = lambda: lambda function: function
        torch.nn = types.ModuleType("torch.nn")
        torch.nn.Module = object
        sys.modules.update({"torch": torch, "torch.nn": torch.nn})
    from rknn.api import RKNN

    return RKNN


def _has_chip() -> bool:
    """Return whether the machine has a Rockchip chip and the runtime for it."""
    tree = Path("/proc/device-tree/compatible")
    return find_spec("rknnlite") is not None and tree.exists() and b"rockchip," in tree.read_bytes()


def _done(status: int, what: str) -> None:
    """Raise an error unless a call succeeded; the toolkit has printed the reason."""
    if status != 0:
        raise RuntimeError(f"rknn-toolkit2 did not {what}")
