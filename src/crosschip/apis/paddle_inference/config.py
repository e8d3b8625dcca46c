"""`Config`: which model, and how it is to run."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from crosschip.apis.paddle.notes import Notes, answering, idle
from crosschip.apis.paddle.session import Files
from crosschip.apis.paddle_inference import idle as without_meaning
from crosschip.apis.paddle_inference.enumerations import PrecisionType
from crosschip.hal import Kind
from crosschip.ir import InputError, UnsupportedError
from crosschip.runtime.discovery import automatic, instances
from crosschip.runtime.placement.options import PlacementOptions

NOTES = Notes(logging.getLogger("crosschip.paddle_inference"))

_PRECISIONS: Mapping[PrecisionType, str] = {
    PrecisionType.Float32: "float32",
    PrecisionType.Half: "float16",
    PrecisionType.Bfloat16: "bfloat16",
}
_TENSORRT = "onnxruntime:TensorRT"
_PROGRAMS = (".json", ".pdmodel")


class PassBuilder:
    """Paddle's passes, of which there are none here: changes to them are accepted."""

    def all_passes(self) -> list[str]:
        """The names of the passes: none."""
        return []


idle(
    NOTES,
    {
        "append_pass": {"name": ...},
        "delete_pass": {"name": ...},
        "insert_pass": {"index": ..., "name": ...},
        "set_passes": {"passes": ...},
        "turn_on_debug": {},
        "debug_string": {},
    },
)(PassBuilder)


