"""Paddle Lite's configurations: the model, and how to run it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from crosschip.apis.nnadapter.device import NNAdapterDevice_acquire
from crosschip.apis.paddle.ignored import IgnoredSettings, ignored_methods
from crosschip.apis.paddle.session import Files, Session, Shapes
from crosschip.apis.paddle_lite.enumerations import (
    CLPrecisionType,
    Place,
    PowerMode,
    PrecisionType,
    TargetType,
)
from crosschip.apis.paddle_lite.nnadapter import NNAdapterSettings, check_text
from crosschip.hal import Kind
from crosschip.importers.packages import with_overriding
from crosschip.importers.paddle import load_lite
from crosschip.ir import InputError, Model, ModelFileError
from crosschip.ir.budget import spending
from crosschip.runtime.artifact.container import looks_like_shipped_file
from crosschip.runtime.artifact.loading import load_compiled
from crosschip.runtime.configuration import Configuration
from crosschip.runtime.discovery import instances
from crosschip.runtime.placement.options import PlacementOptions

IGNORED = IgnoredSettings(logging.getLogger("crosschip.paddle_lite"))

_PERFORMANCE: Mapping[PowerMode, str] = {
    PowerMode.LITE_POWER_HIGH: "high",
    PowerMode.LITE_POWER_LOW: "low",
    PowerMode.LITE_POWER_FULL: "extreme",
    PowerMode.LITE_POWER_NO_BIND: "none",
    PowerMode.LITE_POWER_RAND_HIGH: "high",
    PowerMode.LITE_POWER_RAND_LOW: "low",
}
PROGRAM, PARAMETERS = "model", "params"
"""The file names of a model folder written by Paddle Lite."""

_FALLBACKS = ("onnxruntime", "openvino", "reference")
_ON_GPUS = (TargetType.OpenCL, TargetType.Metal)
_ON_PROCESSORS = (TargetType.Host, TargetType.X86, TargetType.ARM, TargetType.Any)


@ignored_methods(
    IGNORED,
    {
        "set_opencl_binary_path_name": {"path": ..., "name": ...},
        "set_opencl_tune": {"tune_mode": ..., "path": "", "name": "", "lws_repeats": 4},
        "set_metal_use_mps": {"flag": True},
        "set_metal_use_memory_reuse": {"flag": ...},
        "set_metal_lib_path": {"path": ...},
    },
)
class ConfigBase(NNAdapterSettings):
    """The settings that both configurations share."""

    devices: ClassVar[Any] = "auto"
    """The `devices` argument of `crosschip.compile` where a configuration names no device."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = ""
        self._threads: int | None = None
        self._power = PowerMode.LITE_POWER_NO_BIND
        self._half = False

    def set_model_dir(self, model_dir: str) -> None:
        """Set the model's folder."""
        self._folder = check_text("set_model_dir", model_dir)

    def model_dir(self) -> str:
        """Return the model's folder, or ""."""
        return self._folder

    def set_threads(self, threads: int) -> None:
        """Set how many CPU threads a run may use.

        Raises:
            InputError: it is no positive integer.
        """
        if not isinstance(threads, int) or threads < 1:
            raise InputError(f"set_threads: {threads!r} is no number from 1 on")
        self._threads = threads

    def threads(self) -> int:
        """Return the number that was set; else 1, though devices then choose their own number."""
        return self._threads or 1

    def set_power_mode(self, mode: PowerMode) -> None:
        """Set the trade-off between speed and power; devices follow it as far as they can."""
        self._power = PowerMode(mode)

    def power_mode(self) -> PowerMode:
        """Return the trade-off between speed and power."""
        return self._power

    def set_opencl_precision(self, precision: CLPrecisionType) -> None:
        """Set the precision: float16 if named, else float32."""
        self._half = precision == CLPrecisionType.CL_PRECISION_FP16

    def session(self) -> Session:
        """Compile the model.

        Raises:
            InputError: the configuration names no model.
            Error: see `crosschip.load` and `crosschip.compile`.
        """
        raise NotImplementedError

    def _session(self, loader: Callable[[Shapes], Model], places: Sequence[Place]) -> Session:
        dynamic = self.dynamic_shapes()
        shapes = {name: shape for name, shape in dynamic.items() if -1 in shape}
        arguments = self._arguments(places)
        return Session(lambda new_shapes: loader({**shapes, **new_shapes}), arguments)

    def _arguments(self, places: Sequence[Place]) -> Mapping[str, Any]:
        """Return the arguments of `crosschip.compile` except the model."""
        arguments: dict[str, Any] = {"threads": self._threads}
        arguments["configuration"] = Configuration(performance=_PERFORMANCE[self._power])
        first = next(iter(places), None)
        if self._half or (
            first and first.percision is PrecisionType.FP16 and first.target not in _ON_GPUS
        ):
            arguments["precision"] = "float16"
        device_arguments = self._device_arguments([place.target for place in places])
        return {**arguments, **self.cache_arguments(), **device_arguments}

    def _device_arguments(self, targets: Sequence[TargetType]) -> Mapping[str, Any]:
        """Return the compile arguments that select devices and their properties."""
        if self._names and TargetType.NNAdapter in targets:
            context = self.context()
            fallbacks = [name for name in _processors() if name not in context.names]
            arguments: dict[str, Any] = {"devices": [*context.names, *fallbacks]}
            arguments["properties"] = context.properties
            for name in ("threads", "precision"):
                if getattr(context, name) is not None:
                    arguments[name] = getattr(context, name)
            return arguments
        if self._names:
            IGNORED.warn_once("set_nnadapter_device_names", "no valid place is NNAdapter")
        for target in targets:
            if target in _ON_GPUS and (gpus := _gpus()):
                return {"devices": [*gpus, *_processors()]}
            if target not in (*_ON_PROCESSORS, TargetType.NNAdapter):
                IGNORED.warn_once(f"TargetType.{target.name}", "no device here drives such a chip")
        return {"devices": self.devices}


