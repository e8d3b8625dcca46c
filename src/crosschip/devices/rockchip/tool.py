"""Drives rknn-toolkit2; runs in the environment that this is installed in, without crosschip.

On a machine with one of Rockchip's chips, what it compiled is run by rknn-toolkit-lite2, if that is
installed in the same environment; elsewhere by the simulator of rknn-toolkit2. The simulator runs
only what the same object has just built, so a program keeps the ONNX model, and is built again.
"""

from __future__ import annotations

import os
import sys
import types
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from onnx.helper import tensor_dtype_to_np_dtype

_MODEL, _PROGRAM = "model.onnx", "model.rknn"

os.environ["TQDM_DISABLE"] = "1"  # progress bars, where it says why it refuses a model

_rknn = None
_formats = []
_types = []


def about():
    """What the tool calls itself, and what runs the programs."""
    lite = f", rknn-toolkit-lite2 {version('rknn-toolkit-lite2')}" if _has_chip() else ""
    _toolkit()
    return {"version": version("rknn-toolkit2") + lite}


def compile(folder, settings):
    """Build `model.onnx` for a chip."""
    global _rknn
    _rknn = _built(folder, settings)
    _try(folder)
    _done(_rknn.export_rknn(str(Path(folder, _PROGRAM))), "export")
    return [_MODEL, _PROGRAM]


def load(folder, settings):
    """Make ready to run what was built."""
    global _rknn, _formats, _types
    if _has_chip():
        from rknnlite.api import RKNNLite

        _rknn = RKNNLite()
        _done(_rknn.load_rknn(str(Path(folder, _PROGRAM))), "load")
        _done(_rknn.init_runtime(), "start")
    elif _rknn is None:
        _rknn = _built(folder, settings)
        _done(_rknn.init_runtime(), "start")
    graph = onnx.load(Path(folder, _MODEL)).graph
    _formats = ["nchw"] * len(graph.input)
    _types = [tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in graph.output]


def run(inputs):
    """The outputs, in order and in the types of the model: the chip's are float32 for float16."""
    if _has_chip():
        kinds = [str(array.dtype) for array in inputs]
        made = _rknn.inference(inputs=inputs, data_type=kinds, data_format=_formats)
    else:
        made = _rknn.inference(inputs=inputs, data_format=_formats)
    if made is None:
        raise RuntimeError("inference failed")
    return [array.astype(dtype, copy=False) for array, dtype in zip(made, _types, strict=True)]


def _built(folder, settings):
    rknn = _toolkit()(verbose=False)
    _done(rknn.config(target_platform=settings["platform"]), "configure")
    _done(rknn.load_onnx(model=str(Path(folder, _MODEL))), "read the model")
    _done(rknn.build(do_quantization=False), "build the model")
    return rknn


def _toolkit():
    """The toolkit's class.

    It imports PyTorch for one of its own ways to quantize, which is not used here: the two names
    that it needs to be imported will do.
    """
    if "torch" not in sys.modules and find_spec("torch") is None:
        torch = types.ModuleType("torch")
        torch.no_grad = lambda: lambda function: function
        torch.nn = types.ModuleType("torch.nn")
        torch.nn.Module = object
        sys.modules.update({"torch": torch, "torch.nn": torch.nn})
    from rknn.api import RKNN

    return RKNN


def _try(folder):
    """Run what was built on zeros in the simulator: some of what is refused shows only then."""
    if _has_chip():
        return
    _done(_rknn.init_runtime(), "start")
    inputs = onnx.load(Path(folder, _MODEL)).graph.input
    kinds = [value.type.tensor_type for value in inputs]
    zeros = [
        np.zeros(
            [size.dim_value for size in kind.shape.dim], tensor_dtype_to_np_dtype(kind.elem_type)
        )
        for kind in kinds
    ]
    if _rknn.inference(inputs=zeros, data_format=["nchw"] * len(zeros)) is None:
        raise RuntimeError("rknn-toolkit2 did not run the model")


def _has_chip():
    """Whether the machine has a chip of Rockchip's, and what runs programs on it."""
    tree = Path("/proc/device-tree/compatible")
    return find_spec("rknnlite") is not None and tree.exists() and b"rockchip," in tree.read_bytes()


def _done(status, what):
    """Raise an error unless a call succeeded; it has printed the reason."""
    if status != 0:
        raise RuntimeError(f"rknn-toolkit2 did not {what}")
