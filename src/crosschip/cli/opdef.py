"""`crosschip opdef`."""

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosschip.cli import _options
from crosschip.cli._show import console, document, showing_progress, table
from crosschip.conformance.opdefs import standard_collection
from crosschip.ir import InputError
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.text import legible
from crosschip.opdef.definitions import OpDef, OpDefCollection, Tensor, plain
from crosschip.opdef.differences import differences
from crosschip.opdef.documents import read, write
from crosschip.opdef.generation.project import Target
from crosschip.opdef.merging import merge_collections
from crosschip.opdef.problems import OpDefError, Problem
from crosschip.opdef.schema import require_xmlschema
from crosschip.runtime.artifact.atomic_files import write_user_file
from crosschip.runtime.discovery import open_device, origins

if TYPE_CHECKING:
    from crosschip.opdef.generation.generator import Report

app = typer.Typer(help="Operator definitions in XML (OpDef).", no_args_is_help=True)

Files = Annotated[list[Path], typer.Argument(help="OpDef documents.")]


@app.command()
def validate(
    files: Files,
    together: Annotated[
        bool,
        typer.Option(
            "--together", help="Also as packages: files with the same name belong together."
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Also refuse mistakes that vendors' own documents contain."),
    ] = False,
    as_json: _options.Json = False,
) -> None:
    """Check documents; the exit status is 1 if one breaks a rule."""
    good: dict[Path, OpDefCollection] = {}
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for path in files:
        try:
            document_read = read(path, strict=strict)
            good[path] = document_read.collection
            warnings += document_read.warnings
        except OpDefError as error:
            problems += error.problems
    if together and len(good) == len(set(files)):
        try:
            merge_collections(good.values())
        except OpDefError as error:
            problems += error.problems
    if as_json:
        files_read = [_brief(path, collection) for path, collection in good.items()]
        document(
            {"files": files_read, "problems": _places(problems), "warnings": _places(warnings)}
        )
    else:
        for path, collection in good.items():
            count = len(collection.op_defs)
            console.print(
                f"{legible(str(path))}: package {collection.package_name}, {count} operators",
                highlight=False,
            )
        for problem in problems:
            console.print(str(problem), highlight=False)
    if problems:
        raise typer.Exit(1)


@app.command()
def show(
    files: Files,
    operator: Annotated[str | None, typer.Option(help="Show all of one operator.")] = None,
    as_json: _options.Json = False,
) -> None:
    """Show the definitions in documents; files of one package are read together."""
    packages = merge_collections(read(path).collection for path in files)
    if operator is not None:
        packages_with_it = [c for c in packages if operator in c.op_defs]
        if not packages_with_it:
            names = [name for c in packages for name in c.op_defs]
            raise InputError(f"there is no operator {operator!r}{did_you_mean(operator, names)}")
        _show_operators(packages_with_it, operator, as_json)
    elif as_json:
        document([plain(collection) for collection in packages])
    else:
        for collection in packages:
            _show_package(collection)


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(help="An OpDef document.")],
    new: Annotated[Path, typer.Argument(help="The other document.")],
    as_json: _options.Json = False,
) -> None:
    """List the differences of two documents; the exit status is 1 if there are any."""
    all_differences = list(differences(read(old).collection, read(new).collection))
    if as_json:
        document([asdict(difference) for difference in all_differences])
    elif all_differences:
        rows = [(d.path, d.how, _value(d.before), _value(d.after)) for d in all_differences]
        table("Differences", ("what", "how", "before", "after"), rows)
    else:
        console.print("no differences")
    if all_differences:
        raise typer.Exit(1)


