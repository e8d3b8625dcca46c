"""The choice of whose behaviour holds where NNRt's document and its source differ."""

from __future__ import annotations

import os
from enum import Enum


class Conformance(Enum):
    """The document's behaviour, or that of the source."""

    DOCUMENT = "document"
    REFERENCE = "reference"


_chosen: Conformance | None = None


def set_conformance(conformance: Conformance | None) -> None:
    """Choose for this process; `None` leaves it to `OH_NN_CONFORMANCE` in the environment."""
    global _chosen
    _chosen = conformance


def as_reference() -> bool:
    """Return whether the source's behaviour holds."""
    if _chosen is not None:
        return _chosen is Conformance.REFERENCE
    return os.environ.get("OH_NN_CONFORMANCE") == Conformance.REFERENCE.value
