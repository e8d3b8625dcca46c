"""ONNX Runtime's execution providers for hardware other than the processor.

Each is an instance of the device. The table has only providers that can compute float32 models in
float32; the options for that are from https://onnxruntime.ai/docs/execution-providers.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import field
from importlib.util import find_spec
from pathlib import Path

from crosschip.devices.onnxruntime.quiet import loaded_engine
from crosschip.hal import Instance, Kind
from crosschip.ir import DeviceError
from crosschip.ir.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """An execution provider.

    Attributes:
        name: ONNX Runtime's name.
        kind: the kind of hardware.
        description: the hardware, for users.
        options: the options for computing in float32.
        environment: environment variables required for computing in float32, with values.
        library: the name of the provider's library beside ONNX Runtime; empty if built in.
        package: the package that installs an ONNX Runtime with this provider.
        plugin: the module of the plug-in, with `get_library_path`.
        driver: the file or folder that exists on Linux if the driver is installed.
    """

    name: str
    kind: Kind
    description: str
    options: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    library: str = ""
    package: str = ""
    plugin: str = ""
    driver: str = ""

    @property
    def installed(self) -> bool:
        """Return whether it is installed, as far as known without importing ONNX Runtime."""
        engine = loaded_engine()
        if engine is not None and self.name in engine.get_available_providers():
            return True
        return (
            bool(self.plugin and find_spec(self.plugin))
            or bool(self.library and _has_library(self.library))
            or bool(self.package and _has_package(self.package))
        )

    @property
    def problem(self) -> str:
        """The reason why it cannot be used on this machine; empty if there is none."""
        if self.driver and sys.platform == "linux" and not any(Path("/").glob(self.driver)):
            return f"its driver is not installed: there is no /{self.driver}"
        for name, value in self.environment.items():
            if os.environ.get(name) != value:
                return f"it would compute in less than float32; set {name}={value} beforehand"
        return ""


PROVIDERS: Mapping[str, Provider] = {
    "TensorRT": Provider(
        name="TensorrtExecutionProvider",
        kind=Kind.GPU,
        description="NVIDIA's GPUs, through TensorRT",
        options={"trt_fp16_enable": "0", "trt_int8_enable": "0"},
        environment={"NVIDIA_TF32_OVERRIDE": "0"},
        library="tensorrt",
        driver="proc/driver/nvidia/version",
    ),
    "CUDA": Provider(
        name="CUDAExecutionProvider",
        kind=Kind.GPU,
        description="NVIDIA's GPUs, through CUDA",
        options={"use_tf32": "0"},
        library="cuda",
        driver="proc/driver/nvidia/version",
    ),
    "MIGraphX": Provider(
        name="MIGraphXExecutionProvider",
        kind=Kind.GPU,
        description="AMD's GPUs, through MIGraphX",
        options={"migraphx_fp16_enable": "0", "migraphx_int8_enable": "0"},
        library="migraphx",
        driver="dev/kfd",
    ),
    "CANN": Provider(
        name="CANNExecutionProvider",
        kind=Kind.ACCELERATOR,
        description="Huawei's Ascend, through CANN",
        options={"precision_mode": "must_keep_origin_dtype"},
        library="cann",
        package="onnxruntime-cann",
        driver="dev/davinci[0-9]*",
    ),
    "DML": Provider(
        name="DmlExecutionProvider",
        kind=Kind.GPU,
        description="GPUs on Windows, through DirectML",
        package="onnxruntime-directml",
    ),
    "WebGPU": Provider(
        name="WebGpuExecutionProvider",
        kind=Kind.GPU,
        description="GPUs, through WebGPU",
        package="onnxruntime-webgpu",
        plugin="onnxruntime_ep_webgpu",
    ),
    "CoreML": Provider(
        name="CoreMLExecutionProvider",
        kind=Kind.GPU,
        description="Apple's GPUs, through Core ML",
        options={
            "ModelFormat": "MLProgram",
            "MLComputeUnits": "CPUAndGPU",  # the Neural Engine computes in float16
            "AllowLowPrecisionAccumulationOnGPU": "0",
        },
    ),
    "XNNPACK": Provider(
        name="XnnpackExecutionProvider", kind=Kind.CPU, description="processors, through XNNPACK"
    ),
}
"""The providers by the name of the device's instance."""


def known(name: str) -> Provider:
    """Return the provider of an instance name.

    Raises:
        DeviceError: there is no such provider.
    """
    try:
        return PROVIDERS[name]
    except KeyError:
        names = ", ".join(PROVIDERS)
        raise DeviceError(f"no execution provider is called {name!r}; known: {names}") from None


def instances() -> Iterator[Instance]:
    """Yield the installed providers.

    Providers built into a custom ONNX Runtime are found only once that has been imported.
    """
    for name, provider in PROVIDERS.items():
        if provider.installed:
            yield Instance(
                name=name,
                kind=provider.kind,
                description=provider.description,
                problem=provider.problem,
            )


def _has_library(library: str) -> bool:
    spec = find_spec("onnxruntime")
    folders = spec.submodule_search_locations if spec else None
    return any(
        any(Path(folder, "capi").glob(f"*onnxruntime_providers_{library}.*"))
        for folder in folders or ()
    )


def _has_package(package: str) -> bool:
    # By the names of folders, since importing `importlib.metadata` takes longer.
    folder_name = re.compile(rf"{package.replace('-', '_')}-.*\.(dist|egg)-info", re.IGNORECASE)
    return any(folder_name.fullmatch(name) for folder in sys.path for name in _names_in(folder))


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder or ".")
    except OSError:  # a zip file, or not there
        return []
