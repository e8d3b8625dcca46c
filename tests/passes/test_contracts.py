"""The guarantees of all passes, on random models."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import close, contents, float32, model_of, outputs_of
from tests.random_models import Example, examples

from crosschip.ir import Model
from crosschip.passes import (
    DEFAULT,
    Pass,
    Specialize,
    run,
    simplify,
)

PASSES = [*DEFAULT, Specialize({})]
each_pass = pytest.mark.parametrize("step", PASSES, ids=lambda step: type(step).__name__)


def assert_kept(example: Example, after: Model, exact: bool) -> None:
    """Verify the model, its interface and its results."""
    before = example.model
    after.verify()
    assert after.name == before.name
    for kept, was in ((after.inputs, before.inputs), (after.outputs, before.outputs)):
        assert list(kept) == list(was)
        for name, operand in was.items():
            assert kept[name].type.element_type is operand.type.element_type
    results = outputs_of(after, example.inputs)
    for name, array in outputs_of(before, example.inputs).items():
        if exact:
            assert (results[name].dtype, results[name].shape) == (array.dtype, array.shape)
            assert results[name].tobytes() == array.tobytes()
        else:
            close(results[name], array)


@each_pass
@given(example=examples(quantized=True))
def test_a_pass_keeps_what_it_promises(step: Pass, example: Example) -> None:
    assert_kept(example, step(example.model), step.exact)


@each_pass
@given(example=examples(quantized=True))
def test_a_pass_leaves_its_model_alone(step: Pass, example: Example) -> None:
    before = contents(example.model)
    step(example.model)
    assert contents(example.model) == before


@each_pass
@given(example=examples(quantized=True))
def test_a_pass_has_nothing_left_to_do_when_it_is_done(step: Pass, example: Example) -> None:
    once = step(example.model)
    assert contents(step(once)) == contents(once)


@given(examples(quantized=True), st.permutations([step for step in DEFAULT if step.exact]))
def test_passes_that_keep_values_do_so_in_any_order(example: Example, steps: list[Pass]) -> None:
    assert_kept(example, run(example.model, steps), exact=True)


@given(examples(quantized=True))
def test_a_simplified_model_means_the_same(example: Example) -> None:
    simple = simplify(example.model)
    assert_kept(example, simple, exact=False)
    assert len(simple.operations) <= len(example.model.operations)
    assert_kept(example, simplify(simple), exact=False)


@given(examples(quantized=True))
def test_nothing_unused_is_left_after_simplifying(example: Example) -> None:
    simple = simplify(example.model)
    for operation in simple.operations:
        assert any(output in simple.uses for output in operation.outputs)


def test_passes_run_in_order() -> None:
    seen: list[str] = []

    @dataclass(frozen=True)
    class Recorder(Pass):
        """A pass that records its name."""

        name: str

        def rewrite(self, model: Model) -> Model:
            seen.append(self.name)
            return model

    model = model_of(lambda b, x: x, float32(1))
    assert run(model, [Recorder("a"), Recorder("b"), Recorder("a")]) is model
    assert seen == ["a", "b", "a"]
