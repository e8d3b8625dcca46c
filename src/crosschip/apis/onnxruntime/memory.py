"""Allocators, which crosschip's devices choose by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crosschip.apis.onnxruntime.enumerations import OrtAllocatorType, OrtMemType


@dataclass(frozen=True)
class OrtMemoryInfo:
    """The description of a memory.

    Attributes:
        name: the name of its device, such as `Cpu`.
        allocator_type: the kind of allocator.
        id: the number of its device.
        mem_type: the kind of memory.
    """

    name: str
    allocator_type: OrtAllocatorType
    id: int
    mem_type: OrtMemType


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
