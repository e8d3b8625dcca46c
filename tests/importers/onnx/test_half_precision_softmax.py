"""ONNX's expected values of attention in float16 have the rounding of their evaluator's softmax.

`attention_4d_causal_fp16_expanded` is two spacings of float16 off in two of 192 values, on
`reference` and on `xla`. All that it computes is the same as in ONNX's evaluator but for the
softmax, which that rounds to float16 after each step; ours rounds the exact result once.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes
from tests.importers.onnx.backend_cases import Array, Case, cases

import crosschip

NAME = "test_attention_4d_causal_fp16_expanded"
PREFIX = "Attention_test_attention_4d_causal_fp16_expanded_function_"
SCORES, SOFTMAX, OUTPUT = f"{PREFIX}SoftmaxCast", f"{PREFIX}AttnWeightSoftmax", "Y"


@pytest.fixture(scope="module")
def case() -> Case:
    return next(case for case in cases() if case.name == NAME)


@pytest.fixture(scope="module")
def exposed(case: Case) -> ModelProto:
    """Return the model with all that it computes in float16 as outputs."""
    model = ModelProto()
    model.CopyFrom(case.model)
    known = infer_shapes(case.model).graph.value_info
    model.graph.output.extend(v for v in known if v.type.tensor_type.elem_type == 10)
    return model


@pytest.fixture(scope="module")
def inputs(case: Case) -> dict[str, Array]:
    ((arrays, _),) = case.data_sets
    return dict(zip((i.name for i in case.model.graph.input), map(np.asarray, arrays), strict=True))


@pytest.fixture(scope="module")
def theirs(exposed: ModelProto, inputs: dict[str, Array]) -> dict[str, Array]:
    values = ReferenceEvaluator(exposed).run(None, inputs)
    return dict(zip((output.name for output in exposed.graph.output), values, strict=True))


@pytest.fixture(scope="module")
def ours(exposed: ModelProto, inputs: dict[str, Array]) -> dict[str, Array]:
    with crosschip.compile(exposed, "reference", cache=False) as compiled:
        return dict(compiled.run(inputs))


def softmax(scores: Array) -> Array:
    """In float64, rounded to float16 once."""
    powers = np.exp(scores.astype(np.float64) - scores.max(-1, keepdims=True))
    return np.asarray((powers / powers.sum(-1, keepdims=True)).astype(np.float16))


def test_ours_is_the_exact_softmax_rounded_once_and_theirs_is_not(
    ours: dict[str, Array], theirs: dict[str, Array]
) -> None:
    np.testing.assert_array_equal(ours[SCORES], theirs[SCORES])
    exact = softmax(theirs[SCORES])
    np.testing.assert_array_equal(ours[SOFTMAX], exact)
    assert (theirs[SOFTMAX] != exact).any()


def test_nothing_before_the_softmax_differs(
    exposed: ModelProto, ours: dict[str, Array], theirs: dict[str, Array]
) -> None:
    order = [name for node in exposed.graph.node for name in node.output if name in theirs]
    differing = [name for name in order if not np.array_equal(ours[name], theirs[name])]
    assert differing[0] == SOFTMAX


def test_the_product_of_their_softmax_is_their_output(
    ours: dict[str, Array], theirs: dict[str, Array], inputs: dict[str, Array]
) -> None:
    for values in (ours, theirs):
        product = values[SOFTMAX].astype(np.float32) @ inputs["V"].astype(np.float32)
        np.testing.assert_array_equal(values[OUTPUT], product.astype(np.float16))
