"""Writes what the documentation says about devices and operators, out of the code.

python scripts/write_tables.py          # rewrites the generated pages and tables in docs/
python scripts/write_tables.py --check  # says what is stale, exit status 1 if anything is
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import fields
from inspect import getdoc
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import typer
from architecture_map import draw, layers
from typer.core import TyperGroup

import crosschip
from crosschip import cli
from crosschip.apis.nnrt.hdi.v1_0.rows import V1_0
from crosschip.cli._compiling import Compilation
from crosschip.conformance.unspecified import RULES
from crosschip.demo.example import write_example
from crosschip.devices.kits.onnx.converters import converters
from crosschip.devices.kits.quirks import ENGINES, Quirk, quirks_of
from crosschip.hal import Performance
from crosschip.importers.foreign import FORMATS
from crosschip.opdef.datatypes import Datatype
from crosschip.ops import operators
from crosschip.runtime.catalog import describe, documentation
from crosschip.runtime.discovery import open_device
from crosschip.runtime.guard.devices import GuardedDevice

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "operators"
CONFORMANCE = ROOT / "docs" / "conformance.md"
OPTIONS = ROOT / "docs" / "options.md"
OPDEF = ROOT / "docs" / "opdef.md"
QUIRKS = ROOT / "docs" / "quirks.md"
OTHER_FORMATS = ROOT / "docs" / "how-to" / "other-formats.md"
PROGRAMS = ROOT / "docs" / "how-to" / "onnxruntime-programs.md"
SOURCE = ROOT / "src" / "crosschip"

_KITS = SOURCE / "devices" / "kits"
_ONNX = _KITS / "onnx"
_STABLEHLO = _KITS / "stablehlo"
_TOOLCHAIN = (_ONNX, _KITS / "toolchain", _KITS / "worker")
_TFLITE = _KITS / "tflite"
_DRIVERS: Mapping[str, tuple[Sequence[Path], str, str, str]] = {
    "xla": ((_STABLEHLO,), "`nvidia_tensorrt`", "7500", "44"),
    "iree": ((_STABLEHLO,), "not published", "", ""),
    "openvino": ((), "`intel_openvino`", "4300", "62"),
    "onnxruntime": ((_ONNX,), "`google_xnnpack`", "1600", "6"),
    "litert": ((_TFLITE,), "`google_xnnpack`", "1600", "6"),
    "qualcomm": (_TOOLCHAIN, "`qualcomm_qnn`", "not published", ""),
    "rockchip": (_TOOLCHAIN, "`rockchip_npu`", "1900", "18"),
}
"""For each device: the rooms that it shares, and NNAdapter's driver for such chips, its lines of
C++ and the operators that it registers (Paddle-Lite, lite/backends/nnadapter/nnadapter/src/driver).
"""

Description = Mapping[str, Any]
"""The description of an operator that `describe` gives."""


def main() -> int:
    """Write or check every generated page; the exit status."""
    names = [report.name for report in crosschip.list_devices() if report.available]
    devices = [open_device(name) for name in names if ":" not in name]  # the first instance of each
    # The tables are of a processor with VNNI, wherever they are written.
    with patch("crosschip.devices.openvino.converters.integers.multiplies_bytes", lambda: True):
        described = [describe(operator, devices) for operator in operators().values()]
    supported, chips = ROOT / "docs" / "supported.md", ROOT / "docs" / "chips.md"
    hdi = ROOT / "docs" / "nnrt-hdi.md"
    pages = {
        supported: _filled(
            supported.read_text("utf-8"), "devices", _device_table(devices, described)
        ),
        chips: _filled(chips.read_text("utf-8"), "lines", _line_table(described)),
        hdi: _filled(hdi.read_text("utf-8"), "nodes", _node_table()),
        CONFORMANCE: _filled(CONFORMANCE.read_text("utf-8"), "unspecified", _unspecified_table()),
        OTHER_FORMATS: _filled(OTHER_FORMATS.read_text("utf-8"), "foreign", _format_table()),
        ROOT / "docs" / "placement.svg": _picture(),
        ROOT / "docs" / "architecture.svg": draw(layers(ROOT / "pyproject.toml")),
        ROOT / "docs" / "operators.md": _index(described),
        ROOT / "docs" / "command-line.md": _command_line(),
        OPDEF: _filled(OPDEF.read_text("utf-8"), "datatypes", _datatype_table()),
        QUIRKS: _filled(QUIRKS.read_text("utf-8"), "quirks", _quirk_table()),
        OPTIONS: _filled(OPTIONS.read_text("utf-8"), "modes", _mode_table(devices)),
        PROGRAMS: _filled(PROGRAMS.read_text("utf-8"), "programs", _program_table()),
        **{PAGES / f"{op['name'].lower()}.md": _page(op) for op in described},
    }
    stale = [path for path, text in pages.items() if _old(path) != text]
    stale += [path for path in PAGES.glob("*.md") if path not in pages]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale; run: make docs")
        return 1 if stale else 0
    PAGES.mkdir(exist_ok=True)
    for path in stale:
        if path in pages:
            path.write_text(pages[path], "utf-8")
        else:
            path.unlink()
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def _device_table(devices: Sequence[GuardedDevice], described: Sequence[Description]) -> str:
    rows = []
    for device in devices:
        ways = [op["devices"][device.name] for op in described]
        extra = "" if device.name == "reference" else f'`pip install "crosschip[{device.name}]"`'
        rows.append(
            (
                f"`{device.name}`",
                device.kind.value,
                str(getdoc(type(device.device))).split("\n")[0].rstrip("."),
                f"{ways.count('yes')} of {len(ways)}",
                str(ways.count("decomposed")),
                extra or "always there",
            )
        )
    head = ("device", "kind", "what does the work", "operators", "and decomposed", "install")
    return _table(head, rows)


def _line_table(described: Sequence[Description]) -> str:
    """The lines that devices took, beside those of NNAdapter's drivers, both in whole hundreds."""
    rows = []
    for name, (shared, *theirs) in _DRIVERS.items():
        own = _lines(SOURCE / "devices" / name)
        ways = [op["devices"].get(name) for op in described]
        count = ways.count("yes") or len(converters.operators)
        common = f"{sum(map(_lines, shared))} in {', '.join(map(_named, shared))}"
        rows.append((f"`{name}`", str(own), common if shared else "", str(count), *theirs))
    ours = ("device", "its own lines", "and shared", "operators")
    head = (*ours, "NNAdapter's driver", "its lines", "its operators")
    return _table(head, rows)


