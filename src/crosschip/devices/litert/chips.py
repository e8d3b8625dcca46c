"""The chips that LiteRT can use on this machine, found without importing it.

A GPU needs LiteRT's accelerator for WebGPU, which its package has; an NPU the dispatch library of
its vendor, in the package or, from the vendor, beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from crosschip.hal import Instance, Kind
from crosschip.ir.errors import install_command

_MISSING = f"LiteRT is not installed; {install_command('litert')}"
_GPU_LIBRARY = "libLiteRtWebGpuAccelerator.*"
_NPU_LIBRARY = "vendors/*/dispatch/*LiteRtDispatch*"
_GPUS = ("dri/renderD*", "nvidia[0-9]*")
_NPUS = ("accel/accel[0-9]*",)
"""The device nodes of Linux for chips that have a driver."""


def chips(devices: Path = Path("/dev")) -> Sequence[Instance]:
    """Return the processor, and a GPU and an NPU if LiteRT has a library for the chip.

    Args:
        devices: the folder of device nodes.
    """
    spec = find_spec("ai_edge_litert")
    problem = "" if spec is not None else _MISSING
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    # Whether it is ever the fastest beside others is not measured yet.
    processor = Instance(
        name="cpu", kind=Kind.CPU, description="the processor", preferred=False, problem=problem
    )
    return [processor, *(each for folder in folders for each in _others(Path(folder), devices))]


def _others(package: Path, devices: Path) -> Iterator[Instance]:
    """Yield the chips besides the processor."""
    if any(package.glob(_GPU_LIBRARY)) and any(any(devices.glob(node)) for node in _GPUS):
        yield Instance(name="gpu", kind=Kind.GPU, description="the GPU, through WebGPU")
    libraries = sorted(package.glob(_NPU_LIBRARY))
    if libraries and any(any(devices.glob(node)) for node in _NPUS):
        vendor = libraries[0].parents[1].name
        yield Instance(
            name="npu", kind=Kind.ACCELERATOR, description=f"the NPU, through {vendor}'s library"
        )
