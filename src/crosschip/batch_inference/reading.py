"""Reading of files as inputs of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from crosschip.ir import Array, Builder, InputError, TensorType
from crosschip.preprocessing import Preprocess, is_picture, read_picture, takes_pictures
from crosschip.preprocessing.pictures import require_pillow
from crosschip.runtime.compile.front_door import compile
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.inputs import read_array


class Reader:
    """Reads files for an input of a model.

    Args:
        name: the name of the input.
        type_: the type of the input.
        preprocess: what happens to pictures. It is compiled as a model of its own and run by the
            threads that read, since pictures of different sizes can share a run only afterwards.
        devices: the devices that it is compiled for; what they lack runs on `reference`.

    Raises:
        InputError: the input does not take preprocessed pictures.
    """

    def __init__(
        self, name: str, type_: TensorType, preprocess: Preprocess | None, devices: Sequence[str]
    ) -> None:
        self._name = name
        self._type = type_
        self._preprocess: CompiledModel | None = None
        if preprocess is not None:
            builder = Builder("preprocess")
            shape = None if type_.shape is None else (1, *type_.shape[1:])
            builder.output("result", builder.input(name, TensorType(type_.element_type, shape)))
            model = preprocess.attach(builder.build())
            names = dict.fromkeys((*devices, "reference"))
            self._preprocess = compile(model, [*names], threads=1, cache=False)

    def check(self, paths: Iterable[str]) -> None:
        """Raise InputError if there are pictures, but no Pillow, or the input takes none."""
        picture = next((path for path in paths if is_picture(Path(path))), None)
        if picture is None:
            return
        require_pillow(picture)
        if self._preprocess is None and not takes_pictures(self._type):
            raise InputError(
                f"input {self._name!r} is {self._type}, which takes no pictures; say how "
                f"{picture} becomes that: with --resize, --mean and --scale, in Python with "
                f"crosschip.Preprocess"
            )

    def read(self, path: str) -> Array:
        """Read a file as an array for the input, with or without the batch axis.

        Raises:
            InputError: it cannot be read, or is no picture that can be preprocessed.
        """
        array = read_picture(path) if is_picture(Path(path)) else read_array(Path(path))
        if self._preprocess is None:
            return array
        (result,) = self._preprocess.run({self._name: array[None]}).values()
        return result  # type: ignore[no-any-return]
