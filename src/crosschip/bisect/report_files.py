"""The files of a report: an HTML page, a JSON document, and a folder for each failing operator."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from crosschip.accuracy.error import UNIT
from crosschip.bisect.chart import draw_errors
from crosschip.bisect.report import (
    FailingOperator,
    Report,
    format_difference,
    format_error,
    slots_of,
)
from crosschip.drawing import Labels, to_svg
from crosschip.ir import InputError
from crosschip.ir.text import legible
from crosschip.ops.definition.serialization import to_bytes
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.discovery import base_name
from crosschip.runtime.inputs import write_value

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #1c2733; background: #fff; }
h1 { font-size: 1.6rem; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem 1rem .2rem 0; border-bottom: 1px solid #e3e8ee;
  vertical-align: top; overflow-wrap: anywhere; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
pre { background: #f4f6f8; padding: .6rem .8rem; border-radius: .3rem; white-space: pre-wrap; }
.culprit { border-left: 4px solid #d4404a; padding-left: 1rem; margin: 1.4rem 0; }
.graph { max-height: 48rem; overflow: auto; border: 1px solid #e3e8ee; }
.chart { overflow-x: auto; }
@media (prefers-color-scheme: dark) {
body { color: #e6ebf0; background: #14181d; }
pre { background: #1d232a; }
th, td, .graph { border-color: #323b45; }
}
"""

_WRONG, _RIGHT, _UNKNOWN, _OUTSIDE = (
    "wrong",
    "right",
    "not seen by itself",
    "not on the device",
)
_COLOURS = {_WRONG: "#e5636c", _RIGHT: "#bfe3d0", _UNKNOWN: "#f2ead3", _OUTSIDE: "#e3e8ee"}


def to_html(report: Report, commands: Sequence[str] = ()) -> str:
    """Return the page: failing operators, commands that reproduce them, errors along the model.

    Args:
        report: the report.
        commands: the command that runs each failing operator.
    """
    title = escape(legible(f"{report.model.name} on {report.device}: crosschip bisect"))
    parts = [
        f"<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>",
        f"<style>{_STYLE}</style></head>\n<body>",
        f"<h1>{escape(legible(report.model.name))} on {escape(report.device)}</h1>",
        f"<p>{escape(report.summary)}; what is right says {escape(report.against)}.</p>",
        _outputs(report),
        *(f"<p>{escape(legible(note))}.</p>" for note in report.notes),
    ]
    if report.failing_operators:
        parts.append("<h2>What is wrong</h2>")
        all_commands = [*commands, *[""] * len(report.failing_operators)]
        parts += [
            _operator_section(each, text)
            for each, text in zip(report.failing_operators, all_commands, strict=False)
        ]
    parts += [
        "<h2>The error along the model</h2>",
        f'<div class="chart">{draw_errors(report)}</div>',
        *_drawing(report),
    ]
    return "\n".join([*filter(None, parts), "</body></html>\n"])


def _outputs(report: Report) -> str:
    if report.error is None:
        return ""
    sentence = f"Error of the model's outputs: {format_error(report.error)} ({UNIT})"
    if report.mended is not None:
        sentence += f"; with the culprits on {report.against}: {format_error(report.mended)}"
        sentence += "" if report.explained else ", which is still wrong"
    return f"<p>{escape(sentence)}.</p>"


def _operator_section(operator: FailingOperator, command: str) -> str:
    head = f"{operator.manner}: {operator.title}"
    if len(operator.operations) > 1:
        head += " (only together)"
    lines = [f'<div class="culprit"><h3>{escape(head)}</h3><p>{escape(legible(operator.detail))}']
    if operator.difference is not None:
        lines.append(f"<br>{escape(format_difference(operator.difference))}")
    if operator.shows is not None:
        seen = "shows" if operator.shows else "does not show"
        lines.append(f"<br>it {seen} in the outputs of the model")
        if operator.effect is not None:
            lines.append(f", whose error is {format_error(operator.effect)} with it alone")
    lines.append("</p>")
    for operation in operator.operations:
        lines.append(f"<p><code>{escape(operation.type)}</code> {escape(legible(operation.name))}")
        rows = "".join(
            f"<tr><td><code>{escape(slot)}</code></td><td><code>{escape(legible(value))}</code>"
            f"</td></tr>"
            for slot, value in slots_of(operation).items()
        )
        lines.append(f"</p><table>{rows}</table>")
    if command:
        lines.append(f"<p>Once more:</p><pre>{escape(command)}</pre>")
    return "".join([*lines, "</div>"])


def _drawing(report: Report) -> Iterator[str]:
    groups = dict.fromkeys(report.suspects, _UNKNOWN)
    for operation in report.model.operations:
        groups.setdefault(operation, _OUTSIDE)
        if operation in report.own:
            groups[operation] = _RIGHT
    for operator in report.failing_operators:
        groups.update(dict.fromkeys(operator.operations, _WRONG))
    drawing = to_svg(report.model, Labels(groups), _COLOURS)
    yield f'<div class="graph">{drawing}</div>'


_MODEL = "model.chipm"
_LONGEST_NAME = 60


def write_report(report: Report, folder: Path) -> list[Path]:
    """Write the files of a report; return the paths of the page and of the operators' folders.

    A folder contains `model.chipm` (the format of docs/formats.md, which `crosschip run` reads),
    `model.txt` (the model as text), and the arrays in `inputs/`, `expected/` and `actual/`.

    Raises:
        InputError: the files cannot be written.
    """
    folders = [
        folder / _folder_name(index, operator)
        for index, operator in enumerate(report.failing_operators)
    ]
    page = folder / "index.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        commands = []
        for operator, folder_path in zip(report.failing_operators, folders, strict=True):
            inputs = _write_culprit(operator, folder_path)
            commands.append(_command(report, operator, folder_path, inputs))
        write_user_file(page, [to_html(report, commands).encode()])
        document = {**report.document(), "replays": commands}
        write_user_file(folder / "report.json", [json.dumps(document, indent=2).encode("ascii")])
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror}") from None
    return [page, *folders]


def _folder_name(index: int, operator: FailingOperator) -> str:
    words = f"{index + 1}-{'-'.join(f'{o.type}-{o.name}' for o in operator.operations)}"
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in words)[:_LONGEST_NAME]


def _write_culprit(operator: FailingOperator, folder_path: Path) -> Mapping[str, Path]:
    """Write the folder of a failing operator; return the files of its inputs."""
    folder_path.mkdir(exist_ok=True)
    write_user_file(folder_path / _MODEL, [to_bytes(operator.part.model)])
    write_user_file(folder_path / "model.txt", [f"{operator.part.model}\n".encode()])
    _write_values(operator.expected, folder_path / "expected")
    if operator.actual:
        _write_values(operator.actual, folder_path / "actual")
    return _write_values(operator.inputs, folder_path / "inputs")


def _write_values(values: Mapping[str, Any], folder: Path) -> Mapping[str, Path]:
    folder.mkdir(exist_ok=True)
    return {name: write_value(folder / name, value) for name, value in values.items()}


def _command(
    report: Report, operator: FailingOperator, folder_path: Path, inputs: Mapping[str, Path]
) -> str:
    """Return the command that runs a failing operator on the device alone."""
    words = ["crosschip", "run", str(folder_path / _MODEL), "--devices", base_name(report.device)]
    for name, path in inputs.items():
        words += ["--input", f"{name}={path}"]
    words += [*report.options, "--no-cache"]
    words += ["--save", str(folder_path / "actual")] if operator.actual else ["--isolate"]
    return shlex.join(words)
