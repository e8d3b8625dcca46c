"""Examples of normalizations."""

from __future__ import annotations

from crosschip.ir import ElementType, Quantization
from crosschip.ops.definition.examples import Sample, example, examples, model_input, random
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

_HALF = Quantization((0.02,))


def _bytes(*shape: int) -> Sample:
    return random(*shape, dtype=ElementType.INT8, low=-128, high=128, quantization=_HALF)


examples(
    BatchNormalization,
    *(
        example(
            input=input,
            scale=random(3),
            bias=random(3),
            mean=random(3),
            variance=random(3, low=0.5),
            **more,
        )
        for input, more in (
            (random(2, 3), {}),
            (random(2, 3, 4, 5), {"epsilon": 0.01}),
            (random(2, 3, 4, dtype=ElementType.FLOAT16), {}),
            (_bytes(2, 3, 4), {"quantization": Quantization((0.05,))}),
        )
    ),
)

examples(
    LayerNormalization,
    example(input=random(2, 3, 4), scale=random(4), bias=random(4)),
    example(input=random(2, 3, 4), scale=random(3, 4), begin_norm_axis=1, epsilon=0.1),
    example(input=random(2, 3, 4), scale=random(2, 1, 4), bias=random(1), begin_norm_axis=2),
    example(input=random(2, 3, 4), begin_norm_axis=0),
    example(input=random(2, 8, dtype=ElementType.FLOAT16), scale=random(8), bias=random(8)),
    example(
        input=_bytes(2, 8), scale=random(8), bias=random(8), quantization=Quantization((0.05,))
    ),
)

examples(
    GroupNormalization,
    example(input=random(2, 4, 3, 5), scale=random(4), bias=random(4), groups=2),
    example(input=random(2, 6, 3), scale=random(6), groups=3, epsilon=0.1),
    example(input=random(2, 4), groups=1),
    example(input=random(1, 4, 6, dtype=ElementType.FLOAT16), groups=2),
    example(
        **{"input": _bytes(1, 4, 6), "scale": random(4), "bias": random(4), "groups": 4},
        quantization=Quantization((0.05,)),
    ),
)

examples(
    InstanceNormalization,
    example(input=random(2, 3, 4, 5), scale=random(3), bias=random(3)),
    example(input=random(2, 3, 6), bias=random(3), epsilon=0.1),
    example(input=random(2, 3, 2, 2, 2)),
    example(input=random(1, 3, 6, dtype=ElementType.FLOAT16), scale=random(3)),
    example(
        input=_bytes(2, 3, 6), scale=random(3), bias=random(3), quantization=Quantization((0.05,))
    ),
)

examples(
    RMSNormalization,
    example(input=random(2, 3, 4), scale=random(4)),
    example(input=random(2, 3, 4), scale=random(3, 1), begin_norm_axis=1, epsilon=0.1),
    example(input=random(2, 8, dtype=ElementType.FLOAT16), scale=random(8)),
)

examples(
    SkipLayerNormalization,
    example(input=random(2, 3, 8), skip=random(2, 3, 8), scale=random(8), bias=random(8)),
    example(
        input=random(2, 3, 8), skip=random(3, 8), scale=random(8), skip_bias=random(8), epsilon=0.1
    ),
    example(
        **{name: random(2, 8, dtype=ElementType.FLOAT16) for name in ("input", "skip")},
        **{name: random(8, dtype=ElementType.FLOAT16) for name in ("scale", "bias", "skip_bias")},
        epsilon=1e-5,
    ),
    example(input=random(1, 2, 3, 4), skip=random(2, 1, 4), scale=random(1), epsilon=1e-5),
)

examples(
    SkipRMSNormalization,
    example(input=random(2, 3, 8), skip=random(2, 3, 8), scale=random(8), epsilon=1e-5),
    example(input=random(2, 3, 8), skip=random(3, 8), scale=random(8), skip_bias=random(8)),
    example(
        **{name: random(2, 8, dtype=ElementType.FLOAT16) for name in ("input", "skip")},
        scale=random(8, dtype=ElementType.FLOAT16),
        epsilon=1e-5,
    ),
    example(input=random(1, 2, 3, 4), skip=random(2, 1, 4), scale=random(1), epsilon=0.1),
)

examples(
    LpNormalization,
    example(input=random(2, 3, 4)),
    example(input=random(2, 3, 4), axis=-1, p=1, epsilon=0.1),
    example(input=random(5), axis=0, epsilon=0.0),
    example(input=model_input([[0.0, 0.0], [3.0, -4.0]]), epsilon=0.0),
    example(input=random(2, 8, dtype=ElementType.FLOAT16), axis=1),
    example(
        input=random(
            *(2, 8), dtype=ElementType.INT8, low=-128, high=128, quantization=Quantization((0.02,))
        ),
        quantization=Quantization((1 / 128,)),
    ),
)

examples(
    LRN,
    example(input=random(2, 7, 3, 2), alpha=0.1),
    example(input=random(1, 6, 4), size=4, alpha=0.5, beta=0.5, bias=2.0),
    example(input=random(2, 3, 2, 2), size=9, alpha=1.0),
    example(input=random(2, 3, 2, 2, dtype=ElementType.FLOAT16), size=1),
)
