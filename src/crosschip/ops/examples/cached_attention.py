"""Examples of attention with a cache of keys and values."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from crosschip.ops.definition.examples import Sample, example, examples, model_input, random
from crosschip.ops.standard.cached_attention import GroupQueryAttention


def _count(value: ArrayLike) -> Sample:
    return model_input(np.array(value, np.int32))


examples(
    GroupQueryAttention,
    # The first tokens of two entries.
    example(
        query=random(2, 3, 64),
        key=random(2, 3, 32),
        value=random(2, 3, 32),
        lengths=_count([2, 2]),
        total=np.array(3, np.int32),
        num_heads=4,
        key_heads=2,
    ),
    # One more token for entries of different lengths.
    example(
        query=random(2, 1, 64),
        key=random(2, 1, 32),
        value=random(2, 1, 32),
        lengths=_count([4, 2]),
        total=_count(5),
        past_key=random(2, 2, 4, 16),
        past_value=random(2, 2, 4, 16),
        cos=random(6, 8),
        sin=random(6, 8),
        num_heads=4,
        key_heads=2,
    ),
    # Several more tokens at once, with a window of three.
    example(
        query=random(1, 2, 32),
        key=random(1, 2, 16),
        value=random(1, 2, 16),
        lengths=_count([[4]]),
        total=_count(5),
        past_key=random(1, 1, 3, 16),
        past_value=random(1, 1, 3, 16),
        cos=random(8, 8),
        sin=random(8, 8),
        num_heads=2,
        key_heads=1,
        scale=0.5,
        softcap=3.0,
        window=3,
        interleaved=True,
    ),
    # A past with space for later tokens.
    example(
        query=random(1, 1, 16),
        key=random(1, 1, 16),
        value=random(1, 1, 16),
        lengths=_count([2]),
        total=_count(3),
        past_key=random(1, 2, 5, 8),
        past_value=random(1, 2, 5, 8),
        num_heads=2,
        key_heads=2,
    ),
)
