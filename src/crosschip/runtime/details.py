"""What a compiled model is asked for besides running."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.runtime.artifact.header import Identity
    from crosschip.runtime.cache.entry import Entry
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.placement.placing import Placement


@dataclass(frozen=True, slots=True)
class Details:
    """The ways to make what few ask for, each followed when somebody does.

    Attributes:
        placement: who runs what, and why.
        identity: by what the compiled model is known.
        recompiled_without: compiles the model for all devices but the named one; `None` if there is
            no other.
        recompiled_unconditionally: compiles the model without the operations that a device computes
            right for some inputs only; `None` if there is no other device.
        programs: where the program of each segment is kept; `None` if one is not.
        anew: compiles the model from what it was imported from; `None` if it has been.
    """

    placement: Callable[[], Placement]
    identity: Callable[[], Identity]
    recompiled_without: Callable[[str], CompiledModel] | None = None
    recompiled_unconditionally: Callable[[], CompiledModel] | None = None
    programs: Sequence[Entry] | None = None
    anew: Callable[[], CompiledModel] | None = None
