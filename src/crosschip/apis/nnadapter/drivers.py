"""Paddle Lite's NNAdapter drivers: the devices that replace them, and context properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crosschip.apis.nnadapter.results import invalid

_TRUTH: Mapping[str, bool] = {"1": True, "true": True, "0": False, "false": False}


@dataclass
class Settings:
    """The settings of one device in a context.

    Attributes:
        properties: the device's own properties, by name.
        threads: how many CPU threads a run may use; `None` for the device's default.
        precision: the precision of float32 operations; `None` for the context's default.
        instance: the device instance to use, such as `GPU`; empty for the acquired one.
    """

    properties: dict[str, str] = field(default_factory=dict)
    threads: int | None = None
    precision: str | None = None
    instance: str = ""


Setter = Callable[[str, str, Settings], None]
"""Writes a property, given its key and value, into the settings.

Raises `Failure` if the value is not supported; the message begins with the key.
"""


@dataclass(frozen=True)
class Driver:
    """An NNAdapter driver.

    Attributes:
        hardware: the hardware's name in messages.
        device: the device that stands for the driver; empty if crosschip has none.
        properties: the context properties, by the part of the key after the driver's prefix;
            without a device they only serve error messages.
    """

    hardware: str
    device: str = ""
    properties: Mapping[str, Setter] = field(default_factory=dict)


def set_threads(key: str, value: str, settings: Settings) -> None:
    """Set the number of threads; 0 stands for the device's default."""
    if not value.isascii() or not value.isdecimal():
        raise invalid(f"{key} is {value!r}, but must be a number of threads")
    settings.threads = max(int(value), settings.threads or 0)


def _set_instance(key: str, value: str, settings: Settings) -> None:
    """Set the instance; of a list, only the first counts, as in Paddle Lite."""
    settings.instance = value.partition(",")[0].strip()


def _set_float16(key: str, value: str, settings: Settings) -> None:
    if value.lower() not in _TRUTH:
        raise invalid(f"{key} is {value!r}, but must be true, false, 1 or 0")
    settings.precision = "float16" if _TRUTH[value.lower()] else "float32"


def _set_precision(key: str, value: str, settings: Settings) -> None:
    if value not in ("float32", "float16"):
        raise invalid(
            f"{key} is {value!r}, but must be float32 or float16; "
            "a model that computes in int8 is quantized before it is compiled"
        )
    settings.precision = value


def _require(*values: str, otherwise: str) -> Setter:
    """Return a setter that refuses all other values."""

    def check(key: str, value: str, settings: Settings) -> None:
        if value not in values:
            raise invalid(f"{key} is {value!r}, but must be {' or '.join(values)}: {otherwise}")

    return check


def _refuse(reason: str) -> Setter:
    def setter(key: str, value: str, settings: Settings) -> None:
        raise invalid(f"{key} is not taken: {reason}; leave it out")

    return setter


def _unsupported(hardware: str, *properties: str) -> Driver:
    """Return a driver that crosschip has no device for."""
    refuse = _refuse(f"crosschip has no device for {hardware}")
    return Driver(hardware, properties=dict.fromkeys(properties, refuse))


_QUANTIZE = _refuse("a model is calibrated before it is compiled, with `crosschip tune`")

DRIVERS: Mapping[str, Driver] = {
    "builtin_device": Driver("the processor", "reference", {"NUM_THREADS": set_threads}),
    "fake_device": Driver("the processor", "reference"),
    "google_xnnpack": Driver("the processor", "onnxruntime", {"NUM_THREADS": set_threads}),
    "intel_openvino": Driver(
        *("Intel's chips", "openvino"),
        {"INFERENCE_NUM_THREADS": set_threads, "SELECT_DEVICE_NAMES": _set_instance},
    ),
    "nvidia_tensorrt": Driver(
        *("NVIDIA's GPUs", "onnxruntime:TensorRT"),
        {
            "DEVICE_TYPE": _require("GPU", otherwise="crosschip does not drive DLA cores"),
            "DEVICE_ID": _require("0", otherwise="CUDA_VISIBLE_DEVICES chooses another GPU"),
            "PRECISION": _set_precision,
            "GPU_FALLBACK": _refuse("it is about DLA cores, which crosschip does not drive"),
            "MAX_WORKSPACE_SIZE": _refuse("TensorRT takes the memory that it needs"),
            "CALIBRATION_DATASET_PATH": _QUANTIZE,
            "CALIBRATION_TABLE_PATH": _QUANTIZE,
        },
    ),
    "qualcomm_qnn": Driver(
        *("Qualcomm's Hexagon", "qualcomm"),
        {
            "DEVICE_TYPE": _require("HTP", otherwise="`qualcomm` drives the tensor processor"),
            "DEVICE_ID": _require("0", otherwise="there is one tensor processor"),
            "LOG_LEVEL": _refuse("the level is that of the log `crosschip`"),
            "SKIP_SYMM2ASYMM": _refuse("inputs and outputs have the types of the model"),
            "ENABLE_FP16": _set_float16,
        },
    ),
    "rockchip_npu": Driver("Rockchip's NPUs", "rockchip"),
    "amlogic_npu": _unsupported("Amlogic's NPUs"),
    "android_nnapi": _unsupported(
        "Android's NNAPI",
        *("SELECTED_DEVICE_NAMES", "SELECTED_DEVICE_IDS", "ONLY_USE_ACC_DEVICE"),
        *("DISABLE_CPU_DEVICE", "RELAX_FP32_TO_FP16"),
    ),
    "cambricon_mlu": _unsupported(
        "Cambricon's MLUs", "BUILD_CONFIG_FILE_PATH", "OP_PARAMS_FILE_PATH"
    ),
    "eeasytech_npu": _unsupported("Eeasytech's NPUs"),
    "huawei_ascend_npu": _unsupported(
        "Huawei's Ascend NPUs",
        *("SELECTED_DEVICE_IDS", "PROFILING_FILE_PATH", "DUMP_MODEL_FILE_PATH"),
        *("PRECISION_MODE", "MODIFY_MIXLIST_FILE_PATH", "OP_SELECT_IMPL_MODE"),
        *("OPTYPELIST_FOR_IMPLMODE", "ENABLE_COMPRESS_WEIGHT", "AUTO_TUNE_MODE"),
        *("ENABLE_DYNAMIC_SHAPE_RANGE", "INITIAL_BUFFER_LENGTH_OF_DYNAMIC_SHAPE_RANGE"),
    ),
    "huawei_kirin_npu": _unsupported("Huawei's Kirin NPUs"),
    "imagination_nna": _unsupported("Imagination's NNAs"),
    "kunlunxin_xtcl": _unsupported(
        "Kunlunxin's (Baidu's) XPUs", "SELECTED_DEVICE_IDS", "DEVICE_TARGET"
    ),
    "mediatek_apu": _unsupported("MediaTek's APUs", "RELAX_FP32_TO_FP16"),
    "verisilicon_timvx": _unsupported(
        "VeriSilicon's NPUs", "BATCHNORM_FUSION_MAX_ALLOWED_QUANT_SCALE_DEVIATION"
    ),
}
"""Paddle Lite's drivers, with the context properties in its documents and source."""


def drivers_of(device: str) -> list[str]:
    """Return the names of the drivers that a crosschip device stands for."""
    exact = [name for name, driver in DRIVERS.items() if driver.device == device]
    chip = device.partition(":")[0]
    return exact or [name for name, driver in DRIVERS.items() if driver.device == chip]


def prefix_of(name: str) -> str:
    """Return the prefix of a driver's or device's property keys."""
    return name.partition(":")[0].upper() + "_"
