"""Choice between documented and actual behaviour where NNRt's reference implementation deviates."""

from __future__ import annotations

import os
from enum import Enum


class Conformance(Enum):
    """The document's behaviour, or the reference implementation's."""

    DOCUMENT = "document"
    REFERENCE = "reference"


_conformance: Conformance | None = None


def set_conformance(conformance: Conformance | None) -> None:
    """Set the choice for this process; `None` uses the variable `OH_NN_CONFORMANCE`."""
    global _conformance
    _conformance = conformance


def as_reference() -> bool:
    """Return whether to behave like the reference implementation."""
    if _conformance is not None:
        return _conformance is Conformance.REFERENCE
    return os.environ.get("OH_NN_CONFORMANCE") == Conformance.REFERENCE.value
