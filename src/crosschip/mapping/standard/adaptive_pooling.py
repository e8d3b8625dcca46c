"""Names and codes of pooling over grids in other systems."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.mapping.channels_last import ChannelsLast, ChannelsLastOutput
from crosschip.mapping.opsets import HDI, NNAdapter, NNRt, map_operator
from crosschip.mapping.rules import ActivationAfter, Case, Fixed, Told
from crosschip.mapping.standard.pooling import FORMAT, WINDOWS
from crosschip.mapping.translation import Rule
from crosschip.ops.standard.adaptive_pooling import (
    AdaptiveAveragePool1D,
    AdaptiveAveragePool2D,
    AdaptiveAveragePool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)

_WHOLE_IMAGE: Mapping[str, str | Rule] = {
    **{name: Told() for name in WINDOWS},
    "ACTIVATION_TYPE": ActivationAfter(),
    "GLOBAL": Case("GLOBAL", "true", bool, np.array([True])),
}


_WHOLE = Case("global", "true", bool, np.array(True))


def _global(code: int, name: str) -> NNRt:
    return NNRt(
        *(code, name, (ChannelsLast("input"),), _WHOLE_IMAGE),
        other_rules=(ChannelsLastOutput(), Fixed("output_shape", (1, 1))),
    )


def _global_node(code: int, name: str) -> HDI:
    return HDI(
        *(code, name, (ChannelsLast("input"),), {"global": _WHOLE, **FORMAT}),
        other_rules=(ChannelsLastOutput(), Fixed("output_shape", (1, 1))),
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
