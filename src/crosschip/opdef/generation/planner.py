"""Content of a project's files, computed from definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from crosschip.ir import InputError
from crosschip.opdef.custom.package import Package
from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.generation import native, python
from crosschip.opdef.generation.backends import Backend
from crosschip.opdef.generation.names import is_distribution, package_name
from crosschip.opdef.generation.project import Project, Target
from crosschip.opdef.generation.sketches import Sketch, make_sketch
from crosschip.opdef.generation.texts import (
    WIDTH,
    fill_template,
    import_statement,
    in_docstring,
    join_words,
    sentence,
)

DEFINITIONS = "operators.xml"
"""The file name of the document in a project's package."""


def build_project(
    collection: OpDefCollection, document: bytes, target: Target, backends: Sequence[Backend]
) -> Project:
    """Build the project of a package.

    Args:
        collection: the definitions.
        document: the document with the definitions.
        target: the language of the operators.
        backends: the backends; only operators that one of them supports are included.

    Raises:
        InputError: a definition yields no operator, or two operators need the same file.
    """
    project = Project(package_name(collection.package_name), collection, target, backends)
    package = Package(collection)
    sketches = [
        make_sketch(package, op_def)
        for op_def in collection.definitions.op_defs
        if not backends or any(op_def.name in backend.operators for backend in backends)
    ]
    project.operators += [sketch.op_def.name for sketch in sketches]
    source = f"src/{project.name}"
    for sketch in sketches:
        if target is Target.NATIVE:
            native.add_operator(project, sketch)
        else:
            python.add_operator(project, sketch)
        project.add(f"tests/test_{sketch.module}.py", _test(project, sketch), sketch.op_def.name)
    for backend in _with_devices(backends):
        _add_functions(project, backend, sketches)
    project.add(f"{source}/{DEFINITIONS}", document)
    description = f"The operators of the package {collection.package_name}."
    project.add(f"{source}/__init__.py", _init_file(description, _imports(project, sketches)))
    project.add(f"{source}/_package.py", _package(project))
    project.add("pyproject.toml", _settings(project))
    project.add("README.md", _readme(project, sketches))
    if target is Target.NATIVE:
        native.add_library(project)
    return project


def _with_devices(backends: Sequence[Backend]) -> list[Backend]:
    return list({b.converter: b for b in reversed(backends) if b.device}.values())[::-1]


def _folder(backend: Backend) -> str:
    return f"on_{re.sub('[^a-z0-9]+', '_', backend.converter.lower())}"


def _add_functions(project: Project, backend: Backend, sketches: Sequence[Sketch]) -> None:
    """Add a converter stub for each operator that a backend supports."""
    folder = f"src/{project.name}/{_folder(backend)}"
    if f"{folder}.py" in project.files:
        owner = project.operator_of_file[f"{folder}.py"]
        raise InputError(
            f"{project.collection.package_name}: {folder}.py of the operator {owner!r} would stand "
            f"beside the folder {folder}; rename the operator"
        )
    supported = [sketch for sketch in sketches if sketch.op_def.name in backend.operators]
    hint = (
        "`graph[op.{}]` is what stands for an input. The device says that it does not have the "
        "operator until `limit=not_written` is taken away."
    )
    for sketch in supported:
        text = fill_template(
            "common/device.py",
            title=sketch.op_def.name,
            device=backend.converter,
            package=project.name,
            operator=import_statement(f"{project.name}.{sketch.module}", sketch.class_name),
            hint=in_docstring(sentence(hint.format(sketch.inputs[0][1].name), WIDTH - 4), " " * 4),
            **{"class": sketch.class_name},
        )
        project.add(f"{folder}/{sketch.module}.py", text, sketch.op_def.name)
    imports = {
        folder.removeprefix("src/").replace("/", "."): [sketch.module for sketch in supported]
    }
    description = f"Functions for the device {backend.converter}."
    project.add(f"{folder}/__init__.py", _init_file(description, imports))


