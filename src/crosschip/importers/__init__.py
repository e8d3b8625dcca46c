"""Importers: from a framework's own model file to a model of standard operators.

No framework is needed. An importer is found by its entry point in the group `crosschip.importers`
(name → a module with the two functions of `Importer`).
"""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

from crosschip.ir import Budget, BudgetError, Model, ModelFileError
from crosschip.ir.budget import spending
from crosschip.ir.garbage import collection_paused


class Importer(Protocol):
    """What the module of an importer offers. Importing the module must be cheap."""

    def recognizes(self, path: Path) -> bool:
        """Whether the file or folder, which exists, looks like one for this importer."""

    def load(self, path: Path) -> Model:
        """Import the model.

        Raises:
            ModelFileError: the file is damaged or lacks something; the message names the file.
            UnsupportedError: it uses operators or variants that cannot be expressed.
        """


def load(path: str | os.PathLike[str], *, budget: Budget | None = None) -> Model:
    """Import a model from its framework's own file, or from a folder that holds one.

    Constants stay memory-mapped where the format allows it.

    Args:
        path: the file or folder.
        budget: what importing may cost; `None` for the default.

    Raises:
        BudgetError: the model costs more than the budget allows.
        ModelFileError: there is no such file, no importer knows it, or it is damaged.
        UnsupportedError: it uses operators or variants that cannot be expressed.
    """
    path = Path(path)
    if not path.exists():
        raise ModelFileError(f"{path}: there is no such file or folder")
    names = []
    for entry in sorted(entry_points(group="crosschip.importers"), key=lambda entry: entry.name):
        importer = cast(Importer, entry.load())
        names.append(entry.name)
        if importer.recognizes(path):
            try:
                with collection_paused(), spending(budget):
                    return importer.load(path)
            except BudgetError as error:
                raise BudgetError(f"{path}: {error}") from None
    raise ModelFileError(
        f"{path}: is not a model file that an importer knows ({', '.join(names)}); "
        f"give a .pdmodel, a Paddle 3 .json, a folder with either, or an .onnx file"
    )