@app.command()
def export(
    device: Annotated[
        list[str] | None, typer.Option("--device", help="A device to ask what it supports.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="The file to write; standard output if left out.")
    ] = None,
    as_json: _options.Json = False,
) -> None:
    """Write the standard operators as one document, with a supplement for each device."""
    require_xmlschema()
    with ExitStack() as opened, showing_progress("asking the devices"):
        devices = [opened.enter_context(open_device(name)) for name in dict.fromkeys(device or ())]
        collection = standard_collection(devices)
        content = write(collection)
    if output is not None:
        write_user_file(output, [content])
    if as_json:
        written = {"document": content.decode()} if output is None else {"file": str(output)}
        document({"operators": len(collection.op_defs), "devices": _counts(collection), **written})
    elif output is None:
        print(content.decode(), end="")
    else:
        rows = list(_counts(collection).items())
        console.print(f"{len(collection.op_defs)} operators, in {legible(str(output))}")
        if rows:
            table("", ("device", "operators"), rows, numbers="operators")


@app.command()
def generate(
    files: Files,
    target: Annotated[Target, typer.Option(help="python, or native for kernels in C.")],
    backend: Annotated[
        list[str] | None,
        typer.Option(
            "--backend",
            help="Only operators of this backend, as in openvino; stubs of a device include it.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="The folder in which to create the package's folder.")
    ] = Path(),
    as_json: _options.Json = False,
) -> None:
    """Write a project for each package: stubs and tests; what has been edited is left alone."""
    from crosschip.opdef.generation.generator import generate as generated

    chosen = list(dict.fromkeys(backend or ()))
    reports = generated(files, target, output, backends=chosen, devices=list(origins()))
    if as_json:
        document(
            {"projects": [asdict(report) | {"folder": str(report.folder)} for report in reports]}
        )
    else:
        for report in reports:
            _show_project(report)


def _places(problems: list[Problem]) -> list[dict[str, object]]:
    return [asdict(problem.location) | {"message": problem.message} for problem in problems]


def _brief(path: Path, collection: OpDefCollection) -> dict[str, object]:
    operators = list(collection.op_defs)
    return {"file": str(path), "package": collection.package_name, "operators": operators}


def _counts(collection: OpDefCollection) -> dict[str, int]:
    """Return the number of operators that each backend supports."""
    return {s.backend: len(s.supported.names) if s.supported else 0 for s in collection.supplements}


def _show_project(report: "Report") -> None:
    from crosschip.opdef.generation.writer import State

    folder = legible(str(report.folder))
    operators = ", ".join(report.operators)
    console.print(f"{report.package} in {folder}: {operators}", highlight=False)
    for path, state in report.files.items():
        if state is not State.SAME:
            console.print(f"  {state:8} {legible(path)}", highlight=False)
    for line in (*report.changes, *report.notes):
        console.print(str(line), highlight=False)
    console.print(f"next: pip install -e {folder} && pytest {folder}", highlight=False)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return legible(str(value.get("name", "…")))
    return "" if value is None else legible(str(value))


def _show_package(collection: OpDefCollection) -> None:
    table(
        legible(f"{collection.package_name} {collection.version}, domain {collection.domain!r}"),
        ("operator", "inputs", "outputs", "parameters", "backends"),
        [
            (
                op_def.name,
                *(
                    _names(tensors)
                    for tensors in (op_def.inputs, op_def.outputs, op_def.parameters)
                ),
                legible(", ".join(collection.backends_of(op_def))),
            )
            for op_def in collection.definitions.op_defs
        ],
    )


def _names(tensors: tuple[Tensor, ...]) -> str:
    """Return the names of tensors; optional ones in brackets."""
    names = (tensor.name if tensor.mandatory else f"[{tensor.name}]" for tensor in tensors)
    return legible(", ".join(names))


def _show_operators(packages: list[OpDefCollection], name: str, as_json: bool) -> None:
    """Print the operators of each package, with the backends' support."""
    descriptions: list[dict[str, Any]] = [
        {
            "package": collection.package_name,
            "operator": plain(collection.op_defs[name]),
            "backends": list(collection.backends_of(collection.op_defs[name])),
            "supplements": {
                supplement.backend: plain(op_def)
                for supplement in collection.supplements
                for op_def in supplement.op_defs
                if op_def.name == name
            },
        }
        for collection in packages
    ]
    if as_json:
        document(descriptions)
        return
    for collection, operator in zip(packages, descriptions, strict=True):
        _show_operator(collection.op_defs[name], operator)


def _show_operator(op_def: OpDef, description: dict[str, Any]) -> None:
    console.print(f"{op_def.name} of {description['package']}\n", style="bold")
    for part in op_def.description.parts if op_def.description else ():
        console.print(legible(" ".join(part.text.split())) + "\n", highlight=False)
    roles = [
        (role, t) for role in ("inputs", "outputs", "parameters") for t in getattr(op_def, role)
    ]
    rows = [_row(role[:-1], tensor) for role, tensor in roles]
    table("Tensors", ("name", "what", "datatypes", "rank", "default", "constraints"), rows)
    supplements = [
        (backend, tensor["name"], ", ".join(map(_short, tensor.get("datatypes", ()))),
         "only its default" if tensor.get("only_default") else "")
        for backend, supplement in description["supplements"].items()
        for role in ("inputs", "outputs", "parameters")
        for tensor in supplement.get(role, ())
    ]  # fmt: skip
    if supplements:
        table("Supplements", ("backend", "tensor", "datatypes", "supports"), supplements)
    if description["backends"]:
        console.print(legible(f"Backends: {', '.join(description['backends'])}"), highlight=False)


def _row(role: str, tensor: Tensor) -> tuple[str, ...]:
    words = [role, *(["many"] if getattr(tensor, "repeated", False) else [])]
    default = getattr(tensor, "default", None)
    missing = "required" if tensor.mandatory else "left out"
    return (
        legible(tensor.name),
        ", ".join(words),
        ", ".join(_short(datatype.value) for datatype in tensor.datatypes),
        tensor.shape.rank.value,
        missing if default is None else legible(default.strip()),
        legible("; ".join(constraint.text.strip() for constraint in tensor.constraints)),
    )


def _short(datatype: str) -> str:
    return datatype.removeprefix("QNN_DATATYPE_")
