"""Importer of Paddle models, of Paddle 1 and 2 (ProgramDesc) and of Paddle 3 (PIR).

It imports `NAME.pdmodel` or `NAME.json` with `NAME.pdiparams`, `__model__` with `__params__` or
with one file per parameter, a folder that holds one of these, and Paddle Lite's `.nb` (`lite`).

`files` finds the files, `paddle2` or `paddle3` reads the program into a common form (`program`),
`parameters` reads the parameters, and `graph` calls the import function of each operator, which
`operators` registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from crosschip.importers.paddle import files
from crosschip.ir import Model, ModelError, ModelFileError, UnsupportedError
from crosschip.ir.files import DataFile, Held, Source

_BLOCKS = b"\n"
"""The first byte of a `ProgramDesc`: the tag of the field `blocks`."""


def recognizes(source: Path | bytes) -> bool:
    """Return whether a path is a program or a folder with one, or whether bytes are a program.

    Raises:
        ModelFileError: the folder cannot be read.
    """
    if isinstance(source, bytes):
        is_program = source.startswith(_BLOCKS) or files.contains_pir(source)
        return is_program or files.is_lite_content(source)
    return source.suffix == files.LITE_SUFFIX or bool(files.programs(source))


def load(source: Path | bytes) -> Model:
    """Import a model; large parameters stay in their file until they are needed.

    Inputs have Paddle's names. Outputs have the names of the fetched variables (Paddle 2) or the
    fetch names (Paddle 3). An unknown size becomes a symbol. LoD levels that an operator reads are
    inputs `NAME.lod0`, …; LoD levels that operators compute are outputs.

    Args:
        source: the program, with its parameters in the same folder; a folder with a program; or
            the content of a program without parameters.

    Raises:
        ModelFileError: a file is missing or damaged, or the parameters do not match the program.
        UnsupportedError: the model uses operators or variants that cannot be expressed.
    """
    if isinstance(source, bytes) and not files.is_lite_content(source):
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


def metadata(source: Path | bytes) -> dict[str, str]:
    """Return the format of a model and the version in it.

    Raises:
        ModelFileError: a file is missing or damaged.
    """
    from crosschip.importers.paddle import paddle2

    if isinstance(source, Path) and source.suffix != files.LITE_SUFFIX:
        source = files.find(source).program
    where = str(source) if isinstance(source, Path) else "the model in memory"
    content = _content(source) if isinstance(source, Path) else source
    if files.is_lite_content(content):
        return files.lite_metadata(content)
    with _in_file(where):
        return files.pir_metadata(content) or paddle2.metadata(content)


def load_parts(
    program: Path | bytes,
    parameters: Path | bytes | None,
    shapes: Mapping[str, Sequence[int]] | None = None,
) -> Model:
    """Import a model from a program and its parameters; see `load`.

    Args:
        program: the file, with any name, or its content.
        parameters: the file of all parameters or its content; or the folder with one file per
            parameter; `None` if there are none.
        shapes: shapes of inputs, by name, that replace those in the program; -1 for an unknown
            size.

    Raises:
        ModelFileError, UnsupportedError: as for `load`.
    """
    input_shapes = shapes or {}
    if isinstance(program, bytes):
        return _load("the model in memory", "model", program, parameters, input_shapes)
    return _load(str(program), program.stem, _content(program), parameters, input_shapes)


def load_lite(source: Path | bytes, shapes: Mapping[str, Sequence[int]] | None = None) -> Model:
    """Import a model that Paddle Lite's tools have optimized; see `load`.

    Args:
        source: the `.nb` file, or its content.
        shapes: as for `load_parts`.

    Raises:
        ModelFileError, UnsupportedError: as for `load`.
    """
    from crosschip.importers.paddle import graph, lite

    if isinstance(source, bytes):
        where, name = "the model in memory", "model"
        content: Source = Held(source)
    else:
        where, name, content = str(source), source.stem, _open(source)
    with _in_file(where):
        program, values = lite.read(content)
        program = program.with_input_shapes(shapes or {})
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
        program = (paddle3 if files.contains_pir(content) else paddle2).read(content)
    program = program.with_input_shapes(shapes)
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
    """Add the file's name to errors, and turn `ModelError` into `ModelFileError`."""
    try:
        yield
    except ModelError as error:
        advice = "the file is damaged or of another version of Paddle; copy or export it again"
        raise ModelFileError(f"{where}: {error}; {advice}") from None
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}: {error}") from None


def _content(path: Path) -> bytes:
    file = _open(path)
    try:
        return file.read(0, file.size)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None


def _open(path: Path) -> DataFile:
    try:
        return DataFile(path)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
