"""A program written for `paddle.inference`, which tells what it sees; Paddle or crosschip runs it.

`python program.py MODELS FORMAT` prints JSON: for each step, by its name, the result or "error".
MODELS is the folder with the real models, FORMAT is `pdmodel` or `json`. What Paddle says is in
`recorded-2.6.2.json` and `recorded-3.3.1.json`, written by this program and
`build/oracles/paddle-VERSION/bin/python`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":  # who only looks at the file may have no Paddle
    from paddle import inference

Steps = Iterator[tuple[str, Callable[[], Any]]]


def main() -> None:
    """Take the steps, and print what comes of them."""
    models, format_ = Path(sys.argv[1]), sys.argv[2]
    seen: dict[str, Any] = {}
    for part in (configuration, handles, elements, shapes, clones, operators):
        for name, step in part(models, format_):
            try:
                seen[f"{part.__name__}: {name}"] = told(step())
            except Exception:
                seen[f"{part.__name__}: {name}"] = "error"
    print(json.dumps(seen, indent=1))


def told(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.name, "elements": value.tolist()}
    return value if isinstance(value, bool | int | float | str | list | None) else "something"


def files(models: Path, format_: str, name: str = "layouts") -> tuple[str, str]:
    """The two files of a model."""
    stem = models / "layouts" / format_ / "inference"
    if name != "layouts":
        stem = models / "operators" / format_ / name
    suffix = ".json" if format_ == "json" else ".pdmodel"
    parameters = stem.with_suffix(".pdiparams")
    return str(stem.with_suffix(suffix)), str(parameters) if parameters.exists() else ""


def number(enumeration: Any, name: str) -> int:
    """The number of a member of an enumeration."""
    return int(getattr(enumeration, name))


def type_of(handle: Any) -> str:
    """The name of the type of a handle's elements."""
    return str(handle.type().name)


def made(models: Path, format_: str, name: str = "layouts") -> Any:
    """A predictor."""
    config = inference.Config(*files(models, format_, name))
    config.disable_glog_info()
    return inference.create_predictor(config)


def configuration(models: Path, format_: str) -> Steps:
    """What `Config` says and takes."""
    program, parameters = files(models, format_)
    config = inference.Config(program, parameters)
    yield "program", lambda: Path(config.prog_file()).name
    yield "parameters", lambda: Path(config.params_file()).name
    yield "folder", config.model_dir
    yield "from memory", config.model_from_memory
    yield "threads", config.cpu_math_library_num_threads
    yield "set threads", lambda: config.set_cpu_math_library_num_threads(3)
    yield "threads set", config.cpu_math_library_num_threads
    yield "no number of threads", lambda: config.set_cpu_math_library_num_threads("3")
    yield "GPU", lambda: (config.enable_use_gpu(100, 0), config.use_gpu())[1]
    yield "GPU's number", config.gpu_device_id
    yield "GPU's memory", config.memory_pool_init_size_mb
    yield "TensorRT", config.tensorrt_engine_enabled
    yield "TensorRT's precision", lambda: config.tensorrt_precision_mode().name
    yield "ONNX Runtime", config.onnxruntime_enabled
    yield "XPU", config.use_xpu
    yield "path", lambda: inference.Config(Path(program), parameters)
    yield "optimise", lambda: config.switch_ir_optim(x=True)
    yield "memory", config.enable_memory_optim
    yield "log", config.disable_glog_info
    yield "pass", lambda: config.delete_pass("no_such_pass")
    yield "no pass", config.delete_pass
    yield "no such setting", lambda: config.enable_nothing()
    other = inference.Config()
    yield "folder alone", lambda: other.set_model("folder")
    yield "its folder", other.model_dir
    yield "its program", other.prog_file
    yield "files instead", lambda: other.set_model("one", "two")
    yield "their program", other.prog_file
    yield "their parameters", other.params_file
    yield "nothing there", lambda: inference.create_predictor(inference.Config("/no/a", "/no/b"))
    for name in ("FLOAT32", "INT64", "INT32", "UINT8", "INT8", "FLOAT16", "BOOL", "FLOAT64"):
        yield name, partial(number, inference.DataType, name)
    for name in ("Float32", "Half", "Int8", "Bfloat16"):
        yield name, partial(number, inference.PrecisionType, name)
    for name in ("UNK", "CPU", "GPU", "XPU", "CUSTOM"):
        yield name, partial(number, inference.PlaceType, name)
    yield "bytes", lambda: inference.get_num_bytes_of_data_type(inference.DataType.INT64)


