"""Importer of Paddle models, of Paddle 1 and 2 (ProgramDesc) and of Paddle 3 (PIR).

It takes `NAME.pdmodel` or `NAME.json` with `NAME.pdiparams` beside it, `__model__` with
`__params__` or with one file a parameter, and a folder that holds one of these; and Paddle Lite's
`.nb`, which `lite` reads. Step by step:
`files` finds the files, `paddle2` or `paddle3` reads the program into one form (`program`),
`parameters` finds the parameters in theirs, and `graph` calls the function that each operator has
in `operators`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from crosschip.importers.paddle import files
from crosschip.ir import Model, ModelError, ModelFileError, UnsupportedError
from crosschip.ir.files import DataFile, Held, Source

_BLOCKS = b"\n"
"""The first bytes of a `ProgramDesc`: it begins with its blocks."""


def recognizes(source: Path | bytes) -> bool:
    """Tell whether it is the path of a program or of a folder with one, or a program's content.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    if isinstance(source, bytes):
        is_program = source.startswith(_BLOCKS) or files.says_pir(source)
        return is_program or files.says_lite(source)
    return source.suffix == files.LITE_SUFFIX or bool(files.programs(source))


def load(source: Path | bytes) -> Model:
    """Import a model; its large parameters stay in their file until they are needed.

    Inputs have Paddle's names. Outputs have the names of the variables that are fetched (Paddle 2)
    or the fetch names (Paddle 3). A size that Paddle leaves open becomes a symbol. Levels of
    sequences (LoD) that something reads are inputs `NAME.lod0`, …, those that are made outputs.

    Args:
        source: the program, beside which its parameters are; a folder with one; or the content of
            a program that has no parameters.

    Raises:
        ModelFileError: a file is missing or damaged, or the two do not belong together.
        UnsupportedError: the model uses operators or variants that cannot be expressed.
    """
    if isinstance(source, bytes) and not files.says_lite(source):
        return load_parts(source, None)
    if isinstance(source, bytes) or source.suffix == files.LITE_SUFFIX:
        return load_lite(source)
    model_files = files.find(source)
    return _load(
        str(model_files.program),
        model_files.name,
        _content(model_files.program),
        model_files.parameters,
        {},
    )


def load_parts(
    program: Path | bytes,
    parameters: Path | bytes | None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Model:
    """Import a model whose program and parameters are told each by itself, as `load` does.

    Args:
        program: the file, of whatever name, or its content.
        parameters: the file that holds all of them or the folder with a file for each; the content
            of the one file; `None` if there are none.
        shapes: the sizes of inputs, by name, where they are others than the program says; -1 for
            one that is open.

    Raises:
        ModelFileError, UnsupportedError: as for `load`.
    """
    input_shapes = shapes or {}
    if isinstance(program, bytes):
        return _load("the model in memory", "model", program, parameters, input_shapes)
    return _load(str(program), program.stem, _content(program), parameters, input_shapes)


def load_lite(source: Path | bytes, shapes: Mapping[str, Sequence[int]] | None = None) -> Model:
    """Import a model that Paddle Lite's tools have optimised, as `load` does.

    Args:
        source: the file `.nb`, or its content.
        shapes: as for `load_parts`.

    Raises:
        ModelFileError, UnsupportedError: as for `load`.
    """
    from crosschip.importers.paddle import graph, lite

    if isinstance(source, bytes):
        where, name = "the model in memory", "model"
        content: Source = Held(source)
    else:
        where, name, content = str(source), source.stem, _opened(source)
    with _in_file(where):
        program, values = lite.read(content)
        program = program.reshaped(shapes or {})
    graph.check(where, program)
    with _in_file(where):
        return graph.build(name, program, values)


def _load(
    where: str,
    name: str,
    content: bytes,
    parameters: Path | bytes | None,
    shapes: Mapping[str, Sequence[int]],
) -> Model:
    from crosschip.importers.paddle import graph, paddle2, paddle3
    from crosschip.importers.paddle.parameters import read

    with _in_file(where):
        program = (paddle3 if files.says_pir(content) else paddle2).read(content)
    program = program.reshaped(shapes)
    graph.check(where, program)
    if parameters is None and program.parameters:
        raise ModelFileError(
            f"{where}: has {len(program.parameters)} parameters, which are in another file; "
            f"give the path of the program"
        )
    values = {} if parameters is None else read(parameters, program)
    with _in_file(where):
        return graph.build(name, program, values)


@contextmanager
def _in_file(where: str) -> Iterator[None]:
    """Name the file in errors; a broken rule is the file's fault."""
    try:
        yield
    except ModelError as error:
        advice = "the file is damaged or of another version of Paddle; copy or export it again"
        raise ModelFileError(f"{where}: {error}; {advice}") from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}: {error}") from None


def _content(path: Path) -> bytes:
    file = _opened(path)
    try:
        return file.read(0, file.size)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def _opened(path: Path) -> DataFile:
    try:
        return DataFile(path)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
