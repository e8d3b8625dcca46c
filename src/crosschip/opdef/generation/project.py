"""In-memory content of a generated project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from crosschip.ir import InputError
from crosschip.opdef.definitions import OpDefCollection

if TYPE_CHECKING:
    from crosschip.opdef.generation.backends import Backend


class Target(StrEnum):
    """Language of the generated operators."""

    PYTHON = "python"
    NATIVE = "native"


@dataclass
class Project:
    """Content of a generated project.

    Attributes:
        name: the name of the Python package and of the project's folder.
        collection: the definitions.
        target: the language.
        backends: the requested backends; empty for all.
        operators: the operators, in order.
        files: the content by path.
        operator_of_file: the operator of a file, by path.
    """

    name: str
    collection: OpDefCollection
    target: Target
    backends: Sequence[Backend]
    operators: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    operator_of_file: dict[str, str] = field(default_factory=dict)

    def add(self, path: str, text: str | bytes, operator: str = "") -> None:
        """Add a file.

        Raises:
            InputError: another operator needs the same file.
        """
        if path in self.files:
            raise InputError(
                f"{self.collection.package_name}: the operators {self.operator_of_file[path]!r} "
                f"and {operator!r} would both be written to {path}; rename one of them"
            )
        self.files[path] = text.encode() if isinstance(text, str) else text
        if operator:
            self.operator_of_file[path] = operator
