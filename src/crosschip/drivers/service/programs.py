"""A client's programs, as the service has them: what comes for them is checked here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from math import prod
from typing import Any

import numpy as np

from crosschip.drivers.protocol.channel import ProtocolError
from crosschip.drivers.service.sharing import Shared
from crosschip.ir import Array, DeviceError, ElementType, TensorType
from crosschip.ir.types import PYTHONS_TYPES

logger = logging.getLogger("crosschip")

_SMALL = 1 << 16
"""Outputs of at most so many bytes are copied to where they belong."""


class Prepared:
    """A program of a client's, let go when it is discarded and nobody is at it any more.

    Args:
        shared: the program, which others may have, too.
        held: what the client has because of it, its part in the program too; closed with it.

    Attributes:
        inputs: the types of what it reads.
        outputs: of what it makes.
        output_nbytes: the size in bytes of each output that the program writes into the caller's
            memory; `None` for outputs of open sizes, and for small ones, of which a copy costs less
            than binding the memory.
        rules: the sentences that outputs behind those are about.
    """

    def __init__(self, shared: Shared, held: ExitStack) -> None:
        self.shared = shared
        self.program = shared.program
        self.inputs = [operand.type for operand in shared.model.inputs.values()]
        self.outputs = [operand.type for operand in shared.model.outputs.values()]
        self.rules = tuple(shared.program.rules)
        self.output_nbytes = [_bytes_of(type_) for type_ in self.outputs]
        self._accepted: object = None
        self._held = held
        self._lock = threading.Lock()
        self._uses = 1

    def enter(self) -> None:
        """Somebody begins to use it."""
        with self._lock:
            self._uses += 1

    def leave(self) -> None:
        """Somebody does not use it any more, or it is discarded."""
        with self._lock:
            self._uses -= 1
            last = not self._uses
        if last:
            self._close()

    def check_shapes(self, shapes: Sequence[tuple[int, ...] | None]) -> None:
        """Make sure that inputs are of the shapes that the model takes.

        Args:
            shapes: of each input; `None` for what is no tensor.

        Raises:
            Broken: they are not.
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
        """Return an input that is no tensor of numbers, once it is known to be of its type.

        Raises:
            Broken: it is not.
        """
        type_ = self.inputs[index]
        if type_.element_type is ElementType.OBJECT:
            return value
        if not (isinstance(value, np.ndarray) and value.dtype == object):
            raise ProtocolError(f"input {index} is no array of text")
        if not _fits(type_, value.shape, {}):
            raise ProtocolError(f"input {index} is {type_}, not of shape {list(value.shape)}")
        return value

    def run(self, inputs: Sequence[Array], places: Sequence[Array | None]) -> list[Any]:
        """Return the outputs, and those of the rules.

        Raises:
            DeviceError: what the program made is not what the model says.
        """
        if any(place is not None for place in places):
            results = list(self.program.run_into(inputs, places))
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
                raise DeviceError(f"returned for output {index} what is no array of {type_}")
            if not value.flags.c_contiguous:
                results[index] = np.ascontiguousarray(value)
        return results

    def _close(self) -> None:
        try:
            self._held.close()
        except Exception:  # foreign code: nobody waits for this any more
            logger.exception("a program could not be closed")


def _bytes_of(type_: TensorType) -> int | None:
    if type_.static_shape is None or type_.element_type in PYTHONS_TYPES:
        return None
    size = prod(type_.static_shape) * type_.element_type.dtype.itemsize
    return size if size > _SMALL else None


def _fits(type_: TensorType, shape: tuple[int, ...], sizes: dict[Any, int]) -> bool:
    """Return whether a tensor's type allows a shape, beside others with the same open sizes."""
    if type_.shape is None:
        return True
    return len(shape) == len(type_.shape) and all(
        size == declared if isinstance(declared, int) else sizes.setdefault(declared, size) == size
        for declared, size in zip(type_.shape, shape, strict=True)
    )
