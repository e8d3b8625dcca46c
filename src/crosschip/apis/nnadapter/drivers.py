"""The drivers of Paddle Lite's NNAdapter: the devices that stand for them, and their properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from crosschip.apis.nnadapter.results import invalid

_TRUTH: Mapping[str, bool] = {"1": True, "true": True, "0": False, "false": False}


@dataclass
class Settings:
    """The settings of one device of a context.

    Attributes:
        properties: the device's own properties, by name.
        threads: how many processor threads a run may use; `None` leaves it to the device.
        precision: the arithmetic for float32 operations; `None` leaves it to the caller.
        instance: the instance of the device to use, such as `GPU`; empty for the acquired one.
    """

    properties: dict[str, str] = field(default_factory=dict)
    threads: int | None = None
    precision: str | None = None
    instance: str = ""


Translation = Callable[[str, str, Settings], None]
"""A function of a key, its value and the settings, which it changes.

Raises `Failure` if there is no such setting; the message begins with the key.
"""


@dataclass(frozen=True)
class Driver:
    """A driver of NNAdapter.

    Attributes:
        hardware: what it drives, in messages.
        device: the device that stands for it; empty if crosschip has none.
        properties: its context properties, by what follows its name; a driver without a device has
            them to name them in messages.
    """

    hardware: str
    device: str = ""
    properties: Mapping[str, Translation] = field(default_factory=dict)


def set_threads(key: str, value: str, settings: Settings) -> None:
    """Set the number of threads; 0 leaves it to the device."""
    if not value.isascii() or not value.isdecimal():
        raise invalid(f"{key} is {value!r}, but must be a number of threads")
    settings.threads = max(int(value), settings.threads or 0)


def _set_instance(key: str, value: str, settings: Settings) -> None:
    """Choose the instance; of a list, the driver uses the first, too."""
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


def _must_be(*values: str, otherwise: str) -> Translation:
    """A property whose other values crosschip has nothing for."""

    def check(key: str, value: str, settings: Settings) -> None:
        if value not in values:
            raise invalid(f"{key} is {value!r}, but must be {' or '.join(values)}: {otherwise}")

    return check


def _refused(reason: str) -> Translation:
    def refuse(key: str, value: str, settings: Settings) -> None:
        raise invalid(f"{key} is not taken: {reason}; leave it out")

    return refuse


def _absent(hardware: str, *properties: str) -> Driver:
    """A driver that crosschip has no device for."""
    refuse = _refused(f"crosschip has no device for {hardware}")
    return Driver(hardware, properties=dict.fromkeys(properties, refuse))


_QUANTIZE = _refused("a model is calibrated before it is compiled, with `crosschip tune`")

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
            "DEVICE_TYPE": _must_be("GPU", otherwise="crosschip does not drive DLA cores"),
            "DEVICE_ID": _must_be("0", otherwise="CUDA_VISIBLE_DEVICES chooses another GPU"),
            "PRECISION": _set_precision,
            "GPU_FALLBACK": _refused("it is about DLA cores, which crosschip does not drive"),
            "MAX_WORKSPACE_SIZE": _refused("TensorRT takes the memory that it needs"),
            "CALIBRATION_DATASET_PATH": _QUANTIZE,
            "CALIBRATION_TABLE_PATH": _QUANTIZE,
        },
    ),
    "qualcomm_qnn": Driver(
        *("Qualcomm's Hexagon", "qualcomm"),
        {
            "DEVICE_TYPE": _must_be("HTP", otherwise="`qualcomm` drives the tensor processor"),
            "DEVICE_ID": _must_be("0", otherwise="there is one tensor processor"),
            "LOG_LEVEL": _refused("the level is that of the log `crosschip`"),
            "SKIP_SYMM2ASYMM": _refused("inputs and outputs have the types of the model"),
            "ENABLE_FP16": _set_float16,
        },
    ),
    "rockchip_npu": Driver("Rockchip's NPUs", "rockchip"),
    "amlogic_npu": _absent("Amlogic's NPUs"),
    "android_nnapi": _absent(
        "Android's NNAPI",
        *("SELECTED_DEVICE_NAMES", "SELECTED_DEVICE_IDS", "ONLY_USE_ACC_DEVICE"),
        *("DISABLE_CPU_DEVICE", "RELAX_FP32_TO_FP16"),
    ),
    "cambricon_mlu": _absent("Cambricon's MLUs", "BUILD_CONFIG_FILE_PATH", "OP_PARAMS_FILE_PATH"),
    "eeasytech_npu": _absent("Eeasytech's NPUs"),
    "huawei_ascend_npu": _absent(
        "Huawei's Ascend NPUs",
        *("SELECTED_DEVICE_IDS", "PROFILING_FILE_PATH", "DUMP_MODEL_FILE_PATH"),
        *("PRECISION_MODE", "MODIFY_MIXLIST_FILE_PATH", "OP_SELECT_IMPL_MODE"),
        *("OPTYPELIST_FOR_IMPLMODE", "ENABLE_COMPRESS_WEIGHT", "AUTO_TUNE_MODE"),
        *("ENABLE_DYNAMIC_SHAPE_RANGE", "INITIAL_BUFFER_LENGTH_OF_DYNAMIC_SHAPE_RANGE"),
    ),
    "huawei_kirin_npu": _absent("Huawei's Kirin NPUs"),
    "imagination_nna": _absent("Imagination's NNAs"),
    "kunlunxin_xtcl": _absent("Kunlunxin's (Baidu's) XPUs", "SELECTED_DEVICE_IDS", "DEVICE_TARGET"),
    "mediatek_apu": _absent("MediaTek's APUs", "RELAX_FP32_TO_FP16"),
    "verisilicon_timvx": _absent(
        "VeriSilicon's NPUs", "BATCHNORM_FUSION_MAX_ALLOWED_QUANT_SCALE_DEVIATION"
    ),
}
"""The drivers of Paddle Lite, with the context properties that its documents and source name."""


def drivers_of(device: str) -> list[str]:
    """The names of the drivers that a device stands for, by crosschip's name of the device."""
    exact = [name for name, driver in DRIVERS.items() if driver.device == device]
    chip = device.partition(":")[0]
    return exact or [name for name, driver in DRIVERS.items() if driver.device == chip]


def prefix_of(name: str) -> str:
    """What the keys of a driver or device begin with."""
    return name.partition(":")[0].upper() + "_"
