"""Generating projects from documents, and saying what changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosschip.opdef.documents import read, write
from crosschip.opdef.generation import writing
from crosschip.opdef.generation.backends import backends_in
from crosschip.opdef.generation.changes import changes, package_changes
from crosschip.opdef.generation.planning import checked, planned
from crosschip.opdef.generation.project import Project, Target
from crosschip.opdef.generation.texts import listed
from crosschip.opdef.generation.writing import Comparison, State, compared
from crosschip.opdef.merging import merged


@dataclass(frozen=True)
class Change:
    """A change since a project was generated last.

    Attributes:
        operator: the operator; empty if it is one of the package as a whole.
        how: `added`, `removed` or `changed`.
        what: the differences of its definition, each a sentence's end.
        edited: its files, or the package's, that have been edited, and are left alone.
    """

    operator: str
    how: str
    what: Sequence[str]
    edited: Sequence[str]

    def __str__(self) -> str:
        left = (
            [f"{listed(self.edited)} {_were(self.edited)} edited and left alone"]
            if self.edited
            else []
        )
        name = [f"{self.operator}: "] if self.operator else []
        return "".join([*name, "; ".join([*self.what, *left])])


@dataclass(frozen=True)
class Report:
    """An account of a project that has been generated.

    Attributes:
        package: the name of the package.
        target: the language of its operators.
        folder: the project's folder.
        operators: the operators in it.
        files: what became of each file, by path.
        changes: what changed since it was generated last; nothing if it is new.
        notes: what there is to know besides.
    """

    package: str
    target: Target
    folder: Path
    operators: Sequence[str]
    files: dict[str, State]
    changes: Sequence[Change]
    notes: Sequence[str]


def generate(
    files: Iterable[Path],
    target: Target,
    output: Path,
    *,
    backends: Sequence[str] = (),
    devices: Collection[str] = (),
) -> list[Report]:
    """Write a project for each package that documents define; files of one package go together.

    Nothing is written unless all of it can be: see `writing` for what is there already.

    Args:
        files: the documents.
        target: the language of the operators.
        output: the folder that the projects' folders are made in.
        backends: the backends that must have an operator, one of them at least, by their names in
            the documents or as devices; each that is a device gets stubs of functions.
        devices: the devices that there are.

    Raises:
        OpDefError: a document cannot be read, or breaks a rule.
        InputError: a definition makes no operator, or something stands in the way.
    """
    projects = []
    documents = [read(path) for path in dict.fromkeys(files)]
    for collection in merged(document.collection for document in documents):
        own = [d for d in documents if d.collection.package_name == collection.package_name]
        chosen = backends_in(collection, backends, devices)
        content = own[0].source.content if len(own) == 1 else write(collection)
        projects.append(planned(collection, content, target, chosen))
    comparisons = [compared(project, output) for project in checked(projects)]
    for comparison in comparisons:
        writing.write(comparison)
    return [_report(comparison) for comparison in comparisons]


def _report(comparison: Comparison) -> Report:
    project = comparison.project
    return Report(
        project.collection.package_name,
        project.target,
        comparison.folder,
        project.operators,
        dict(sorted(comparison.states.items())),
        list(_changes(comparison)),
        list(_notes(project)),
    )


def _notes(project: Project) -> Iterable[str]:
    for backend in project.backends:
        if backend.device is None:
            yield f"there is no device for {backend.name}: no functions were written for it"


def _changes(comparison: Comparison) -> Iterable[Change]:
    record, project = comparison.record, comparison.project
    if record is None:
        return
    old, new = record.collection, project.collection
    differences = changes(old, new)
    for name in dict.fromkeys((*record.operators, *project.operators)):
        edited = _edited_files(comparison, name)
        if name not in project.operators:
            gone = "is gone" if name not in new.op_defs else "is of none of the backends"
            yield Change(name, "removed", [gone], edited)
        elif name not in record.operators:
            yield Change(name, "added", ["is new"], edited)
        elif name in differences or not comparison.outdated.isdisjoint(edited):
            yield Change(name, "changed", differences.get(name, ()), edited)
    outdated = [path for path in _edited_files(comparison, "") if path in comparison.outdated]
    package_differences = package_changes(old, new)
    if package_differences or outdated:
        yield Change("", "changed", package_differences, outdated)


def _edited_files(comparison: Comparison, operator: str) -> list[str]:
    """Return the files of an operator, or of the package as a whole, that have been edited."""
    before = comparison.record.operator_of_file if comparison.record else {}
    operator_of_file = {**before, **comparison.project.operator_of_file}
    return sorted(
        path
        for path, state in comparison.states.items()
        if state in (State.KEPT, State.LEFT) and operator_of_file.get(path, "") == operator
    )


def _were(paths: Sequence[str]) -> str:
    return "were" if len(paths) > 1 else "was"
