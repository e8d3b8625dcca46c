"""Importer of Paddle models, of Paddle 1 and 2 (ProgramDesc) and of Paddle 3 (PIR).

It takes `NAME.pdmodel` or `NAME.json` with `NAME.pdiparams` beside it, `__model__` with
`__params__` or with one file a parameter, and a folder that holds one of these. Step by step:
`files` finds the files, `paddle2` or `paddle3` reads the program into one form (`program`),
`parameters` finds the parameters in theirs, and `graph` calls the function that each operator has
in `operators`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crosschip.importers.paddle import files
from crosschip.ir import Model, ModelError, ModelFileError, UnsupportedError
from crosschip.ir.files import open_regular


def recognizes(path: Path) -> bool:
    """Whether the file is a Paddle program, or the folder holds one.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    return bool(files.programs(path))


def load(path: Path) -> Model:
    """Import a model; its large parameters stay in their file until they are needed.

    Inputs have Paddle's names. Outputs have the names of the variables that are fetched (Paddle 2)
    or the fetch names (Paddle 3). A size that Paddle leaves open becomes a symbol.

    Raises:
        ModelFileError: a file is missing or damaged, or the two do not belong together.
        UnsupportedError: the model uses operators or variants that cannot be expressed.
    """
    from crosschip.importers.paddle import graph, paddle2, paddle3, parameters

    found = files.find(path)
    reader = paddle3 if found.is_pir else paddle2
    with _in_file(found.program):
        program = reader.read(_content(found.program))
    graph.check(found.program, program)
    values = parameters.read(found.parameters, program.parameters)
    with _in_file(found.program):
        return graph.build(found.name, program, values)


@contextmanager
def _in_file(path: Path) -> Iterator[None]:
    """Name the file in errors; a broken rule is the file's fault."""
    try:
        yield
    except ModelError as error:
        advice = "the file is damaged or of another version of Paddle; copy or export it again"
        raise ModelFileError(f"{path}: {error}; {advice}") from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{path}: {error}") from None


def _content(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