class CxxConfig(ConfigBase):
    """The configuration of a predictor for a Paddle model."""

    def __init__(self) -> None:
        super().__init__()
        self._program = self._parameters = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._places: list[Place] = []
        self._partition: str | Path | None = None
        self._mixed: str | Path | None = None

    def set_model_file(self, path: str) -> None:
        """Set the program's file."""
        self._program = check_text("set_model_file", path)

    def model_file(self) -> str:
        """Return the program's file, or ""."""
        return self._program

    def set_param_file(self, path: str) -> None:
        """Set the parameters' file."""
        self._parameters = check_text("set_param_file", path)

    def param_file(self) -> str:
        """Return the parameters' file, or ""."""
        return self._parameters

    def set_model_buffer(
        self, model: bytes, model_size: int, parameters: bytes, parameters_size: int
    ) -> None:
        """Set the contents of the program's and the parameters' files."""
        self._buffers = bytes(model[:model_size]), bytes(parameters[:parameters_size])

    def is_model_from_memory(self) -> bool:
        """Return whether the model was set as contents."""
        return self._buffers is not None

    def set_valid_places(self, places: Sequence[Place]) -> None:
        """Set the hardware in order of preference.

        NNAdapter selects the devices of `set_nnadapter_device_names`, OpenCL and Metal select GPUs,
        all others CPUs. FP16 in the first place selects float16, on a device that supports it.
        """
        self._places = list(places)

    def set_nnadapter_subgraph_partition_config_path(self, path: str) -> None:
        """Set a configuration file that lists operators to run on CPUs instead of the devices."""
        text = check_text("set_nnadapter_subgraph_partition_config_path", path)
        self._partition = Path(text) if text else None

    def set_nnadapter_subgraph_partition_config_buffer(self, content: str) -> None:
        """Set the content of a configuration that lists operators to run on CPUs."""
        self._partition = check_text("set_nnadapter_subgraph_partition_config_buffer", content)

    def set_nnadapter_mixed_precision_quantization_config_path(self, path: str) -> None:
        """Set a configuration file that lists operators to compute in float32."""
        text = check_text("set_nnadapter_mixed_precision_quantization_config_path", path)
        self._mixed = Path(text) if text else None

    def set_nnadapter_mixed_precision_quantization_config_buffer(self, content: str) -> None:
        """Set the content of a configuration that lists operators to compute in float32."""
        name = "set_nnadapter_mixed_precision_quantization_config_buffer"
        self._mixed = check_text(name, content)

    def nnadapter_subgraph_partition_config_path(self) -> str:
        """Return the configuration file of operators to run on CPUs."""
        return str(self._partition) if isinstance(self._partition, Path) else ""

    def nnadapter_subgraph_partition_config_buffer(self) -> str:
        """Return the configuration of operators to run on CPUs."""
        return self._partition if isinstance(self._partition, str) else ""

    def nnadapter_mixed_precision_quantization_config_path(self) -> str:
        """Return the configuration file of operators to compute in float32."""
        return str(self._mixed) if isinstance(self._mixed, Path) else ""

    def nnadapter_mixed_precision_quantization_config_buffer(self) -> str:
        """Return the configuration of operators to compute in float32."""
        return self._mixed if isinstance(self._mixed, str) else ""

    def session(self) -> Session:
        return self._session(self.files(), self._places)

    def files(self) -> Files:
        """Return the model's files or contents.

        Raises:
            InputError: the configuration names no model.
        """
        if self._buffers is not None:
            return Files(*self._buffers)
        if self._program:
            return Files(Path(self._program), Path(self._parameters) if self._parameters else None)
        if not self._folder:
            raise InputError("the configuration names no model; give set_model_dir its folder")
        folder = Path(self._folder)
        program, parameters = folder / PROGRAM, folder / PARAMETERS
        if program.is_file() and parameters.is_file():
            return Files(program, parameters)
        return Files(folder, None)

    def _arguments(self, places: Sequence[Place]) -> Mapping[str, Any]:
        placement = PlacementOptions(
            partition=self._partition or None, mixed_precision=self._mixed or None
        )
        return {**super()._arguments(places), "placement": placement}