def _test(project: Project, sketch: Sketch) -> str:
    imports = f"\n{import_statement(f'{project.name}.{sketch.module}', sketch.class_name)}\n"
    if project.target is Target.NATIVE:
        imports = f"\nfrom {project.name}._package import LIBRARY{imports}"
        imports += '\nassert LIBRARY.exists(), "build it first: make"\n'
    return fill_template(
        "common/test_operator.py",
        title=sketch.op_def.name,
        imports=imports,
        slot=sketch.inputs[0][1].name,
        file=f"{sketch.module}.{'c' if project.target is Target.NATIVE else 'py'}",
        **{"class": sketch.class_name},
    )


def _package(project: Project) -> str:
    has_functions = bool(_with_devices(project.backends))
    library = f'LIBRARY = Path(__file__).with_name("lib{project.name}.so")\n'
    return (
        fill_template(
            "common/_package.py",
            title=project.collection.package_name,
            imports="hal, opdef" if has_functions else "opdef",
            library=library if project.target is Target.NATIVE else "",
            not_written=fill_template("common/not_written.py").rstrip("\n")
            if has_functions
            else "",
        ).rstrip("\n")
        + "\n"
    )


def _imports(project: Project, sketches: Sequence[Sketch]) -> dict[str, list[str]]:
    """Return the names that the package imports, by module."""
    folders = [_folder(backend) for backend in _with_devices(project.backends)]
    return {
        **({project.name: folders} if folders else {}),
        f"{project.name}._package": ["package"],
        **{f"{project.name}.{s.module}": [s.class_name] for s in sketches},
    }


def _init_file(description: str, imports: Mapping[str, Sequence[str]]) -> str:
    """Return the content of an `__init__.py` that imports names from modules."""
    lines = [
        import_statement(module, *sorted(imports[module], key=_natural_order))
        for module in sorted(imports, key=_natural_order)
    ]
    all_names = sorted(name for names in imports.values() for name in names)
    return fill_template(
        "common/__init__.py",
        description=description,
        imports="\n".join(lines),
        names="\n".join(f'    "{name}",' for name in all_names),
    )


def _natural_order(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key that orders numbers in names by value."""
    parts = re.findall(r"\d+|\D", name)
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def _settings(project: Project) -> str:
    collection = project.collection
    is_native = project.target is Target.NATIVE
    hook = '\n[tool.hatch.build.targets.wheel.hooks.custom]\npath = "hatch_build.py"\n'
    return fill_template(
        "common/pyproject.toml",
        distribution=project.name.strip("_").replace("_", "-"),
        version=collection.version if is_distribution(collection.version) else "0.1.0",
        title=collection.package_name,
        package=project.name,
        extras="native,opdef" if is_native else "opdef",
        hook=hook if is_native else "",
    )


def _readme(project: Project, sketches: Sequence[Sketch]) -> str:
    folder = "native/{}.c" if project.target is Target.NATIVE else f"src/{project.name}/{{}}.py"
    operators = [f"- `{s.op_def.name}`: `{folder.format(s.module)}`" for s in sketches]
    folders = [f"`src/{project.name}/{_folder(b)}`" for b in _with_devices(project.backends)]
    functions = f" Functions for devices go into {join_words(folders)}." if folders else ""
    return fill_template(
        f"{project.target}/README.md",
        title=project.collection.package_name,
        package=project.name,
        operators="\n".join(operators),
        devices=functions,
        options="".join(f" --backend {backend.name}" for backend in project.backends),
    )


def check_folders(projects: Sequence[Project]) -> Sequence[Project]:
    """Check that no two projects have the same folder, and return them.

    Raises:
        InputError: two projects have the same folder.
    """
    titles: dict[str, str] = {}
    for project in projects:
        title = project.collection.package_name
        other = titles.setdefault(project.name, title)
        if other != title:
            raise InputError(
                f"the packages {other!r} and {title!r} would both be written to the folder "
                f"{project.name}; rename one of them"
            )
    return projects
