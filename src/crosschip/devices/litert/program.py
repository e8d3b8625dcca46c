"""Compiled models: LiteRT interpreters of a file, running, saving and loading."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import ai_edge_litert
import numpy as np
from ai_edge_litert.interpreter import Interpreter

from crosschip.hal import Options, Program
from crosschip.hal.options import processor_cores
from crosschip.ir import Array, DeviceError, Model, TensorType

VERSION: str = ai_edge_litert.__version__

ERRORS = (RuntimeError, ValueError, TypeError)


class LitertProgram(Program):
    """A pool of interpreters, one per concurrent run.

    Args:
        content: the file, which is also what is saved.
        model: the source model, of static shapes.
        options: the options of the compilation.

    Raises:
        DeviceError: LiteRT does not accept the file, or it is of another model.
    """

    def __init__(self, content: bytes, model: Model, options: Options) -> None:
        self._content = content
        self._inputs = [operand.type for operand in model.inputs.values()]
        self._outputs = [operand.type for operand in model.outputs.values()]
        self._threads = options.threads_each or processor_cores()
        self._idle = [self._runner()]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return self.run_into(inputs, ())

    def run_into(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> Sequence[Array]:
        try:
            runner = self._idle.pop()
        except IndexError:
            runner = self._runner()
        try:
            outputs = runner.run(inputs, places)
        except ERRORS as error:
            raise failure("failed while running", error) from error
        self._idle.append(runner)
        return outputs

    def save(self) -> bytes:
        return self._content

    def close(self) -> None:
        vars(self).clear()

    def _runner(self) -> _Runner:
        try:
            return _Runner(self._content, self._threads, self._inputs, self._outputs)
        except ERRORS as error:
            raise failure("cannot run this file", error) from error


class _Runner:
    """An interpreter, for one run at a time.

    Tensors without elements are neither set nor read, for which LiteRT has no memory.

    Args:
        content: the file.
        threads: the number of threads of a run.
        inputs: the types of the inputs.
        outputs: the types of the outputs.

    Raises:
        RuntimeError, ValueError: LiteRT does not accept the file, or it has other inputs or
            outputs.
    """

    def __init__(
        self,
        content: bytes,
        threads: int,
        inputs: Sequence[TensorType],
        outputs: Sequence[TensorType],
    ) -> None:
        interpreter = Interpreter(model_content=content, num_threads=threads)
        interpreter.allocate_tensors()
        self._set, self._get = interpreter.set_tensor, interpreter.get_tensor
        self._view, self._invoke = interpreter.tensor, interpreter.invoke
        self._inputs = _indices(interpreter.get_input_details(), inputs)
        self._outputs = _indices(interpreter.get_output_details(), outputs)
        self._is_plain = None not in self._inputs and None not in self._outputs
        self._output_types = outputs

    def run(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> list[Array]:
        """Run the file, and return the outputs, in the caller's arrays where there are any."""
        for index, array in zip(self._inputs, inputs, strict=True):
            if index is not None:
                self._set(index, array)
        self._invoke()
        if not places and self._is_plain:
            # A tensor without axes is returned as a scalar.
            return [np.asarray(self._get(index)) for index in self._outputs]
        each = zip_longest(self._outputs, self._output_types, places)
        return [self._output(index, type_, place) for index, type_, place in each]

    def _output(self, index: int | None, type_: TensorType, place: Array | None) -> Array:
        if index is None:
            return np.empty(type_.static_shape or (), type_.element_type.dtype)
        if place is None:
            return np.asarray(self._get(index))
        np.copyto(place, self._view(index)())
        return place


def _indices(details: Sequence[Any], types: Sequence[TensorType]) -> list[int | None]:
    """Return the indices of tensors; `None` for those without elements.

    Raises:
        ValueError: the tensors have other types or shapes.
    """
    indices: list[int | None] = []
    for detail, type_ in zip(details, types, strict=True):
        shape = tuple(detail["shape"].tolist())
        if shape != type_.static_shape or np.dtype(detail["dtype"]) != type_.element_type.dtype:
            name = np.dtype(detail["dtype"]).name
            raise ValueError(f"{detail['name']} is {name}{list(shape)}, not {type_}")
        indices.append(None if 0 in shape else detail["index"])
    return indices


def failure(what: str, error: Exception) -> DeviceError:
    """Return an error that says what failed, with the first line of LiteRT's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return DeviceError(f"litert {what}: {lines[0] if lines else type(error).__name__}")
