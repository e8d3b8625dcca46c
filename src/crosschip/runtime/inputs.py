"""Inputs for a model from files, or made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import read_array as read_npy

from crosschip.ir import Array, Dim, ElementType, InputError, Model, TensorType
from crosschip.ir.dimension import name_of
from crosschip.ir.types import INTEGERS, NARROW_INTEGERS
from crosschip.ops.definition.quantized import limits
from crosschip.passes.specialize import bind, shapes_and_sizes

_WORDS = ("one", "chip", "runs", "any", "model", "été", "日本")


def read_array(path: Path) -> Array:
    """The array in an `.npy` file.

    Raises:
        InputError: there is no such file, or it does not hold one array of numbers or text.
    """
    try:
        with path.open("rb") as file:
            array = read_npy(file, allow_pickle=False)
    except Exception as error:  # NumPy lets through what Python's tokenizer raises, too
        raise InputError(f"{path}: cannot be read as an .npy file: {error}") from None
    return np.require(array, array.dtype.newbyteorder("="), "C")


def write_array(path: Path, array: Array) -> None:
    """Write an `.npy` file; strings become NumPy's own text, of the width of the longest.

    Raises:
        InputError: it holds something else than numbers or strings.
        OSError: the file cannot be written.
    """
    if array.dtype == object and not all(isinstance(value, str) for value in array.flat):
        raise InputError(
            f"{path}: an .npy file holds no sequence, map or optional value; run the model from "
            f"Python to get it"
        )
    np.save(path, array.astype(str) if array.dtype == object else array, allow_pickle=False)


def random_inputs(
    model: Model, shapes: Mapping[str, Sequence[int]], seed: int = 0
) -> dict[str, Array]:
    """Seeded random elements for every input of a model.

    Floats are in [0, 1), integers in [0, 10), strings are short words.

    Args:
        model: whose inputs to fill.
        shapes: shapes for inputs that leave sizes open, and so for inputs that share these sizes;
            an open first size is 1 if not given.
        seed: the same seed makes the same elements.

    Raises:
        InputError: there is no such input, a shape does not fit, an input leaves a size open or is
            no tensor, or memory does not do.
    """
    generator = np.random.default_rng(seed)
    types = {name: operand.type for name, operand in model.inputs.items()}
    given, named = shapes_and_sizes(types, shapes)
    sizes = bind(types, given, named)
    for name, type_ in types.items():
        if type_.element_type is ElementType.OBJECT:
            raise InputError(
                f"input {name!r} is a sequence, map or optional value, which cannot be made up; "
                f"run the model from Python, with a list, dict or None for it"
            )
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
        elif type_.element_type is ElementType.STRING:
            array = np.array(_WORDS)[generator.integers(0, len(_WORDS), shape)]
        else:
            array = generator.random(shape, np.float32)
        return np.asarray(array).astype(type_.element_type.dtype)
    except (ValueError, MemoryError) as error:
        raise InputError(f"input {name!r} of shape {list(shape)}: {error}") from None
