"""Places of the caller's for outputs: arrays and buffers to write them into."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from crosschip.hal import Buffer, HostBuffer
from crosschip.ir import Array, InputError, Operand
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.runtime.copies import Copied, Copies

Place = Array | Buffer


def check_places(
    declared: Mapping[str, Operand], places: Mapping[str, Place] | None, keep: Collection[str]
) -> Mapping[str, Place]:
    """Refuse, before anything runs, places that no output can be written into.

    Args:
        declared: the model's outputs.
        places: what the caller gave for outputs, by name, if anything.
        keep: the names of outputs that are to stay on their devices.

    Returns:
        The places; none if there is nothing.

    Raises:
        InputError: there is no such output, or it does not fit its place.
    """
    if places is None:
        places = {}
    if not isinstance(places, Mapping):
        raise InputError(f"outputs is {places!r}, but must be arrays or buffers by name")
    if isinstance(keep, str) or not isinstance(keep, Collection):
        raise InputError(f"keep is {keep!r}, but must be a list of names of outputs")
    for name in (*places, *keep):
        if name not in declared:
            known = ", ".join(declared)
            near = did_you_mean(name, declared)
            raise InputError(f"the model has no output {name!r}{near}; its outputs are {known}")
        if declared[name].type.element_type in PYTHONS_TYPES:
            raise InputError(
                f"output {name!r} is of {declared[name].type.element_type}, which no "
                f"device's memory holds; leave it out of outputs and keep"
            )
    for name, place in places.items():
        _check(name, declared[name], place)
    return places


def _check(name: str, declared: Operand, place: object) -> None:
    type_ = declared.type
    if not isinstance(place, np.ndarray | Buffer):
        raise InputError(
            f"output {name!r} cannot be written into an object of type {type(place).__name__}; "
            f"give an array of NumPy's, or a buffer of allocate({name!r}, …), for {type_}"
        )
    if isinstance(place, np.ndarray) and not place.flags.writeable:
        raise InputError(
            f"output {name!r} cannot be written into a read-only array; give one that is writable, "
            f"such as a copy of it"
        )
    fits = type_.shape is None or (
        len(type_.shape) == len(place.shape)
        and all(
            not isinstance(size, int) or size == actual
            for size, actual in zip(type_.shape, place.shape, strict=True)
        )
    )
    if not fits or _dtype(place) != type_.element_type.dtype:
        raise _mismatch(name, str(type_), place)


def placed(
    name: str, value: Place, place: Place | None, copies: Copies, *, is_kept: bool
) -> Array | Buffer:
    """An output where the caller wants it.

    Args:
        name: the output's.
        value: what was made.
        place: where it is to be; `None` if anywhere.
        copies: where it is counted if it has to be copied.
        is_kept: whether it stays on its device.

    Raises:
        InputError: the place has another shape.
    """
    if place is value:
        return place
    if place is None and is_kept:
        return value if isinstance(value, Buffer) else HostBuffer(value)
    if isinstance(value, Buffer):
        array = value.array()
        if value.device is not None:
            copies.add(Copied.OUTPUT, array)
    else:
        array = value
    if place is None:
        return array
    if place.shape != array.shape or _dtype(place) != array.dtype:
        raise _mismatch(name, f"{array.dtype}{list(array.shape)}", place)
    if isinstance(place, Buffer):
        place.write(array)
    else:
        np.copyto(place, array)
    copies.add(Copied.OUTPUT, array)
    return place


def _mismatch(name: str, result: str, place: Place) -> InputError:
    target = f"{_dtype(place)}{list(place.shape)}"
    return InputError(
        f"output {name!r} is {result}, which does not fit the {target} that it is to be written "
        f"into; give an array of its type and shape, or none"
    )


def _dtype(place: Place) -> np.dtype[Any]:
    return place.element_type.dtype if isinstance(place, Buffer) else place.dtype
