"""The placement of a plan, restored when somebody asks for it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from crosschip.runtime.artifact.container import Artifact
from crosschip.runtime.artifact.header import MODELS, PLACEMENT, Header

if TYPE_CHECKING:
    from crosschip.runtime.placement.placing import Placement


class LazyPlacement:
    """A placement that is restored when it is asked for.

    Args:
        artifact: the plan, whose parts are read and checked at once.
        header: its header.
    """

    def __init__(self, artifact: Artifact, header: Header) -> None:
        self._models = bytes(artifact.part(MODELS))
        self._described = bytes(artifact.part(PLACEMENT))
        self._header = header
        self._lock = Lock()
        self._placement: Placement | None = None

    def placement(self) -> Placement:
        """Return the placement, without the large weights that the programs hold."""
        # Running needs none of it.
        from crosschip.runtime.artifact.compiled_model import restore_placement

        with self._lock:
            if self._placement is None:
                self._placement = restore_placement(
                    self._models, self._described, self._header, "the plan"
                )
            return self._placement