ignored_methods(
    IGNORED,
    {
        "set_passes_internal": {"passes": ()},
        "add_discarded_pass": {"name": ...},
        "set_quant_model": {"quant_model": ...},
        "set_quant_type": {"quant_type": ...},
        "set_sparse_model": {"sparse_model": ...},
        "set_sparse_threshold": {"sparse_threshold": ...},
    },
    {
        "set_quant_model": "weights stay what they are",
        "set_quant_type": "weights stay what they are",
    },
)(CxxConfig)


class MobileConfig(ConfigBase):
    """The configuration of a predictor for an optimized model."""

    def __init__(self) -> None:
        super().__init__()
        self._source: Path | bytes | None = None

    def set_model_from_file(self, path: str) -> None:
        """Set the file, written by `save_optimized_model` or by Paddle Lite's own tool."""
        self._source = Path(check_text("set_model_from_file", path))

    def set_model_from_buffer(self, content: bytes) -> None:
        """Set the content of the model's file."""
        if not isinstance(content, bytes | bytearray | memoryview):
            raise InputError(f"set_model_from_buffer: {type(content).__name__} is no bytes")
        self._source = bytes(content)

    def is_model_from_memory(self) -> bool:
        """Return whether the model was set as content."""
        return isinstance(self._source, bytes)

    def session(self) -> Session:
        source = self._source or (Path(self._folder) if self._folder else None)
        if source is None:
            raise InputError("the configuration names no model; give set_model_from_file its path")
        if isinstance(source, Path) and not source.is_file():
            raise ModelFileError(f"{source}: there is no such file")
        if looks_like_shipped_file(source):
            return Session.of(load_compiled(source))
        places = [Place(TargetType.NNAdapter)] if self._names else []
        return self._session(_Optimised(source), places)


class _Optimised:
    """Loader of a model that Paddle Lite's tool has optimized."""

    def __init__(self, source: Path | bytes) -> None:
        self._source = source

    def __call__(self, shapes: Shapes) -> Model:
        with spending():
            return with_overriding(load_lite(self._source, shapes))


def _gpus() -> list[str]:
    return [n for n, instance in instances() if instance.kind is Kind.GPU and not instance.problem]


def _processors() -> list[str]:
    """Return the CPU devices that run what the devices before them decline."""
    return [name for name in _FALLBACKS if not NNAdapterDevice_acquire(name)[0]]