@answering(without_meaning.ANSWERS)
@idle(NOTES, without_meaning.METHODS, without_meaning.WHY)
class Config:
    """The configuration of a predictor; one may serve for several.

    What chooses among Paddle's own passes, kernels and allocators is accepted and said once, in the
    log `crosschip.paddle_inference`. What would change results in a way that cannot be had here is
    refused.

    Args:
        model: a folder with a model, or the program, or another configuration to copy.
        parameters: the file with the program's parameters; or, beside a folder, the stem of the
            names of its two files.

    Raises:
        InputError: they are no paths.
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = PrecisionType

    devices: ClassVar[Any] = "auto"
    """What `crosschip.compile` takes as devices where a configuration names none."""

    def __init__(self, model: str | Config | None = None, parameters: str | None = None) -> None:
        self._folder = self._program = self._parameters = ""
        self._buffers: tuple[bytes, bytes] | None = None
        self._threads = 1
        self._wished: dict[str, Any] = {}
        self._gpu: tuple[int, int] | None = None
        self._engine = self._partial = ""
        self._exact: frozenset[str] = frozenset()
        self._allowed: frozenset[str] = frozenset()
        if isinstance(model, Config):
            self.__dict__ |= model.__dict__ | {"_wished": dict(model._wished)}
        elif model is not None:
            self.set_model(model, parameters)

    # The model.

    def set_model(self, model: str, parameters: str | None = None) -> None:
        """Choose a folder with a model, or the file of a program and that of its parameters."""
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
        """Choose the file of the program."""
        _check_texts("set_prog_file", path)
        self._program = path

    def set_params_file(self, path: str) -> None:
        """Choose the file of the parameters."""
        _check_texts("set_params_file", path)
        self._parameters = path

    def set_model_buffer(
        self, program: bytes, program_size: int, parameters: bytes, parameters_size: int
    ) -> None:
        """Choose a program and its parameters by the contents of their files."""
        for content in (program, parameters):
            if not isinstance(content, bytes | bytearray | memoryview):
                raise InputError(f"set_model_buffer: {type(content).__name__} is no bytes")
        self._buffers = bytes(program[:program_size]), bytes(parameters[:parameters_size])

    def model_dir(self) -> str:
        """The folder of the model, or nothing."""
        return self._folder

    def prog_file(self) -> str:
        """The file of the program, or nothing."""
        return self._program

    def params_file(self) -> str:
        """The file of the parameters, or nothing."""
        return self._parameters

    def model_from_memory(self) -> bool:
        """Tell whether the model was given by contents."""
        return self._buffers is not None

    # Devices.

    def enable_use_gpu(
        self,
        memory_pool_init_size_mb: int,
        device_id: int = 0,
        precision_mode: PrecisionType = PrecisionType.Float32,
    ) -> None:
        """Run on a GPU, if a device drives one; otherwise on what there is, which is said.

        Args:
            memory_pool_init_size_mb: has no meaning.
            device_id: which of the GPUs, from 0 on.
            precision_mode: the arithmetic.
        """
        self._precise("enable_use_gpu", precision_mode)
        self._gpu = memory_pool_init_size_mb, device_id
        if not self.use_gpu():
            NOTES.say("enable_use_gpu", "no device here drives such a GPU")

    def disable_gpu(self) -> None:
        """Run on no GPU in particular."""
        self._gpu = None

    def use_gpu(self) -> bool:
        """Tell whether it will run on a GPU."""
        return self._gpu is not None and self._gpu[1] < len(_gpus())

    def gpu_device_id(self) -> int:
        """The number of the GPU."""
        return self._gpu[1] if self._gpu else 0

    def memory_pool_init_size_mb(self) -> int:
        """The number that `enable_use_gpu` was given."""
        return self._gpu[0] if self._gpu else 100

    def fraction_of_gpu_memory_for_pool(self) -> float:
        """The share of a GPU's memory that is taken in advance: none."""
        return 0.0

    def enable_custom_device(
        self,
        device_type: str,
        device_id: int = 0,
        precision: PrecisionType = PrecisionType.Float32,
    ) -> None:
        """Run on a device by crosschip's name for it, as `xla` or `openvino:GPU`."""
        _check_texts("enable_custom_device", device_type)
        self._precise("enable_custom_device", precision)
        self._engine = device_type

    def enable_onnxruntime(self) -> None:
        """Run on the device `onnxruntime`."""
        self._engine = "onnxruntime"

    def disable_onnxruntime(self) -> None:
        """Run on the device `onnxruntime` no longer."""
        self._engine = "" if self.onnxruntime_enabled() else self._engine

    def onnxruntime_enabled(self) -> bool:
        """Tell whether it will run on the device `onnxruntime`."""
        return self._engine == "onnxruntime"

    def enable_openvino_engine(
        self, inference_precision: PrecisionType = PrecisionType.Float32
    ) -> None:
        """Run on the device `openvino`."""
        self._precise("enable_openvino_engine", inference_precision)
        self._engine = "openvino"

    def openvino_engine_enabled(self) -> bool:
        """Tell whether it will run on the device `openvino`."""
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
        """Run on TensorRT, if a device drives it; otherwise on what there is, which is said."""
        self._precise("enable_tensorrt_engine", precision_mode)
        if _TENSORRT in {name for name, instance in instances() if not instance.problem}:
            self._engine = _TENSORRT
        else:
            NOTES.say("enable_tensorrt_engine", "no device here drives TensorRT")

    def tensorrt_engine_enabled(self) -> bool:
        """Tell whether it will run on TensorRT."""
        return self._engine == _TENSORRT

    def tensorrt_precision_mode(self) -> PrecisionType:
        """The arithmetic."""
        named = self._wished.get("precision", "float32")
        return next(mode for mode, precision in _PRECISIONS.items() if precision == named)

    def enable_xpu(self, *args: Any, **kwargs: Any) -> None:
        """Accepted; no device here drives such a chip."""
        NOTES.say("enable_xpu", "no device here drives such a chip")

    def enable_ipu(self, *args: Any, **kwargs: Any) -> None:
        """Accepted; no device here drives such a chip."""
        NOTES.say("enable_ipu", "no device here drives such a chip")

    def enable_lite_engine(
        self,
        precision_mode: PrecisionType = PrecisionType.Float32,
        zero_copy: bool = False,
        passes_filter: Collection[str] = (),
        ops_filter: Collection[str] = (),
    ) -> None:
        """Accepted, but for the arithmetic, which holds: Paddle Lite does not run here.

        Raises:
            UnsupportedError: the arithmetic is int8.
        """
        self._precise("enable_lite_engine", precision_mode)
        NOTES.say("enable_lite_engine", "Paddle Lite does not run here; devices do")

    # Arithmetic.

    def enable_mkldnn_bfloat16(self) -> None:
        """Compute in bfloat16, on a device that can; a predictor is refused otherwise."""
        self._precise("enable_mkldnn_bfloat16", PrecisionType.Bfloat16)

    enable_onednn_bfloat16 = enable_mkldnn_bfloat16

    def enable_mkldnn_int8(self, op_types: Collection[str] = ()) -> None:
        """Refused: it rounds to integers what the model has in float32.

        Raises:
            UnsupportedError: always.
        """
        self._precise("enable_mkldnn_int8", PrecisionType.Int8)

    def enable_onednn_int8(self, op_types: Collection[str] = ()) -> None:
        """Refused, as `enable_mkldnn_int8`.

        Raises:
            UnsupportedError: always.
        """
        self._precise("enable_onednn_int8", PrecisionType.Int8)

    def enable_quantizer(self) -> None:
        """Refused, as `enable_mkldnn_int8`.

        Raises:
            UnsupportedError: always.
        """
        self._precise("enable_quantizer", PrecisionType.Int8)

    def enable_tensorrt_explicit_quantization(self) -> None:
        """Accepted: integers that the model says are what runs."""
        NOTES.say("enable_tensorrt_explicit_quantization")

    def enable_low_precision_io(self, x: bool = True) -> None:
        """Take and hand out float32 as the model says; anything else is refused.

        Raises:
            UnsupportedError: inputs and outputs were to be of the arithmetic's type.
        """
        if x:
            raise UnsupportedError(
                "enable_low_precision_io: inputs and outputs have the types that the model says"
            )

    def exp_disable_mixed_precision_ops(self, ops: Iterable[str]) -> None:
        """Keep operators in float32 where the others have another arithmetic, by Paddle's types."""
        self._exact = _types("exp_disable_mixed_precision_ops", ops)

    def exp_enable_mixed_precision_ops(self, ops: Iterable[str]) -> None:
        """Let operators have another arithmetic, although they are kept in float32 otherwise."""
        self._allowed = _types("exp_enable_mixed_precision_ops", ops)

    def set_bfloat16_op(self, ops: Iterable[str]) -> None:
        """Let operators compute in bfloat16; with `enable_mkldnn_bfloat16` it is refused."""
        self._all_or_none("set_bfloat16_op", ops)

    def exp_specify_tensorrt_subgraph_precision(
        self, float32: Iterable[str], bfloat16: Iterable[str], int8: Iterable[str]
    ) -> None:
        """Choose arithmetic by outputs of TensorRT's parts; refused but for float32."""
        self._all_or_none("exp_specify_tensorrt_subgraph_precision", [*bfloat16, *int8])

    # Threads and the cache.

    def set_cpu_math_library_num_threads(self, cpu_math_library_num_threads: int) -> None:
        """Choose how many processor threads a run may use; from 0 down, devices do."""
        count = cpu_math_library_num_threads
        if not isinstance(count, int):
            raise InputError(f"set_cpu_math_library_num_threads: {count!r} is no integer")
        self._threads = count
        self._wished["threads"] = count if count > 0 else None

    def cpu_math_library_num_threads(self) -> int:
        """The number that was set, or 1, which devices do not keep to."""
        return self._threads

    def set_optim_cache_dir(self, path: str) -> None:
        """Keep compiled programs in a folder instead of the usual one."""
        _check_texts("set_optim_cache_dir", path)
        self._wished["cache"] = path

    # Other.

    def pass_builder(self) -> PassBuilder:
        """Paddle's passes, of which there are none."""
        return PassBuilder()

    def summary(self) -> str:
        """What was chosen, a line each."""
        chosen = {
            "model_dir": self._folder,
            "prog_file": self._program,
            "params_file": self._parameters,
            **self.arguments(),
            "placement": "",
            "mixed_precision": self._float32_operators(),
        }
        return "\n".join(f"{name}: {value}" for name, value in chosen.items() if value) + "\n"

    def loader(self) -> Files:
        """The model.

        Raises:
            InputError: there is none.
        """
        if self._buffers is not None:
            return Files(*self._buffers)
        if self._program:
            return Files(Path(self._program), Path(self._parameters) if self._parameters else None)
        if self._folder:
            return Files(Path(self._folder), None)
        raise InputError("the configuration names no model; give Config its files, or its folder")

    def arguments(self) -> Mapping[str, Any]:
        """The arguments of `crosschip.compile` besides the model.

        Raises:
            UnsupportedError: some operators were to have another arithmetic than the others.
        """
        precision = self._wished.get("precision", "float32")
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
        return {"devices": devices, "placement": placement, **self._wished}

    def _float32_operators(self) -> str | None:
        """The operators that compute in float32 where the others do not, a line each."""
        exact = sorted(self._exact - self._allowed)
        reduced = self._wished.get("precision", "float32") != "float32"
        return "\n".join(exact) if exact and reduced else None

    def _precise(self, name: str, precision: PrecisionType) -> None:
        if precision not in _PRECISIONS:
            raise UnsupportedError(
                f"{name}: {precision.name} changes results; give a model that has been quantized"
            )
        self._wished["precision"] = _PRECISIONS[precision]

    def _all_or_none(self, name: str, ops: Iterable[str]) -> None:
        """Note that some operators only were to have another arithmetic."""
        if list(ops):
            self._partial = name


def _gpus() -> list[str]:
    """The devices that are GPUs."""
    return [n for n, instance in instances() if instance.kind is Kind.GPU and not instance.problem]


def _types(name: str, ops: Iterable[str]) -> frozenset[str]:
    """Types of operators that a program names.

    Raises:
        InputError: they are none.
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
