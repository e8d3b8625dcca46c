"""Examples of attention and rotary position embedding."""

from __future__ import annotations

from crosschip.ir import ElementType
from crosschip.ops.definition.examples import example, examples, model_input, random
from crosschip.ops.standard.attention import Attention, Causality, RotaryEmbedding

_PADDED = [[True, True, True, False, False], [True, True, True, True, True]]
_FAR = -10000.0

examples(
    Attention,
    example(query=random(2, 3, 4, 8), key=random(2, 3, 5, 8), value=random(2, 3, 5, 6)),
    example(
        query=random(2, 2, 4, 8),
        key=random(2, 2, 5, 8),
        value=random(2, 2, 5, 8),
        mask=model_input([[[keys]] for keys in _PADDED]),
        scale=0.5,
    ),
    example(
        query=random(2, 4, 3, 8),
        key=random(2, 2, 5, 8),
        value=random(2, 2, 5, 8),
        mask=random(3, 5),
        causality=Causality.TO_LAST,
        softcap=2.0,
    ),
    example(
        query=random(1, 2, 4, 8),
        key=random(1, 2, 4, 8),
        value=random(1, 2, 4, 8),
        causality=Causality.FROM_FIRST,
    ),
    example(
        query=random(1, 2, 2, 8),
        key=random(1, 2, 3, 8),
        value=random(1, 2, 3, 8),
        mask=model_input([[[[0.0, 0.0, 0.0], [0.0, 0.0, _FAR]]]]),
    ),
    example(
        query=random(2, 3, 16),
        key=random(2, 3, 16),
        value=random(2, 3, 12),
        causality=Causality.TO_LAST,
        num_heads=2,
    ),
    example(
        query=random(2, 1, 16),
        key=random(2, 1, 5, 4),
        value=random(2, 1, 5, 4),
        mask=random(1, 1, 5),
        num_heads=4,
        key_heads=1,
    ),
    example(
        query=random(1, 4, 1, 8, dtype=ElementType.FLOAT16),
        key=random(1, 2, 6, 8, dtype=ElementType.FLOAT16),
        value=random(1, 2, 6, 8, dtype=ElementType.FLOAT16),
    ),
)

examples(
    RotaryEmbedding,
    example(
        input=random(2, 3, 4, 8),
        cos=random(6, 4),
        sin=random(6, 4),
        positions=model_input([[0, 1, 2, 3], [5, 4, 3, 2]]),
    ),
    example(
        input=random(2, 3, 24),
        cos=random(6, 3),
        sin=random(6, 3),
        positions=model_input([[2, 3, 4]]),
        num_heads=3,
    ),
    example(
        input=random(2, 3, 16),
        cos=random(2, 3, 4),
        sin=random(2, 3, 4),
        num_heads=2,
        interleaved=True,
    ),
    example(
        **{"input": random(1, 2, 3, 10), "cos": random(4, 4), "sin": random(4, 4)},
        positions=model_input([[1, 2, 3]]),
        interleaved=True,
    ),
    example(
        input=random(1, 2, 3, 8, dtype=ElementType.FLOAT16),
        cos=random(1, 3, 4, dtype=ElementType.FLOAT16),
        sin=random(1, 3, 4, dtype=ElementType.FLOAT16),
    ),
)
