"""A client's prepared programs, with validation of its requests."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

import numpy as np

from crosschip.drivers.protocol.channel import ProtocolError
from crosschip.drivers.service.program_cache import SharedProgram
from crosschip.ir import Array, DeviceError, ElementType, TensorType
from crosschip.ir.types import PYTHONS_TYPES

logger = logging.getLogger("crosschip")

_COPY_BYTES = 1 << 16
"""Outputs up to this size are copied to client memory instead of written in place."""


class Prepared:
    """A client's prepared program, released after it is discarded and its last run has ended.

    Args:
        shared: the program, possibly shared with other clients.
        resources: the client's resources for the program, released with it.

    Attributes:
        inputs: the input types.
        outputs: the output types.
        output_nbytes: the size of each output that the program writes to client memory; `None`
            for dynamic shapes, and for small outputs, which are cheaper to copy.
        rules: the messages of the rules whose results follow the outputs.
    """

    def __init__(self, shared: SharedProgram, resources: ExitStack) -> None:
        self.shared = shared
        self.program = shared.program
        self.inputs = [operand.type for operand in shared.model.inputs.values()]
        self.outputs = [operand.type for operand in shared.model.outputs.values()]
        self.rules = tuple(shared.program.rules)
        self.output_nbytes = [_bytes_of(type_) for type_ in self.outputs]
        self._accepted: object = None
        self._resources = resources
        self._lock = threading.Lock()
        self._uses = 1

    def enter(self) -> None:
        """Increment the number of users."""
        with self._lock:
            self._uses += 1

    def leave(self) -> None:
        """Decrement the number of users; release the program at 0."""
        with self._lock:
            self._uses -= 1
            is_last = not self._uses
        if is_last:
            self._close()

    def check_shapes(self, shapes: Sequence[tuple[int, ...] | None]) -> None:
        """Check that the input shapes match the model.

        Args:
            shapes: the input shapes; `None` for a value that is no tensor.

        Raises:
            ProtocolError: they do not.
        """
        if shapes == self._accepted:
            return
        if len(shapes) != len(self.inputs):
            raise ProtocolError(f"{len(shapes)} inputs came where {len(self.inputs)} belong")
        sizes: dict[Any, int] = {}
        for index, (type_, shape) in enumerate(zip(self.inputs, shapes, strict=True)):
            if (shape is None) != (type_.element_type in PYTHONS_TYPES):
                raise ProtocolError(f"input {index} is of {type_.element_type}")
            if shape is not None and not _fits(type_, shape, sizes):
                raise ProtocolError(f"input {index} is {type_}, not of shape {list(shape)}")
        self._accepted = list(shapes)

    def check_value(self, index: int, value: Any) -> Any:
        """Return an input that is no numeric tensor after checking its type.

        Raises:
            ProtocolError: its type does not match the model.
        """
        type_ = self.inputs[index]
        if type_.element_type is ElementType.OBJECT:
            return value
        if not (isinstance(value, np.ndarray) and value.dtype == object):
            raise ProtocolError(f"input {index} is no array of text")
        if not _fits(type_, value.shape, {}):
            raise ProtocolError(f"input {index} is {type_}, not of shape {list(value.shape)}")
        return value

    def run(self, inputs: Sequence[Array], views: Sequence[Array | None]) -> list[Any]:
        """Return the outputs and the results of the rules.

        Raises:
            DeviceError: the outputs do not match the model.
        """
        if any(view is not None for view in views):
            results = list(self.program.run_into(inputs, views))
        else:
            results = list(self.program.run(inputs))
        if len(results) != len(self.outputs) + len(self.rules):
            raise DeviceError(
                f"returned {len(results)} outputs where "
                f"{len(self.outputs) + len(self.rules)} belong"
            )
        for index, type_ in enumerate(self.outputs):
            value = results[index]
            if type_.element_type in PYTHONS_TYPES:
                continue
            if not isinstance(value, np.ndarray) or value.dtype != type_.element_type.dtype:
                raise DeviceError(f"did not return an array of {type_} for output {index}")
            if not value.flags.c_contiguous:
                results[index] = np.ascontiguousarray(value)
        return results

    def _close(self) -> None:
        try:
            self._resources.close()
        except Exception:  # device code may raise anything, and no caller waits
            logger.exception("a program could not be closed")


def _bytes_of(type_: TensorType) -> int | None:
    if type_.static_shape is None or type_.element_type in PYTHONS_TYPES:
        return None
    size = prod(type_.static_shape) * type_.element_type.dtype.itemsize
    return size if size > _COPY_BYTES else None


def _fits(type_: TensorType, shape: tuple[int, ...], sizes: dict[Any, int]) -> bool:
    """Return whether a shape matches a type, given the sizes bound so far."""
    if type_.shape is None:
        return True
    return len(shape) == len(type_.shape) and all(
        size == declared if isinstance(declared, int) else sizes.setdefault(declared, size) == size
        for declared, size in zip(type_.shape, shape, strict=True)
    )
