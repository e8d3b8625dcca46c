"""The facts about a device, as data."""

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
    """The sort of hardware that a device is."""

    CPU = "cpu"
    GPU = "gpu"
    ACCELERATOR = "accelerator"


class Precision(Enum):
    """The floating-point arithmetic that a device may use for a float32 model."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


class Sizing(Enum):
    """The open sizes that a device compiles."""

    FIXED = "fixed"
    """None: it gets a model for each set of shapes, in which every size is known."""
    BOUNDED = "bounded"
    """Those with a name for which the caller gives a range; else as `FIXED`."""
    FREE = "free"
    """Any."""


class Layout(Enum):
    """The order of an image's axes in memory."""

    NCHW = "NCHW"
    NHWC = "NHWC"


_ABOUT = "/proc/cpuinfo"


@lru_cache(maxsize=1)
def processor() -> str:
    """The system, the processor's model and its instructions, a line each."""
    lines: list[str] = []
    if os.path.exists(_ABOUT):
        with open(_ABOUT, encoding="utf-8", errors="replace") as cpu_info:
            lines = cpu_info.read().splitlines()
    telling = ("model name", "flags", "Features")
    features = sorted({line for line in lines if line.startswith(telling)})
    if hasattr(os, "uname"):
        # What else `platform` says of such systems, it asks another process.
        return "\n".join([os.uname().sysname, os.uname().machine, *features])
    import platform

    return "\n".join([platform.system(), platform.machine(), platform.processor()])


SCHEDULING = frozenset({"threads", "performance", "in_flight"})
"""The fields of `Options` that say how a program runs, and not what it computes."""


class Forking(Enum):
    """Where the programs of a device can be used after the process has been forked."""

    NEVER = "never"
    """In the parent alone: they need threads, or another process, which a child has not."""

    IDLE = "idle"
    """In a child, too, if no run was under way in another thread at the fork."""

    ALWAYS = "always"
    """In a child, too, whatever was under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The facts about an open device on which the runtime relies.

    Attributes:
        precisions: the arithmetic that it offers for float32 operations.
        pairs: whether it takes float32 operations between `DEQUANTIZE` and `QUANTIZE` for
            quantized ones. It then declines by itself those in a precision that it does not offer.
        types: the element types that it computes in or moves.
        narrowed: the integer types that it computes in narrower ones, each with that: `{INT64:
            INT32}` of one that takes and makes int64, but has 32 bits inside. It gets operations
            only on values that are shown to fit, and runs in which inputs do. One that lacks a type
            altogether leaves it out of `types`: its models have the narrower type in place of it,
            and what comes in and goes out is converted.
        sizing: the open sizes that it compiles.
        open_axes: the axes, counted from 0, on which sizes of tensors may be open, where `sizing`
            is not `FIXED`; `None` if on all. A model with an open size on another axis, of an input
            or of what it computes, is compiled for each set of shapes, as if `sizing` were `FIXED`.
        open_ranks: whether it compiles numbers of axes that show in a run only, where `sizing` is
            `FREE`. One that does not gets a model with known sizes where these show them.
        data_dependent_sizes: whether it runs operations the sizes of whose results depend on data,
            where `sizing` is not `FREE`. Each of these it gets as a model of its own, in which only
            those sizes are open.
        threads: whether `Options.threads` can be kept; one that cannot is not given operations
            where the caller sets it.
        max_rank: the most axes of a tensor; `None` if any number.
        layouts: the layouts of images that it prefers, the best first; it takes any.
        concurrency: how many runs of a program it works on at once; `None` if it does not matter.
        parallel_compile: whether `compile` may be called from several threads at once. If not, the
            runtime compiles one model at a time, on all instances of the class in the process.
        alignment: the number of bytes to a multiple of which the memory of inputs is aligned.
        compile_names_unsupported: whether `compile` refuses whatever `query` would decline, by a
            `CompileError` that names each such operation. Only then is the device not asked about a
            segment again for each set of sizes that it compiles it for. To raise `CompileError`
            now and then is not enough: a device that computes something else, or names nobody,
            leaves this as it is.
        tied_to: what else than the device's version must be the same where a saved program is
            loaded: the processor, unless the device says otherwise.
        holds_weights: whether a saved program holds all that it needs of large constants of floats
            or quantized integers. The model that `Device.load` gets may then lack those, which
            makes files of compiled models smaller; asking for one is an error.
        loads_views: whether `Device.load` takes a read-only `memoryview` in place of bytes, and its
            program may use that as long as it lives: what is kept in a folder is then neither
            copied nor read before it is needed, and processes that run it share it.
        settable_at_load: the fields of `Options` that `Device.load` takes anew: any of `threads`,
            `performance` and `in_flight`. The others are part of a saved program.
        forking: where its programs can be used after a fork; elsewhere their runs are refused.
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
        """The types that it has not, each with that of the tensors which it gets instead."""
        return {type_: other for type_, other in self.narrowed.items() if type_ not in self.types}


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One of the chips that a device's driver reaches on this machine, as `Device.probe` finds it.

    Attributes:
        name: what follows the colon in `device:name`; empty if there is one only.
        kind: the sort of hardware.
        description: the chip's full name.
        memory: its memory in bytes; `None` if it is the host's, or unknown.
        simulated: whether software plays the chip, so that its times are not the chip's.
        problem: why it cannot be used; empty if nothing speaks against it.
    """

    name: str = ""
    kind: Kind
    description: str = ""
    memory: int | None = None
    simulated: bool = False
    problem: str = ""
