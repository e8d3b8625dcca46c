"""The targets of IREE, as data, and those that this machine has, found without importing it."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from crosschip.hal import Instance, Kind, processor
from crosschip.ir import DeviceError, ElementType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.errors import install_command
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import ALL_TYPES, NARROW_FLOATS

DEFAULT = "cpu"

_MISSING = f"IREE is not installed; {install_command('iree')}"
_LOCAL = "--iree-hal-target-device=local"
_TYPES = ALL_TYPES - NARROW_FLOATS


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of machine that IREE compiles for.

    Attributes:
        name: the name of the instance.
        kind: the kind of hardware.
        description: the hardware, for users.
        driver: the name of the runtime's driver.
        flags: the compiler's flags.
        target_flag: the compiler's flag for the machine.
        nodes: patterns of files that exist on Linux if there is such hardware; empty if there
            always is.
        types: the element types.
        threaded: whether it runs on threads of the processor.
        machine: the machine to compile for; empty for this one.
        cpu: the processor to compile for; empty for this one, or for a generic one if there is a
            machine.
    """

    name: str
    kind: Kind
    description: str
    driver: str
    flags: Sequence[str]
    target_flag: str = ""
    nodes: Sequence[str] = ()
    types: frozenset[ElementType] = _TYPES
    threaded: bool = False
    machine: str = ""
    cpu: str = ""

    @property
    def present(self) -> bool:
        """Return whether this machine has such hardware, as far as its files tell."""
        if self.driver == "metal":
            return sys.platform == "darwin"
        return not self.nodes or any(any(Path("/").glob(node)) for node in self.nodes)

    @property
    def compile_flags(self) -> Sequence[str]:
        """Return the compiler's flags for the machine and its processor."""
        flags = [*self.flags]
        if self.machine:
            flags.append(f"{self.target_flag}={self.machine}")
        if self.name == "cpu":
            cpu = self.cpu or ("generic" if self.machine else "host")
            flags.append(f"--iree-llvmcpu-target-cpu={cpu}")
        return flags

    @property
    def tied_to(self) -> tuple[str, ...]:
        """Return what must be equal where a compiled module is loaded."""
        if self.name == "vmvx":
            return (self.name,)
        if self.machine or self.cpu:
            return (self.name, self.machine, self.cpu)
        return (self.name, processor())

    @property
    def foreign(self) -> str:
        """Return why modules do not run on this machine; empty if they may."""
        if self.name == "cpu" and self.machine:
            architecture, *rest = self.machine.split("-")
            here = (platform.machine().lower(), platform.system().lower())
            if architecture != here[0] or here[1] not in rest:
                return f"the program is for {self.machine}, and this machine is {'-'.join(here)}"
        return ""


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target(
            name="cpu",
            kind=Kind.CPU,
            description="the processor, by LLVM",
            driver="local-task",
            flags=[_LOCAL, "--iree-hal-local-target-device-backends=llvm-cpu"],
            target_flag="--iree-llvmcpu-target-triple",
            threaded=True,
        ),
        Target(
            name="vmvx",
            kind=Kind.CPU,
            description="the processor, by IREE's portable bytecode",
            driver="local-task",
            flags=[_LOCAL, "--iree-hal-local-target-device-backends=vmvx"],
            types=_TYPES - {ElementType.FLOAT64, ElementType.FLOAT16, ElementType.BFLOAT16},
            threaded=True,
        ),
        Target(
            name="cuda",
            kind=Kind.GPU,
            description="NVIDIA's GPUs, through CUDA",
            driver="cuda",
            flags=["--iree-hal-target-device=cuda"],
            target_flag="--iree-cuda-target",
            nodes=["proc/driver/nvidia/version"],
        ),
        Target(
            name="rocm",
            kind=Kind.GPU,
            description="AMD's GPUs, through ROCm",
            driver="hip",
            flags=["--iree-hal-target-device=hip"],
            target_flag="--iree-rocm-target",
            nodes=["dev/kfd"],
        ),
        Target(
            name="vulkan",
            kind=Kind.GPU,
            description="GPUs, through Vulkan",
            driver="vulkan",
            flags=["--iree-hal-target-device=vulkan"],
            target_flag="--iree-vulkan-target",
            nodes=["usr/lib*/libvulkan.so.1", "usr/lib/*/libvulkan.so.1"],
        ),
        Target(
            name="metal",
            kind=Kind.GPU,
            description="Apple's GPUs, through Metal",
            driver="metal",
            flags=["--iree-hal-target-device=metal"],
        ),
    )
}


def instances() -> Sequence[Instance]:
    """Return the targets that this machine has, the processor first."""
    problem = "" if _is_installed() else _MISSING
    return [
        Instance(
            name=target.name,
            kind=target.kind,
            description=target.description,
            # It compiles for seconds, and others of the processor are as fast.
            preferred=target.kind is not Kind.CPU,
            problem=problem,
        )
        for target in TARGETS.values()
        if target.present
    ]


def target_of(name: str, properties: Mapping[str, str]) -> Target:
    """Return the target of an instance with the device's properties.

    Raises:
        DeviceError: there is no such target, or it has no such property.
    """
    target = TARGETS.get(name)
    if target is None:
        near = did_you_mean(name, TARGETS)
        raise DeviceError(f"IREE has no target {name!r}{near}; it has {', '.join(TARGETS)}")
    machine, cpu = properties.get("target", ""), properties.get("cpu", "")
    if machine and not target.target_flag:
        raise DeviceError(f"property target: iree:{name} compiles for this machine only")
    if cpu and name != "cpu":
        raise DeviceError(f"property cpu: iree:{name} does not compile for processors")
    return replace(target, machine=machine, cpu=cpu)


def _is_installed() -> bool:
    """Return whether IREE's runtime is installed; `iree` alone may be any package's folder."""
    spec = find_spec("iree")
    folders = [] if spec is None else spec.submodule_search_locations or []
    return any(os.path.isdir(os.path.join(folder, "runtime")) for folder in folders)
