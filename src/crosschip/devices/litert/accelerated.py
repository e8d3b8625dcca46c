"""Compiled models on accelerators: LiteRT's compiled-model interface."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import prod
from typing import Any

from ai_edge_litert.compiled_model import CompiledModel
from ai_edge_litert.hardware_accelerator import HardwareAccelerator
from ai_edge_litert.options import CpuOptions, GpuOptions
from ai_edge_litert.options import Options as LitertOptions

from crosschip.devices.litert.program import ERRORS, failure
from crosschip.hal import CompileError, Options, Program
from crosschip.hal.options import processor_cores
from crosschip.ir import Array, ElementType, Model

TYPES = frozenset(map(ElementType, ("float32", "float16", "int32", "int8", "uint8", "bool")))
"""The element types of LiteRT's buffers."""


class AcceleratedProgram(Program):
    """A model on an accelerator, which computes all of it; runs take turns.

    Args:
        content: the file, which is also what is saved.
        model: the source model, of static shapes, with tensors of `TYPES`.
        options: the options of the compilation.
        chip: `cpu`, `gpu` or `npu`.

    Raises:
        CompileError: the accelerator does not compute all operations.
    """

    def __init__(self, content: bytes, model: Model, options: Options, chip: str) -> None:
        self._content = content
        self._outputs = [operand.type for operand in model.outputs.values()]
        self._turn = threading.Lock()
        settings = LitertOptions(
            hardware_accelerators=HardwareAccelerator[chip.upper()],
            cpu_options=CpuOptions(num_threads=options.threads_each or processor_cores()),
            gpu_options=GpuOptions(enforce_f32=True),
        )
        try:
            self._compiled: Any = CompiledModel.from_buffer(content, options=settings)
            self._sources = self._compiled.create_input_buffers(0)
            self._results = self._compiled.create_output_buffers(0)
        except ERRORS as error:
            raise CompileError(str(failure("does not accelerate this file", error))) from error

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        try:
            with self._turn:
                for source, array in zip(self._sources, inputs, strict=True):
                    source.write(array)
                self._compiled.run_by_index(0, self._sources, self._results)
                return [
                    result.read(
                        prod(shape := type_.static_shape or ()), type_.element_type.dtype
                    ).reshape(shape)
                    for result, type_ in zip(self._results, self._outputs, strict=True)
                ]
        except ERRORS as error:
            raise failure("failed while running", error) from error

    def save(self) -> bytes:
        return self._content

    def close(self) -> None:
        vars(self).clear()
