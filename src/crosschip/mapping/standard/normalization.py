"""Names and codes of normalizations in other systems."""

from __future__ import annotations

import numpy as np

from crosschip.ir import ModelError, Operand, constant
from crosschip.ir.types import FLOATS
from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import (
    ActivationAfter,
    Fixed,
    MustBe,
    filled,
    number,
    rank_of,
    shape_known,
    value_in,
)
from crosschip.mapping.translation import Export, Import, Passed, Rule, refusal
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


class _Numbers(Rule):
    """Base of rules for a scale or a bias that cannot be left out there.

    Args:
        slot: the slot.
        neutral: what leaving it out means.
    """

    def __init__(self, slot: str, neutral: float) -> None:
        self.slot = slot
        self._neutral = neutral

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        Passed(self.slot).import_operand(operand, use)


class WholeScale(_Numbers):
    """The scale or bias of the normalized axes, which has their shape there."""

    def export_operand(self, use: Export) -> Operand | None:
        input, operand = (use.operation.operand(slot) for slot in ("input", self.slot))
        assert input is not None, "there is an input"
        shape = input.type.shape or ()
        begin = int(value_in(use, "begin_norm_axis").item()) % max(len(shape), 1)
        wanted = shape_known(shape[begin:])
        if wanted is None:
            raise refusal(use, self.slot, "must have known sizes there")
        if operand is None:
            type_ = input.type.element_type
            if type_ not in FLOATS:
                raise refusal(use, self.slot, "cannot be left out there")
            array = np.full(wanted, self._neutral).astype(type_.dtype)
            return constant(array, f"{use.operation.name}.{self.slot}")
        if operand.type.shape != wanted:
            raise refusal(use, self.slot, f"must have the shape {list(wanted)} there")
        return operand


class FirstNormalizedAxis(Rule):
    """The first axis that is normalized, which is not the first of all there."""

    slot = "begin_norm_axis"
    text = "`begin_norm_axis` is 1 by default, and from 1 on"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        rank = rank_of(filled(use, "input"), "input")
        axis = 1 if operand is None else int(number(operand, self.slot))
        if not 1 <= axis < rank:
            raise ModelError(f"{self.slot}: is {axis}, but must be from 1 to {rank - 1}")
        use.slots[self.slot] = axis

    def export_operand(self, use: Export) -> Operand | None:
        rank = len((use.operation.inputs[0].type.shape if use.operation.inputs[0] else None) or ())
        axis = int(value_in(use, self.slot).item())
        axis += rank if axis < 0 else 0
        if not 1 <= axis < rank:
            raise refusal(use, self.slot, f"there is no number for {axis}")
        return constant(np.array([axis], np.int64), f"{use.operation.name}.{self.slot}")


class SameAxis(Rule):
    """The first axis of scale and bias, which is that of the normalization."""

    slot = ""
    text = "BEGIN_PARAM_AXIS must be the same"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is None:
            return
        rank = rank_of(filled(use, "input"), "input")
        axis = int(number(operand, "begin_param_axis"))
        if axis % rank != use.slots["begin_norm_axis"]:
            raise ModelError(f"begin_param_axis: is {axis}, but the normalization has another")

    def export_operand(self, use: Export) -> Operand | None:
        return FirstNormalizedAxis().export_operand(use)


class Refused(Rule):
    """A parameter that must not be given.

    Args:
        name: what messages call it.
    """

    slot = ""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def text(self) -> str:
        return f"{self._name} is refused"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        if operand is not None:
            raise ModelError(f"{self._name}: is not taken")

    def export_operand(self, use: Export) -> Operand | None:
        return None


class Affine(Rule):
    """A flag that there are a scale and a bias, which the inputs tell, too."""

    slot = ""

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        return

    def export_operand(self, use: Export) -> Operand | None:
        return constant(np.array(True), f"{use.operation.name}.affine")


class ChannelNumbers(_Numbers):
    """A number for each channel, which cannot be left out there."""

    def export_operand(self, use: Export) -> Operand | None:
        input, operand = (use.operation.operand(slot) for slot in ("input", self.slot))
        assert input is not None, "there is an input"
        if operand is not None:
            return operand
        channels = (input.type.shape or (None, None))[1]
        if not isinstance(channels, int) or input.type.element_type not in FLOATS:
            raise refusal(use, self.slot, "cannot be left out there")
        array = np.full(channels, self._neutral).astype(input.type.element_type.dtype)
        return constant(array, f"{use.operation.name}.{self.slot}")