def _datatype_table() -> str:
    rows = [
        (
            f"`{datatype.value}`",
            f"{datatype.element_type or 'what each backend says'}",
            "yes" if datatype.quantized else "",
        )
        for datatype in Datatype
    ]
    return _table(("datatype", "element type", "quantized"), rows)


def _quirk_table() -> str:
    head = ("quirk", "operators", "where", "what it does", "versions", "avoided by", "since")
    return "\n".join(
        f"## {engine}\n\n{_table(head, [_quirk(record) for record in records])}"
        for engine in ENGINES
        if (records := sorted(quirks_of(engine).values(), key=lambda record: record.name))
    )


def _quirk(record: Quirk) -> tuple[str, ...]:
    settings = [f"{name}={value}" for name, value in record.environment.items()]
    limits = [f"`{each}`" for each in (record.processor, *settings) if each]
    limits += [f"no `{feature}`" for feature in record.without]
    return (
        f"`{record.name}`",
        ", ".join(f"`{operator}`" for operator in record.operators),
        record.condition + (f" ({', '.join(limits)})" if limits else ""),
        record.symptom,
        record.versions + (f", fixed in {record.fixed_in}" if record.fixed_in else ""),
        ", ".join(f"`{_reference(avoiding)}`" for avoiding in record.avoided_by),
        record.since,
    )


def _reference(avoiding: Any) -> str:
    module = avoiding.__module__.removeprefix("crosschip.devices.")
    return f"{module}.{avoiding.__qualname__}"


def _unspecified_table() -> str:
    """What definitions leave open, from the docstrings of the rules."""
    operators_by_rule: dict[str, list[str]] = {}
    for name, rule in RULES.items():
        operators_by_rule.setdefault(getdoc(rule) or "", []).append(f"`{name}`")
    rows = []
    for text, names in operators_by_rule.items():
        open_, _, reason = text.removeprefix("Unspecified: ").partition("\n\n")
        rows.append((", ".join(names), open_.rstrip("."), " ".join(reason.split())))
    return _table(("operator", "open", "why"), rows)


def _format_table() -> str:
    """The formats that are recognized and not read, with the way to a file that is."""
    rows = [
        (
            each.name.partition(" ")[2],
            each.files
            or ", ".join(f"`{package}.{name}`" for package, name in sorted(each.classes)),
            "; ".join(filter(None, [each.reason, each.advice])),
            f"`{each.conversion}`" if each.conversion else "",
        )
        for each in FORMATS
    ]
    return _table(("what", "recognized", "what to do", "conversion"), rows)


