"""Static facts about a device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from functools import lru_cache

from crosschip.ir import ElementType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import ALL_TYPES


class Kind(Enum):
    """Category of hardware."""

    CPU = "cpu"
    GPU = "gpu"
    ACCELERATOR = "accelerator"


class Precision(Enum):
    """Floating-point arithmetic that a device may use for a float32 model."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class Sizing(Enum):
    """The dynamic dimensions that a device compiles."""

    FIXED = "fixed"
    """None: the device gets a model with static shapes for each set of input shapes."""
    BOUNDED = "bounded"
    """Named ones for which the caller gives a range; otherwise like `FIXED`."""
    FREE = "free"
    """All."""


class Layout(Enum):
    """Order of an image's axes in memory."""

    NCHW = "NCHW"
    NHWC = "NHWC"


_CPUINFO = "/proc/cpuinfo"


@lru_cache(maxsize=1)
def processor() -> str:
    """Return the system, the processor model and its instruction sets, one per line."""
    lines: list[str] = []
    if os.path.exists(_CPUINFO):
        with open(_CPUINFO, encoding="utf-8", errors="replace") as cpu_info:
            lines = cpu_info.read().splitlines()
    prefixes = ("model name", "flags", "Features")
    features = sorted({line for line in lines if line.startswith(prefixes)})
    if hasattr(os, "uname"):
        # On other systems `platform` reads the registry; here it would start a process.
        return "\n".join([os.uname().sysname, os.uname().machine, *features])
    import platform

    return "\n".join([platform.system(), platform.machine(), platform.processor()])


SCHEDULING = frozenset({"threads", "performance", "in_flight", "alternates"})
"""The fields of `Options` that affect how a program runs but not what it computes."""


class Forking(Enum):
    """Whether a device's programs can run in a forked child process."""

    NEVER = "never"
    """Only in the parent: they need threads or another process, which the child lacks."""

    IDLE = "idle"
    """In the child, too, unless another thread was running one at the time of the fork."""

    ALWAYS = "always"
    """In the child, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Facts about an open device that the runtime relies on.

    Attributes:
        precisions: the arithmetic that it offers for float32 operations.
        pairs: whether it fuses float32 operations between `DEQUANTIZE` and `QUANTIZE` to quantized
            ones. It must then reject such operations in a precision that it does not offer.
        types: the element types that it computes in or moves.
        narrowed: integer types that it computes in narrower types, by type. `{INT64: INT32}` says
            that it accepts and returns int64, but computes in 32 bits. It gets operations only on
            values that provably fit, and runs only with inputs that fit. A type that it lacks
            entirely is not in `types`: then its models have the narrower type, and inputs and
            outputs are converted.
        sizing: the dynamic dimensions that it compiles.
        open_axes: the axes, from 0, that may have dynamic dimensions if `sizing` is not `FIXED`;
            `None` for all. A model with a dynamic dimension on another axis is compiled for each
            set of input shapes, as with `FIXED`.
        open_ranks: whether it compiles tensors of unknown rank, if `sizing` is `FREE`. If not, it
            gets models with static shapes where these determine the ranks.
        data_dependent_sizes: whether it runs operations with output shapes that depend on data, if
            `sizing` is not `FREE`. It gets each of these as a separate model in which only those
            sizes are dynamic.
        threads: whether it supports `Options.threads`. Without support, no operations are placed on
            it if the caller sets the option.
        max_rank: the largest rank of a tensor; `None` if unlimited.
        layouts: the image layouts that it prefers, best first; it accepts all.
        concurrency: how many runs of a program it executes concurrently; `None` if it does not
            matter.
        parallel_compile: whether several threads may call `compile` at once. If not, the runtime
            compiles one model at a time on all instances of the class in the process.
        alignment: the alignment of input memory in bytes.
        compile_names_unsupported: whether `compile` rejects everything that `query` would reject,
            with a `CompileError` that names all such operations. Then the runtime does not query a
            segment again for each set of sizes. It must be false if `compile` may miscompile such
            an operation or raise an error without names.
        tied_to: texts that must be equal to load a saved program, besides the device's version; by
            default the processor.
        holds_weights: whether a saved program contains all large constants of floats or quantized
            integers that it needs. The model passed to `Device.load` may then lack their elements
            (reading them is an error), which makes files of compiled models smaller.
        loads_views: whether `Device.load` accepts a read-only `memoryview` instead of bytes and its
            program may use the view while it lives. Then a cached program is neither copied nor
            read ahead, and processes share its memory.
        settable_at_load: the fields of `Options` that may differ when a saved program is loaded:
            any of `threads`, `performance`, `in_flight` and `alternates`.
        forking: whether its programs run after a fork; other runs are rejected.
    """

    precisions: frozenset[Precision] = frozenset({Precision.FLOAT32})
    pairs: bool = False
    types: frozenset[ElementType] = ALL_TYPES
    narrowed: Mapping[ElementType, ElementType] = field(default_factory=dict)
    sizing: Sizing = Sizing.FREE
    open_axes: frozenset[int] | None = None
    open_ranks: bool = True
    data_dependent_sizes: bool = False
    threads: bool = False
    max_rank: int | None = None
    layouts: tuple[Layout, ...] = (Layout.NCHW,)
    concurrency: int | None = None
    parallel_compile: bool = True
    alignment: int = 1
    compile_names_unsupported: bool = False
    tied_to: tuple[str, ...] = field(default_factory=lambda: (processor(),))
    holds_weights: bool = False
    loads_views: bool = False
    settable_at_load: frozenset[str] = frozenset()
    forking: Forking = Forking.NEVER

    @property
    def lacking(self) -> Mapping[ElementType, ElementType]:
        """Return the element types that the device lacks, each with the type that replaces it."""
        return {type_: other for type_, other in self.narrowed.items() if type_ not in self.types}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """Chip that a device's driver finds on this machine; see `Device.probe`.

    Attributes:
        name: the part after the colon in `device:name`; empty if there is only one chip.
        kind: the category of hardware.
        description: the chip's full name.
        memory: its memory in bytes; `None` if it uses host memory or the size is unknown.
        simulated: whether software simulates the chip, so that timings are not the chip's.
        preferred: whether `"auto"` considers it beside others; one whose engine takes long to start
            or to compile, and is seldom the fastest, is considered only where no preferred device
            of its kind can be used.
        problem: why it cannot be used; empty if it can.
    """

    name: str = ""
    kind: Kind
    description: str = ""
    memory: int | None = None
    simulated: bool = False
    preferred: bool = True
    problem: str = ""