class Radius(Rule):
    """Half the size of a window, without the middle."""

    slot = "size"
    text = "`size` is 2 * DEPTH_RADIUS + 1"

    def import_operand(self, operand: Operand | None, use: Import) -> None:
        radius = 0 if operand is None else int(number(operand, "depth_radius"))
        use.slots[self.slot] = 2 * radius + 1

    def export_operand(self, use: Export) -> Operand | None:
        size = int(value_in(use, self.slot).item())
        if size % 2 == 0:
            raise refusal(use, self.slot, f"there is no number for {size}")
        return constant(np.array([size // 2], np.int32), f"{use.operation.name}.radius")


_IMAGE, _OUTPUT = ChannelsLast("input"), ChannelsLastOutput()

map_operator(
    BatchNormalization,
    nnadapter=NNAdapter(9),
    nnrt=[
        NNRt(
            *(3, "BATCH_NORM", (_IMAGE, "scale", "bias", "mean", "variance")),
            {"EPSILON": Passed("epsilon", default=1e-4)},
            (_OUTPUT,),
        )
    ],
    hdi=[
        HDI(
            *(68, "FUSED_BATCH_NORM", (_IMAGE, "scale", "bias", "mean", "variance")),
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
            *(49, "LAYER_NORM", ("input", WholeScale("scale", 1), WholeScale("bias", 0))),
            {
                "BEGIN_NORM_AXIS": FirstNormalizedAxis(),
                "EPSILON": Passed("epsilon", default=1e-7),
                "BEGIN_PARAM_AXIS": SameAxis(),
                "ELEMENTWISE_AFFINE": Refused("ELEMENTWISE_AFFINE"),
            },
        )
    ],
    hdi=[
        HDI(
            *(75, "LAYER_NORM_FUSION", ("input", WholeScale("scale", 1), WholeScale("bias", 0))),
            {
                "beginNormAxis": FirstNormalizedAxis(),
                "epsilon": "epsilon",
                "elementwiseAffine": Affine(),
                "beginParamsAxis": SameAxis(),
            },
        )
    ],
    onnx=["LayerNormalization"],
)

map_operator(
    GroupNormalization,
    nnadapter=NNAdapter(35),
    onnx=["GroupNormalization"],
)

map_operator(
    InstanceNormalization,
    nnadapter=NNAdapter(38),
    nnrt=[
        NNRt(
            *(67, "INSTANCE_NORM"),
            ("input", ChannelNumbers("scale", 1), ChannelNumbers("bias", 0)),
            {"EPSILON": Passed("epsilon", default=0.0)},
        )
    ],
    onnx=["InstanceNormalization"],
)

map_operator(
    RMSNormalization,
    onnx=[
        "RMSNormalization",
        "SimplifiedLayerNormalization",
    ],
)

map_operator(
    SkipLayerNormalization,
    onnx=["com.microsoft.SkipLayerNormalization"],
)

map_operator(
    SkipRMSNormalization,
    onnx=["com.microsoft.SkipSimplifiedLayerNormalization"],
)

map_operator(
    LpNormalization,
    nnadapter=NNAdapter(45),
    nnrt=[
        NNRt(
            *(94, "L2_NORMALIZE", ("input",)),
            {
                "AXIS": Passed("axis", default=-1),
                "EPSILON": Passed("epsilon", default=1e-6),
                "ACTIVATION_TYPE": ActivationAfter(),
            },
            (Fixed("p", 2),),
        )
    ],
    onnx=["LpNormalization"],
)

map_operator(
    LRN,
    nnadapter=NNAdapter(46),
    nnrt=[
        NNRt(
            *(96, "LRN", (_IMAGE,)),
            {
                "DEPTH_RADIUS": Radius(),
                "BIAS": Passed("bias", default=1.0),
                "ALPHA": Passed("alpha", default=1.0),
                "BETA": Passed("beta", default=0.5),
                "NORM_REGION": MustBe("NORM_REGION", 0),
            },
            (_OUTPUT,),
        )
    ],
    onnx=["LRN"],
)
