"""Programs in C that models are written out as: the files, and the elements of constants in one."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crosschip.ir import Array
from crosschip.runtime.artifact.atomic_files import write_user_file

_ALIGNMENT = 64


class Written(NamedTuple):
    """The files of a program.

    Attributes:
        source: the program in C.
        weights: the elements of its constants.
    """

    source: Path
    weights: Path


class Weights:
    """Where the elements of constants are in their file.

    Args:
        values: the elements of each operand; `None` for one that is no constant.

    Attributes:
        places: the place of each; that of none says nothing.
        size: how many bytes the file has.
    """

    def __init__(self, values: Sequence[Array | None]) -> None:
        self._values = values
        self.places: list[int] = []
        self.size = 0
        for value in values:
            self.places.append(-(-self.size // _ALIGNMENT) * _ALIGNMENT)
            if value is not None:
                self.size = self.places[-1] + value.nbytes

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            InputError: it cannot be written there.
        """
        write_user_file(path, self._parts())

    def _parts(self) -> Iterator[bytes]:
        """Yield the content of the file, in order."""
        end = 0
        for value, place in zip(self._values, self.places, strict=True):
            if value is not None:
                yield bytes(place - end)
                yield np.ascontiguousarray(value).tobytes()
                end = place + value.nbytes


def write(folder: Path, name: str, template: Path, part: str, weights: Weights) -> Written:
    """Write the files of a program.

    Args:
        folder: where; there is one already.
        name: the name of the program; the files are `name.c` and `name.weights`.
        template: the program, with `@NAME@` and `@MODEL@` for the name and the part.
        part: what is this model's.
        weights: the elements of its constants.
    """
    written = Written(folder / f"{name}.c", folder / f"{name}.weights")
    weights.write(written.weights)
    text = template.read_text("utf-8").replace("@NAME@", name).replace("@MODEL@", part)
    write_user_file(written.source, [text.encode()])
    return written


def statement(text: str) -> Sequence[str]:
    """The lines of a statement."""
    wrapper = textwrap.TextWrapper(100, "    ", " " * 8)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text)
