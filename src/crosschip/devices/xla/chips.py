"""The chips that XLA can use on this machine, found without importing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from crosschip.hal import Instance, Kind
from crosschip.ir.errors import install_command

_MISSING = f"JAX is not installed; {install_command('xla')}"
_CUDA = ("jax_cuda13_plugin", "jax_cuda12_plugin")
"""The packages with JAX's driver for NVIDIA GPUs."""
_TPU = "libtpu"


def chips() -> Sequence[Instance]:
    """Return TPUs, GPUs and the processor, in this order.

    Chips without JAX's driver are left out, since JAX would use the processor instead.
    """
    problem = "" if find_spec("jax") is not None else _MISSING
    instances = [
        Instance(name=f"{kind}:{index}", kind=sort, description=description, problem=problem)
        for kind, sort, listed in (("tpu", Kind.ACCELERATOR, _tpus()), ("gpu", Kind.GPU, _gpus()))
        for index, description in enumerate(listed)
    ]
    return [
        *instances,
        Instance(name="cpu", kind=Kind.CPU, description="the processor", problem=problem),
    ]


def _gpus() -> Iterator[str]:
    """Yield the name of each NVIDIA GPU, in the order of their numbers."""
    if not any(find_spec(package) for package in _CUDA):
        return
    numbers = sorted(int(node.name[6:]) for node in Path("/dev").glob("nvidia[0-9]*"))
    information_files = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    for index, _ in enumerate(numbers):
        yield (
            _model(information_files[index])
            if len(information_files) == len(numbers)
            else "NVIDIA's GPU"
        )


def _model(information: Path) -> str:
    """Return the name of a GPU from its driver's information file."""
    try:
        lines = information.read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("Model"))
    return next(models, "") or "NVIDIA's GPU"


def _tpus() -> Iterator[str]:
    if find_spec(_TPU) is None:
        return
    nodes = [*Path("/dev").glob("accel[0-9]*"), *Path("/dev/vfio").glob("[0-9]*")]
    yield from ("Google's TPU" for _ in nodes)
