"""Paddle Inference's `Config`: the model, and how to run it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from crosschip.apis.paddle.ignored import IgnoredSettings, constant_methods, ignored_methods
from crosschip.apis.paddle.session import Files
from crosschip.apis.paddle_inference import ignored as ignored_settings
from crosschip.apis.paddle_inference.enumerations import PrecisionType
from crosschip.hal import Kind
from crosschip.ir import InputError, UnsupportedError
from crosschip.runtime.discovery import automatic, instances
from crosschip.runtime.placement.options import PlacementOptions

IGNORED = IgnoredSettings(logging.getLogger("crosschip.paddle_inference"))

_PRECISIONS: Mapping[PrecisionType, str] = {
    PrecisionType.Float32: "float32",
    PrecisionType.Half: "float16",
    PrecisionType.Bfloat16: "bfloat16",
}
_TENSORRT = "onnxruntime:TensorRT"
_PROGRAMS = (".json", ".pdmodel")


class PassBuilder:
    """Paddle's pass list, which is empty here; changes to it are accepted."""

    def all_passes(self) -> list[str]:
        """Return the names of the passes: none."""
        return []


ignored_methods(
    IGNORED,
    {
        "append_pass": {"name": ...},
        "delete_pass": {"name": ...},
        "insert_pass": {"index": ..., "name": ...},
        "set_passes": {"passes": ...},
        "turn_on_debug": {},
        "debug_string": {},
    },
)(PassBuilder)


