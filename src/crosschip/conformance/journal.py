"""A journal of results on disk, from which an interrupted run resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from crosschip.conformance.cases import Case
from crosschip.conformance.judge import Result, Verdict
from crosschip.hal import Options
from crosschip.ir import InputError
from crosschip.ir.closing import Closing
from crosschip.ir.files import open_own, open_regular
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.plain import to_plain


class Journal(Closing):
    """A file with one line of JSON about the run, then one per result.

    Attributes:
        done: the results that the file already held, by case id.

    Args:
        path: the file; it is created if missing.
        device: the name of the tested device.
        seed: the seed of random elements.
        options: the compile options; `None` for the default.
        properties: the device's properties.

    Raises:
        InputError: the file is no such journal, is of another run, or cannot be written.
    """

    def __init__(
        self,
        path: Path,
        device: str,
        seed: int,
        options: Options | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        header = {
            "device": device,
            "seed": seed,
            "options": to_plain(options or Options()),
            "properties": dict(properties or {}),
        }
        try:
            whole = _content(path)
            # A run that was killed may have left half a line.
            lines = whole[: whole.rfind("\n") + 1].splitlines()
            if lines and json.loads(lines[0]) != header:
                raise InputError(f"{path}: is of another run, {lines[0]}; name another file")
            self.done: Mapping[str, Result] = _results(lines[1:])
            write_user_file(path, ["".join(f"{line}\n" for line in lines).encode()])
            descriptor = open_own(path, os.O_WRONLY | os.O_APPEND)
            self._file: IO[str] = os.fdopen(descriptor, "a", 1, encoding="utf-8")
            if not lines:
                self._write(header)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: is no journal of the kit: {error}") from None

    def add(self, case: Case, result: Result) -> None:
        """Append a result."""
        self._write(
            {
                "id": case.id,
                "verdict": result.verdict.value,
                "detail": result.detail,
                "smallest": result.smallest,
            }
        )

    def close(self) -> None:
        self._file.close()

    def _write(self, document: Mapping[str, object]) -> None:
        self._file.write(json.dumps(document) + "\n")


def _content(path: Path) -> str:
    """Return the text of a journal; empty if the file is missing.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    try:
        with open_regular(path) as file:
            return file.read().decode("utf-8")
    except FileNotFoundError:
        return ""


def _results(lines: list[str]) -> dict[str, Result]:
    entries = map(json.loads, lines)
    by_id = {
        entry["id"]: Result(
            entry["id"], Verdict(entry["verdict"]), entry["detail"], entry["smallest"]
        )
        for entry in entries
    }
    return {id: result for id, result in by_id.items() if result.verdict is not Verdict.NOT_RUN}
