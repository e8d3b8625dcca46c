"""Merging of several documents of one package into one collection.

Documents with the same `PackageName` form one package, for example with a file per backend.
Definitions that occur in several documents must agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from crosschip.opdef.definitions import (
    Node,
    OpDef,
    OpDefCollection,
    SupplementalOpDefList,
    SupportedOps,
    layout_of,
)
from crosschip.opdef.differences import differences
from crosschip.opdef.problems import Location, Problem, refuse
from crosschip.opdef.rules import rule_problems

N = TypeVar("N", bound=Node)

_NOWHERE = Location(0, 0)


def merge_collections(collections: Iterable[OpDefCollection]) -> tuple[OpDefCollection, ...]:
    """Return one collection per package, in the order of first occurrence.

    Several files may define an operator if the definitions differ only in the backends, which are
    united. Lists of supported operators and supplements are united likewise.

    Raises:
        OpDefError: documents contradict each other, or together break a rule; the message names
            both locations.
    """
    packages: dict[str, OpDefCollection] = {}
    problems: list[Problem] = []
    for collection in collections:
        first = packages.get(collection.package_name)
        if first is None:
            packages[collection.package_name] = collection
        else:
            packages[collection.package_name] = _merge_pair(first, collection, problems)
    refuse(problems)
    refuse(
        problem
        for collection in packages.values()
        for problem in rule_problems(collection)
        if not problem.is_tolerated
    )
    return tuple(packages.values())


def _merge_pair(
    first: OpDefCollection, second: OpDefCollection, problems: list[Problem]
) -> OpDefCollection:
    problems += _attribute_problems(first, second)
    op_defs = dict(first.op_defs)
    for op_def in second.definitions.op_defs:
        previous = op_defs.get(op_def.name)
        if previous is not None:
            backends = tuple(dict.fromkeys((*previous.backends, *op_def.backends)))
            problems += _contradictions(f"the operator {op_def.name!r}", previous, op_def)
            op_def = replace(previous, backends=backends)
        op_defs[op_def.name] = op_def
    lists = {supplement.backend: supplement for supplement in first.supplements}
    for supplement in second.supplements:
        of_backend = lists.get(supplement.backend)
        if of_backend is not None:
            supplement = _merge_supplements(of_backend, supplement, problems)
        lists[supplement.backend] = supplement
    definitions = replace(first.definitions, op_defs=tuple(op_defs.values()))
    return replace(first, definitions=definitions, supplements=tuple(lists.values()))


def _attribute_problems(first: OpDefCollection, second: OpDefCollection) -> Iterator[Problem]:
    for name, xml in layout_of(OpDefCollection).items():
        value, other = getattr(first, name), getattr(second, name)
        if xml.attribute and value != other:
            yield Problem(
                second.location or _NOWHERE,
                f"the package {first.package_name!r} has {xml.attribute} {other!r} here, but "
                f"{value!r} at {first.location}",
            )


def _contradictions(what: str, first: N, second: N) -> Iterator[Problem]:
    """Yield a problem if two definitions differ in more than the backends."""
    one, other = _without_backends(first), _without_backends(second)
    difference = next(differences(one, other), None)
    if difference is not None:
        yield Problem(
            second.location or _NOWHERE,
            f"{what} is defined otherwise at {first.location}: {difference.path or 'it'} is "
            f"{difference.how}; what depends on the backend stands in SupplementalOpDefs",
        )


def _without_backends(node: N) -> N:
    return replace(node, backends=()) if isinstance(node, OpDef) else node


def _merge_supplements(
    first: SupplementalOpDefList, second: SupplementalOpDefList, problems: list[Problem]
) -> SupplementalOpDefList:
    op_defs = {op_def.name: op_def for op_def in first.op_defs}
    for op_def in second.op_defs:
        if op_def.name in op_defs:
            what = f"{first.backend}'s supplement to {op_def.name!r}"
            problems += _contradictions(what, op_defs[op_def.name], op_def)
        op_defs.setdefault(op_def.name, op_def)
    supported = _merge_supported([first.supported, second.supported])
    return replace(first, supported=supported, op_defs=tuple(op_defs.values()))


def _merge_supported(lists: Sequence[SupportedOps | None]) -> SupportedOps | None:
    supported_lists = [supported for supported in lists if supported is not None]
    if not supported_lists:
        return None
    names = dict.fromkeys(name for supported in supported_lists for name in supported.names)
    return replace(supported_lists[0], names=tuple(names))
