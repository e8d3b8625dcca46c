"""Rules of the nodes of NNRt's driver interface that operators of several families share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.opsets import HDI
from crosschip.mapping.rules import Case, number, value_in
from crosschip.mapping.translation import Export, Import, Rule, refusal
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.activation import (
    Gelu,
    HardSigmoid,
    HardSwish,
    Relu,
    Relu6,
    Selu,
    Sigmoid,
    Softplus,
    Softsign,
    Swish,
    Tanh,
)
from crosschip.ops.standard.arithmetic import Clip
from crosschip.ops.standard.unary import Abs, Sign

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

_FUSES = {0: Fuse.NONE, 1: Fuse.RELU, 3: Fuse.RELU6}
_FOLLOWERS: Mapping[int, tuple[type[Operator], Mapping[str, Any]]] = {
    1: (Relu, {}),
    2: (Sigmoid, {}),
    3: (Relu6, {}),
    6: (Abs, {}),
    7: (Clip, {"min": 0.0, "max": 1.0}),
    8: (Softsign, {}),
    9: (Softplus, {}),
    10: (Tanh, {}),
    11: (Selu, {}),
    12: (HardSwish, {}),
    13: (HardSigmoid, {"alpha": 1 / 6, "beta": 0.5}),
    17: (Sign, {}),
    18: (Swish, {}),
    19: (Gelu, {}),
}
_NOTHING = (0, 15)
_WITH_NUMBERS = {4: "ELU", 5: "LEAKY_RELU", 14: "THRESHOLDRELU", 16: "HARD_TANH"}


def activation(
    code: int,
    name: str,
    attributes: Mapping[str, str | Rule] | None = None,
    other_rules: tuple[Rule, ...] = (),
) -> HDI:
    """The node of activations, for one of them.

    Args:
        code: its ActivationType.
        name: what follows `ACTIVATION_TYPE_` there.
        attributes: the rules for the other fields of its attributes.
        other_rules: the rules for what none tells.
    """
    case = Case("activationType", f"{code} {name}", code.__eq__, np.array(code))
    return HDI(
        2, "ACTIVATION", ("input",), {"activationType": case, **(attributes or {})}, other_rules
    )


@dataclass(frozen=True, slots=True)
class Activated(Rule):
    """An activation of the result: fused where there is such a slot, else an operation after it.

    Those that take numbers of their own are nodes only: they have no field for these here.
    """

    slot: str = field(default="fuse_code", init=False)
    text: str = field(default="an activation that is not fused becomes an operation", init=False)

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        code = 0 if operand is None else int(number(operand, "activationType"))
        if code in _FUSES and any(slot.name == self.slot for slot in use.operator.slots):
            use.slots[self.slot] = _FUSES[code]
        elif code in _FOLLOWERS:
            follower, named = _FOLLOWERS[code]
            use.finishing.append(
                lambda outputs: (use.builder.add(follower, outputs[0], **named), *outputs[1:])
            )
        elif code in _WITH_NUMBERS:
            raise ModelError(
                f"activationType: {_WITH_NUMBERS[code]} takes numbers that only its own node has"
            )
        elif code not in _NOTHING:
            raise ModelError(f"activationType: is {code}, which is no activation")

    def export_operand(self, use: Export) -> Operand | None:
        fuse_code = next(
            (code for code, fuse in _FUSES.items() if fuse is use.operation.fused), None
        )
        if fuse_code is None:
            raise refusal(use, self.slot, f"there is no number for {use.operation.fused.name}")
        return constant(np.array(fuse_code), f"{use.operation.name}.activation")


@dataclass(frozen=True, slots=True)
class Sides(Rule):
    """Padding above, below, left and right, which is 0 where a mode says it."""

    slot: str = "pads"
    text: str = "`pads` count where padMode is 0 PAD"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        mode = use.slots.get("auto_pad")
        if isinstance(mode, Operand) and number(mode, "padMode"):
            return
        if operand is not None:
            use.slots[self.slot] = operand

    def export_operand(self, use: Export) -> Operand | None:
        if np.any(value_in(use, "auto_pad")):
            return None
        return constant(value_in(use, self.slot), f"{use.operation.name}.pads")
