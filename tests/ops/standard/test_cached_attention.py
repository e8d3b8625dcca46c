"""Attention with a cache of keys and values, compared with a loop over tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from crosschip.ir import Array, Builder, ElementType, ModelError, TensorType, symbol
from crosschip.ops.standard.cached_attention import GroupQueryAttention

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

HEADS, KEY_HEADS, SIZE = 4, 2, 16
WIDTH, KEY_WIDTH = HEADS * SIZE, KEY_HEADS * SIZE


def naive(
    query: Array,
    key: Array,
    value: Array,
    lengths: Array,
    total: Array,
    past_key: Array,
    past_value: Array,
    cos: Array | None = None,
    sin: Array | None = None,
    *,
    window: int = 0,
    softcap: float = 0.0,
) -> list[Array]:
    """Compute each token separately, in float64."""
    entries, tokens, _ = query.shape
    room = max(int(total), past_key.shape[2])
    keys, values = (np.zeros((entries, KEY_HEADS, room, SIZE)) for _ in range(2))
    made = np.zeros((entries, tokens, HEADS, SIZE))

    def turned(x: Array, place: int) -> Array:
        if cos is None or sin is None:
            return x
        one, other = x[: len(cos[place])], x[len(cos[place]) :]
        c, s = cos[place], sin[place]
        return np.concatenate([one * c - other * s, one * s + other * c])

    for entry in range(entries):
        old = 0 if total == tokens else int(lengths[entry]) + 1 - tokens
        keys[entry, :, :old] = past_key[entry, :, :old]
        values[entry, :, :old] = past_value[entry, :, :old]
        for token in range(tokens):
            place = old + token
            for head in range(KEY_HEADS):
                part = slice(head * SIZE, (head + 1) * SIZE)
                keys[entry, head, place] = turned(key[entry, token, part], place)
                values[entry, head, place] = value[entry, token, part]
            first = max(0, place + 1 - window) if window else 0
            for head in range(HEADS):
                part, shared = slice(head * SIZE, (head + 1) * SIZE), head * KEY_HEADS // HEADS
                q = turned(query[entry, token, part], place)
                scores = keys[entry, shared, first : place + 1] @ q / np.sqrt(SIZE)
                if softcap:
                    scores = softcap * np.tanh(scores / softcap)
                powers = np.exp(scores - scores.max())
                chances = powers / powers.sum()
                made[entry, token, head] = chances @ values[entry, shared, first : place + 1]
    whole = made.reshape(entries, tokens, HEADS * SIZE)
    return [each.astype(query.dtype) for each in (whole, keys, values)]


def counts(*lengths: int, total: int) -> tuple[Array, Array]:
    return np.array(lengths, np.int32), np.array(total, np.int32)


@pytest.mark.parametrize("rotates", [False, True])
@pytest.mark.parametrize(
    ("tokens", "past", "given"),
    [
        (1, 4, counts(4, 2, total=5)),
        (3, 0, counts(2, 2, total=3)),
        (3, 5, counts(2, 2, total=3)),
        (1, 6, counts(3, 5, total=6)),
        (2, 3, counts(4, total=5)),
    ],
    ids=["one more", "the first", "the first again", "with room", "two more"],
)
def test_group_query_attention(
    check: Checker, tokens: int, past: int, given: tuple[Array, Array], rotates: bool
) -> None:
    entries = len(given[0])
    old = (entries, KEY_HEADS, past, SIZE)
    shapes = [(entries, tokens, width) for width in (WIDTH, KEY_WIDTH, KEY_WIDTH)]
    more: list[Any] = [(8, SIZE // 2)] * 2 if rotates else []
    check(
        lambda b, *tensors: b.add_all(
            *(GroupQueryAttention, *tensors), num_heads=HEADS, key_heads=KEY_HEADS
        ),
        naive,
        *shapes,
        *given,
        old,
        old,
        *more,
        counted=True,
    )


def test_a_window_and_a_softcap(check: Checker) -> None:
    shapes = [(1, 4, width) for width in (WIDTH, KEY_WIDTH, KEY_WIDTH)]
    old = (1, KEY_HEADS, 3, SIZE)
    settings: dict[str, Any] = {"window": 3, "softcap": 1.5}
    check(
        lambda b, *tensors: b.add_all(
            *(GroupQueryAttention, *tensors), num_heads=HEADS, key_heads=KEY_HEADS, **settings
        ),
        lambda *arrays: naive(*arrays, **settings),
        *shapes,
        *counts(6, total=7),
        old,
        old,
        counted=True,
    )


FLOAT, INT = ElementType.FLOAT32, ElementType.INT32
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"key_heads": 3}, "key_heads: 3 do not divide 4 heads"),
    "a width": ({"query": (2, 1, 62)}, "query: 4 heads do not divide 62 numbers"),
    "entries": ({"key": (3, 1, 32)}, "key: its entries, and the query's: 3 and 2 differ"),
    "tokens": ({"value": (2, 2, 32)}, "value: its tokens, and the query's: 2 and 1 differ"),
    "lengths": ({"lengths": (2, 2)}, "lengths: must be one number for each entry"),
    "a total": ({"total": (2,)}, "total: must be one number"),
    "half a past": ({"past_value": None}, "past_key: must be given together with past_value"),
    "another past": (
        {"past_value": (2, 2, 5, 16)},
        "past_value: its size on axis 2, and what it must be: 5 and 4 differ",
    ),
    "a window": ({"window": -1}, "window: -1 is negative"),
    "tables": ({"cos": (8, 9), "sin": (8, 9)}, "cos: 18 numbers are more than the 16 of a head"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(case: str) -> None:
    changed, message = REFUSED[case]
    given: dict[str, Any] = {
        **{"query": (2, 1, 64), "key": (2, 1, 32), "value": (2, 1, 32)},
        **{"lengths": (2,), "total": (), "past_key": (2, 2, 4, 16), "past_value": (2, 2, 4, 16)},
        **{"num_heads": 4, "key_heads": 2},
        **changed,
    }
    b = Builder()
    for name, shape in given.items():
        if isinstance(shape, tuple):
            type_ = INT if name in ("lengths", "total") else FLOAT
            given[name] = b.input(name, TensorType(type_, shape))
    with pytest.raises(ModelError) as error:
        b.add_all(GroupQueryAttention, **given)
    assert message in str(error.value)


def test_the_size_of_what_is_kept_follows_from_the_total() -> None:
    b = Builder()
    tensors = [
        b.input(n, TensorType(FLOAT, (1, symbol("S"), w))) for n, w in (("q", 64), ("k", 32))
    ]
    lengths = b.input("lengths", TensorType(INT, (1,)))
    total = b.input("total", TensorType(INT, ()))
    heads: dict[str, Any] = {"num_heads": 4, "key_heads": 2}
    _, unknown, _ = b.add_all(GroupQueryAttention, *tensors, tensors[1], lengths, total, **heads)
    assert str(unknown.type) == "float32[1, 2, ?, 16]"
    past = b.input("past", TensorType(FLOAT, (1, 2, 3, 16)))
    more = b.constant(np.array(5, np.int32))
    given = [*tensors, tensors[1], lengths, more, past, past]
    _, known, _ = b.add_all(GroupQueryAttention, *given, **heads)
    assert str(known.type) == "float32[1, 2, 5, 16]"
