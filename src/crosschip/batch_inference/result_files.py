"""Result files of a batch job: a line of JSON for each file, and arrays.

`results.jsonl` has a line for each file, in order, which is written after the file's arrays. So its
complete lines say what is done, and whatever else there is, is removed when a job goes on.
"""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from io import BufferedReader, BytesIO, FileIO
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

import msgspec
import numpy as np
from numpy.lib import format as npy

from crosschip.batch_inference.batching import Outputs
from crosschip.ir import Array, InputError
from crosschip.ir.closing import Closing
from crosschip.ir.files import open_regular
from crosschip.runtime.artifact.atomic_files import lock
from crosschip.runtime.inputs import plain_value

Format = Literal["jsonl", "npy", "npz"]

RESULTS = "results.jsonl"
ARRAYS = "arrays"
"""The folder of `.npz` files."""

_MOST_CHARACTERS = 50  # of a name in a file name: no file system takes names of any length

_ERROR = b',"error":'


class ResultLog(Closing):
    """The file `results.jsonl`, which grows by lines; locked, so that one process writes it.

    Args:
        folder: the folder of the file.

    Attributes:
        count: the number of lines.
        errors: the errors in lines, in order.

    Raises:
        InputError: another process writes it.
        OSError: it cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self.count = 0
        self.errors: list[str] = []
        self._path = folder / RESULTS
        self._file = open_growing(self._path)
        self._ends = [0]
        self._bad: list[int] = []
        if lock(self._file.fileno()) is False:
            self._file.close()
            raise InputError(f"{folder}: another process writes its results there")

    def read(self, paths: Sequence[str]) -> int:
        """Read the complete lines; return how many there are.

        Args:
            paths: the files of the job.

        Raises:
            InputError: a line is not that of its file.
        """
        with open(self._file.fileno(), "rb", closefd=False) as lines:
            for index, line in enumerate(lines):
                if not line.endswith(b"\n"):
                    break
                start = _line_start(paths[index]) if index < len(paths) else None
                if start is None or not line.startswith(start):
                    raise InputError(
                        f"{self._path}: line {index + 1} is of another job, or damaged; use "
                        f"another folder"
                    )
                if line.startswith(_ERROR, len(start)):
                    self._bad.append(index)
                    self.errors.append(json.loads(line)["error"])
                self._ends.append(self._ends[-1] + len(line))
        return len(self._ends) - 1

    def truncate(self, count: int) -> int:
        """Remove all but the first lines; return how many of these have no error."""
        self._file.truncate(self._ends[count])
        self._file.seek(self._ends[count])
        bad = sum(index < count for index in self._bad)
        del self.errors[bad:]
        self.count = count
        return count - bad

    def append(self, paths: Sequence[str], fields: Sequence[bytes | InputError]) -> None:
        """Append a line for each file, with the rest of the line or an error."""
        errors = [str(field) for field in fields if isinstance(field, InputError)]
        lines = b"".join(
            b"%s%s}\n" % (_line_start(path), _error_field(f) if isinstance(f, InputError) else f)
            for path, f in zip(paths, fields, strict=True)
        )
        _write_all(self._file, lines)
        self.errors += errors
        self.count += len(paths)

    def close(self) -> None:
        self._file.close()


def open_growing(path: Path) -> FileIO:
    """Open a file for reading and writing, and create it if there is none."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    return FileIO(os.open(path, flags, 0o666), "r+")


def _line_start(path: str) -> bytes:
    return b'{"file":' + json.dumps(path).encode()


def _error_field(error: InputError) -> bytes:
    return _ERROR + json.dumps(str(error)).encode()


def _write_all(file: FileIO, data: bytes | memoryview) -> None:
    """Write all bytes; a single call may write fewer, such as those that a disk has room for."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) or 0 :]


class ArrayFiles(ABC, Closing):
    """The files for arrays of one format."""

    @abstractmethod
    def resume(self, count: int, rows: int) -> None:
        """Remove what belongs to files that are not done.

        Args:
            count: the number of files that are done.
            rows: the number of these that have outputs.
        """

    @abstractmethod
    def add(self, index: int, path: str, outputs: Outputs) -> bytes:
        """Add the outputs for a file; return what follows in its line.

        Args:
            index: the position of the file in the job.
            path: the path of the file.
            outputs: its outputs.

        Raises:
            InputError: the format cannot hold them.
        """

    @abstractmethod
    def flush(self) -> None:
        """Write what was added."""


class InLines(ArrayFiles):
    """No files: outputs are in the lines, as nested lists.

    Args:
        is_wanted: whether lines have outputs at all.
    """

    def __init__(self, is_wanted: bool) -> None:
        self._is_wanted = is_wanted

    def resume(self, count: int, rows: int) -> None:
        pass

    def add(self, index: int, path: str, outputs: Outputs) -> bytes:
        if not self._is_wanted:
            return b""
        return b',"outputs":' + msgspec.json.encode(
            {name: _json_value(value) for name, value in outputs.items()}
        )

    def flush(self) -> None:
        pass


def _json_value(value: Any) -> Any:
    """Return an output as a JSON value, quickly if it is an array of finite numbers."""
    is_numeric = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    return value.tolist() if is_numeric and np.isfinite(value).all() else plain_value(value)


class RowFiles(ArrayFiles):
    """An `.npy` file for each output, which grows by a row for each file with outputs.

    The header is rewritten after the rows are, so the files can be read at any time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._files: dict[str, _RowFile] = {}

    def resume(self, count: int, rows: int) -> None:
        self._count = rows
        for path in self._folder.glob("*.npy"):
            if rows:
                shape, dtype = _row_type(path)
                _RowFile(path, shape, dtype, rows).close()
            else:
                path.unlink()

    def add(self, index: int, path: str, outputs: Outputs) -> bytes:
        for position, (name, value) in enumerate(outputs.items()):
            array = _numeric(path, name, value)
            if name not in self._files:
                file = self._folder / f"{position}-{_legible(name)}.npy"
                self._files[name] = _RowFile(file, array.shape, array.dtype, self._count)
            self._files[name].add(path, name, array)
        self._count += 1
        return b',"row":%d' % (self._count - 1)

    def flush(self) -> None:
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        for file in self._files.values():
            file.close()


