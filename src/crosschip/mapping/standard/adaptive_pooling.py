"""Names and codes of adaptive pooling in other systems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.layer_rules import SeparateActivation
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rule import Rule
from crosschip.mapping.rules import FixedValue, Ignored, Selector
from crosschip.mapping.standard.pooling import FORMAT, WINDOWS
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)

_WHOLE_IMAGE: Mapping[str, str | Rule] = {
    **{name: Ignored() for name in WINDOWS},
    "ACTIVATION_TYPE": SeparateActivation(),
    "GLOBAL": Selector("GLOBAL", "true", bool, np.array([True])),
}


_WHOLE = Selector("global", "true", bool, np.array(True))


def _global(code: int, name: str) -> NNRt:
    return NNRt(
        *(code, name, (ChannelsLast("input"),), _WHOLE_IMAGE),
        other_rules=(ChannelsLastOutput(), FixedValue("output_shape", (1, 1))),
    )


def _global_node(code: int, name: str) -> HDI:
    return HDI(
        *(code, name, (ChannelsLast("input"),), {"global": _WHOLE, **FORMAT}),
        other_rules=(ChannelsLastOutput(), FixedValue("output_shape", (1, 1))),
    )


map_operator(
    AdaptiveAveragePool2D,
    nnadapter=NNAdapter(1),
    nnrt=(_global(2, "AVG_POOL"),),
    hdi=(_global_node(17, "AVGPOOL_FUSION"),),
    onnx=("GlobalAveragePool",),
)

map_operator(
    AdaptiveMaxPool2D,
    nnadapter=NNAdapter(2, optional_outputs=1),
    nnrt=(_global(21, "MAX_POOL"),),
    hdi=(_global_node(92, "MAX_POOL_FUSION"),),
    onnx=("GlobalMaxPool",),
)

for _average_pool in (AdaptiveAveragePool1D, AdaptiveAveragePool3D):
    map_operator(_average_pool, onnx=("GlobalAveragePool",))
for _max_pool in (AdaptiveMaxPool1D, AdaptiveMaxPool3D):
    map_operator(_max_pool, onnx=("GlobalMaxPool",))
