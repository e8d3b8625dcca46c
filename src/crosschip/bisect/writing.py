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
from crosschip.runtime.discovery import base_name
from crosschip.runtime.inputs import write_value

_MODEL = "model.chipm"
_LONGEST_NAME = 60


def write(report: Report, folder: Path) -> list[Path]:
    """Write the files of a report; the paths of the page and of the culprits' folders.

    A culprit's folder holds `model.chipm` (the saved form of docs/formats.md, which `crosschip run`
    takes), `model.txt` (the same to read), what it reads as `inputs/`, what it should make as
    `expected/`, and what the device made as `actual/`.

    Raises:
        InputError: they cannot be written there.
    """
    places = [
        folder / _name(index, operator) for index, operator in enumerate(report.failing_operators)
    ]
    page = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        commands = []
        for operator, place in zip(report.failing_operators, places, strict=True):
            inputs = _write_culprit(operator, place)
            commands.append(_command(report, operator, place, inputs))
        write_user_file(page, [to_html(report, commands).encode()])
        document = {**report.document(), "replays": commands}
        write_user_file(folder / "report.json", [json.dumps(document, indent=2).encode("ascii")])
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from None
    return [page, *places]


def _name(index: int, operator: FailingOperator) -> str:
    words = f"{index + 1}-{'-'.join(f'{o.type}-{o.name}' for o in operator.operations)}"
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in words)[:_LONGEST_NAME]


def _write_culprit(operator: FailingOperator, place: Path) -> Mapping[str, Path]:
    """Write a culprit's folder; the files of what it reads."""
    place.mkdir(exist_ok=True)
    write_user_file(place / _MODEL, [to_bytes(operator.part.model)])
    write_user_file(place / "model.txt", [f"{operator.part.model}\n".encode()])
    _write_values(operator.expected, place / "expected")
    if operator.actual:
        _write_values(operator.actual, place / "actual")
    return _write_values(operator.inputs, place / "inputs")


def _write_values(values: Mapping[str, Any], folder: Path) -> Mapping[str, Path]:
    folder.mkdir(exist_ok=True)
    return {name: write_value(folder / name, value) for name, value in values.items()}


def _command(
    report: Report, operator: FailingOperator, place: Path, inputs: Mapping[str, Path]
) -> str:
    """The command that runs a culprit once more, on the device alone."""
    words = ["crosschip", "run", str(place / _MODEL), "--devices", base_name(report.device)]
    for name, path in inputs.items():
        words += ["--input", f"{name}={path}"]
    words += [*report.options, "--no-cache"]
    words += ["--save", str(place / "actual")] if operator.actual else ["--isolate"]
    return shlex.join(words)
