"""Names and codes of normalizations in other systems."""

from __future__ import annotations

from crosschip.ops.definition.faces import NNAdapter, NNRt, NodeType, faces
from crosschip.ops.standard.normalization import (
    LRN,
    BatchNormalization,
    GroupNormalization,
    InstanceNormalization,
    LayerNormalization,
    LpNormalization,
    RMSNormalization,
)

_CHANNELS_LAST = "Channels are last there: a TRANSPOSE before and one after."

faces(
    BatchNormalization,
    nnadapter=NNAdapter(9),
    nnrt=[
        NNRt(
            *(3, "BATCH_NORM", ("input", "scale", "bias", "mean", "variance")),
            {"EPSILON": "epsilon"},
            f"{_CHANNELS_LAST} EPSILON is 1e-4 by default.",
        )
    ],
    hdi=[NodeType.FUSED_BATCH_NORM],
    onnx=["BatchNormalization"],
)

faces(
    LayerNormalization,
    nnadapter=NNAdapter(39),
    nnrt=[
        NNRt(
            *(49, "LAYER_NORM", ("input", "scale", "bias")),
            {
                "BEGIN_NORM_AXIS": "begin_norm_axis",
                "EPSILON": "epsilon",
                "BEGIN_PARAM_AXIS": "",
                "ELEMENTWISE_AFFINE": "",
            },
            "BEGIN_NORM_AXIS is 1 by default, EPSILON 1e-7. BEGIN_PARAM_AXIS must be the axis too; "
            "ELEMENTWISE_AFFINE is refused there.",
        )
    ],
    hdi=[NodeType.LAYER_NORM_FUSION],
    onnx=["LayerNormalization"],
)

faces(
    GroupNormalization,
    nnadapter=NNAdapter(35),
    onnx=["GroupNormalization"],
)

faces(
    InstanceNormalization,
    nnadapter=NNAdapter(38),
    nnrt=[
        NNRt(
            *(67, "INSTANCE_NORM", ("input", "scale", "bias")),
            {"EPSILON": "epsilon"},
            f"{_CHANNELS_LAST} EPSILON is 0 by default.",
        )
    ],
    onnx=["InstanceNormalization"],
)

faces(
    RMSNormalization,
    onnx=["RMSNormalization"],
)

faces(
    LpNormalization,
    nnadapter=NNAdapter(45),
    nnrt=[
        NNRt(
            *(94, "L2_NORMALIZE", ("input",)),
            {"AXIS": "axis", "EPSILON": "epsilon", "ACTIVATION_TYPE": ""},
            "AXIS is -1 by default, EPSILON 1e-6, p is 2. An ACTIVATION_TYPE becomes an operator "
            "after this.",
        )
    ],
    onnx=["LpNormalization"],
)

faces(
    LRN,
    nnadapter=NNAdapter(46),
    nnrt=[
        NNRt(
            *(96, "LRN", ("input",)),
            {
                "DEPTH_RADIUS": "size",
                "BIAS": "bias",
                "ALPHA": "alpha",
                "BETA": "beta",
                "NORM_REGION": "",
            },
            "size is 2 * DEPTH_RADIUS + 1. BIAS and ALPHA are 1 by default, BETA 0.5; NORM_REGION "
            "must be 0, across channels. Channels are last there: a TRANSPOSE before and after.",
        )
    ],
    onnx=["LRN"],
)
