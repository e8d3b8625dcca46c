"""Differences between two collections, node by node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crosschip.opdef.definitions import Node, Xml, layout_of, plain, values
from crosschip.opdef.mapping import tag_of

_KEYS = ("name", "backend", "id")
"""The fields that identify a node within a list."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between two collections.

    Attributes:
        path: the location, as tags and names: `OpDef Relu/Input in[0]/Datatype`.
        how: `added`, `removed`, `changed` or `reordered`.
        before: the old value as JSON; `None` if absent.
        after: the new value as JSON; `None` if absent.
    """

    path: str
    how: str
    before: Any = None
    after: Any = None


def differences(old: Node, new: Node, path: str = "") -> Iterator[Difference]:
    """Yield the differences between two nodes of one class, in document order."""
    for name, xml in layout_of(type(old)).items():
        before, after = values(old, name), values(new, name)
        if before == after:
            continue
        sample = (*before, *after)[0]
        if isinstance(sample, Node) and _key(sample) is not None:
            yield from _list_differences(xml, before, after, path)
        elif isinstance(sample, Node) and not xml.many and before and after:
            yield from differences(before[0], after[0], _child_path(path, xml, sample))
        else:
            where = f"{path}/{xml.attribute}" if xml.attribute else _child_path(path, xml, sample)
            yield from _value_differences(where.lstrip("/"), xml, before, after)


def _key(node: Node) -> object:
    return next((getattr(node, key) for key in _KEYS if hasattr(node, key)), None)


def _child_path(path: str, xml: Xml, value: object) -> str:
    """Return the path to a value, without tags that only group elements."""
    tag = tag_of(xml, value)
    if not tag or tag == "OpDefList" or len(xml.kinds) > 1:
        return path
    key = _key(value) if isinstance(value, Node) else None
    return f"{path}/{tag}{'' if key is None else f' {key}'}".lstrip("/")


def _list_differences(
    xml: Xml, before: Sequence[Node], after: Sequence[Node], path: str
) -> Iterator[Difference]:
    """Yield the differences between two lists of nodes that have keys."""
    old, new = {_key(node): node for node in before}, {_key(node): node for node in after}
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            yield Difference(_child_path(path, xml, old[key]), "removed", plain(old[key]))
        elif key not in old:
            yield Difference(_child_path(path, xml, new[key]), "added", None, plain(new[key]))
        else:
            yield from differences(old[key], new[key], _child_path(path, xml, old[key]))
    first, second = [key for key in old if key in new], [key for key in new if key in old]
    if first != second:
        where = f"{path}/{tag_of(xml, before[0])}".lstrip("/")
        yield Difference(where, "reordered", first, second)


def _value_differences(
    path: str, xml: Xml, before: Sequence[Any], after: Sequence[Any]
) -> Iterator[Difference]:
    old, new = [plain(value) for value in before], [plain(value) for value in after]
    if not xml.many or any(isinstance(value, Node) for value in (*before, *after)):
        was = old if xml.many else next(iter(old), None)
        now = new if xml.many else next(iter(new), None)
        how = "changed" if before and after else "added" if after else "removed"
        yield Difference(path, how, was, now)
        return
    first, second = set(old), set(new)
    removed, new_values = [v for v in old if v not in second], [v for v in new if v not in first]
    yield from (Difference(path, "removed", value) for value in removed)
    yield from (Difference(path, "added", None, value) for value in new_values)
    if not removed and not new_values:
        yield Difference(path, "reordered", old, new)
