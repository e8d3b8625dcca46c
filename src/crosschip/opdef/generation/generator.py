"""Generation of projects from documents, with a report of changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from crosschip.ir.text import legible
from crosschip.opdef.definitions import OpDefCollection
from crosschip.opdef.differences import Difference, differences
from crosschip.opdef.documents import read, write
from crosschip.opdef.generation import writer
from crosschip.opdef.generation.backends import backends_in
from crosschip.opdef.generation.planner import build_project, check_folders
from crosschip.opdef.generation.project import Target
from crosschip.opdef.generation.texts import join_words
from crosschip.opdef.generation.writer import Comparison, State, compare
from crosschip.opdef.merging import merge_collections

_LONGEST = 60
"""The maximum length of values in sentences."""


@dataclass(frozen=True)
class Change:
    """Change since the last generation of a project.

    Attributes:
        operator: the operator; empty for the package as a whole.
        how: `added`, `removed` or `changed`.
        what: the differences between the definitions, as clauses that follow the operator's name.
        edited: the edited files of the operator or package, which were preserved.
    """

    operator: str
    how: str
    what: Sequence[str]
    edited: Sequence[str]

    def __str__(self) -> str:
        parts = list(self.what)
        if self.edited:
            verb = "were" if len(self.edited) > 1 else "was"
            parts.append(f"{join_words(self.edited)} {verb} edited and left alone")
        return (f"{self.operator}: " if self.operator else "") + "; ".join(parts)


@dataclass(frozen=True)
class Report:
    """Report on a generated project.

    Attributes:
        package: the name of the package.
        target: the language of its operators.
        folder: the project's folder.
        operators: the operators of the project.
        files: the state of each file, by path.
        changes: the changes since the last generation; empty for a new project.
        notes: remarks.
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
    """Write a project for each package in the documents; documents of one package are merged.

    All projects are checked before the first is written; see `writing` for existing files.

    Args:
        files: the documents.
        target: the language of the operators.
        output: the parent folder of the projects' folders.
        backends: names of backends or devices. Only operators that one of them supports are
            generated, with stubs of converters for each device.
        devices: the existing devices.

    Raises:
        OpDefError: a document cannot be read or breaks a rule.
        InputError: a definition yields no operator, or a file or folder is in the way.
    """
    projects = []
    documents = [read(path) for path in dict.fromkeys(files)]
    for collection in merge_collections(document.collection for document in documents):
        own_documents = [
            d for d in documents if d.collection.package_name == collection.package_name
        ]
        requested = backends_in(collection, backends, devices)
        content = own_documents[0].source.content if len(own_documents) == 1 else write(collection)
        projects.append(build_project(collection, content, target, requested))
    comparisons = [compare(project, output) for project in check_folders(projects)]
    for comparison in comparisons:
        writer.write(comparison)
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
        [
            f"there is no device for {backend.name}: no functions were written for it"
            for backend in project.backends
            if backend.device is None
        ],
    )


def _changes(comparison: Comparison) -> Iterable[Change]:
    record, project = comparison.record, comparison.project
    if record is None:
        return
    old, new = record.collection, project.collection
    differences_by_name = _all_changes(old, new)
    for name in dict.fromkeys((*record.operators, *project.operators)):
        edited = _edited_files(comparison, name)
        if name not in project.operators:
            reason = "is gone" if name not in new.op_defs else "is of none of the backends"
            yield Change(name, "removed", [reason], edited)
        elif name not in record.operators:
            yield Change(name, "added", ["is new"], edited)
        elif name in differences_by_name or not comparison.outdated.isdisjoint(edited):
            yield Change(name, "changed", differences_by_name.get(name, ()), edited)
    outdated = [path for path in _edited_files(comparison, "") if path in comparison.outdated]
    package_differences = _package_changes(old, new)
    if package_differences or outdated:
        yield Change("", "changed", package_differences, outdated)


def _edited_files(comparison: Comparison, operator: str) -> list[str]:
    """Return the edited files of an operator, or of the package as a whole."""
    before = comparison.record.operator_of_file if comparison.record else {}
    operator_of_file = {**before, **comparison.project.operator_of_file}
    return sorted(
        path
        for path, state in comparison.states.items()
        if state in (State.MODIFIED, State.LEFT) and operator_of_file.get(path, "") == operator
    )


def _all_changes(old: OpDefCollection, new: OpDefCollection) -> dict[str, list[str]]:
    """Return the differences between the definitions of each common operator."""
    return {
        op_def.name: sentences
        for op_def in new.definitions.op_defs
        if op_def.name in old.op_defs
        and (sentences := list(_definition_changes(old, new, op_def.name)))
    }


def _package_changes(old: OpDefCollection, new: OpDefCollection) -> list[str]:
    attributes = [d for d in differences(old, new) if "/" not in d.path and " " not in d.path]
    return [_sentence(difference) for difference in attributes]


def _definition_changes(old: OpDefCollection, new: OpDefCollection, name: str) -> Iterator[str]:
    for difference in differences(old.op_defs[name], new.op_defs[name]):
        yield _sentence(difference)
    before = {s.backend: s for s in old.supplements}
    after = {s.backend: s for s in new.supplements}
    for backend in dict.fromkeys((*before, *after)):
        definitions = [
            [
                supplemental
                for supplemental in supplements[backend].op_defs
                if supplemental.name == name
            ]
            for supplements in (before, after)
            if backend in supplements
        ]
        first, second = (
            (definitions[0] if backend in before else []),
            definitions[-1] if backend in after else [],
        )
        if first and second:
            for difference in differences(first[0], second[0]):
                yield f"for {legible(backend)}, {_sentence(difference)}"
        elif first or second:
            yield f"its supplement for {legible(backend)} is {'new' if second else 'gone'}"


def _sentence(difference: Difference) -> str:
    where, before, after = legible(difference.path), difference.before, difference.after
    match difference.how:
        case "added":
            return f"{_with_value(where, after)} is new"
        case "removed":
            return f"{_with_value(where, before)} is gone"
        case "reordered":
            return f"the order of {where} is another: {_brief(after)}"
    return f"{where} is {_brief(after)}, and was {_brief(before)}"


def _with_value(where: str, value: object) -> str:
    """Return a location, with its value if that is a scalar."""
    return where if isinstance(value, dict | list) or value is None else f"{where} {_brief(value)}"


def _brief(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_brief, value))
    text = legible(" ".join(str(value).split())) if not isinstance(value, dict) else "another"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
