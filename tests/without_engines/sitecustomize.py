"""Imported by each Python that has this folder on its path: hides engines from its imports."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec

HIDDEN = ("ai_edge_litert", "onnxruntime", "openvino", "xla", "jax", "jaxlib", "paddle", "torch")


class NoEngines:
    """Finds no module, and refuses to let others find those that are hidden."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        """Whatever else is to be imported is found by others."""
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"{name} is not there in a quick run", name=name)
        return None


sys.meta_path.insert(0, NoEngines())
