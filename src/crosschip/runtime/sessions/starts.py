"""The values that a session begins with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.ir import Array, Dim, Dimension, InputError, Operand
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import TensorType
from crosschip.runtime.arrays import as_array


def checked_start(operands: Mapping[str, Operand], start: object) -> dict[str, Array]:
    """What a caller gives to begin with, as arrays by the names of inputs.

    Args:
        operands: the inputs that a session keeps, by name.
        start: arrays for some or all of them, by name; `None` for none.

    Raises:
        InputError: there is no such input among them, or it does not take its array.
    """
    if start is None:
        return {}
    if not isinstance(start, Mapping):
        raise InputError(f"start is {start!r}, but must be arrays by the names of inputs")
    arrays: dict[str, Array] = {}
    for name, value in start.items():
        if name not in operands:
            known = ", ".join(operands)
            near = did_you_mean(str(name), operands)
            raise InputError(f"the session does not keep an input {name!r}{near}; it keeps {known}")
        type_ = operands[name].type
        try:
            array = as_array(value, type_)
        except InputError as error:
            raise InputError(f"start of {name!r} {error}") from error.__cause__
        if not type_.admits(array):
            raise InputError(
                f"start of {name!r} has shape {list(array.shape)}, but the model takes {type_}"
            )
        arrays[name] = array
    return arrays


def empty_start(name: str, type_: TensorType, sizes: Mapping[str, Dim]) -> Array:
    """What a kept input begins with if nobody says: zeros, or nothing along sizes that grow.

    Args:
        name: the input's.
        type_: its type.
        sizes: the named sizes that the other inputs show. Any other is of the past, and is 0.

    Raises:
        InputError: a size has no name, or is one that is not known.
    """
    if type_.shape is None:
        raise InputError(f"nothing is known of the shape of {name!r}; say with start what is first")
    shape = tuple(_size(name, type_, size, sizes) for size in type_.shape)
    return np.zeros(shape, type_.element_type.dtype)


def _size(name: str, type_: TensorType, size: Dim, sizes: Mapping[str, Dim]) -> int:
    if not isinstance(size, Dimension):
        return size
    known = None if size.name is None else sizes.get(size.name, 0)
    if not isinstance(known, int) or size.name is None or size.name.startswith("?"):
        raise InputError(
            f"what {name!r} begins with is not known, which is {type_}: size {size} has no name of "
            f"its own; say it with start={{{name!r}: …}}"
        )
    return known
