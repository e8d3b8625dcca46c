"""Compilation of models to IREE's modules, by its compiler in a process of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from signal import Signals
from typing import Any

import jax
from jax import export

from crosschip.devices.iree.limits import limit
from crosschip.devices.iree.lowering import CONVERTERS
from crosschip.devices.iree.module import MAGIC, carrier
from crosschip.devices.iree.targets import Target
from crosschip.devices.kits.stablehlo.function import Function
from crosschip.devices.kits.stablehlo.graph import Emission
from crosschip.devices.kits.stablehlo.narrow import as_type
from crosschip.devices.kits.stablehlo.padded import open_axes
from crosschip.devices.kits.stablehlo.saved import write_program
from crosschip.devices.kits.stablehlo.support import supports
from crosschip.hal import CompileError, Precision, Support
from crosschip.hal.converters import to_support
from crosschip.ir import DeviceError, Model, Operation
from crosschip.ir.errors import install_command

_EMISSION = Emission(CONVERTERS, returns_narrow=False)

_PLATFORM = "cpu"
"""The platform whose StableHLO JAX writes."""

_FLAGS = (
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
    "--iree-vm-target-truncate-unsupported-floats=false",
    "--verify=false",
)
"""Types stay what they are; checking the compiler's passes would take a third of its time."""


class Compiler:
    """IREE's compiler for a target, of models of static shapes.

    Args:
        target: the target.
    """

    def __init__(self, target: Target) -> None:
        self._target = target

    @property
    def operators(self) -> Collection[str]:
        """Return the standard operators that have converters."""
        return CONVERTERS.operators

    def query(self, model: Model) -> Sequence[Support]:
        """Return the support of each operation of a model."""
        return [self._supports(operation) for operation in model.operations]

    def _supports(self, operation: Operation) -> Support:
        answer = supports(operation, _EMISSION)
        refusal = limit(operation, _EMISSION, self._target) if answer else None
        return answer if refusal is None else to_support(operation, refusal)

    def compile(self, model: Model, precision: Precision) -> bytes:
        """Compile a model all of whose operations are supported.

        Returns:
            The saved form of the program.

        Raises:
            CompileError: an operation cannot be compiled, or IREE failed.
            DeviceError: the compiler is not installed.
        """
        if open_axes(model) and len(model.operations) > 1:
            raise CompileError("iree: sizes depend on data beside other operations")
        function = Function(model, _EMISSION, precision)
        module = compile_stablehlo(_stablehlo(function), self._target.compile_flags)
        return write_program(MAGIC, function.rules, module)


def _stablehlo(function: Function) -> bytes:
    """Return a function in the versioned form of StableHLO."""
    types = jax.tree.map(lambda struct: struct.dtype, function.arguments())

    def compute(*arguments: Any) -> list[Any]:
        return function(*jax.tree.map(as_type, arguments, types))

    def outer(struct: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(struct.shape, carrier(struct.dtype))

    try:
        with jax.enable_x64(True):
            jitted = jax.jit(compute, keep_unused=True)
            exported = export.export(jitted, platforms=(_PLATFORM,))(
                *jax.tree.map(outer, function.arguments())
            )
    except DeviceError:
        raise
    except Exception as error:  # JAX raises any class
        raise CompileError(f"iree: JAX failed to trace it: {_first_line(str(error))}") from error
    return bytes(exported.mlir_module_serialized)


def compile_stablehlo(module: bytes, flags: Sequence[str]) -> bytes:
    """Compile StableHLO to IREE's bytecode.

    Raises:
        CompileError: the compiler refused it, or ended without an answer.
        DeviceError: the compiler is not installed.
    """
    arguments = [str(_tool()), "-", "-o", "-", "--iree-input-type=stablehlo", *_FLAGS, *flags]
    process = subprocess.run(arguments, input=module, capture_output=True)
    if process.returncode:
        raise CompileError(f"iree: {_complaint(process)}")
    return process.stdout


def _tool() -> Path:
    spec = find_spec("iree.compiler")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        for tool in Path(folder, "_mlir_libs").glob("iree-compile*"):
            return tool
    raise DeviceError(f"IREE's compiler is not installed; {install_command('iree')}")


def _complaint(process: subprocess.CompletedProcess[bytes]) -> str:
    """Return what the compiler said, or how it ended."""
    text = process.stderr.decode(errors="replace")
    if process.returncode < 0:
        return f"the compiler died of {Signals(-process.returncode).name}"
    errors = [line.partition("error: ")[2] for line in text.splitlines() if "error: " in line]
    return f"the compiler refused it: {errors[0] if errors else _first_line(text)}"


def _first_line(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return next(filter(None, lines), "for no stated reason")
