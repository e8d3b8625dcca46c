"""Graph rewriting: a file a pass, and the order in which they usually run."""

from __future__ import annotations

from crosschip.ir import Model
from crosschip.passes.base import Pass, run, verified, verifying
from crosschip.passes.cancel_transposes import CancelTransposes
from crosschip.passes.fold_constants import FoldConstants
from crosschip.passes.fold_into_weights import FoldIntoWeights
from crosschip.passes.remove_identities import RemoveIdentities
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.specialize import Specialize

DEFAULT: tuple[Pass, ...] = (
    FoldConstants(),
    RemoveIdentities(),
    CancelTransposes(),
    FoldIntoWeights(),
    RemoveUnused(),
)


def simplify(model: Model) -> Model:
    """The model after the usual passes."""
    return run(model, DEFAULT)


__all__ = [
    "DEFAULT",
    "CancelTransposes",
    "FoldConstants",
    "FoldIntoWeights",
    "Pass",
    "RemoveIdentities",
    "RemoveUnused",
    "Specialize",
    "run",
    "simplify",
    "verified",
    "verifying",
]
