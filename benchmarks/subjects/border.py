"""What the C library of NNAdapter adds to `NNAdapterExecution_compute` in Python.

One-operation models, compiled once for one thread and run in turn by two programs in one process:
one in Python, whose access functions return arrays, and one whose access functions are compiled C
and that calls `libnnadapter.so`. Both write outputs where they were before. The library is called
through ctypes, which is part of what is added: some tenths of a microsecond, and giving away and
taking back Python's lock, as a thread in C does.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np

from benchmarks.comparison import Estimate, compare
from benchmarks.engines import REFERENCE, engines
from benchmarks.subject import Column, Row
from crosschip.apis import nnadapter as nn
from crosschip.apis.c.building import build
from crosschip.apis.c.handles import HANDLES
from crosschip.bench.timing import Run
from crosschip.ir import Array, Builder, ElementType, Model, TensorType
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.arithmetic import Add

LIMIT_US = 30.0
REQUIREMENT = f"a call through C takes at most {LIMIT_US:g} µs (median) more than in Python"

_MODELS = {
    "RELU [1, 8]": (Relu, 1, (1, 8)),
    "ADD [1, 8] + [1, 8]": (Add, 2, (1, 8)),
    "RELU [1, 64, 56, 56]": (Relu, 1, (1, 64, 56, 56)),
}


class _Tensor(ctypes.Structure):
    """The structure of `border.c`."""

    _fields_ = (
        ("count", ctypes.c_uint32),
        ("sizes", ctypes.c_int32 * nn.NNADAPTER_MAX_SIZE_OF_DIMENSIONS),
        ("elements", ctypes.c_void_p),
    )

    @classmethod
    def of(cls, array: Array) -> _Tensor:
        sizes = (*array.shape, *[0] * (nn.NNADAPTER_MAX_SIZE_OF_DIMENSIONS - array.ndim))
        return cls(array.ndim, sizes, array.ctypes.data)


@dataclass(frozen=True, slots=True)
class _Run:
    """A call with a handle, and the memory that is used in it."""

    function: Any
    handle: ctypes.c_void_p
    memory: object

    def __call__(self) -> object:
        return self.function(self.handle)


@dataclass(frozen=True)
class InputGuard(Row):
    """One model on one device."""

    device: Annotated[str, Column("device")]
    model: Annotated[str, Column("model")]
    python_us: Annotated[float, Column("Python µs", ".1f")]
    c_us: Annotated[float, Column("C µs", ".1f")]
    added_us: Annotated[Estimate, Column("added µs", ".1f")]

    @property
    def met(self) -> bool:
        return self.added_us.value <= LIMIT_US


def measure(*, quick: bool) -> Iterator[InputGuard]:
    """Each model on each device."""
    with TemporaryDirectory() as folder:
        built = next(b for b in build(Path(folder)) if b.library.stem == "libnnadapter")
        library, program = ctypes.CDLL(str(built.library)), _program(Path(folder))
        for device in (REFERENCE, *engines()):
            for name, (operator, inputs, shape) in _MODELS.items():
                arrays = [np.ones(shape, np.float32) for _ in range(inputs)]
                compilation = _compiled(_model(operator, arrays), device)
                result = compare(
                    partial(_in_c, library, program, compilation, arrays),
                    partial(_in_python, compilation, arrays),
                    seconds=0.1 if quick else 0.3,
                    blocks=2 if quick else 5,
                    patience=0 if quick else 5,
                )
                nn.NNAdapterCompilation_destroy(compilation)
                figures = result.direct_ms * 1e3, result.ours_ms * 1e3, result.added_us
                yield InputGuard(device, name, *figures)


def _program(folder: Path) -> ctypes.CDLL:
    """The access functions in C."""
    made = folder / "program.so"
    source = Path(__file__).with_suffix(".c")
    command = ["cc", "-O2", "-shared", "-fPIC", f"-I{folder / 'include'}", "-o"]
    subprocess.run([*command, str(made), str(source)], check=True)
    return ctypes.CDLL(str(made))


def _model(operator: Any, arrays: Sequence[Array]) -> Model:
    b = Builder()
    type_ = TensorType(ElementType.FLOAT32, arrays[0].shape)
    inputs = [b.input(f"x{index}", type_) for index in range(len(arrays))]
    b.output("y", b.add(operator, *inputs))
    return b.build()


def _compiled(model: Model, device: str) -> nn.NNAdapterCompilation:
    _, acquired = nn.NNAdapterDevice_acquire(device)
    assert acquired is not None, nn.last_error()
    _, context = nn.NNAdapterContext_create([acquired], f"{device.upper()}_NUM_THREADS=1")
    assert context is not None, nn.last_error()
    written = nn.calls(model).replay()
    _, made = nn.NNAdapterCompilation_create(written, None, None, None, context)
    assert made is not None, nn.last_error()
    assert not nn.NNAdapterCompilation_finish(made), nn.last_error()
    return made


def _in_python(compilation: nn.NNAdapterCompilation, arrays: Sequence[Array]) -> Run:
    output = np.empty_like(arrays[0])
    _, execution = nn.NNAdapterExecution_create(compilation)
    assert execution is not None, nn.last_error()
    for index, array in enumerate(arrays):
        nn.NNAdapterExecution_setInput(execution, index, array, _read)
    nn.NNAdapterExecution_setOutput(execution, 0, output, lambda memory, type_, device: memory)
    assert not nn.NNAdapterExecution_compute(execution), nn.last_error()
    return lambda: nn.NNAdapterExecution_compute(execution)


def _read(memory: Array, type_: nn.NNAdapterOperandType, device_buffer: object) -> Array:
    type_.dimensions.data = list(memory.shape)
    return memory


def _in_c(
    library: ctypes.CDLL,
    program: ctypes.CDLL,
    compilation: nn.NNAdapterCompilation,
    arrays: Sequence[Array],
) -> Run:
    output = np.empty_like(arrays[0])
    kept = [_Tensor.of(array) for array in (*arrays, output)]
    execution = ctypes.c_void_p()
    handle = ctypes.c_void_p(HANDLES.add(compilation))
    assert not library.NNAdapterExecution_create(handle, ctypes.byref(execution))
    for index, tensor in enumerate(kept[:-1]):
        place = ctypes.byref(tensor)
        library.NNAdapterExecution_setInput(execution, index, place, program.read_input)
    place = ctypes.byref(kept[-1])
    library.NNAdapterExecution_setOutput(execution, 0, place, program.place_output)

    assert not library.NNAdapterExecution_compute(execution), nn.last_error()
    return _Run(library.NNAdapterExecution_compute, execution, (kept, arrays, output))
