"""The placement of a plan, restored when somebody asks for it."""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.runtime.placement.placing import Placement


class LazyPlacement:
    """A placement that is read when it is asked for.

    Args:
        models: the models of it, as `serialization.many_to_bytes` gives them.
        described: the placement, as JSON.
    """

    def __init__(self, models: bytes, described: bytes) -> None:
        self._models = models
        self._described = described
        self._lock = Lock()
        self._placement: Placement | None = None

    def placement(self) -> Placement:
        """The placement, without the large weights that the programs hold."""
        # Running needs none of it.
        from crosschip.ops.definition.serialization import many_from_bytes
        from crosschip.runtime.saving.placements import restore

        with self._lock:
            if self._placement is None:
                models = many_from_bytes(self._models, "the plan")
                self._placement = restore(json.loads(self._described), models[0], models)
            return self._placement
