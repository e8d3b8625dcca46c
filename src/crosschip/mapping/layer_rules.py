"""Rules of NNRt for padding, bias and activation, which several families share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from crosschip.ir import ElementType, ModelError, Operand, Quantization, constant
from crosschip.ir.dataclass import dataclass
from crosschip.mapping.opsets import HDI
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    parameter_value,
    refusal,
    slot_operand,
)
from crosschip.mapping.rules import PassThrough, Selector
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.definition.windows import AutoPad
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
_SEPARATE: Mapping[int, tuple[type[Operator], Mapping[str, Any]]] = {
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
_NO_ACTIVATION = (0, 15)
_PARAMETERIZED = {4: "ELU", 5: "LEAKY_RELU", 14: "THRESHOLDRELU", 16: "HARD_TANH"}


def activation_node(
    code: int,
    name: str,
    attributes: Mapping[str, str | Rule] | None = None,
    other_rules: tuple[Rule, ...] = (),
) -> HDI:
    """Return the mapping to the ACTIVATION node with one `activationType`.

    Args:
        code: the ActivationType.
        name: its name without `ACTIVATION_TYPE_`.
        attributes: the rules for the other attributes of the node.
        other_rules: the rules for slots without an attribute.
    """
    case = Selector("activationType", f"{code} {name}", code.__eq__, np.array(code))
    return HDI(
        2, "ACTIVATION", ("input",), {"activationType": case, **(attributes or {})}, other_rules
    )


@dataclass(frozen=True, slots=True)
class ActivationCode(Rule):
    """Imports an `activationType` as a fused activation, or else as a separate operation.

    Activations with parameters are refused: only the ACTIVATION node has attributes for these.
    """

    slot: str = field(default="fuse_code", init=False)
    text: str = field(default="an activation that is not fused becomes an operation", init=False)

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        code = 0 if operand is None else int(number(operand, "activationType"))
        if code in _FUSES and any(slot.name == self.slot for slot in ctx.operator.slots):
            ctx.slots[self.slot] = _FUSES[code]
        elif code in _SEPARATE:
            operator, attributes = _SEPARATE[code]
            ctx.postprocessing.append(
                lambda outputs: (ctx.builder.add(operator, outputs[0], **attributes), *outputs[1:])
            )
        elif code in _PARAMETERIZED:
            raise ModelError(
                f"activationType: {_PARAMETERIZED[code]} has parameters, and must be an ACTIVATION"
            )
        elif code not in _NO_ACTIVATION:
            raise ModelError(f"activationType: is {code}, which is no activation")

    def export_operand(self, ctx: Export) -> Operand | None:
        fuse_code = next(
            (code for code, fuse in _FUSES.items() if fuse is ctx.operation.fused), None
        )
        if fuse_code is None:
            raise refusal(ctx, self.slot, f"has no code for {ctx.operation.fused.name}")
        return constant(np.array(fuse_code), f"{ctx.operation.name}.activation")


@dataclass(frozen=True, slots=True)
class SeparateActivation(Rule):
    """Imports an activation as a separate operation."""

    slot: str = ""
    text: str = "an activation becomes an operation after it"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        code = 0 if operand is None else number(operand, "activation")
        if code not in (0, 1, 2):
            raise ModelError(f"activation: is {code:g}, but there are 0, 1, 2")
        if code:
            operator = Relu if code == 1 else Relu6
            ctx.postprocessing.append(
                lambda outputs: (ctx.builder.add(operator, outputs[0]), *outputs[1:])
            )


@dataclass(frozen=True, slots=True)
class ProductBias(Rule):
    """Gives an int32 bias without quantization the scales of input times weight.

    Args:
        weight: the slot of the weight.
        required: whether the other operator requires a bias.
    """

    weight: str
    required: bool = True
    slot: str = "bias"
    text: str = "an int32 bias without quantization has the scales of input times weight"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            return
        input_scale = slot_operand(ctx, "input").type.quantization
        scales = slot_operand(ctx, self.weight).type.quantization
        integers = operand.type.element_type is ElementType.INT32
        if integers and operand.type.quantization is None and input_scale and scales:
            if operand.value is None:
                raise ModelError("bias: is computed when the model runs, but must be constant")
            scale = np.float32(input_scale.scale[0])
            product = tuple(float(scale * np.float32(s)) for s in scales.scale)
            quantization = Quantization(product, axis=None if scales.axis is None else 0)
            operand = constant(np.asarray(operand.value), operand.name, quantization)
        ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        operand = ctx.operation.operand(self.slot)
        if operand is None:
            return self._zeros(ctx) if self.required else None
        if operand.type.quantization is None:
            return operand
        if operand.value is None:
            raise refusal(ctx, self.slot, "is quantized, and must be constant in the target")
        return constant(np.asarray(operand.value), operand.name)

    def _zeros(self, ctx: Export) -> Operand:
        input = ctx.operation.operand("input")
        shape = ctx.operation.outputs[0].type.shape
        assert input is not None
        if shape is None or not isinstance(shape[1], int):
            raise refusal(ctx, self.slot, "is required in the target, but the channels are unknown")
        integers = input.type.quantization is not None
        dtype = ElementType.INT32.dtype if integers else input.type.element_type.dtype
        return constant(np.zeros(shape[1], dtype), f"{ctx.operation.name}.{self.slot}")


@dataclass(frozen=True, slots=True)
class PaddingMode(Rule):
    """Converts between `auto_pad` and an operand; if that is omitted, `pads` applies."""

    slot: str = "auto_pad"
    text: str = "`auto_pad` is one of 0 SAME, 1 and 2 VALID, NONE without it"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None:
            modes = {0: AutoPad.SAME, 1: AutoPad.VALID, 2: AutoPad.VALID}
            PassThrough(self.slot, modes).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        mode = parameter_value(ctx, self.slot)
        if mode == AutoPad.NONE:
            return None
        if mode not in (AutoPad.SAME, AutoPad.VALID):
            name = AutoPad(int(mode.item())).name
            raise refusal(ctx, self.slot, f"has no code for {name}")
        return constant(np.array([mode == AutoPad.VALID], np.int8), f"{ctx.operation.name}.mode")


@dataclass(frozen=True, slots=True)
class PadsWithoutMode(Rule):
    """Converts explicit pads, which are exported only if `auto_pad` is NONE."""

    slot: str = "pads"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)

    def export_operand(self, ctx: Export) -> Operand | None:
        if parameter_value(ctx, "auto_pad") == AutoPad.NONE:
            return PassThrough(self.slot).export_operand(ctx)
        return None


@dataclass(frozen=True, slots=True)
class ExplicitPads(Rule):
    """Converts explicit pads, which are ignored on import unless `padMode` is 0."""

    slot: str = "pads"
    text: str = "`pads` count where padMode is 0 PAD"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        mode = ctx.slots.get("auto_pad")
        if isinstance(mode, Operand) and number(mode, "padMode"):
            return
        if operand is not None:
            ctx.slots[self.slot] = operand

    def export_operand(self, ctx: Export) -> Operand | None:
        if np.any(parameter_value(ctx, "auto_pad")):
            return None
        return constant(parameter_value(ctx, self.slot), f"{ctx.operation.name}.pads")
