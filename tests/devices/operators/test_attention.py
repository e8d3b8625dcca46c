"""Attention on the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.devices.checks import Example, adds, claimed_example

import crosschip
from crosschip.ir import Builder, ElementType, TensorType, symbol
from crosschip.ops.standard.attention import Attention, Causality

if TYPE_CHECKING:
    from tests.devices.conftest import Checker

CLAIMS: dict[str, Example] = {
    "ATTENTION": (adds("ATTENTION"), ((2, 3, 4, 8), (2, 3, 4, 8), (2, 3, 4, 6)))
}


@pytest.mark.parametrize("name", CLAIMS)
def test_claims(check: Checker, name: str) -> None:
    assert ElementType.FLOAT32 in claimed_example(check, CLAIMS[name])


@pytest.mark.parametrize("count", [1, 3, 6])
@pytest.mark.parametrize("mask", [(), (2, 1, 3, 1), (1, 4, 1, 1)], ids=str)
def test_attention(check: Checker, count: int, mask: tuple[int, ...]) -> None:
    """ONNX Runtime's kernel is slower if keys and queries differ in number."""
    shapes = [(2, 4, 3, 8), (2, 4, count, 8), (2, 4, count, 6), *([mask] if mask else [])]
    build = adds("ATTENTION", scale=0.5)
    if check.device.name == "onnxruntime" and count != 3:
        check.declines(build, *shapes, why="key: of other sizes than queries")
    else:
        check(build, *shapes, symbolic_too=False, rankless_too=False)


@pytest.mark.parametrize("device", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("opens", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("in_a_row", [False, True], ids=["apart", "in a row"])
def test_causality(device: str, opens: bool, in_a_row: bool) -> None:
    """Without an operator of the engine, causality becomes a mask."""
    random = np.random.default_rng(0)
    for causality in (Causality.FROM_FIRST, Causality.TO_LAST):
        for count, mask in ((3, ()), (6, (2, 1, 3, 1))):
            counts = (3, count, count)
            shapes = [(2, n, 32) if in_a_row else (2, 4, n, 8) for n in counts]
            b, given, inputs = Builder(), [], {}
            for name, shape in zip("qkvm", [*shapes, *([mask] if mask else [])], strict=False):
                size = symbol(f"{name}s") if opens and name in "qk" else shape[-2]
                size = symbol("ks") if opens and name == "v" else size
                type_ = TensorType(ElementType.FLOAT32, (*shape[:-2], size, shape[-1]))
                given.append(b.input(name, type_))
                inputs[name] = random.normal(size=shape).astype(np.float32)
            heads = 4 if in_a_row else 0
            more = given[3] if mask else None
            b.output("y", b.add(Attention, *given[:3], more, causality, num_heads=heads))
            model = b.build()
            with crosschip.compile(model, [device], cache=False) as compiled:
                made = compiled.run(inputs)["y"]
            with crosschip.compile(model, ["reference"], cache=False) as compiled:
                np.testing.assert_allclose(made, compiled.run(inputs)["y"], 1e-5, 1e-5)
