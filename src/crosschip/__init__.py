"""One model, any AI chip.

    import crosschip as cc

    model = cc.load("inference.pdmodel")
    compiled = cc.compile(model, devices=["openvino", "onnxruntime"])
    outputs = compiled.run({"x": image})

Every name is imported when it is first used; importing crosschip loads no device.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str

    from crosschip.batch_inference import map_files as map_files
    from crosschip.comparison import compare as compare
    from crosschip.exporters import export as export
    from crosschip.importers import load as load
    from crosschip.ir import Budget as Budget
    from crosschip.ir import BudgetError as BudgetError
    from crosschip.ir import Builder as Builder
    from crosschip.ir import CacheError as CacheError
    from crosschip.ir import DeadlineError as DeadlineError
    from crosschip.ir import DeviceError as DeviceError
    from crosschip.ir import Error as Error
    from crosschip.ir import InputError as InputError
    from crosschip.ir import Model as Model
    from crosschip.ir import ModelError as ModelError
    from crosschip.ir import ModelFileError as ModelFileError
    from crosschip.ir import QueueFullError as QueueFullError
    from crosschip.ir import UnsupportedError as UnsupportedError
    from crosschip.preprocessing import Preprocess as Preprocess
    from crosschip.preprocessing import read_picture as read_picture
    from crosschip.runtime.artifact.loading import load_compiled as load_compiled
    from crosschip.runtime.cache.store import Memory as Memory
    from crosschip.runtime.compile.front_door import compile as compile
    from crosschip.runtime.compile.front_door import explain as explain
    from crosschip.runtime.compiled import CompiledModel as CompiledModel
    from crosschip.runtime.configuration import Configuration as Configuration
    from crosschip.runtime.discovery import list_devices as list_devices
    from crosschip.runtime.options import CacheOptions as CacheOptions
    from crosschip.runtime.options import ShapeOptions as ShapeOptions
    from crosschip.runtime.placement.options import PlacementOptions as PlacementOptions
    from crosschip.runtime.priority import Priority as Priority
    from crosschip.tuning.tuning import tune as tune

import_module("crosschip._interpreter").check()

_MODULES = {
    "Budget": "crosschip.ir",
    "Builder": "crosschip.ir",
    "CompiledModel": "crosschip.runtime.compiled",
    "Configuration": "crosschip.runtime.configuration",
    "BudgetError": "crosschip.ir",
    "CacheError": "crosschip.ir",
    "DeadlineError": "crosschip.ir",
    "DeviceError": "crosschip.ir",
    "InputError": "crosschip.ir",
    "ModelError": "crosschip.ir",
    "ModelFileError": "crosschip.ir",
    "QueueFullError": "crosschip.ir",
    "UnsupportedError": "crosschip.ir",
    "Error": "crosschip.ir",
    "Memory": "crosschip.runtime.cache.store",
    "Model": "crosschip.ir",
    "Preprocess": "crosschip.preprocessing",
    "Priority": "crosschip.runtime.priority",
    "read_picture": "crosschip.preprocessing",
    "compare": "crosschip.comparison",
    "compile": "crosschip.runtime.compile.front_door",
    "list_devices": "crosschip.runtime.discovery",
    "explain": "crosschip.runtime.compile.front_door",
    "export": "crosschip.exporters",
    "load": "crosschip.importers",
    "map_files": "crosschip.batch_inference",
    "load_compiled": "crosschip.runtime.artifact.loading",
    "CacheOptions": "crosschip.runtime.options",
    "PlacementOptions": "crosschip.runtime.placement.options",
    "ShapeOptions": "crosschip.runtime.options",
    "tune": "crosschip.tuning.tuning",
}

__all__ = sorted([*_MODULES, "__version__"])


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version("crosschip")
    if name not in _MODULES:
        raise AttributeError(f"module 'crosschip' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
