"""The files of a report: a page, a JSON document, and a folder for each culprit."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crosschip.bisect.page import to_html
from crosschip.bisect.report import FailingOperator, Report
from crosschip.ir import InputError
from crosschip.ops.definition.serialization import to_bytes
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.discovery import own_name
from crosschip.runtime.inputs import write_value

_MODEL = "model.chipm"
_LONGEST_NAME = 60


def write(report: Report, folder: Path) -> list[Path]:
    """Write the files of a report; the paths of the page and of the culprits' folders.

    A culprit's folder holds `model.chipm` (the saved form of docs/formats.md, which `crosschip run`
    takes), `model.txt` (the same to read), what it reads as `inputs/`, what it should make as
    `expected/`, and what the device made as `made/`.

    Raises:
        InputError: they cannot be written there.
    """
    places = [
        folder / _name(index, culprit) for index, culprit in enumerate(report.failing_operators)
    ]
    page = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        commands = []
        for culprit, place in zip(report.failing_operators, places, strict=True):
            inputs = _write_culprit(culprit, place)
            commands.append(_command(report, culprit, place, inputs))
        write_user_file(page, [to_html(report, commands).encode()])
        document = {**report.document(), "replays": commands}
        write_user_file(folder / "report.json", [json.dumps(document, indent=2).encode("ascii")])
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from None
    return [page, *places]


def _name(index: int, culprit: FailingOperator) -> str:
    words = f"{index + 1}-{'-'.join(f'{o.type}-{o.name}' for o in culprit.operations)}"
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in words)[:_LONGEST_NAME]


def _write_culprit(culprit: FailingOperator, place: Path) -> Mapping[str, Path]:
    """Write a culprit's folder; the files of what it reads."""
    place.mkdir(exist_ok=True)
    write_user_file(place / _MODEL, [to_bytes(culprit.part.model)])
    write_user_file(place / "model.txt", [f"{culprit.part.model}\n".encode()])
    _write_values(culprit.expected, place / "expected")
    if culprit.made:
        _write_values(culprit.made, place / "made")
    return _write_values(culprit.inputs, place / "inputs")


def _write_values(values: Mapping[str, Any], folder: Path) -> Mapping[str, Path]:
    folder.mkdir(exist_ok=True)
    return {name: write_value(folder / name, value) for name, value in values.items()}


def _command(
    report: Report, culprit: FailingOperator, place: Path, inputs: Mapping[str, Path]
) -> str:
    """The command that runs a culprit once more, on the device alone."""
    words = ["crosschip", "run", str(place / _MODEL), "--devices", own_name(report.device)]
    for name, path in inputs.items():
        words += ["--input", f"{name}={path}"]
    words += [*report.options, "--no-cache"]
    words += ["--save", str(place / "made")] if culprit.made else ["--isolate"]
    return shlex.join(words)
