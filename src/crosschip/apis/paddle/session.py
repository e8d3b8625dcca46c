"""A compiled Paddle model with named inputs and outputs; recompiled for other shapes."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crosschip.apis.paddle.values import Value
from crosschip.importers import paddle
from crosschip.importers.packages import with_overriding
from crosschip.importers.paddle import files
from crosschip.ir import Array, Dim, InputError, Model, ModelFileError
from crosschip.ir.budget import spending
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.compile.front_door import compile
from crosschip.runtime.compiled import CompiledModel

logger = logging.getLogger("crosschip")

Shapes = Mapping[str, Sequence[int]]
Loader = Callable[[Shapes], Model]
"""Loads the model with the given input shapes in place of its own; -1 is a dynamic dimension."""

_LEVEL = re.compile(r"\.lod\d+$")
"""The suffix of an input or output that holds a LoD level."""


@dataclass(frozen=True)
class Files:
    """A Paddle model as paths or file contents.

    Attributes:
        program: the program, or a folder with a model.
        parameters: the program's parameters; `None` for a folder.
    """

    program: Path | bytes
    parameters: Path | bytes | None

    def __call__(self, shapes: Shapes) -> Model:
        """Import the model.

        Raises:
            BudgetError, ModelFileError, UnsupportedError: as for `crosschip.load`.
        """
        if isinstance(self.program, Path) and self.program.is_dir():
            paths = files.find(self.program)
            return Files(paths.program, paths.parameters)(shapes)
        with spending():
            return with_overriding(paddle.load_parts(self.program, self.parameters, shapes))

    def write(self, program: Path, parameters: Path) -> None:
        """Write the program and its parameters, each to one file.

        Raises:
            ModelFileError: the model does not exist, or cannot be read.
            InputError: a file cannot be written.
        """
        content, values = self._contents()
        try:
            program.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{program.parent}: cannot be written: {error.strerror}") from None
        write_user_file(program, [content])
        write_user_file(parameters, [values])

    def _contents(self) -> tuple[bytes, bytes]:
        if isinstance(self.program, Path) and self.program.is_dir():
            paths = files.find(self.program)
            return Files(paths.program, paths.parameters)._contents()
        try:
            content = _bytes(self.program)
            if isinstance(self.parameters, Path) and self.parameters.is_dir():
                from crosschip.importers.paddle import paddle2

                names = sorted(paddle2.read(content).parameters)
                parts = [_bytes(self.parameters / name) for name in names]
                return content, b"".join(parts)
            return content, _bytes(self.parameters or b"")
        except OSError as error:
            raise ModelFileError(f"{error.filename}: cannot be read: {error.strerror}") from None


def _bytes(source: Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()


class Session:
    """A compiled model that several predictors may share.

    Args:
        loader: loads the model.
        arguments: the arguments of `crosschip.compile` except the model.

    Attributes:
        compiled: the compiled model.
        inputs: the input names, in Paddle's order.
        outputs: the output names, in Paddle's order.
    """

    def __init__(self, loader: Loader, arguments: Mapping[str, Any]) -> None:
        self._loader: Loader | None = loader
        self._arguments = arguments
        self._hold(compile(loader({}), **arguments))

    @classmethod
    def of(cls, compiled: CompiledModel) -> Session:
        """Return a session of a compiled model, which cannot be recompiled for other shapes."""
        session = cls.__new__(cls)
        session._loader = None
        session._hold(compiled)
        return session

    def _hold(self, compiled: CompiledModel) -> None:
        self._opened: dict[str, tuple[int, ...]] = {}
        self.compiled = compiled
        self.inputs = tuple(name for name in self.compiled.inputs if not _is_level(name))
        self.outputs = tuple(name for name in self.compiled.outputs if not _is_level(name))

    def run(self, values: Mapping[str, Value], outputs: Mapping[str, Value]) -> None:
        """Compute the outputs.

        Paddle accepts inputs of other shapes than the file declares: for such inputs the model is
        recompiled with dynamic dimensions, and stays so.

        Args:
            values: the inputs, by name.
            outputs: the outputs, by name; elements and LoD are set.

        Raises:
            InputError: an input is missing, or does not match the model.
            DeviceError, UnsupportedError: a device failed, or cannot run the model.
        """
        arrays: dict[str, Array] = {}
        for name, operand in self.compiled.inputs.items():
            arrays[name] = _input_array(values, name, operand.type.element_type.dtype)
        compiled = self._compiled_for(arrays)
        results = compiled.run(arrays)
        for name, value in outputs.items():
            value.share(results[name])
        if len(results) > len(outputs):
            for name, value in outputs.items():
                value.levels = [
                    results[level].tolist() for level in results if level.startswith(f"{name}.lod")
                ]

    def _compiled_for(self, arrays: Mapping[str, Array]) -> CompiledModel:
        """Return the model compiled for these input shapes."""
        compiled = self.compiled
        new_shapes: dict[str, tuple[int, ...]] = {}
        for name, operand in compiled.inputs.items():
            declared, shape = operand.type.shape, arrays[name].shape
            if declared is None or _fits(declared, shape):
                continue
            same_rank = len(declared) == len(shape)
            new_shapes[name] = tuple(
                size if same_rank and size == fixed else -1
                for size, fixed in zip(shape, declared if same_rank else shape, strict=True)
            )
        if not new_shapes or self._loader is None:
            return compiled
        self._opened |= new_shapes
        logger.info("compiling anew with other sizes than the file says: %s", self._opened)
        self.compiled = compile(self._loader(self._opened), **self._arguments)
        return self.compiled


def _fits(declared: Sequence[Dim], sizes: Sequence[int]) -> bool:
    """Return whether sizes match the declared ones, ignoring dynamic dimensions."""
    return len(declared) == len(sizes) and all(
        not isinstance(fixed, int) or size == fixed
        for size, fixed in zip(sizes, declared, strict=True)
    )


def _input_array(values: Mapping[str, Value], name: str, dtype: np.dtype[Any]) -> Array:
    """Return an input's elements, or one of its LoD levels.

    Paddle's operators accept several integer widths; values that fit are converted.
    """
    if name not in values:
        variable, _, number = name.rpartition(".lod")
        levels = values[variable].levels
        if int(number) >= len(levels):
            raise InputError(
                f"{variable!r} needs {int(number) + 1} levels of LoD, but has {len(levels)}; "
                f"give them with set_lod"
            )
        return np.array(levels[int(number)], np.int64)
    array = values[name].array
    if array is None:
        raise InputError(f"input {name!r} has no elements; give them with copy_from_cpu")
    if array.dtype == dtype or array.dtype.kind not in "iu" or dtype.kind not in "iu":
        return array
    converted = array.astype(dtype)
    if not np.array_equal(converted, array):
        raise InputError(f"input {name!r} is {array.dtype}, and {dtype} does not hold its values")
    return converted


def _is_level(name: str) -> bool:
    return _LEVEL.search(name) is not None
