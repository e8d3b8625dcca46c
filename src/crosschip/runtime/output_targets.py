"""Targets of outputs: arrays and buffers of the caller that outputs are written into."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from crosschip.hal import Buffer, HostBuffer
from crosschip.ir import Array, InputError, Operand
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import PYTHONS_TYPES
from crosschip.runtime.copies import Copied, Copies

Target = Array | Buffer


def check_targets(
    declared: Mapping[str, Operand], targets: Mapping[str, Target] | None, keep: Collection[str]
) -> Mapping[str, Target]:
    """Check, before a run, that outputs can be written into their targets.

    Args:
        declared: the model's outputs.
        targets: the caller's targets by the names of outputs, if any.
        keep: the names of outputs that are to stay on their devices.

    Returns:
        The targets; an empty mapping if there are none.

    Raises:
        InputError: there is no such output, or it does not fit its target.
    """
    if targets is None:
        targets = {}
    if not isinstance(targets, Mapping):
        raise InputError(f"outputs is {targets!r}, but must be arrays or buffers by name")
    if isinstance(keep, str) or not isinstance(keep, Collection):
        raise InputError(f"keep is {keep!r}, but must be a list of names of outputs")
    for name in (*targets, *keep):
        if name not in declared:
            names = ", ".join(declared)
            near = did_you_mean(name, declared)
            raise InputError(f"the model has no output {name!r}{near}; its outputs are {names}")
        if declared[name].type.element_type in PYTHONS_TYPES:
            raise InputError(
                f"output {name!r} is of {declared[name].type.element_type}, which no "
                f"device's memory holds; leave it out of outputs and keep"
            )
    for name, target in targets.items():
        _check(name, declared[name], target)
    return targets


def holds_buffers(inputs: Mapping[str, Any]) -> bool:
    """Return whether an input is a buffer."""
    return any(isinstance(value, Buffer) for value in inputs.values())


def _check(name: str, declared: Operand, target: object) -> None:
    type_ = declared.type
    if not isinstance(target, np.ndarray | Buffer):
        raise InputError(
            f"output {name!r} cannot be written into an object of type {type(target).__name__}; "
            f"give an array of NumPy's, or a buffer of allocate({name!r}, …), for {type_}"
        )
    if isinstance(target, np.ndarray) and not target.flags.writeable:
        raise InputError(
            f"output {name!r} cannot be written into a read-only array; give one that is writable, "
            f"such as a copy of it"
        )
    fits = type_.shape is None or (
        len(type_.shape) == len(target.shape)
        and all(
            not isinstance(size, int) or size == actual
            for size, actual in zip(type_.shape, target.shape, strict=True)
        )
    )
    if not fits or _dtype(target) != type_.element_type.dtype:
        raise _mismatch(name, str(type_), target)


def write_output(
    name: str, value: Target, target: Target | None, copies: Copies, *, is_kept: bool
) -> Array | Buffer:
    """Write an output into its target, or return it as an array or buffer.

    Args:
        name: the name of the output.
        value: the output that the program returned.
        target: the array or buffer to write to; `None` for none.
        copies: counts the copy, if one is needed.
        is_kept: whether it stays on its device.

    Raises:
        InputError: the target has another shape.
    """
    if target is value:
        return target
    if target is None and is_kept:
        return value if isinstance(value, Buffer) else HostBuffer(value)
    if isinstance(value, Buffer):
        array = value.array()
        if value.device is not None:
            copies.add(Copied.OUTPUT, array)
    else:
        array = value
    if target is None:
        return array
    if target.shape != array.shape or _dtype(target) != array.dtype:
        raise _mismatch(name, f"{array.dtype}{list(array.shape)}", target)
    if isinstance(target, Buffer):
        target.write(array)
    else:
        np.copyto(target, array)
    copies.add(Copied.OUTPUT, array)
    return target


def _mismatch(name: str, result: str, target: Target) -> InputError:
    declared = f"{_dtype(target)}{list(target.shape)}"
    return InputError(
        f"output {name!r} is {result}, which does not fit the {declared} that it is to be written "
        f"into; give an array of its type and shape, or none"
    )


def _dtype(target: Target) -> np.dtype[Any]:
    return target.element_type.dtype if isinstance(target, Buffer) else target.dtype
