"""Inputs for a model from files, or made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import read_array as read_npy

from crosschip.ir import Array, Dim, ElementType, InputError, Model, TensorType
from crosschip.ir.dimension import name_of
from crosschip.ir.types import INTEGERS, NARROW_INTEGERS
from crosschip.ops.quantized import limits
from crosschip.passes.specialize import bind, concrete


def read_array(path: Path) -> Array:
    """The array in an `.npy` file.

    Raises:
        InputError: there is no such file, or it does not hold one array of numbers.
    """
    try:
        with path.open("rb") as file:
            array = read_npy(file, allow_pickle=False)
    except Exception as error:  # NumPy lets through what Python's tokenizer raises, too
        raise InputError(f"{path}: cannot be read as an .npy file: {error}") from None
    return np.require(array, array.dtype.newbyteorder("="), "C")


def random_inputs(
    model: Model, shapes: Mapping[str, Sequence[int]], seed: int = 0
) -> dict[str, Array]:
    """Seeded random numbers for every input of a model.

    Floats are in [0, 1), integers in [0, 10).

    Args:
        model: whose inputs to fill.
        shapes: shapes for inputs that leave sizes open, and so for inputs that share these sizes;
            an open first size is 1 if not given.
        seed: the same seed makes the same numbers.

    Raises:
        InputError: there is no such input, a shape does not fit, an input leaves a size open, or
            memory does not do.
    """
    generator = np.random.default_rng(seed)
    types = {name: operand.type for name, operand in model.inputs.items()}
    given = {name: concrete(name, shape) for name, shape in shapes.items()}
    sizes = bind(types, given)
    for type_ in types.values():
        first = name_of(type_.shape[0]) if type_.shape else None
        if first is not None:
            sizes.setdefault(first, 1)
    return {
        name: _random(
            name, type_, given[name] if name in given else _shape(name, type_, sizes), generator
        )
        for name, type_ in types.items()
    }


def _shape(name: str, type_: TensorType, sizes: Mapping[str, Dim]) -> tuple[int, ...]:
    shape = type_.substitute(sizes).static_shape
    if shape is None:
        raise InputError(
            f"input {name!r} is {type_}, which leaves sizes open; "
            f"say which, as in --shape {name}=1x3x48x320"
        )
    return shape


def _random(
    name: str, type_: TensorType, shape: tuple[int, ...], generator: np.random.Generator
) -> Array:
    try:
        if type_.element_type in INTEGERS | NARROW_INTEGERS:
            array: Array = generator.integers(0, min(10, limits(type_.element_type)[1] + 1), shape)
        elif type_.element_type is ElementType.BOOL:
            array = generator.integers(0, 2, shape)
        else:
            array = generator.random(shape, np.float32)
        return array.astype(type_.element_type.dtype)
    except (ValueError, MemoryError) as error:
        raise InputError(f"input {name!r} of shape {list(shape)}: {error}") from None
