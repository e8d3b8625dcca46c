"""Validation of documents against `opdef.xsd`, with readable messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosschip.ir import InputError
from crosschip.ir.errors import install_command
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.text import legible
from crosschip.opdef.problems import Location, Problem
from crosschip.opdef.tree import Element

if TYPE_CHECKING:
    import xmlschema

SCHEMA = Path(__file__).with_name("opdef.xsd")

_LONGEST = 40
_ATTRIBUTE = re.compile(r"attribute (\S+?)=(?:'.*'|\".*\"): ", re.DOTALL)
_MISSING = re.compile(r"missing required attribute '(.+)'")
_UNKNOWN = re.compile(r"'(.+)' attribute not allowed")
_PATTERNS = {
    "Identifier": "must be a name of letters, digits and _ that does not begin with a digit",
    "Word": "must be one word",
    "ConstraintId": "must be a number",
}
_REASONS = {
    "character data between child elements not allowed": "has text between its elements",
    "a simple content element can't have child elements": "holds a text, and no elements",
}


def require_xmlschema() -> None:
    """Raise an `InputError` unless xmlschema is installed."""
    try:
        import xmlschema  # noqa: F401
    except ImportError:
        raise InputError(
            f"OpDef documents are checked with xmlschema: {install_command('opdef')}"
        ) from None


@cache
def _schema() -> xmlschema.XMLSchema:
    require_xmlschema()
    import xmlschema

    return xmlschema.XMLSchema(str(SCHEMA))


def schema_problems(root: Element) -> Iterator[Problem]:
    """Yield the violations of the schema in a tree.

    Raises:
        InputError: xmlschema is not installed.
    """
    error: Any
    for error in _schema().iter_errors(root, use_location_hints=False):
        if hasattr(error, "index"):
            yield _children_problem(error)
        elif not (len(error.elem) and _is_text(error)):  # else reported as a child element
            yield _problem(error)


def _is_text(error: Any) -> bool:
    """Return whether an error concerns the text of an element."""
    return isinstance(error.obj, str) and not _ATTRIBUTE.match(error.reason or "")


def _children_problem(error: Any) -> Problem:
    """Return the problem for an error about child elements."""
    parent: Element = error.elem
    expected = " or ".join(error.expected_tags)
    if error.index >= len(parent):
        return Problem(parent.location, f"{_brief(parent.tag)}: ends without {expected or 'more'}")
    child: Element = parent[error.index]
    where, tag = f"{_brief(parent.tag)}: ", _brief(child.tag)
    permitted = {
        name for e in error.validator.iter_elements() if (name := getattr(e, "name", None))
    }
    if child.tag not in permitted:
        return Problem(
            child.location, f"{where}there is no {tag} in it{did_you_mean(child.tag, permitted)}"
        )
    if expected:
        return Problem(child.location, f"{where}{tag} stands where {expected} must")
    if error.index and parent[error.index - 1].tag == child.tag:
        return Problem(child.location, f"{where}has a second {tag}")
    return Problem(child.location, f"{where}{tag} stands too late in it")


def _problem(error: Any) -> Problem:
    """Return the problem for an error about text or attributes."""
    element: Element = error.elem
    location: Location = element.location
    reason: str = error.reason or ""
    tag = _brief(element.tag)
    if missing := _MISSING.match(reason):
        return Problem(location, f"{tag}.{missing[1]}: is required")
    if unknown := _UNKNOWN.match(reason):
        return Problem(location, f"{tag}: has no attribute {_brief(unknown[1])!r}")
    if "is not an element of the schema" in reason:
        return Problem(location, f"{tag}: the document must be an OpDefCollection")
    attribute = _ATTRIBUTE.match(reason)
    where = f"{tag}.{attribute[1]}" if attribute else tag
    value = error.obj if isinstance(error.obj, str) else ""
    if isinstance(choices := getattr(error.validator, "enumeration", None), list):
        if tag == "Datatype" and "/SupplementalOpDef" not in (error.path or ""):
            choices = [*choices, "BACKEND_SPECIFIC"]  # the other half of the union
        return Problem(location, f"{where}: {_choices(value, choices)}")
    if getattr(error.validator, "patterns", None):
        rule = _PATTERNS[str(error.validator.parent.local_name)]
        return Problem(location, f"{where}: {_brief(value)!r} {rule}")
    if "is not a boolean" in reason:
        return Problem(location, f"{where}: {_brief(value.strip())!r} is neither true nor false")
    return Problem(location, f"{where}: {_REASONS.get(reason, reason)}")


def _choices(value: str, choices: list[str]) -> str:
    value = value.strip()
    near = did_you_mean(value, choices) or did_you_mean(f"QNN_DATATYPE_{value}", choices)
    if len(choices) > 6:
        return f"{_brief(value)!r} is not one of the {len(choices)} that there are{near}"
    return f"{_brief(value)!r} is not {', '.join(choices[:-1])} or {choices[-1]}{near}"


def _brief(text: str) -> str:
    shown = legible(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
