"""The report of a compilation, and further information about a compiled model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.runtime.artifact.header import Identity
    from crosschip.runtime.cache.entry import Entry
    from crosschip.runtime.choice import Choice, Move
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.placement.placement import Placement


@dataclass(frozen=True, slots=True)
class CompileReport:
    """The report of one compilation.

    Attributes:
        milliseconds: the time of the whole compilation.
        choice: the measurements behind `"auto"` with the shapes of the inputs; `None` if the caller
            named devices. With `wait=False`, `None` until devices have been tried.
        moves: the moves to faster devices so far, with `wait=False`.
    """

    milliseconds: float
    _cache: Callable[[], str]
    choice: Choice | None = None
    moves: tuple[Move, ...] = ()

    def __repr__(self) -> str:
        return f"CompileReport(milliseconds={self.milliseconds!r}, cache={self.cache!r})"

    @property
    def cache(self) -> str:
        """The origin of the programs, including those compiled for the shapes of runs.

        `hit` if all came from the cache, `miss` if one did not, `off` if there is no cache, no
        device saves programs or none was needed yet; `file` if all came from a saved file.
        """
        return self._cache()


@dataclass(frozen=True, slots=True)
class Details:
    """Functions that compute information about a compiled model on demand.

    Attributes:
        placement: computes the placement with reasons.
        identity: identifies the compiled model.
        recompiled_without: compiles the model without the named device; `None` if there is no
            other.
        recompiled_without_conditions: compiles the model so that no device gets operations that it
            computes right for some inputs only; `None` if there is no other device.
        programs: the cache location of each segment's program; `None` if one is not cached.
        recompiled: compiles the model from its original file with all weights; `None` if it has
            them.
    """

    placement: Callable[[], Placement]
    identity: Callable[[], Identity]
    recompiled_without: Callable[[str], CompiledModel] | None = None
    recompiled_without_conditions: Callable[[], CompiledModel] | None = None
    programs: Sequence[Entry] | None = None
    recompiled: Callable[[], CompiledModel] | None = None