class _RowFile(Closing):
    """An `.npy` file that grows by rows.

    Args:
        path: the path of the file.
        shape: the shape of a row.
        dtype: the type of its elements.
        count: how many rows of the file are kept; it lacks none of them.
    """

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: Any, count: int) -> None:
        self._shape, self._dtype, self._count = shape, dtype, count
        self._rows: list[bytes] = []
        self._file = open_growing(path)
        header = self._header(count)
        end = len(header) + count * math.prod(shape) * dtype.itemsize
        if count and os.fstat(self._file.fileno()).st_size < end:
            self._file.close()
            raise InputError(f"{path}: lacks rows that {RESULTS} lists; name another folder")
        self._file.truncate(end if count else 0)
        _write_all(self._file, header)
        self._file.seek(end)

    def add(self, path: str, name: str, row: Array) -> None:
        if (row.shape, row.dtype) != (self._shape, self._dtype):
            raise InputError(
                f"{path}: output {name!r} is {row.dtype} {list(row.shape)}, but that of earlier "
                f"files {self._dtype} {list(self._shape)}; the formats npz and jsonl take both"
            )
        self._rows.append(row.tobytes())

    def flush(self) -> None:
        if not self._rows:
            return
        _write_all(self._file, b"".join(self._rows))
        self._count += len(self._rows)
        self._rows = []
        end = self._file.tell()
        self._file.seek(0)
        _write_all(self._file, self._header(self._count))
        self._file.seek(end)

    def close(self) -> None:
        self._file.close()

    def _header(self, count: int) -> bytes:
        """Return the header of so many rows, which has the same length for all numbers."""
        buffer = BytesIO()
        fields = {
            "descr": npy.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (count, *self._shape),
        }
        npy.write_array_header_1_0(buffer, fields)
        return buffer.getvalue()


def _row_type(path: Path) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and element type of the rows of an `.npy` file."""
    try:
        with BufferedReader(open_regular(path)) as file:
            npy.read_magic(file)
            shape, _, dtype = npy.read_array_header_1_0(file)
    except ValueError as error:
        raise InputError(f"{path}: is damaged: {error}; use another folder") from None
    return shape[1:], dtype


class ArchiveFiles(ArrayFiles):
    """An `.npz` file for each file, with an array for each output."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / ARRAYS

    def resume(self, count: int, rows: int) -> None:
        self._folder.mkdir(exist_ok=True)
        for path in self._folder.glob("*.npz"):
            number = path.name.partition("-")[0]
            if number.isdigit() and int(number) >= count:
                path.unlink()

    def add(self, index: int, path: str, outputs: Outputs) -> bytes:
        name = f"{index:06}-{_legible(Path(path).stem)}.npz"
        arrays = {key: _numeric(path, key, value) for key, value in outputs.items()}
        content = BytesIO()
        with ZipFile(content, "w") as archive:
            for key, array in arrays.items():
                with archive.open(f"{key}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, array, allow_pickle=False)
        with FileIO(self._folder / name, "w") as file:
            _write_all(file, content.getbuffer())
        return b',"arrays":' + json.dumps(f"{ARRAYS}/{name}").encode()

    def flush(self) -> None:
        pass


def _legible(name: str) -> str:
    """Return the beginning of a name, with `_` for what may not be in file names."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name[:_MOST_CHARACTERS])


def _numeric(path: str, name: str, value: Any) -> Array:
    """Return an output as an array of a type that NumPy's files have.

    The types that they lack, such as bfloat16, become float32, which has all their values.

    Raises:
        InputError: it is no array of numbers.
    """
    if not isinstance(value, np.ndarray) or value.dtype == object:
        raise InputError(
            f"{path}: output {name!r} is no array of numbers, which only the format jsonl takes"
        )
    return value if value.dtype.isbuiltin == 1 else value.astype(np.float32)


def array_files(format: Format, folder: Path, *, has_top: bool) -> ArrayFiles:
    """Return the files for arrays of a format.

    Args:
        format: the format.
        folder: the folder of the job.
        has_top: whether lines have the best classes, so that `jsonl` has no outputs.
    """
    if format == "npy":
        return RowFiles(folder)
    return ArchiveFiles(folder) if format == "npz" else InLines(not has_top)
