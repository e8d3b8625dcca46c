"""Inputs of a model: read from files, or random."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import read_array as read_npy

from crosschip.hal import Sizes
from crosschip.ir import Array, Dim, ElementType, InputError, Model, TensorType
from crosschip.ir.dimension import name_of
from crosschip.ir.files import open_regular
from crosschip.ir.shape_binding import bind, shapes_and_sizes
from crosschip.ir.types import BOOLEANS, INTEGERS, NARROW_INTEGERS
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.shapes.formatting import as_argument, as_options, shortest
from crosschip.runtime.shapes.shape_search import ShapeSearch

_WORDS = ("one", "chip", "runs", "any", "model", "été", "日本")

_OF_ZERO_AND_ONE = INTEGERS | NARROW_INTEGERS | BOOLEANS


def read_array(path: Path) -> Array:
    """Read the array of an `.npy` file.

    Raises:
        InputError: there is no such file, or it does not hold one array of numbers or text.
    """
    try:
        with BufferedReader(open_regular(path)) as file:
            array = read_npy(file, allow_pickle=False)
    except Exception as error:  # NumPy also passes on exceptions of Python's tokenizer
        raise InputError(f"{path}: cannot be read as an .npy file: {error}") from None
    return np.require(array, array.dtype.newbyteorder("="), "C")


def write_value(path: Path, value: Any) -> Path:
    """Write an output of a model to a file with a name and the suffix of its kind.

    A tensor becomes an `.npy` file; strings become NumPy's text of fixed width. A sequence, map or
    optional value becomes a `.json` file, in which tensors are nested lists, keys are text, and
    numbers that are not finite are `"NaN"`, `"Infinity"` or `"-Infinity"`.

    Returns:
        The path of the file.

    Raises:
        InputError: the file cannot be written.
    """
    if isinstance(value, np.ndarray):
        path = path.with_name(f"{path.name}.npy")
        content = BytesIO()
        np.save(content, value.astype(str) if value.dtype == object else value, allow_pickle=False)
        write_user_file(path, [content.getbuffer()])
    else:
        path = path.with_name(f"{path.name}.json")
        write_user_file(path, [json.dumps(plain_value(value), allow_nan=False).encode("ascii")])
    return path


def plain_value(value: Any) -> Any:
    """Return an output as a JSON value; numbers that are not finite are texts, as `NaN`."""
    if isinstance(value, np.ndarray | np.generic):
        return plain_value(value.tolist())
    if isinstance(value, list):
        return [plain_value(element) for element in value]
    if isinstance(value, dict):
        return {str(plain_value(key)): plain_value(element) for key, element in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def random_inputs(
    model: Model, shapes: Mapping[str, Sequence[int | None] | int], seed: int = 0
) -> dict[str, Array]:
    """Draw random elements for each input of a model.

    Floats are in [0, 1). Integers are 0 or 1: valid indices into tables of two, and masks. Strings
    are short words.

    Args:
        model: the model.
        shapes: the shapes of inputs with dynamic sizes, which also fix equal sizes of other inputs,
            or single sizes by their names; a dynamic first size is 1 by default.
        seed: the seed; equal seeds give equal elements.

    Raises:
        InputError: there is no such input, a shape does not match, a size is unknown, an input is
            no tensor, or there is not enough memory.
    """
    generator = np.random.default_rng(seed)
    types = {name: operand.type for name, operand in model.inputs.items()}
    fixed, named = shapes_and_sizes(types, shapes)
    sizes = bind(types, fixed, named)
    for name, type_ in types.items():
        if type_.element_type is ElementType.OBJECT:
            raise InputError(
                f"input {name!r} is a sequence, map or optional value, which cannot be made up; "
                f"run the model from Python, with a list, dict or None for it"
            )
    firsts = {name_of(type_.shape[0]) for type_ in types.values() if type_.shape} - {None}
    all_sizes = {**dict.fromkeys(filter(None, firsts), 1), **sizes}
    shapes_by_name = {
        name: type_.substitute(all_sizes).static_shape for name, type_ in types.items()
    } | fixed
    static_shapes = {name: shape for name, shape in shapes_by_name.items() if shape is not None}
    if len(static_shapes) < len(types):
        raise _open_sizes_error(
            model, fixed, sizes, [name for name in types if name not in static_shapes]
        )
    return {name: _random(name, types[name], static_shapes[name], generator) for name in types}


def check_static(model: Model) -> None:
    """Check that the shapes of all inputs are known.

    Raises:
        InputError: sizes are open; the message has shapes with which the model runs.
    """
    open_inputs = [n for n, each in model.inputs.items() if each.type.static_shape is None]
    if open_inputs:
        raise _open_sizes_error(model, {}, {}, open_inputs)


def _open_sizes_error(
    model: Model,
    fixed: Mapping[str, tuple[int, ...]],
    sizes: Mapping[str, Dim],
    inputs: Sequence[str],
) -> InputError:
    """Return the error about inputs with unknown sizes, with sizes at which the model runs.

    Args:
        model: the model.
        fixed: the known shapes of inputs, by name.
        sizes: the known sizes, by name.
        inputs: the names of the inputs concerned.
    """
    types = {name: operand.type for name, operand in model.inputs.items()}
    listed = " and ".join(f"input {name!r} is {types[name]}" for name in inputs)
    static_sizes = {name: size for name, size in sizes.items() if isinstance(size, int)}
    shapes = ShapeSearch(model, Sizes.of({}, [static_sizes]), fixed).first()
    hint = shortest({name: types[name].substitute(sizes) for name in inputs}, shapes)
    return InputError(
        f"{listed}, which leaves sizes open; say which, as in {as_options(hint)} "
        f"(in Python, {as_argument(hint)})"
    )


def _random(
    name: str, type_: TensorType, shape: tuple[int, ...], generator: np.random.Generator
) -> Array:
    try:
        if type_.element_type in _OF_ZERO_AND_ONE:
            array: Array = generator.integers(0, 2, shape)
        elif type_.element_type is ElementType.STRING:
            array = np.array(_WORDS)[generator.integers(0, len(_WORDS), shape)]
        else:
            array = generator.random(shape, np.float32)
        return np.asarray(array).astype(type_.element_type.dtype)
    except (ValueError, MemoryError) as error:
        raise InputError(f"input {name!r} of shape {list(shape)}: {error}") from None
