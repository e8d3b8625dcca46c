"""Memories of devices, and their allocators, which crosschip's devices choose by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosschip.apis.onnxruntime.enumerations import (
    OrtAllocatorType,
    OrtDeviceMemoryType,
    OrtDeviceVendorId,
    OrtMemoryInfoDeviceType,
    OrtMemType,
)
from crosschip.apis.onnxruntime.errors import NotImplemented

CPU = "cpu"

_KINDS = {
    CPU: (0, OrtDeviceVendorId.NONE),
    "cuda": (1, OrtDeviceVendorId.NVIDIA),
    "dml": (1, OrtDeviceVendorId.MICROSOFT),
    "webgpu": (1, OrtDeviceVendorId.NONE),
    "gpu": (1, OrtDeviceVendorId.NONE),
    "cann": (3, OrtDeviceVendorId.HUAWEI),
    "npu": (3, OrtDeviceVendorId.NONE),
}
"""The code of each kind of device, and its vendor."""


@dataclass(frozen=True, init=False)
class OrtDevice:
    """The description of a device.

    Args:
        kind: the code of its kind: 0 for the processor.
        memory: the code of the kind of memory.
        numbers: the code of its vendor, which may be left out, and its number.
    """

    def __init__(self, kind: int, memory: int, *numbers: int) -> None:
        vendor, identifier = (0, *numbers) if len(numbers) == 1 else numbers
        vars(self).update(_kind=kind, _memory=memory, _vendor=vendor, _identifier=identifier)

    _kind: int
    _memory: int
    _vendor: int
    _identifier: int

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """Return the description of a device by the name of its kind.

        Raises:
            ValueError: there is no such kind.
        """
        try:
            kind, vendor = _KINDS[ort_device_name]
        except KeyError:
            raise ValueError(f"Unsupported device type: {ort_device_name}") from None
        return OrtDevice(kind, 0, vendor if vendor_id < 0 else vendor_id, device_id)

    @staticmethod
    def cpu() -> int:
        """Return the code of the processor."""
        return _KINDS[CPU][0]

    @staticmethod
    def cuda() -> int:
        """Return the code of CUDA devices."""
        return _KINDS["cuda"][0]

    @staticmethod
    def cann() -> int:
        """Return the code of CANN devices."""
        return _KINDS["cann"][0]

    @staticmethod
    def dml() -> int:
        """Return the code of DirectML devices."""
        return _KINDS["dml"][0]

    @staticmethod
    def webgpu() -> int:
        """Return the code of WebGPU devices."""
        return _KINDS["webgpu"][0]

    @staticmethod
    def default_memory() -> int:
        """Return the code of the default memory."""
        return 0

    def device_type(self) -> int:
        """Return the code of the device's kind."""
        return self._kind

    def device_id(self) -> int:
        """Return the number of the device."""
        return self._identifier

    def device_mem_type(self) -> int:
        """Return the code of the kind of memory."""
        return self._memory

    def device_vendor_id(self) -> int:
        """Return the code of the vendor."""
        return self._vendor


def require_processor(device: OrtDevice | str | int) -> None:
    """Raise unless a device, or the name or code of its kind, stands for host memory.

    Raises:
        NotImplemented: it stands for another memory.
    """
    kind = device.device_type() if isinstance(device, OrtDevice) else device
    if kind not in (CPU, CPU.title(), OrtDevice.cpu()):
        raise NotImplemented.of(
            f"memory of {kind!r}: crosschip.apis.onnxruntime has values in host memory only; "
            f"use crosschip.compile with `keep` and `allocate` for device memory"
        )


@dataclass(frozen=True)
class OrtMemoryInfo:
    """The description of a memory.

    Attributes:
        name: the name of its device, such as `Cpu`.
        allocator_type: the kind of allocator.
        device_id: the number of its device.
        mem_type: the kind of memory.
        device_mem_type: who may access it.
        device_vendor_id: the code of its device's vendor.
    """

    name: str
    allocator_type: OrtAllocatorType
    device_id: int
    mem_type: OrtMemType
    device_mem_type: OrtDeviceMemoryType = OrtDeviceMemoryType.DEFAULT
    device_vendor_id: int = 0

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """Return the description of a memory; the kind of device and the alignment are not used."""
        kind = OrtMemType.DEFAULT
        return OrtMemoryInfo(name, allocator_type, device_id, kind, device_mem_type, vendor_id)


HOST_MEMORY = OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)


class OrtArenaCfg:
    """The settings of an arena, which are stored only.

    Args:
        settings: the settings by name; or the value of `max_mem`, and then those of
            `arena_extend_strategy`, `initial_chunk_size_bytes` and `max_dead_bytes_per_chunk`.
        values: the further values in order.
    """

    def __init__(self, settings: Mapping[str, int] | int, *values: int) -> None:
        names = (
            "max_mem",
            "arena_extend_strategy",
            "initial_chunk_size_bytes",
            "max_dead_bytes_per_chunk",
        )
        self.initial_growth_chunk_size_bytes = -1
        self.max_power_of_two_extend_bytes = -1
        if isinstance(settings, Mapping):
            options = dict(settings)
        else:
            options = dict(zip(names, (settings, *values), strict=True))
        unknown = [name for name in options if name not in names and not hasattr(self, name)]
        if unknown:
            raise RuntimeError(f"Invalid OrtArenaCfg option: {', '.join(unknown)}")
        vars(self).update(dict.fromkeys(names, -1) | {"max_mem": 0} | options)


def create_and_register_allocator(
    mem_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None = None
) -> None:
    """Do nothing: the devices choose their allocators."""


def create_and_register_allocator_v2(
    provider_type: str,
    mem_info: OrtMemoryInfo,
    options: Mapping[str, str],
    arena_cfg: OrtArenaCfg | None = None,
) -> None:
    """Do nothing: the devices choose their allocators."""