def _program_table() -> str:
    """The packages for ONNX Runtime, with their answers and times once they are measured."""
    path = ROOT / "docs" / "figures" / "onnxruntime_programs.json"
    if not path.exists():
        rows = []
        for program in sorted((ROOT / "benchmarks" / "programs").glob("[a-z]*.py")):
            description = ast.get_docstring(ast.parse(program.read_text("utf-8"))) or ""
            rows.append((f"`{program.stem}`", description.partition("\n")[0].rstrip(".")))
        return _table(("package", "what it does"), rows)
    measured = json.loads(path.read_text("utf-8"))["rows"]
    head = [heading for heading in measured[0] if heading not in ("faster / auto", "held")]
    return _table(head, [[row[heading] for heading in head] for row in measured])


def _picture() -> str:
    """The drawing of the example's placement, as `crosschip explain --svg` writes it."""
    with TemporaryDirectory() as folder:
        model, drawing = Path(folder, "model.onnx"), Path(folder, "placement.svg")
        write_example(model)
        options = ["--devices", "openvino,onnxruntime", "--pin", "softmax=onnxruntime"]
        with redirect_stdout(StringIO()):
            status = cli.run(["explain", str(model), *options, "--svg", str(drawing)])
        if status:
            raise RuntimeError(f"crosschip explain ends with status {status}")
        return drawing.read_text("utf-8")


def _lines(room: Path) -> int:
    """The lines in a folder but for the records of quirks, to whole hundreds."""
    files = (file for file in room.rglob("*.py") if "quirks" not in str(file.relative_to(room)))
    return round(sum(len(file.read_text("utf-8").splitlines()) for file in files), -2)


def _named(room: Path) -> str:
    return f"`{room.relative_to(SOURCE).as_posix().replace('/', '.')}`"


def _index(described: Sequence[Description]) -> str:
    rows = [
        (
            f"[`{op['name']}`](operators/{op['name'].lower()}.md)",
            op["summary"].replace("|", "\\|"),
            "core" if op["core"] else "",
            *(way if way in ("yes", "decomposed") else "no" for way in op["devices"].values()),
        )
        for op in described
    ]
    return (
        "# Operators and who runs them\n\n"
        "Written by `make docs` from the operators' definitions in `src/crosschip/ops/standard`.\n"
        "*core*: all others can be decomposed into these. *decomposed*: the runtime runs it there\n"
        "as simpler operators. A device may decline single uses of what it runs;\n"
        "`crosschip explain` says why.\n\n"
        f"{_table(('operator', 'what it computes', 'core', *described[0]['devices']), rows)}"
    )


def _page(op: Description) -> str:
    """The page of one operator."""
    definition = operators()[op["name"]]
    core = "A core operator: others are decomposed into it.\n\n" if op["core"] else ""
    free = ", ".join(f"`{slot}`" for slot in sorted(definition.unenforced))
    rules = f"When it runs, a device need not enforce the rules of {free}.\n\n" if free else ""
    parts = ", ".join(f"[`{part}`]({part.lower()}.md)" for part in op["decomposes"])
    slots = _table(("slot", "kind", "default", "takes"), list(map(_slot, op["slots"])))
    devices = _table(("device", "runs it"), list(op["devices"].items()))
    return (
        f"# {op['name']}\n\n"
        "Written by `make docs` from the operator's definition.\n\n"
        f"In Python: `from {definition.__module__} import {definition.__name__}`\n\n"
        f"{documentation(operators()[op['name']])}\n\n{core}{rules}"
        f"## Slots\n\n{slots}\n"
        f"## Devices\n\n{devices}\n"
        + (f"Decomposes into {parts}.\n\n" if parts else "")
        + f"## Elsewhere\n\n{_elsewhere(op)}"
    )


def _slot(slot: Mapping[str, Any]) -> tuple[str, str, str, str]:
    default = f"`{slot.get('default')}`" if slot.get("default") is not None else "left out"
    takes = ", ".join([*slot.get("options", slot["types"]), *["quantized"] * slot["quantized"]])
    return (
        f"`{slot['name']}`",
        slot["kind"],
        default if slot["optional"] else "required",
        f"{takes}; as `{slot['like']}`" if "like" in slot else takes,
    )


def _elsewhere(op: Description) -> str:
    rows = []
    if nnadapter := op["opsets"]["nnadapter"]:
        order = ", ".join(nnadapter["operands"])
        rows.append(("NNAdapter", op["name"], nnadapter["code"], order, nnadapter["translation"]))
    for foreign in op["opsets"]["nnrt"]:
        parameters = [f"{name} → {slot or '*'}" for name, slot in foreign["parameters"].items()]
        operands = ", ".join([*foreign["inputs"], *parameters])
        rows.append(("NNRt", foreign["name"], foreign["code"], operands, foreign["translation"]))
    for foreign in op["opsets"]["hdi"]:
        attributes = [f"{name} → {slot or '*'}" for name, slot in foreign["attributes"].items()]
        operands = ", ".join([*(slot or "*" for slot in foreign["inputs"]), *attributes])
        system = f"HDI {foreign['since']}"
        rows.append((system, foreign["name"], foreign["code"], operands, foreign["translation"]))
    rows += [("ONNX", name, "", "", "") for name in op["onnx"]]
    if not rows:
        return "Nowhere under a name of its own.\n"
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return _table(("system", "name", "code", "operands", "translated"), cells)


