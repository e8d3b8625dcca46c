"""Reading of files as inputs of a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from crosschip.ir import Array, Builder, InputError, TensorType
from crosschip.preprocessing import Preprocess, is_picture, read_picture, takes_pictures
from crosschip.runtime.compile.front_door import compile
from crosschip.runtime.inputs import read_array

Read = Callable[[str], Array]
"""A function that reads a file as an array; it raises InputError if the file is none."""


def reader(
    name: str, type_: TensorType, preprocess: Preprocess | None, devices: Sequence[str]
) -> Read:
    """Return the function that reads files for an input.

    Args:
        name: the name of the input.
        type_: the type of the input.
        preprocess: what happens to pictures. It is compiled as a model of its own and run by the
            threads that read, since pictures of different sizes can share a run only afterwards.
        devices: the devices that it is compiled for.

    Raises:
        InputError: the input does not take preprocessed pictures.
    """
    if preprocess is None:
        return lambda path: _read(path, name, type_)
    builder = Builder("preprocess")
    shape = None if type_.shape is None else (1, *type_.shape[1:])
    operand = builder.input(name, TensorType(type_.element_type, shape))
    builder.output("result", operand)
    compiled = compile(preprocess.attach(builder.build()), devices, threads=1)

    def read(path: str) -> Array:
        picture = read_picture(path) if is_picture(Path(path)) else read_array(Path(path))
        return next(iter(compiled.run({name: picture[None]}).values()))  # type: ignore[no-any-return]

    return read


def _read(path: str, name: str, type_: TensorType) -> Array:
    if not is_picture(Path(path)):
        return read_array(Path(path))
    if not takes_pictures(type_):
        raise InputError(
            f"input {name!r} is {type_}, which takes no pictures; say how {path} becomes that, "
            f"with --mean and --scale, or in Python crosschip.Preprocess"
        )
    return read_picture(path)
