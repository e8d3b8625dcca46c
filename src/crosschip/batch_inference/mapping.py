"""Mapping of files to outputs, in order, with files read ahead of the device."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Literal, NamedTuple, get_args

from crosschip.batch_inference.batching import Batching, Outputs
from crosschip.batch_inference.file_list import list_files
from crosschip.batch_inference.reading import Reader
from crosschip.hal.options import processor_cores
from crosschip.ir import Array, InputError
from crosschip.ir.file_queries import StrPath
from crosschip.preprocessing import Preprocess
from crosschip.preprocessing.settings import check_choice
from crosschip.runtime.compiled import CompiledModel

BATCH_SIZE = 16
"""How many files share a run by default."""

OnError = Literal["skip", "stop"]

_logger = logging.getLogger("crosschip.batch_inference")


class FileResult(NamedTuple):
    """The result for a file: outputs by name, or why there are none."""

    path: str
    outputs: Outputs | InputError


def map_files(
    compiled: CompiledModel,
    files: StrPath | Iterable[StrPath],
    preprocess: Preprocess | None = None,
    *,
    constants: Mapping[str, Array] | None = None,
    batch_size: int = BATCH_SIZE,
    readers: int | None = None,
    on_error: OnError = "stop",
) -> Iterator[tuple[str, Outputs]]:
    """Run a model on files, in batches if it takes them, and yield the outputs for each.

    Threads read some files ahead: at most two batches, and one for each thread.

    Args:
        compiled: the model.
        files: pictures and `.npy` files, as for `list_files`.
        preprocess: what happens to pictures before the model sees them.
        constants: the values of the model's other inputs, by name.
        batch_size: the maximum number of files that share a run.
        readers: the number of threads that read files; one for each processor if `None`.
        on_error: `stop` raises an error at a file that cannot be read, or that the model does not
            take; `skip` leaves it out and logs a warning.

    Returns:
        The path and the outputs of each file, in order. Outputs have no batch axis.

    Raises:
        InputError: the arguments do not fit the model, or there are no such files.
        DeviceError: a device failed.
    """
    check_choice("on_error", on_error, get_args(OnError))
    mapper = Mapper(compiled, preprocess, constants, batch_size, readers)
    paths = list_files(files)
    return _outputs(mapper.batches(paths), on_error)


def _outputs(
    batches: Generator[list[FileResult], None, None], on_error: OnError
) -> Iterator[tuple[str, Outputs]]:
    with closing(batches):
        for path, outputs in (result for batch in batches for result in batch):
            if not isinstance(outputs, InputError):
                yield path, outputs
            elif on_error == "stop":
                raise outputs
            else:
                log_skipped(outputs)


def log_skipped(error: object) -> None:
    """Log that a file is skipped."""
    _logger.warning("skipped %s", error)


class Mapper:
    """Runs a model on files; the arguments are those of `map_files`."""

    def __init__(
        self,
        compiled: CompiledModel,
        preprocess: Preprocess | None = None,
        constants: Mapping[str, Array] | None = None,
        batch_size: int = BATCH_SIZE,
        readers: int | None = None,
    ) -> None:
        for name, number in (("batch_size", batch_size), ("readers", readers or 1)):
            if number < 1:
                raise InputError(f"{name} is {number}, but must be at least 1")
        self._batching = Batching(compiled, constants or {})
        type_ = self._batching.operand.type
        devices = [*compiled.devices]
        self._reader = Reader(self._batching.name, type_, preprocess, devices)
        self._readers = readers or processor_cores()
        self.batch_size = batch_size if self._batching.is_open else 1

    def batches(self, paths: Sequence[str]) -> Generator[list[FileResult], None, None]:
        """Yield the results for files, in order, as many as share a run at a time.

        Closing the generator ends the reading ahead.

        Raises:
            InputError: there are pictures, but the model takes none, or Pillow is missing.
            DeviceError: a device failed.
        """
        self._reader.check(paths)
        ahead = 2 * self.batch_size + self._readers
        pending: deque[Future[Array | InputError]] = deque()
        pool = ThreadPoolExecutor(self._readers, "crosschip reader")
        try:
            for start in range(0, len(paths), self.batch_size):
                batch = paths[start : start + self.batch_size]
                for path in paths[start + len(pending) : start + ahead]:
                    pending.append(pool.submit(self._row, path))
                rows = [pending.popleft().result() for _ in batch]
                yield self._results(batch, rows)
        finally:
            # Without waiting: the garbage collector may close the generator within any function,
            # also one that holds the locks of threads.
            pool.shutdown(wait=False, cancel_futures=True)

    def _row(self, path: str) -> Array | InputError:
        try:
            return self._batching.as_row(self._reader.read(path))
        except InputError as error:
            message = str(error)
            return error if message.startswith(path) else InputError(f"{path}: {message}")

    def _results(
        self, paths: Sequence[str], rows: Sequence[Array | InputError]
    ) -> list[FileResult]:
        outputs = iter(self._batching.run([row for row in rows if not isinstance(row, InputError)]))
        return [
            FileResult(path, row if isinstance(row, InputError) else _named(path, next(outputs)))
            for path, row in zip(paths, rows, strict=True)
        ]


def _named(path: str, outputs: Outputs | InputError) -> Outputs | InputError:
    """Return outputs, or an error that begins with the path of its file."""
    return InputError(f"{path}: {outputs}") if isinstance(outputs, InputError) else outputs
