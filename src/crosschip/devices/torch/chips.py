"""The chips that PyTorch can use on this machine, found without importing it.

What an accelerator of a package of its own is called, only that package says, when it is imported:
those of a process that has imported it are in `of_process`.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from crosschip.hal import Instance, Kind
from crosschip.ir.dataclass import dataclass
from crosschip.ir.errors import install_command

_MISSING = f"PyTorch is not installed; {install_command('torch')}"


@dataclass(frozen=True, slots=True)
class _Backend:
    """Accelerators that PyTorch has by itself or by a package.

    Attributes:
        name: PyTorch's name of their kind.
        description: the hardware.
        nodes: a pattern of their files in /dev.
        package: the package that registers them; empty if PyTorch has them by itself.
        builds: how the local version of a PyTorch begins that has them; empty for any but others'.
    """

    name: str
    description: str
    nodes: str
    package: str = ""
    builds: tuple[str, ...] = ()


_BACKENDS = (
    _Backend("cuda", "NVIDIA's GPU", "nvidia[0-9]*", builds=("cu", "")),
    _Backend("cuda", "AMD's GPU", "dri/renderD*", builds=("rocm",)),
    _Backend("xpu", "Intel's GPU", "dri/renderD*", builds=("xpu",)),
    _Backend("npu", "Huawei's Ascend", "davinci[0-9]*", "torch_npu"),
    _Backend("mlu", "Cambricon's MLU", "cambricon_dev*", "torch_mlu"),
)


def of_machine() -> Sequence[Instance]:
    """Return accelerators and the processor, in this order.

    On the processor, other engines are faster and start in a tenth of the time.
    """
    problem = "" if find_spec("torch") is not None else _MISSING
    accelerators = () if problem else tuple(_accelerators())
    return [
        *accelerators,
        Instance(
            name="cpu",
            kind=Kind.CPU,
            description="the processor",
            preferred=False,
            problem=problem,
        ),
    ]


def _accelerators() -> Iterator[Instance]:
    build = _build()
    for backend in _BACKENDS:
        if backend.package:
            has = find_spec(backend.package) is not None
        else:
            has = any(build.startswith(b) if b else build == b for b in backend.builds)
        nodes = sorted(Path("/dev").glob(backend.nodes)) if has else []
        kind = Kind.ACCELERATOR if backend.package else Kind.GPU
        for index, _ in enumerate(nodes):
            yield Instance(
                name=f"{backend.name}:{index}", kind=kind, description=backend.description
            )
    if sys.platform == "darwin" and platform.machine() == "arm64":
        yield Instance(name="mps:0", kind=Kind.GPU, description="Apple's GPU")


def _build() -> str:
    """Return the local part of PyTorch's version, such as `cpu` or `cu130`."""
    try:
        return version("torch").partition("+")[2]
    except PackageNotFoundError:
        return "cpu"


def of_process() -> Sequence[Instance]:
    """Return the accelerators that a package has registered in this process under its own name."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "accelerator"):
        return []
    name = torch._C._get_privateuse1_backend_name()
    known = {backend.name for backend in _BACKENDS}
    module = getattr(torch, name, None)
    if name == "privateuseone" or name in known or module is None or not module.is_available():
        return []
    return [
        Instance(name=f"{name}:{index}", kind=Kind.ACCELERATOR, description=f"PyTorch's {name}")
        for index in range(module.device_count())
    ]
