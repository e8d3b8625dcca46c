"""A program written for `paddlelite.lite`, which tells what it sees, there or with crosschip.

`python program.py MODEL.nb` prints JSON: what comes of each step, by its name. What Paddle Lite
says is in `recorded-2.13.json`, written by this program, Python 3.10 and `paddlelite==2.13rc0`.
Paddle Lite ends the process when something is wrong, so that there are no such steps.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

import numpy as np


def main(module: str = "paddlelite.lite") -> None:
    """Take the steps, and print what comes of them."""
    lite = import_module(module)
    seen = {**enumerations(lite), **configurations(lite), **running(lite, sys.argv[1])}
    print(json.dumps(seen, indent=1))


def enumerations(lite: Any) -> dict[str, Any]:
    """The numbers of all that are named."""
    kinds = ("TargetType", "PrecisionType", "DataLayoutType", "PowerMode", "CLTuneMode")
    found = {
        kind: {name: int(value) for name, value in getattr(lite, kind).__members__.items()}
        for kind in (*kinds, "CLPrecisionType")
    }
    valid = [lite.Place(lite.TargetType.X86), lite.Place(lite.TargetType.Unk)]
    return {**found, "valid places": [place.is_valid() for place in valid]}


def configurations(lite: Any) -> dict[str, Any]:
    """What configurations say of themselves."""
    full, light = lite.CxxConfig(), lite.MobileConfig()
    seen = {
        "threads": full.threads(),
        "power mode": int(full.power_mode()),
        "from memory": [full.is_model_from_memory(), light.is_model_from_memory()],
        "folders": [full.model_dir(), light.model_dir()],
    }
    full.set_model_file("program")
    full.set_param_file("parameters")
    full.set_nnadapter_device_names(["one", "two"])
    full.set_nnadapter_context_properties("A=1;B=2")
    full.set_nnadapter_model_cache_dir("cache")
    full.set_nnadapter_subgraph_partition_config_path("partition")
    full.set_nnadapter_mixed_precision_quantization_config_path("mixed")
    return {
        **seen,
        "files": [full.model_file(), full.param_file()],
        "devices": full.nnadapter_device_names(),
        "properties": full.nnadapter_context_properties(),
        "cache": full.nnadapter_model_cache_dir(),
        "partition": full.nnadapter_subgraph_partition_config_path(),
        "mixed precision": full.nnadapter_mixed_precision_quantization_config_path(),
    }


def running(lite: Any, path: str) -> dict[str, Any]:
    """A model, given elements in both ways."""
    config = lite.MobileConfig()
    config.set_model_from_file(path)
    predictor = lite.create_paddle_predictor(config)
    given = predictor.get_input(0)
    seen: dict[str, Any] = {
        "inputs": predictor.get_input_names(),
        "outputs": predictor.get_output_names(),
        "shape before": given.shape(),
        "precision before": given.precision().name,
        "target": given.target().name,
        "LoD": given.lod(),
    }
    x = np.linspace(-1, 1, 2 * 4 * 8 * 8, dtype=np.float32).reshape(2, 4, 8, 8)
    for type_ in ("float64", "int64", "int32", "uint8", "bool", "int8", "int16"):
        given.from_numpy(x.astype(type_))
        seen[f"precision of {type_}"] = given.precision().name
    given.from_numpy(x)
    seen["shape"], seen["precision"] = given.shape(), given.precision().name
    predictor.run()
    result = predictor.get_output(0)
    seen["values"], seen["result's shape"] = result.numpy().tolist(), result.shape()
    seen["values in a list"] = result.float_data()
    seen["result's precision"] = result.precision().name
    given.resize([1, 4, 8, 8])
    seen["resized"] = given.shape()
    given.set_float_data(x[1].flatten().tolist())
    predictor.run()
    seen["values of one"] = predictor.get_output_by_name(seen["outputs"][0]).numpy().tolist()
    seen["by name"] = predictor.get_input_by_name("x").shape()
    given.set_lod([[0, 1]])
    seen["LoD set"] = given.lod()
    return seen


if __name__ == "__main__":
    main()
