"""Batch jobs: results in a folder, and a manifest by which a stopped job goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import get_args

from crosschip.batch_inference.classes import Classes
from crosschip.batch_inference.mapping import (
    BATCH_SIZE,
    FileResult,
    Mapper,
    OnError,
    log_skipped,
)
from crosschip.batch_inference.result_files import RESULTS, Format, ResultLog, array_files
from crosschip.ir import Array, InputError
from crosschip.ir.closing import Closing
from crosschip.ir.dataclass import dataclass
from crosschip.ir.file_queries import StrPath
from crosschip.ir.version import VERSION
from crosschip.preprocessing import Preprocess
from crosschip.preprocessing.settings import check_choice
from crosschip.progress import task
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.plain import from_plain, to_plain

MANIFEST = "job.json"

_MOST_LOGGED = 10
"""The maximum number of bad files that the log of a job names."""

_OTHER_FOLDER = "use another folder, or remove this one to begin again"


_Stamped = tuple[str, int, int]
"""The path of a file, its size in bytes, and its time of modification in nanoseconds since 1970;
-1 for both if there is none."""


@dataclass(frozen=True)
class _Manifest:
    """The manifest of a job.

    Attributes:
        crosschip: the version that wrote it.
        settings: what the results depend on.
        files: the files, in order.
    """

    crosschip: str
    settings: Mapping[str, object]
    files: tuple[_Stamped, ...]


class BatchJob(Closing):
    """A run of a model over files whose results are written to a folder.

    The folder has `results.jsonl`, with a line for each file in order, arrays as `format` says, and
    the manifest `job.json`. A job that was stopped, or killed at any moment, goes on from there
    when it is opened again with the same settings; files may have been added after those that are
    done. A batch always has the same files, so results are those of a job that was never stopped.

    Args:
        folder: the folder: a new or empty one, or that of the job.
        paths: the files.
        settings: what the results depend on, such as the model, as JSON values; a job goes on with
            equal settings only.
        batch_size: the maximum number of files that share a run.
        format: the format of outputs: `jsonl` for lines of JSON, `npy` for a file of rows for each
            output, `npz` for a file with all outputs for each file.
        classes: the best classes, which are in each line too; with `jsonl`, instead of outputs.

    Attributes:
        paths: the files.

    Raises:
        InputError: the folder is another job's, in use, or cannot be written.
    """

    def __init__(
        self,
        folder: StrPath,
        paths: Sequence[str],
        settings: Mapping[str, object],
        *,
        batch_size: int = BATCH_SIZE,
        format: Format = "jsonl",
        classes: Classes | None = None,
    ) -> None:
        check_choice("format", format, get_args(Format))
        self.paths = list(paths)
        self._folder = Path(folder)
        self._batch_size = batch_size
        self._classes = classes
        outputs = {"batch": batch_size, "format": format, "top": classes and classes.count}
        labels = {"labels": classes and classes.digest}
        manifest = _Manifest(VERSION, {**settings, **outputs, **labels}, _stamped(self.paths))
        with self._writing():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._check_folder()
            self._log = ResultLog(self._folder)
        try:
            with self._writing():
                rows = self._resume(manifest)
                self._arrays = array_files(format, self._folder, has_top=classes is not None)
                self._arrays.resume(self.completed, rows)
        except BaseException:
            self._log.close()
            raise

    @property
    def completed(self) -> int:
        """The number of files that are done."""
        return self._log.count

    @property
    def errors(self) -> Sequence[str]:
        """Why files have no outputs: an error for each of these."""
        return self._log.errors

    def run(
        self,
        compiled: CompiledModel,
        preprocess: Preprocess | None = None,
        *,
        constants: Mapping[str, Array] | None = None,
        readers: int | None = None,
        on_error: OnError = "skip",
    ) -> None:
        """Map the files that are not done.

        Args:
            compiled: the model.
            preprocess: as for `map_files`.
            constants: as for `map_files`.
            readers: as for `map_files`.
            on_error: `skip` writes a line with the error for a file that cannot be read, or that
                the model does not take; `stop` raises it.

        Raises:
            InputError: a file is bad and `on_error` is `stop`, the format does not take the
                outputs, or results cannot be written. The job can go on later.
            DeviceError: a device failed.
        """
        check_choice("on_error", on_error, get_args(OnError))
        self.run_mapper(
            Mapper(compiled, preprocess, constants, self._batch_size, readers), on_error
        )

    def run_mapper(self, mapper: Mapper, on_error: OnError = "skip") -> None:
        """Map the files that are not done by a mapper with the batch size of the job.

        Raises:
            InputError: as for `run`.
            DeviceError: a device failed.
        """
        paths = self.paths[self.completed :]
        with task(f"mapping to {self._folder}", len(paths)) as progress:
            start = monotonic()
            for results in mapper.batches(paths):
                bad = next((r.outputs for r in results if isinstance(r.outputs, InputError)), None)
                if bad is not None and on_error == "stop":
                    raise bad
                with self._writing():
                    self._write(results)
                progress.advance(len(results))
                progress.describe(rate(progress.completed, monotonic() - start))

    def close(self) -> None:
        """Close the files; another process can go on with the job."""
        self._arrays.close()
        self._log.close()

    def _write(self, results: Sequence[FileResult]) -> None:
        begun = len(self.errors)
        fields = [
            outputs
            if isinstance(outputs, InputError)
            else self._arrays.add(self.completed + position, path, outputs)
            + (b"" if self._classes is None else self._classes.best(outputs))
            for position, (path, outputs) in enumerate(results)
        ]
        self._arrays.flush()
        self._log.append([result.path for result in results], fields)
        for error in self.errors[begun:_MOST_LOGGED]:
            log_skipped(error)
        if begun < _MOST_LOGGED < len(self.errors):
            log_skipped(f"more files, which {self._folder / RESULTS} names")

    def _check_folder(self) -> None:
        """Raise InputError if the folder has files, but no job.

        It has hidden files, and an empty list of results, if a job was killed at its start.
        """
        names = os.listdir(self._folder)
        others = [name for name in names if name != RESULTS and not name.startswith(".")]
        if others and MANIFEST not in names:
            raise InputError(
                f"{self._folder}: holds {others[0]}, but no job; name a new or an empty folder"
            )

    def _resume(self, manifest: _Manifest) -> int:
        """Bring the results and the manifest to the last batch that is done.

        Returns:
            The number of files that have outputs.
        """
        path = self._folder / MANIFEST
        try:
            earlier = from_plain(_Manifest, json.loads(path.read_bytes()))
        except FileNotFoundError:
            earlier = _Manifest("", manifest.settings, ())
        except ValueError as error:
            raise InputError(f"{path}: is damaged ({error}); {_OTHER_FOLDER}") from None
        self._check_settings(manifest.settings, earlier.settings)
        count = self._log.read([path for path, _, _ in earlier.files])
        self._check_files(manifest.files, earlier.files[:count])
        if count < len(self.paths):
            count -= count % self._batch_size
        rows = self._log.truncate(count)
        if manifest != earlier:
            write_user_file(path, [json.dumps(to_plain(manifest)).encode()])
        return rows

    def _check_settings(self, now: Mapping[str, object], then: Mapping[str, object]) -> None:
        for name in [*now, *(name for name in then if name not in now)]:
            if now.get(name) != then.get(name):
                raise InputError(
                    f"{self._folder}: the job there began with {name} {_text(then.get(name))}, "
                    f"not {_text(now.get(name))}; {_OTHER_FOLDER}"
                )

    def _check_files(self, now: Sequence[_Stamped], done: Sequence[_Stamped]) -> None:
        """Raise InputError unless the files begin with those that are done, unchanged."""
        for index, file in enumerate(done):
            path = file[0]
            if index >= len(now) or now[index][0] != path:
                instead = f", not {now[index][0]}" if index < len(now) else ""
                raise InputError(
                    f"{self._folder}: file {index + 1:,} of the job there is {path}{instead}; map "
                    f"files in the same order, new ones after the others; or {_OTHER_FOLDER}"
                )
            if now[index] != file:
                raise InputError(
                    f"{self._folder}: {path} has changed since its result was written; "
                    f"{_OTHER_FOLDER}"
                )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Raise an error of the file system as one that names the folder."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self._folder}: results cannot be written: {error.strerror or error}"
            ) from None


def _stamped(paths: Sequence[str]) -> tuple[_Stamped, ...]:
    """Return the path, size and time of modification of files."""
    stamped: list[_Stamped] = []
    for path in paths:
        try:
            status = os.stat(path)
            stamped.append((path, status.st_size, status.st_mtime_ns))
        except (OSError, ValueError):
            stamped.append((path, -1, -1))
    return tuple(stamped)


def rate(count: int, seconds: float) -> str:
    """Return files per second as text."""
    number = count / max(seconds, 1e-9)
    return f"{number:,.{0 if number >= 100 else 1}f} files/s"


def _text(value: object) -> str:
    return "none" if value is None else str(value)
