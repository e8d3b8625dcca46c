"""The base of operators that packages bring, as the rest of crosschip knows them.

Their slots, inference and rules come from OpDef documents: see `crosschip.opdef`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from crosschip.ops.definition.operator import Operator


class PackagedOperator(Operator):
    """Base of operators that packages bring.

    Attributes:
        package: the name of the package.
        domain: the set of operators that it belongs to, in a model that has such sets.
        title: its name in a framework's file; its own `type` is both, with a point between.
        overrides: whether it takes the place of what a framework's own operator of this title is
            imported as, and of the standard operator of this name.
        tensors: the slot of each input and parameter, by its name in the definition.
        results: the names of its outputs in the definition.
        repeats: whether the last of them stands for any number.
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
        """SHA-256, in hexadecimal, over all that says what it computes."""
        raise NotImplementedError

    @classmethod
    def computes(cls) -> bool:
        """Tell whether it has a reference of its own, besides what it decomposes into."""
        raise NotImplementedError

    def restriction(self, device: str) -> tuple[str, str] | None:
        """The rule of its definition for a device that it breaks: the slot, and what it says."""
        return None
