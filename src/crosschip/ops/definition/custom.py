"""Base class of operators that packages define.

OpDef documents define their slots, inference and rules; see `crosschip.opdef`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from crosschip.ops.definition.operator import Operator


class PackagedOperator(Operator):
    """Base class of operators that packages define.

    Attributes:
        package: the name of the package.
        domain: the operator set that it belongs to, in file formats that have operator sets.
        title: its name in a framework's file; `type` is `domain.title`.
        overrides: whether it replaces the framework's operator of this title on import, and the
            standard operator of this name.
        tensors: the slot of each input and parameter, by its name in the definition.
        results: the names of its outputs in the definition.
        repeats: whether the last output stands for any number of outputs.
    """

    __slots__ = ()
    package: ClassVar[str]
    domain: ClassVar[str]
    title: ClassVar[str]
    overrides: ClassVar[bool] = False
    tensors: ClassVar[Mapping[str, str]] = {}
    results: ClassVar[Sequence[str]] = ()
    repeats: ClassVar[bool] = False

    @classmethod
    def code(cls) -> str:
        """Return the hexadecimal SHA-256 digest of everything that determines the result."""
        raise NotImplementedError

    @classmethod
    def computes(cls) -> bool:
        """Return whether it has a reference implementation, in addition to its decomposition."""
        raise NotImplementedError

    def restriction(self, device: str) -> tuple[str, str] | None:
        """Return slot and message of a device rule of its definition that it breaks, or None."""
        return None