def handles(models: Path, format_: str) -> Steps:
    """Names, and handles before anything was run."""
    predictor = made(models, format_)
    yield "inputs", predictor.get_input_names
    yield "outputs", predictor.get_output_names
    yield "no such input", lambda: predictor.get_input_handle("nothing")
    yield "no such output", lambda: predictor.get_output_handle("nothing")
    given = predictor.get_input_handle(predictor.get_input_names()[0])
    result = predictor.get_output_handle(predictor.get_output_names()[0])
    for name, handle in (("input", given), ("output", result)):
        yield f"shape of the {name}", handle.shape
        yield f"type of the {name}", partial(type_of, handle)
        yield f"LoD of the {name}", handle.lod
    yield "output before a run", result.copy_to_cpu
    yield "run without input", predictor.run
    yield "output as input", lambda: result.reshape([1])
    yield "list", lambda: given.copy_from_cpu([[1.0]])
    yield "number", lambda: given.copy_from_cpu(np.float32(1))


def elements(models: Path, format_: str) -> Steps:
    """Elements of all types, in and out."""
    predictor = made(models, format_)
    given = predictor.get_input_handle(predictor.get_input_names()[0])
    result = predictor.get_output_handle(predictor.get_output_names()[0])
    x = np.linspace(-1, 1, 2 * 3 * 16 * 16, dtype=np.float32).reshape(2, 3, 16, 16)
    for type_ in ("int8", "int16", "uint16", "uint32", "uint8", "bool", "int64", "float16"):
        yield f"copy {type_}", partial(given.copy_from_cpu, x.astype(type_))
        yield f"type of {type_}", lambda: given.type().name
    yield "copy complex64", lambda: given.copy_from_cpu(x.astype(np.complex64))
    yield "copy float64", lambda: given.copy_from_cpu(x.astype(np.float64))
    yield "run float64", predictor.run
    yield "copy", lambda: given.copy_from_cpu(x)
    yield "read back", lambda: bool((given.copy_to_cpu() == x).all())
    yield "run", predictor.run
    yield "shape", result.shape
    yield "type", lambda: result.type().name
    yield "values", result.copy_to_cpu
    yield "copies", lambda: np.shares_memory(result.copy_to_cpu(), result.copy_to_cpu())
    yield "copies are the caller's", lambda: result.copy_to_cpu().flags.writeable
    x[:] = 0
    yield "run again", predictor.run
    yield "same values", result.copy_to_cpu
    turned = np.ascontiguousarray(given.copy_to_cpu().transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
    yield "other order in memory", lambda: given.copy_from_cpu(turned)
    yield "run other order", predictor.run
    yield "values of other order", result.copy_to_cpu
    yield "other byte order", lambda: given.copy_from_cpu(turned.astype(">f4"))
    yield "run other byte order", predictor.run
    yield "values of other byte order", result.copy_to_cpu


def shapes(models: Path, format_: str) -> Steps:
    """Shapes that fit, and those that do not."""
    predictor = made(models, format_)
    given = predictor.get_input_handle(predictor.get_input_names()[0])
    result = predictor.get_output_handle(predictor.get_output_names()[0])
    x = np.linspace(-1, 1, 2 * 3 * 16 * 16, dtype=np.float32).reshape(2, 3, 16, 16)
    yield "in advance", lambda: given.reshape([4, 3, 16, 16])
    yield "shape in advance", given.shape
    yield "copy", lambda: given.copy_from_cpu(x)
    yield "shape of the copy", given.shape
    yield "fewer", lambda: given.reshape((1, 3, 16, 16))
    yield "run fewer", predictor.run
    yield "result of fewer", result.shape
    yield "values of fewer", result.copy_to_cpu
    yield "no integers", lambda: given.reshape([1.5, 3, 16, 16])
    yield "three axes", lambda: given.copy_from_cpu(x[0])
    yield "run three axes", predictor.run
    yield "two channels", lambda: given.copy_from_cpu(x[:, :2])
    yield "run two channels", predictor.run
    yield "after errors", lambda: given.copy_from_cpu(x)
    yield "run after errors", predictor.run
    yield "values after errors", result.copy_to_cpu
    yield "set LoD", lambda: given.set_lod([[0, 1, 2]])
    yield "LoD", given.lod


def clones(models: Path, format_: str) -> Steps:
    """Several predictors of one model."""
    first = made(models, format_)
    second = first.clone()
    name = first.get_input_names()[0]
    x = np.linspace(-1, 1, 2 * 3 * 16 * 16, dtype=np.float32).reshape(2, 3, 16, 16)
    yield "names", lambda: second.get_input_names() == first.get_input_names()
    yield "copy", lambda: first.get_input_handle(name).copy_from_cpu(x)
    yield "handles look at one value", lambda: first.get_input_handle(name).shape()
    yield "clones do not", lambda: second.get_input_handle(name).shape()
    yield "run", first.run
    yield "copy to the clone", lambda: second.get_input_handle(name).copy_from_cpu(x[1:])
    yield "run the clone", second.run
    for each, predictor in (("first", first), ("second", second)):
        result = predictor.get_output_handle(predictor.get_output_names()[0])
        yield f"values of the {each}", result.copy_to_cpu
    yield "shrink", first.try_shrink_memory
    yield "clear", first.clear_intermediate_tensor
    pool = inference.PredictorPool(inference.Config(*files(models, format_)), 2)
    retrieve = pool.retrieve if hasattr(pool, "retrieve") else pool.retrive
    yield "pool", lambda: retrieve(1).get_input_names()


OPERATORS = {
    "relu/rank_4": ((np.arange(-4, 4, dtype=np.float32).reshape(1, 2, 2, 2),), ()),
    "elementwise_add/same_shapes": (
        (np.ones((2, 5), np.float32), np.arange(10, dtype=np.float32).reshape(2, 5)),
        (),
    ),
    "lookup_table_v2/rank_1": ((np.array([2, 0, 1], np.int32),), ()),
    "top_k_v2/axis_1": ((np.arange(12, dtype=np.float32).reshape(2, 6),), ()),
}
"""Inputs for models of one operator: other sizes and other integers than their files say."""

SEQUENCES = {
    "sequence_pool/average": ((np.arange(12, dtype=np.float32).reshape(6, 2),), ([[0, 2, 6]],)),
}


def operators(models: Path, format_: str) -> Steps:
    """Models of one operator."""
    for name, (inputs, levels) in (OPERATORS | (SEQUENCES if format_ == "pdmodel" else {})).items():
        predictor = made(models, format_, name)
        handles = [predictor.get_input_handle(each) for each in predictor.get_input_names()]

        def give(handles: Any = handles, inputs: Any = inputs, levels: Any = levels) -> None:
            for handle, array in zip(handles, inputs, strict=True):
                handle.copy_from_cpu(array)
            for handle, level in zip(handles, levels, strict=False):
                handle.set_lod(level)

        yield f"copy {name}", give
        yield f"run {name}", predictor.run
        yield f"outputs of {name}", partial(len, predictor.get_output_names())
        for index, each in enumerate(predictor.get_output_names()):
            result = predictor.get_output_handle(each)
            yield f"output {index} of {name}", result.copy_to_cpu
            yield f"LoD of {index} of {name}", result.lod


if __name__ == "__main__":
    main()