@constant_methods(ignored_settings.ANSWERS)
@ignored_methods(IGNORED, ignored_settings.METHODS, ignored_settings.REASONS)
class Config:
    """The configuration of a predictor; several predictors may use one.

    Settings that select among Paddle's passes, kernels and allocators are accepted and reported
    once, in the log `crosschip.paddle_inference`. Settings that would change results in an
    unsupported way are refused.

    Args:
        model: a model's folder, or its program, or another configuration to copy.
        parameters: the parameters' file; with a folder, the stem of its two file names.

    Raises:
        InputError: an argument is no string.
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = PrecisionType

    devices: ClassVar[Any] = "auto"
    """The `devices` argument of `crosschip.compile` where a configuration names no device."""

    def __init__(self, model: str | Config | None = None, parameters: str | None = None) -> None:
        self._folder = self._program = self._parameters = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._threads = 1
        self._options: dict[str, Any] = {}
        self._gpu: tuple[int, int] | None = None
        self._engine = self._partial = ""
        self._exact: frozenset[str] = frozenset()
        self._allowed: frozenset[str] = frozenset()
        if isinstance(model, Config):
            self.__dict__ |= model.__dict__ | {"_options": dict(model._options)}
        elif model is not None:
            self.set_model(model, parameters)

    # The model.

    def set_model(self, model: str, parameters: str | None = None) -> None:
        """Set the model's folder, or the files of the program and its parameters."""
        _check_texts("set_model", model, parameters)
        self._buffers = None
        self._folder = self._program = self._parameters = ""
        if parameters is None:
            self._folder = model
        elif Path(model).is_dir():
            stem = Path(model, parameters)
            programs = [
                p for p in (stem.with_name(stem.name + end) for end in _PROGRAMS) if p.exists()
            ]
            program = programs[0] if programs else stem.with_name(stem.name + _PROGRAMS[0])
            self._program = str(program)
            self._parameters = str(stem.with_name(stem.name + ".pdiparams"))
        else:
            self._program, self._parameters = model, parameters

    def set_prog_file(self, path: str) -> None:
        """Set the program's file."""
        _check_texts("set_prog_file", path)
        self._program = path

    def set_params_file(self, path: str) -> None:
        """Set the parameters' file."""
        _check_texts("set_params_file", path)
        self._parameters = path

    def set_model_buffer(
        self, program: bytes, program_size: int, parameters: bytes, parameters_size: int
    ) -> None:
        """Set the contents of the program's and the parameters' files."""
        for content in (program, parameters):
            if not isinstance(content, bytes | bytearray | memoryview):
                raise InputError(f"set_model_buffer: {type(content).__name__} is no bytes")
        self._buffers = bytes(program[:program_size]), bytes(parameters[:parameters_size])

    def model_dir(self) -> str:
        """Return the model's folder, or ""."""
        return self._folder

    def prog_file(self) -> str:
        """Return the program's file, or ""."""
        return self._program

    def params_file(self) -> str:
        """Return the parameters' file, or ""."""
        return self._parameters

    def model_from_memory(self) -> bool:
        """Return whether the model was set as contents."""
        return self._buffers is not None

    # Devices.

    def enable_use_gpu(
        self,
        memory_pool_init_size_mb: int,
        device_id: int = 0,
        precision_mode: PrecisionType = PrecisionType.Float32,
    ) -> None:
        """Run on a GPU if a device drives one; else warn and use other devices.

        Args:
            memory_pool_init_size_mb: has no effect.
            device_id: the index of the GPU.
            precision_mode: the precision.
        """
        self._set_precision("enable_use_gpu", precision_mode)
        self._gpu = memory_pool_init_size_mb, device_id
        if not self.use_gpu():
            IGNORED.warn_once("enable_use_gpu", "no device here drives such a GPU")

    def disable_gpu(self) -> None:
        """Cancel `enable_use_gpu`."""
        self._gpu = None

    def use_gpu(self) -> bool:
        """Return whether the model will run on the selected GPU."""
        return self._gpu is not None and self._gpu[1] < len(_gpus())

    def gpu_device_id(self) -> int:
        """Return the index of the GPU."""
        return self._gpu[1] if self._gpu else 0

    def memory_pool_init_size_mb(self) -> int:
        """Return the number that `enable_use_gpu` received."""
        return self._gpu[0] if self._gpu else 100

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """Return the share of GPU memory allocated in advance: 0."""
        return 0.0

    def enable_custom_device(
        self,
        device_type: str,
        device_id: int = 0,
        precision: PrecisionType = PrecisionType.Float32,
    ) -> None:
        """Run on a device by crosschip's name, such as `xla` or `openvino:GPU`."""
        _check_texts("enable_custom_device", device_type)
        self._set_precision("enable_custom_device", precision)
        self._engine = device_type

    def enable_onnxruntime(self) -> None:
        """Run on the device `onnxruntime`."""
        self._engine = "onnxruntime"

    def disable_onnxruntime(self) -> None:
        """Cancel `enable_onnxruntime`."""
        self._engine = "" if self.onnxruntime_enabled() else self._engine

    def onnxruntime_enabled(self) -> bool:
        """Return whether the model will run on the device `onnxruntime`."""
        return self._engine == "onnxruntime"

    def enable_openvino_engine(
        self, inference_precision: PrecisionType = PrecisionType.Float32
    ) -> None:
        """Run on the device `openvino`."""
        self._set_precision("enable_openvino_engine", inference_precision)
        self._engine = "openvino"

    def openvino_engine_enabled(self) -> bool:
        """Return whether the model will run on the device `openvino`."""
        return self._engine == "openvino"

    def enable_tensorrt_engine(
        self,
        workspace_size: int = 1 << 30,
        max_batch_size: int = 1,
        min_subgraph_size: int = 3,
        precision_mode: PrecisionType = PrecisionType.Float32,
        use_static: bool = False,
        use_calib_mode: bool = True,
        use_cuda_graph: bool = False,
    ) -> None:
        """Run on TensorRT if a device drives it; else warn and use other devices."""
        self._set_precision("enable_tensorrt_engine", precision_mode)
        if _TENSORRT in {name for name, instance in instances() if not instance.problem}:
            self._engine = _TENSORRT
        else:
            IGNORED.warn_once("enable_tensorrt_engine", "no device here drives TensorRT")

    def tensorrt_engine_enabled(self) -> bool:
        """Return whether the model will run on TensorRT."""
        return self._engine == _TENSORRT

    def tensorrt_precision_mode(self) -> PrecisionType:
        """Return the precision."""
        name = self._options.get("precision", "float32")
        return next(mode for mode, precision in _PRECISIONS.items() if precision == name)

    def enable_xpu(self, *args: Any, **kwargs: Any) -> None:
        """Warn: no device drives such a chip."""
        IGNORED.warn_once("enable_xpu", "no device here drives such a chip")

    def enable_ipu(self, *args: Any, **kwargs: Any) -> None:
        """Warn: no device drives such a chip."""
        IGNORED.warn_once("enable_ipu", "no device here drives such a chip")

    def enable_lite_engine(
        self,
        precision_mode: PrecisionType = PrecisionType.Float32,
        zero_copy: bool = False,
        passes_filter: Collection[str] = (),
        ops_filter: Collection[str] = (),
    ) -> None:
        """Set the precision; warn that Paddle Lite itself is not used.

        Raises:
            UnsupportedError: the precision is int8.
        """
        self._set_precision("enable_lite_engine", precision_mode)
        IGNORED.warn_once("enable_lite_engine", "Paddle Lite does not run here; devices do")

    # Arithmetic.

    def enable_mkldnn_bfloat16(self) -> None:
        """Compute in bfloat16; creating the predictor fails if no device supports it."""
        self._set_precision("enable_mkldnn_bfloat16", PrecisionType.Bfloat16)

    enable_onednn_bfloat16 = enable_mkldnn_bfloat16

    def enable_mkldnn_int8(self, op_types: Collection[str] = ()) -> None:
        """Raise `UnsupportedError`: it would quantize a float32 model.

        Raises:
            UnsupportedError: always.
        """
        self._set_precision("enable_mkldnn_int8", PrecisionType.Int8)

    def enable_onednn_int8(self, op_types: Collection[str] = ()) -> None:
        """Raise `UnsupportedError`, as `enable_mkldnn_int8` does.

        Raises:
            UnsupportedError: always.
        """
        self._set_precision("enable_onednn_int8", PrecisionType.Int8)

    def enable_quantizer(self) -> None:
        """Raise `UnsupportedError`, as `enable_mkldnn_int8` does.

        Raises:
            UnsupportedError: always.
        """
        self._set_precision("enable_quantizer", PrecisionType.Int8)

    def enable_tensorrt_explicit_quantization(self) -> None:
        """Warn: the model's quantization is always used as it is."""
        IGNORED.warn_once("enable_tensorrt_explicit_quantization")

    def enable_low_precision_io(self, x: bool = True) -> None:
        """Keep the model's input and output types; `True` is refused.

        Raises:
            UnsupportedError: `x` is true.
        """
        if x:
            raise UnsupportedError(
                "enable_low_precision_io: inputs and outputs have the types that the model says"
            )

    def exp_disable_mixed_precision_ops(self, ops: Iterable[str]) -> None:
        """Keep operators, by Paddle's types, in float32 when the precision is lower."""
        self._exact = _check_types("exp_disable_mixed_precision_ops", ops)

    def exp_enable_mixed_precision_ops(self, ops: Iterable[str]) -> None:
        """Exempt operators from `exp_disable_mixed_precision_ops`."""
        self._allowed = _check_types("exp_enable_mixed_precision_ops", ops)

    def set_bfloat16_op(self, ops: Iterable[str]) -> None:
        """List operators to compute in bfloat16; refused with `enable_mkldnn_bfloat16`."""
        self._record_partial("set_bfloat16_op", ops)

    def exp_specify_tensorrt_subgraph_precision(
        self, float32: Iterable[str], bfloat16: Iterable[str], int8: Iterable[str]
    ) -> None:
        """Set the precision of TensorRT subgraphs by their outputs; refused except for float32."""
        self._record_partial("exp_specify_tensorrt_subgraph_precision", [*bfloat16, *int8])

    # Threads and the cache.

    def set_cpu_math_library_num_threads(self, cpu_math_library_num_threads: int) -> None:
        """Set how many CPU threads a run may use; devices choose if it is not positive."""
        count = cpu_math_library_num_threads
        if not isinstance(count, int):
            raise InputError(f"set_cpu_math_library_num_threads: {count!r} is no integer")
        self._threads = count
        self._options["threads"] = count if count > 0 else None

    def cpu_math_library_num_threads(self) -> int:
        """Return the number that was set; else 1, though devices then choose their own number."""
        return self._threads

    def set_optim_cache_dir(self, path: str) -> None:
        """Set the folder of the compilation cache."""
        _check_texts("set_optim_cache_dir", path)
        self._options["cache"] = path

    # Other.

    def pass_builder(self) -> PassBuilder:
        """Return Paddle's pass list, which is empty."""
        return PassBuilder()

    def summary(self) -> str:
        """Return the settings, one per line."""
        settings = {
            "model_dir": self._folder,
            "prog_file": self._program,
            "params_file": self._parameters,
            **self.arguments(),
            "placement": "",
            "mixed_precision": self._float32_operators(),
        }
        return "\n".join(f"{name}: {value}" for name, value in settings.items() if value) + "\n"

    def loader(self) -> Files:
        """Return the model's files or contents.

        Raises:
            InputError: the configuration names no model.
        """
        if self._buffers is not None:
            return Files(*self._buffers)
        if self._program:
            return Files(Path(self._program), Path(self._parameters) if self._parameters else None)
        if self._folder:
            return Files(Path(self._folder), None)
        raise InputError("the configuration names no model; give Config its files, or its folder")

    def arguments(self) -> Mapping[str, Any]:
        """Return the arguments of `crosschip.compile` except the model.

        Raises:
            UnsupportedError: only some operators were to have a lower precision.
        """
        precision = self._options.get("precision", "float32")
        if self._partial and precision != "float32":
            raise UnsupportedError(
                f"{self._partial}: all operators compute in {precision} but for those that are "
                f"named to exp_disable_mixed_precision_ops; name the others there"
            )
        devices: Any = self.devices
        if self._engine:
            devices = [self._engine]
        elif self._gpu is not None and self.use_gpu():
            first = _gpus()[self._gpu[1]]
            devices = [first, *(name for name in automatic() if name != first)]
        mixed = self._float32_operators()
        placement = PlacementOptions(mixed_precision=mixed)
        return {"devices": devices, "placement": placement, **self._options}

    def _float32_operators(self) -> str | None:
        """Return the operators to keep in float32 at a lower precision, one per line."""
        exact = sorted(self._exact - self._allowed)
        reduced = self._options.get("precision", "float32") != "float32"
        return "\n".join(exact) if exact and reduced else None

    def _set_precision(self, name: str, precision: PrecisionType) -> None:
        if precision not in _PRECISIONS:
            raise UnsupportedError(
                f"{name}: {precision.name} changes results; give a model that has been quantized"
            )
        self._options["precision"] = _PRECISIONS[precision]

    def _record_partial(self, name: str, ops: Iterable[str]) -> None:
        """Record a setting that gives only some operators a lower precision."""
        if list(ops):
            self._partial = name


def _gpus() -> list[str]:
    return [n for n, instance in instances() if instance.kind is Kind.GPU and not instance.problem]


def _check_types(name: str, ops: Iterable[str]) -> frozenset[str]:
    """Return operator types after checking that they are identifiers.

    Raises:
        InputError: a type is no identifier.
    """
    types = [ops] if isinstance(ops, str) else list(ops)
    for op in types:
        if not isinstance(op, str) or not op.isidentifier():
            raise InputError(f"{name}: {op!r} is no operator's type, like 'softmax'")
    return frozenset(types)


def _check_texts(name: str, *texts: object) -> None:
    for text in texts:
        if text is not None and not isinstance(text, str):
            raise InputError(f"{name}: {text!r} is no text")
