"""Names and codes of normalizations in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.ir.types import FLOATS
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.layer_rules import SeparateActivation
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import (
    Export,
    Import,
    Rule,
    number,
    parameter_value,
    rank_of,
    refusal,
    slot_operand,
    static_shape,
)
from crosschip.mapping.rules import FixedValue, PassThrough, RequiredValue
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    RMSNormalization,
    SkipLayerNormalization,
    SkipRMSNormalization,
)


class _RequiredAffine(Rule):
    """Base of rules for a scale or a bias that the other system requires.

    Args:
        slot: the slot.
        neutral: the value to export for an omitted operand.
    """

    def __init__(self, slot: str, neutral: float) -> None:
        self.slot = slot
        self._neutral = neutral

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        PassThrough(self.slot).import_operand(operand, ctx)


class NormalizedAffine(_RequiredAffine):
    """A scale or bias, which NNRt requires to have the shape of the normalized axes."""

    def export_operand(self, ctx: Export) -> Operand | None:
        input, operand = (ctx.operation.operand(slot) for slot in ("input", self.slot))
        assert input is not None, "input is required"
        shape = input.type.shape or ()
        begin = int(parameter_value(ctx, "begin_norm_axis").item()) % max(len(shape), 1)
        normalized_shape = static_shape(shape[begin:])
        if normalized_shape is None:
            raise refusal(ctx, self.slot, "must have known sizes in the target")
        if operand is None:
            type_ = input.type.element_type
            if type_ not in FLOATS:
                raise refusal(ctx, self.slot, "cannot be omitted in the target")
            array = np.full(normalized_shape, self._neutral).astype(type_.dtype)
            return constant(array, f"{ctx.operation.name}.{self.slot}")
        if operand.type.shape != normalized_shape:
            raise refusal(
                ctx, self.slot, f"must have the shape {list(normalized_shape)} in the target"
            )
        return operand


class BeginNormAxis(Rule):
    """The first normalized axis, which is 1 or more in NNRt."""

    slot = "begin_norm_axis"
    text = "`begin_norm_axis` is 1 by default, and from 1 on"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        rank = rank_of(slot_operand(ctx, "input"), "input")
        axis = 1 if operand is None else int(number(operand, self.slot))
        if not 1 <= axis < rank:
            raise ModelError(f"{self.slot}: is {axis}, but must be from 1 to {rank - 1}")
        ctx.slots[self.slot] = axis

    def export_operand(self, ctx: Export) -> Operand | None:
        rank = len((ctx.operation.inputs[0].type.shape if ctx.operation.inputs[0] else None) or ())
        axis = int(parameter_value(ctx, self.slot).item())
        axis += rank if axis < 0 else 0
        if not 1 <= axis < rank:
            raise refusal(ctx, self.slot, f"has no code for {axis}")
        return constant(np.array([axis], np.int64), f"{ctx.operation.name}.{self.slot}")


class BeginParamsAxis(Rule):
    """The first axis of scale and bias, which must be the first normalized axis."""

    slot = ""
    text = "BEGIN_PARAM_AXIS must be the same"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is None:
            return
        rank = rank_of(slot_operand(ctx, "input"), "input")
        axis = int(number(operand, "begin_param_axis"))
        if axis % rank != ctx.slots["begin_norm_axis"]:
            raise ModelError(f"begin_param_axis: is {axis}, but the normalization has another")

    def export_operand(self, ctx: Export) -> Operand | None:
        return BeginNormAxis().export_operand(ctx)


class UnsupportedParameter(Rule):
    """A parameter that is refused unless it is omitted.

    Args:
        name: the parameter's name in messages.
    """

    slot = ""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def text(self) -> str:
        return f"{self._name} is refused"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        if operand is not None:
            raise ModelError(f"{self._name}: is not taken")


class AffineFlag(Rule):
    """Exports true, because scale and bias are always exported; ignored on import."""

    slot = ""

    def export_operand(self, ctx: Export) -> Operand | None:
        return constant(np.array(True), f"{ctx.operation.name}.affine")


class ChannelAffine(_RequiredAffine):
    """A scale or bias per channel."""

    def export_operand(self, ctx: Export) -> Operand | None:
        input, operand = (ctx.operation.operand(slot) for slot in ("input", self.slot))
        assert input is not None, "input is required"
        if operand is not None:
            return operand
        channels = (input.type.shape or (None, None))[1]
        if not isinstance(channels, int) or input.type.element_type not in FLOATS:
            raise refusal(ctx, self.slot, "cannot be omitted in the target")
        array = np.full(channels, self._neutral).astype(input.type.element_type.dtype)
        return constant(array, f"{ctx.operation.name}.{self.slot}")


class DepthRadius(Rule):
    """The radius of a window of odd size."""

    slot = "size"
    text = "`size` is 2 * DEPTH_RADIUS + 1"

    def import_operand(self, operand: Operand | None, ctx: Import) -> None:
        radius = 0 if operand is None else int(number(operand, "depth_radius"))
        ctx.slots[self.slot] = 2 * radius + 1

    def export_operand(self, ctx: Export) -> Operand | None:
        size = int(parameter_value(ctx, self.slot).item())
        if size % 2 == 0:
            raise refusal(ctx, self.slot, f"has no code for {size}")
        return constant(np.array([size // 2], np.int32), f"{ctx.operation.name}.radius")


_IMAGE, _OUTPUT = ChannelsLast("input"), ChannelsLastOutput()

map_operator(
    BatchNormalization,
    nnadapter=NNAdapter(9),
    nnrt=[
        NNRt(
            3,
            "BATCH_NORM",
            (_IMAGE, "scale", "bias", "mean", "variance"),
            {"EPSILON": PassThrough("epsilon", default=1e-4)},
            (_OUTPUT,),
        )
    ],
    hdi=[
        HDI(
            68,
            "FUSED_BATCH_NORM",
            (_IMAGE, "scale", "bias", "mean", "variance"),
            {"epsilon": "epsilon"},
            (_OUTPUT,),
        )
    ],
    onnx=["BatchNormalization"],
)

map_operator(
    LayerNormalization,
    nnadapter=NNAdapter(39),
    nnrt=[
        NNRt(
            49,
            "LAYER_NORM",
            ("input", NormalizedAffine("scale", 1), NormalizedAffine("bias", 0)),
            {
                "BEGIN_NORM_AXIS": BeginNormAxis(),
                "EPSILON": PassThrough("epsilon", default=1e-7),
                "BEGIN_PARAM_AXIS": BeginParamsAxis(),
                "ELEMENTWISE_AFFINE": UnsupportedParameter("ELEMENTWISE_AFFINE"),
            },
        )
    ],
    hdi=[
        HDI(
            75,
            "LAYER_NORM_FUSION",
            ("input", NormalizedAffine("scale", 1), NormalizedAffine("bias", 0)),
            {
                "beginNormAxis": BeginNormAxis(),
                "epsilon": "epsilon",
                "elementwiseAffine": AffineFlag(),
                "beginParamsAxis": BeginParamsAxis(),
            },
        )
    ],
    onnx=["LayerNormalization"],
)

map_operator(GroupNormalization, nnadapter=NNAdapter(35), onnx=["GroupNormalization"])

map_operator(
    InstanceNormalization,
    nnadapter=NNAdapter(38),
    nnrt=[
        NNRt(
            67,
            "INSTANCE_NORM",
            ("input", ChannelAffine("scale", 1), ChannelAffine("bias", 0)),
            {"EPSILON": PassThrough("epsilon", default=0.0)},
        )
    ],
    onnx=["InstanceNormalization"],
)

map_operator(RMSNormalization, onnx=["RMSNormalization", "SimplifiedLayerNormalization"])
map_operator(SkipLayerNormalization, onnx=["com.microsoft.SkipLayerNormalization"])
map_operator(SkipRMSNormalization, onnx=["com.microsoft.SkipSimplifiedLayerNormalization"])

map_operator(
    LpNormalization,
    nnadapter=NNAdapter(45),
    nnrt=[
        NNRt(
            94,
            "L2_NORMALIZE",
            ("input",),
            {
                "AXIS": PassThrough("axis", default=-1),
                "EPSILON": PassThrough("epsilon", default=1e-6),
                "ACTIVATION_TYPE": SeparateActivation(),
            },
            (FixedValue("p", 2),),
        )
    ],
    onnx=["LpNormalization"],
)

map_operator(
    LRN,
    nnadapter=NNAdapter(46),
    nnrt=[
        NNRt(
            96,
            "LRN",
            (_IMAGE,),
            {
                "DEPTH_RADIUS": DepthRadius(),
                "BIAS": PassThrough("bias", default=1.0),
                "ALPHA": PassThrough("alpha", default=1.0),
                "BETA": PassThrough("beta", default=0.5),
                "NORM_REGION": RequiredValue("NORM_REGION", 0),
            },
            (_OUTPUT,),
        )
    ],
    onnx=["LRN"],
)
