"""Writing a model as a C program: source file and file of constant elements."""

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
    """The files of a generated program.

    Attributes:
        source: the C source.
        weights: the elements of the constants.
    """

    source: Path
    weights: Path


class Weights:
    """Layout of the constants in the weights file.

    Args:
        values: the elements of each operand; `None` for an operand that is no constant.

    Attributes:
        offsets: the byte offset of each operand's elements; meaningless for one that is no
            constant.
        size: the number of bytes of the file.
    """

    def __init__(self, values: Sequence[Array | None]) -> None:
        self._values = values
        self.offsets: list[int] = []
        self.size = 0
        for value in values:
            self.offsets.append(-(-self.size // _ALIGNMENT) * _ALIGNMENT)
            if value is not None:
                self.size = self.offsets[-1] + value.nbytes

    def write(self, path: Path) -> None:
        """Write the file.

        Raises:
            InputError: the file cannot be written.
        """
        write_user_file(path, self._parts())

    def _parts(self) -> Iterator[bytes]:
        """Yield the file's content, padded between constants."""
        end = 0
        for value, offset in zip(self._values, self.offsets, strict=True):
            if value is not None:
                yield bytes(offset - end)
                yield np.ascontiguousarray(value).tobytes()
                end = offset + value.nbytes


def write(folder: Path, name: str, template: Path, part: str, weights: Weights) -> Written:
    """Write a program's source and weights.

    Args:
        folder: an existing folder.
        name: the program's name; the files are `name.c` and `name.weights`.
        template: the C template, with `@NAME@` and `@MODEL@` for the name and the model's part.
        part: the code that is specific to the model.
        weights: the constants' elements.
    """
    files = Written(folder / f"{name}.c", folder / f"{name}.weights")
    weights.write(files.weights)
    text = template.read_text("utf-8").replace("@NAME@", name).replace("@MODEL@", part)
    write_user_file(files.source, [text.encode()])
    return files


def statement(text: str) -> Sequence[str]:
    """Return a statement wrapped into lines of at most 100 characters."""
    wrapper = textwrap.TextWrapper(100, "    ", " " * 8)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text)