def _node_table() -> str:
    """The nodes of the driver interface, each with the operators that it stands for."""
    rows = []
    for node_type, entries in sorted(V1_0.rows.items()):
        for entry in entries:
            slots = [rule.slot or "*" for rule in entry.row.operands]
            told = zip(entry.attributes, slots[entry.inputs :], strict=True)
            operator = entry.row.operator.type
            row = (
                f"`{V1_0.node_types(node_type).name.removeprefix('NODE_TYPE_')}` {node_type}",
                f"[`{operator}`](operators/{operator.lower()}.md)",
                ", ".join(slots[: entry.inputs]),
                ", ".join(f"{name} → {slot}" for name, slot in told),
                entry.row.text.replace("|", "\\|"),
            )
            rows.append(row)
    return _table(("node", "operator", "inputs", "attributes", "translated"), rows)


def _mode_table(devices: Sequence[GuardedDevice]) -> str:
    modes = [mode for mode in Performance if mode is not Performance.NONE]
    rows = []
    for device in devices:
        with patch("os.cpu_count", return_value=_MANY):
            told = device.modes()
        rows.append((f"`{device.name}`", *(_settings(told.get(mode)) for mode in modes)))
    return _table(("device", *(f"`{mode.value}`" for mode in modes)), rows)


def _settings(given: Mapping[str, str] | None) -> str:
    """An engine's settings; a number of processors, which depends on the machine, in words."""
    if given is None:
        return "`None`"
    numbers = {str(_MANY): "all processors", str(_MANY // 2): "half the processors"}
    return ", ".join(f"`{name}` = {numbers.get(value, value)}" for name, value in given.items())


_MANY = 64
"""The number of processors in the tables: half of it equals no other setting."""


_COMMAND_LINE = """# The command line

Generated from the commands by `scripts/write_tables.py`; do not edit.

Every command takes `--json`, which prints one JSON document and nothing else, and `--help`. The
exit status is 1 on an error, which `--json` prints as `{"error": …, "type": …}`, 2 on wrong usage
and 130 after Ctrl-C. A terminal shows tables with rules, and
[bars](how-to/notebooks.md#progress) for what takes longer than a second; a pipe or file gets
aligned plain text of any width, and standard error a line of progress from time to time.

`crosschip --version` prints the version; `crosschip --install-completion` makes the shell
complete commands, options, devices and operators.

## Compiling

Options of all commands that compile or place a model. [Options](options.md) and
[placement](placement.md) describe them in full.

"""


def _command_line() -> str:
    """The page of the commands, from what they say of themselves."""
    commands = dict(_commands("crosschip", typer.main.get_command(cli.app())))
    shared = {field.name for field in fields(Compilation)}
    compiling = next(c for c in commands.values() if shared <= {p.name for p in c.params})
    parts = [_COMMAND_LINE + _parameters([p for p in compiling.params if p.name in shared])]
    for name, command in commands.items():
        whole = shared <= {p.name for p in command.params}
        hidden = {"as_json", *(shared if whole else ())}
        left = [p for p in command.params if p.name not in hidden]
        also = "Besides all options of [compiling](#compiling):\n\n" if whole and left else ""
        parts.append(f"## `{name}`\n\n{command.help}\n\n{also}{_parameters(left)}")
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """The commands in a group, and in those in it, with what one types for them."""
    if not isinstance(command, TyperGroup):
        yield name, command
        return
    context = command.make_context(name, [], resilient_parsing=True)
    for inner in command.list_commands(context):
        yield from _commands(f"{name} {inner}", command.get_command(context, inner))


def _parameters(parameters: Sequence[Any]) -> str:
    rows = []
    for each in sorted(parameters, key=lambda each: each.param_type_name):
        is_option = each.param_type_name == "option"
        names = [*each.opts, *each.secondary_opts] if is_option else [each.name.upper()]
        default = each.default if each.default not in (None, False, "", ()) else ""
        default = getattr(default, "value", default)
        default = "" if callable(default) or default is True else default
        rows.append(
            (" ".join(f"`{n}`" for n in names), f"`{default}`" if default != "" else "", each.help)
        )
    return _table(("", "default", "what it does"), rows) if rows else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _filled(text: str, name: str, table: str) -> str:
    pattern = rf"(<!-- table:{name} -->\n).*?(<!-- end -->)"
    return re.sub(pattern, lambda found: found[1] + table + found[2], text, flags=re.DOTALL)


def _old(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
