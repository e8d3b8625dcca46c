"""A project that is to be written: its files, and the operators that they are of."""

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
    """The language that operators are to be written in."""

    PYTHON = "python"
    NATIVE = "native"


@dataclass
class Project:
    """A project to be written.

    Attributes:
        name: the name of its package in Python, and of its folder.
        collection: the definitions.
        target: the language.
        backends: the backends that it is generated for; if none, all that there are.
        operators: the operators in it, in order.
        files: the text of each file, by its path in the project.
        operator_of_file: the operator that a file is of, by path.
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
            InputError: another operator has it already.
        """
        if path in self.files:
            raise InputError(
                f"{self.collection.package_name}: the operators {self.operator_of_file[path]!r} "
                f"and {operator!r} would both be written to {path}; rename one of them"
            )
        self.files[path] = text.encode() if isinstance(text, str) else text
        if operator:
            self.operator_of_file[path] = operator
