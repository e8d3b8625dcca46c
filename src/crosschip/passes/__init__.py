"""Graph passes: one module per pass, and the default pipeline."""

from __future__ import annotations

from crosschip.ir import Model
from crosschip.passes.base import Pass, run, verified, verifying
from crosschip.passes.cancel_transposes import CancelTransposes
from crosschip.passes.fold_constants import FoldConstants
from crosschip.passes.fold_into_weights import FoldIntoWeights
from crosschip.passes.recognition import COMPOSITES, JOINED_HEADS, Recognize
from crosschip.passes.remove_identities import RemoveIdentities
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.resolve_control_flow import ResolveControlFlow
from crosschip.passes.resolve_shapes import ResolveShapes
from crosschip.passes.simplify_bodies import SimplifyBodies
from crosschip.passes.specialize import Specialize
from crosschip.passes.squeeze_convolutions import SqueezeConvolutions


def simplify(model: Model) -> Model:
    """Run the default passes on a model."""
    return run(model, DEFAULT)


DEFAULT: tuple[Pass, ...] = (
    FoldConstants(),
    ResolveControlFlow(),
    SimplifyBodies(simplify),
    RemoveIdentities(),
    ResolveShapes(),
    CancelTransposes(),
    RemoveUnused(),
    FoldIntoWeights(),
    SqueezeConvolutions(),
    Recognize(COMPOSITES),
    Recognize((JOINED_HEADS,)),
)

__all__ = [
    "COMPOSITES",
    "DEFAULT",
    "JOINED_HEADS",
    "CancelTransposes",
    "FoldConstants",
    "FoldIntoWeights",
    "Pass",
    "Recognize",
    "RemoveIdentities",
    "RemoveUnused",
    "ResolveControlFlow",
    "ResolveShapes",
    "SimplifyBodies",
    "Specialize",
    "SqueezeConvolutions",
    "run",
    "simplify",
    "verified",
    "verifying",
]
