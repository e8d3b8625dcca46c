"""Attention and rotary embedding, compared with ONNX's evaluator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.ops.oracle import of_onnx

from crosschip.ir import Array, Builder, ElementType, ModelError, TensorType
from crosschip.ops.standard.attention import Attention, Causality, RotaryEmbedding

if TYPE_CHECKING:
    from tests.ops.conftest import Checker

QUERY, KEY, VALUE = (2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6)


def seen(*shape: int) -> Array:
    mask = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
    mask[..., 0] = True
    return mask


@pytest.mark.parametrize("scale", [0.0, 0.3])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_attention(check: Checker, scale: float, causal: bool, softcap: float) -> None:
    more: dict[str, Any] = {"scale": scale} if scale else {}
    oracle = of_onnx("Attention", is_causal=int(causal), softcap=softcap, **more)
    causality = Causality(int(causal))

    def build(b: Builder, *given: Any) -> Any:
        return b.add(Attention, *given, causality=causality, scale=scale, softcap=softcap)

    check(build, oracle, QUERY, KEY, VALUE)
    for mask in ((3, 5), (2, 1, 3, 5), (2, 4, 3, 5)):
        check(build, oracle, QUERY, KEY, VALUE, mask)
        check(build, oracle, QUERY, KEY, VALUE, seen(*mask))


def test_heads_in_a_row(check: Checker) -> None:
    check(
        lambda b, *given: b.add(Attention, *given, num_heads=4, key_heads=2),
        of_onnx("Attention", q_num_heads=4, kv_num_heads=2),
        *((2, 3, 32), (2, 5, 16), (2, 5, 12)),
    )


def test_the_last_query_attends_to_the_last_key(check: Checker) -> None:
    """With past keys, which are a separate input in ONNX, queries have the last positions."""
    past = of_onnx("Attention", 3, is_causal=1)
    check(
        lambda b, *given: b.add(Attention, *given, causality=Causality.TO_LAST),
        lambda q, k, v: past(
            q,
            k[:, :, 2:],
            v[:, :, 2:],
            np.zeros((3, 5), np.float32),
            *(np.ascontiguousarray(each[:, :, :2]) for each in (k, v)),
        )[0],
        *(QUERY, (2, 4, 5, 8), (2, 4, 5, 6)),
    )


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("half", [4, 2])
def test_rotary_embedding(check: Checker, interleaved: bool, half: int) -> None:
    attributes = {"interleaved": int(interleaved), "rotary_embedding_dim": 2 * half % 8}

    def build(heads: int) -> Any:
        return lambda b, *given: b.add(RotaryEmbedding, *given, heads, interleaved)

    positions = np.array([[0, 1, 2], [5, 4, 3]])
    apart, row = of_onnx("RotaryEmbedding", **attributes), (2, 3, 24)
    flat = of_onnx("RotaryEmbedding", num_heads=3, **attributes)
    check(build(0), apart, (2, 3, 3, 8), (6, half), (6, half), positions)
    check(build(3), flat, row, (6, half), (6, half), positions)
    tables = ((2, 3, half), (2, 3, half))
    check(
        lambda b, *given: b.add(RotaryEmbedding, *given, num_heads=3, interleaved=interleaved),
        *(flat, row, *tables),
    )


REFUSED = {
    "ATTENTION.query: has 2 axes, but must have 3 or 4": ((3, 8), (2, 2, 5, 8), (2, 2, 5, 8)),
    "ATTENTION.num_heads: 0 is not positive": ((2, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8)),
    "ATTENTION.key: 3 heads do not divide the query's 4": (QUERY, (2, 3, 5, 8), (2, 3, 5, 8)),
    "ATTENTION.key: its last size, and the query's: 7 and 8 differ": (
        QUERY,
        (2, 2, 5, 7),
        (2, 2, 5, 8),
    ),
    "ATTENTION.query: its heads have no numbers": ((2, 2, 3, 0), (2, 2, 5, 0), (2, 2, 5, 8)),
    "ATTENTION.value: its size on axis 2, and the key's: 4 and 5 differ": (
        QUERY,
        KEY,
        (2, 2, 4, 8),
    ),
    "ATTENTION.mask: would make the scores larger": (
        *((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 6)),
        (2, 1, 3, 5),
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_does_not_fit_together(message: str) -> None:
    b = Builder("g")
    given = [
        b.input(f"x{index}", TensorType(ElementType.FLOAT32, shape))
        for index, shape in enumerate(REFUSED[message])
    ]
    with pytest.raises(ModelError) as caught:
        b.add(Attention, *given)
    assert str(caught.value).endswith(message)
