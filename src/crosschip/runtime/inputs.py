"""Inputs for a model from files, or made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from crosschip.ir import Array, ElementType, InputError, Model, Operand
from crosschip.ir.types import FLOATS
from crosschip.passes.specialize import bind


def read_array(path: Path) -> Array:
    """The array in an `.npy` file.

    Raises:
        InputError: there is no such file, or it does not hold one array of numbers.
    """
    try:
        return cast(Array, np.load(path, allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: cannot be read as an .npy file: {error}") from None


def random_inputs(
    model: Model, shapes: Mapping[str, Sequence[int]], seed: int = 0
) -> dict[str, Array]:
    """Seeded random numbers for every input of a model.

    Floats are in [0, 1), integers in [0, 10).

    Args:
        model: whose inputs to fill.
        shapes: shapes for inputs that leave sizes open; an open first size is 1 if not given.
        seed: the same seed makes the same numbers.

    Raises:
        InputError: a shape does not fit, or an input leaves a size open.
    """
    generator = np.random.default_rng(seed)
    return {
        name: _random(operand, _shape(name, operand, shapes.get(name)), generator)
        for name, operand in model.inputs.items()
    }


def _shape(name: str, operand: Operand, given: Sequence[int] | None) -> tuple[int, ...]:
    if given is not None:
        bind(operand, given, {})
        return tuple(given)
    shape = operand.type.shape
    if shape is not None:
        sizes = [1 if axis == 0 and not isinstance(s, int) else s for axis, s in enumerate(shape)]
        known = tuple(size for size in sizes if isinstance(size, int))
        if len(known) == len(sizes):
            return known
    raise InputError(
        f"input {name!r} is {operand.type}, which leaves sizes open; "
        f"say which, as in --shape {name}=1x3x48x320"
    )


def _random(operand: Operand, shape: tuple[int, ...], generator: np.random.Generator) -> Array:
    element_type = operand.type.element_type
    if element_type in FLOATS:
        return generator.random(shape, np.float32).astype(element_type.dtype)
    limit = 2 if element_type is ElementType.BOOL else 10
    return generator.integers(0, limit, shape).astype(element_type.dtype)
