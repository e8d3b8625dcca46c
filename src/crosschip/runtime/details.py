"""The report of a compilation, and the details of a compiled model that few callers read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.runtime.artifact.header import Identity
    from crosschip.runtime.cache.entry import Entry
    from crosschip.runtime.choice import Choice
    from crosschip.runtime.compiled import CompiledModel
    from crosschip.runtime.placement.placing import Placement


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Report of one compilation.

    Attributes:
        milliseconds: from the call to the compiled model.
        choice: how the devices did that `"auto"` means, and at which shapes of the inputs; `None`
            if the caller named devices.
    """

    milliseconds: float
    _cache: Callable[[], str]
    choice: Choice | None = None

    def __repr__(self) -> str:
        return f"CompileReport(milliseconds={self.milliseconds!r}, cache={self.cache!r})"

    @property
    def cache(self) -> str:
        """Where its programs came from, with those that runs have needed so far for their shapes.

        `hit` if every program came from the cache, `miss` if one did not, `off` if the cache is not
        used, no device saves its programs or none was needed yet; `file` if all came from a saved
        file.
        """
        return self._cache()


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
